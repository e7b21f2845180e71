"""Progress that a timer says: at intervals of the clock, the greatest time seen so far (thesis 8.1, as in Gigascope).

Periods are the multiples of `every` since 1970. The timer fires when the clock is looked at for the first time in a
period: before rows are taken, or while nothing comes. What it says is the greatest time of the rows before, less a
disorder that is allowed besides; between two firings the bound stays, so rows may be out of order by as much as comes
in a period. A clock that goes back fires nothing until it is where it was.

The other half of the thesis's timer, for a stream that lags behind the clock by more than s, is `lull="s"`.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import StreamError
from penstock.model.time import Domain, Length, length_ticks

HINT = "timer(every='1 second')"


@dataclass(frozen=True)
class Timer:
    """Every so often by the clock, what the rows have reached is said."""

    every: Length
    disorder: Length = 0

    def __post_init__(self) -> None:
        """A period, and a length of the stream's time."""
        if self.period < 1:
            raise StreamError("timer(every=…) takes a length of time.", got=repr(self.every), hint=HINT)
        length_ticks(self.disorder, None)

    @property
    def period(self) -> int:
        """The microseconds between two firings."""
        if isinstance(self.every, int):
            raise StreamError("timer(every=…) takes a length of time.", got=repr(self.every)[:200], hint=HINT)
        return length_ticks(self.every, Domain.TIMESTAMP)

    def __str__(self) -> str:
        """As written by the user."""
        return f"timer({self.every!r}{'' if self.disorder == 0 else f', disorder={self.disorder!r}'})"


def timer(every: Length, *, disorder: Length = 0) -> Timer:
    """Every so often by the clock, the greatest time so far is the bound.

    Args:
        every: How often: `"1 second"`.
        disorder: The bound stays behind the greatest time by so much.
    """
    return Timer(every, disorder)
