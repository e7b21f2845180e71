"""What was promised of some groups lately, for people and records to see: no more of it than they can use.

A promise is forgotten when a linear bound has passed it, or another promise says as much. Promises that are final no
linear bound passes before the end, and there may be one for every group that ever was: of all that are left the last
`MOST` are kept. What judges rows keeps all of them elsewhere (`Frontier`); forgetting one here says less, never more.

In records promises are encoded as they are in pages, since JSON cannot say every constant; shown, their times are
written as times, and other constants that JSON has not as text.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.plain import decode, encode
from penstock.model.schema import Schema
from penstock.model.time import Domain, show_ticks

MOST = 100
Shown = dict[str, dict[str, Any]]
"""The constants of a promise (`of`) and its bounds (`up_to`), by name."""


class RecentPromises:
    """The last promises that are not linear."""

    __slots__ = ("_kept",)

    def __init__(self, promises: Iterable[Punctuation] = ()) -> None:
        """Those that are left of some, the newest last."""
        self._kept: tuple[Punctuation, ...] = ()
        for promise in promises:
            self.add(promise)

    def __iter__(self) -> Iterator[Punctuation]:
        """The oldest first; whoever adds meanwhile does not disturb it."""
        return iter(self._kept)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._kept)

    def add(self, promise: Punctuation) -> None:
        """Take a promise in, and forget what follows from it."""
        if any(known.implies(promise) for known in self._kept):
            return
        left = [known for known in self._kept if not promise.implies(known)]
        if not promise.is_linear:
            left.append(promise)
        self._kept = tuple(left[-MOST:])

    def to_plain(self) -> list[Any]:
        """Bounds and constants of each."""
        return [(promise.bounds, promise.constants) for promise in self._kept]

    @staticmethod
    def from_plain(data: Sequence[Sequence[Any]]) -> RecentPromises:
        """The other way."""
        return RecentPromises(promise for each in data for promise in Frontier.from_plain([each]))

    def to_text(self) -> str:
        """For JSON."""
        return base64.b64encode(encode(self.to_plain())).decode()

    @staticmethod
    def from_text(text: str | None, where: str) -> RecentPromises:
        """Of JSON; nothing if it says nothing."""
        return RecentPromises() if text is None else RecentPromises.from_plain(decode(base64.b64decode(text), where))

    def shown(self, schema: Schema) -> tuple[Shown, ...]:
        """For people and programs; columns that the schema hides are shown by name too, since promises are on them."""
        return tuple([_shown(promise, schema) for promise in self._kept])


def _shown(promise: Punctuation, schema: Schema) -> Shown:
    bounds = {name: show_ticks(bound, schema.domain) for name, bound in promise.bounds}
    return {"of": {name: _value(name, value, schema) for name, value in promise.constants}, "up_to": bounds}


def _value(name: str, value: object, schema: Schema) -> Any:
    if name in schema and schema[name].type.name == "timestamp" and isinstance(value, int):
        return show_ticks(value, Domain.TIMESTAMP)
    plain = value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and value - value == 0)
    return value if plain else str(value)
