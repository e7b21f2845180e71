"""What time it is, as whoever hosts a graph is told: a number of microseconds since 1970, at which rows may be stamped.

A clock is the user's to replace, and what it says becomes times of rows, bounds and ages in queues. So it is checked
where it is read: it says a whole number, and one that a row of a stream may have as its time (`model.time.usable`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.errors import StreamError
from penstock.model.elements import is_whole
from penstock.model.time import Domain, show_ticks, usable

_FIRST, _LAST = usable(Domain.TIMESTAMP)


class Clock:
    """A clock whose readings are checked."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], int]) -> None:
        """`read` says what time it is."""
        if not callable(read):
            raise StreamError(
                "A clock is called, so it is a function.", where="clock", got=repr(read)[:200], hint="lambda: 10**15"
            )
        self.read = read

    def __call__(self) -> int:
        """What time it is."""
        return checked_now(self.read(), "clock")


def wall_clock() -> int:
    """This machine's own."""
    return time.time_ns() // 1000


def checked_now(now: object, where: str) -> int:
    """What somebody says that the time is, if it can be one."""
    if is_whole(now):
        found = int(now)  # type: ignore[call-overload]
        if _FIRST <= found <= _LAST:
            return int(found)
        first, last = (show_ticks(tick, Domain.TIMESTAMP) for tick in (_FIRST, _LAST))
        raise StreamError(
            "The clock is outside of the times that rows may have.",
            where=where,
            got=f"{now} microseconds since 1970",
            hint=f"from {first} to {last}",
        )
    raise StreamError(
        "A time is a number of ticks.", where=where, got=repr(now)[:200], hint="microseconds since 1970, a whole number"
    )
