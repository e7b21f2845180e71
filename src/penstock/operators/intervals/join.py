"""Joins over lives: a pair is valid while both of its parts are (GenMig, section 2.2).

Two events meet if their values are equal, or a condition holds, and their lives overlap; the life of the pair is where
they do. Neither order nor which input is ahead is of account. A row is held until the other input has promised that
nothing will come any more that begins before its end. A pair begins no earlier than either part, so what is promised is
the least bound of both; when one input has ended and nothing of it is held, nothing more comes at all.

`HashJoin` finds partners by equal values, null equal to nothing. `NestedLoopsJoin` asks its condition of every pair, as
the paper's experiments do.

`kept_for` holds rows by their starts and not by their ends, for so long: that is how the Parallel Track strategy was
first described, where a result of a join is purged by the youngest of its parts although it can meet nothing any more.

State: the rows of each side, in one page per side.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.intervals.held import Held
from penstock.operators.intervals.layout import (
    Event,
    Layout,
    interval_schema,
    key_of,
    payload_types,
    with_generations,
)
from penstock.operators.intervals.least import Progressing
from penstock.operators.operator import Outputs

LEFT, RIGHT = 0, 1


def joined_schema(left: Schema, right: Schema) -> Schema:
    """The payload of the left before that of the right."""
    made = interval_schema([*payload_types(left), *payload_types(right)])
    return with_generations(made) if Layout(left).generation is not None else made


class IntervalJoin(Progressing):
    """Holds the rows of both sides while they can be met."""

    ports = 2
    starts_with_the_last = True

    def __init__(self, left: Schema, right: Schema, *, kept_for: int | None = None) -> None:
        """`kept_for` is how long a row is held from its start on, if not until its end."""
        super().__init__(joined_schema(left, right))
        self.layouts, self.out = (Layout(left), Layout(right)), Layout(self.schema)
        self.kept_for = kept_for

    @abstractmethod
    def key(self, port: int, payload: Row) -> Row | None:
        """What a row is held under; None if it can meet nothing."""

    @abstractmethod
    def partners(self, port: int, payload: Row, held: Iterable[Event]) -> Iterable[Event]:
        """Which of the rows that are held under a row's key it meets, whenever they live."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Meet what the other side holds, and be held."""
        own, other = self.side(port), self.side(1 - port)
        known = self.bounds()[1 - port]
        pairs: list[Event] = []
        added = False
        for event in self.layouts[port].events(batch):
            key = self.key(port, event.payload)
            if key is None:
                continue
            pairs += _pairs(port, event, self.partners(port, event.payload, other.of(key)))
            until = event.end if self.kept_for is None else event.start + self.kept_for
            if until > known:
                own.add(key, event, until)
                added = True
        if added:
            self.pages.put(f"side{port}", own)
        if pairs:
            yield self.out.batch(pairs)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Give up what can no longer be met, then say how far both have come."""
        bounds = self.heard(port, punctuation)
        if bounds is None:
            return
        other = self.side(1 - port)
        if other.give_up(bounds[port]):
            self.pages.put(f"side{1 - port}", other)
        over = any(bounds[p] == END_OF_TIME and not len(self.side(p)) for p in (LEFT, RIGHT))
        yield from self.told(END_OF_TIME if over else min(bounds))

    def side(self, port: int) -> Held:
        """What is held of an input."""
        found: Held | None = self.pages.get(f"side{port}")
        return Held() if found is None else found

    def oldest_generation(self) -> int | None:
        """The least generation of what is held; None if nothing is."""
        return min((g for port in (LEFT, RIGHT) for g in self.side(port).generations), default=None)

    def values_held(self) -> int:
        """How many values are held, as the paper counts memory."""
        return sum(len(event.payload) for port in (LEFT, RIGHT) for event in self.side(port).events())

    def to_plain(self, key: str, page: Any) -> Any:
        """Sides as columns."""
        return page.to_plain() if isinstance(page, Held) else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        return Held.from_plain(data) if key.startswith("side") else data


def _pairs(port: int, event: Event, partners: Iterable[Event]) -> list[Event]:
    """A row beside each of its partners, while both live."""
    start, end, payload, generation = event
    found = []
    for its_start, its_end, its_payload, its_generation in partners:
        begins = start if start > its_start else its_start
        ends = end if end < its_end else its_end
        if begins < ends:
            pair = payload + its_payload if port == LEFT else its_payload + payload
            found.append(Event(begins, ends, pair, min(generation, its_generation)))
    return found


class HashJoin(IntervalJoin):
    """Finds partners by equal values."""

    kind = "interval hash join"

    def __init__(
        self, left: Schema, right: Schema, on: Sequence[tuple[int, int]], *, kept_for: int | None = None
    ) -> None:
        """`on` are pairs of places in the payloads."""
        super().__init__(left, right, kept_for=kept_for)
        self.on = ([a for a, _ in on], [b for _, b in on])

    def key(self, port: int, payload: Row) -> Row | None:
        """The values that must be equal."""
        key = key_of(payload, self.on[port])
        return None if None in key else key

    def partners(self, port: int, payload: Row, held: Iterable[Event]) -> Iterable[Event]:
        """All of them."""
        return held


class NestedLoopsJoin(IntervalJoin):
    """Asks a condition of every pair."""

    kind = "interval nested-loops join"

    def __init__(
        self, left: Schema, right: Schema, holds: Callable[[Row, Row], bool | None], *, kept_for: int | None = None
    ) -> None:
        """`holds` is asked of a payload of the left and one of the right."""
        super().__init__(left, right, kept_for=kept_for)
        self.holds = holds

    def key(self, port: int, payload: Row) -> Row | None:
        """All are held together."""
        return ()

    def partners(self, port: int, payload: Row, held: Iterable[Event]) -> Iterable[Event]:
        """Those for which the condition holds."""
        holds = self.holds
        if port == LEFT:
            return [event for event in held if holds(payload, event[2])]
        return [event for event in held if holds(event[2], payload)]
