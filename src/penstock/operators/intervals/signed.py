"""The positive-negative form: events as two rows, one where they begin and one where they end (GenMig, section 2.3).

A row has a time and a sign: +1 says that a payload is there from then on, -1 that one less is. Each row lives one tick;
the payload is every column but these two. `ToSigned` makes such a stream of events with lives, `FromSigned` the other
way.

The operators of this form look at one instant after the other: what comes is held until every input has promised that
nothing of its time will come any more, so disorder is of no account. At an instant all that happens is taken together,
and what comes out is the difference that it makes: negative rows first, no pair of rows that cancel each other. So a
row that ends and one that begins at the same instant never meet.

State: what waits for its turn, and what is there now.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.lives import Lives
from penstock.model.schema import BIGINT, DataType, Field, Schema
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.operators.intervals.layout import START, interval_schema, key_of, payload_types
from penstock.operators.intervals.least import Progressing
from penstock.operators.operator import Outputs

SIGN = "sign"
WAITING, HERE = "waiting", "here"
Change = tuple[int, int, Row, int]
"""When, on which port, of which payload, and how many more."""
Here = list[Counter[Row]]
"""What is there now, by port."""


def signed_schema(types: Sequence[DataType]) -> Schema:
    """A schema of signed rows with payloads of these types."""
    fields = [Field(f"c{at}", type_) for at, type_ in enumerate(types)]
    return Schema((*fields, Field(SIGN, BIGINT, hidden=True), Field(START, BIGINT, hidden=True)), START)


def signed_types(schema: Schema) -> list[DataType]:
    """The types of what is in a payload."""
    return [field.type for field in schema.fields if field.name not in (SIGN, START)]


class InstantByInstant(Progressing):
    """Takes all that happens at an instant together, once nothing more can happen then."""

    def __init__(self, schema: Schema, ports: int) -> None:
        """Whatever is given has a payload, a sign and a time, in this order."""
        super().__init__(schema)
        self.ports = ports

    @abstractmethod
    def change(self, here: Here, port: int, payload: Row, more: int) -> Iterable[tuple[Row, int]]:
        """So many more of a payload are there: `here` is changed, and what that makes of the result is given back."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Hold what comes."""
        waiting: list[Change] = self.pages.get(WAITING) or []
        for *payload, more, at in batch.rows:
            waiting.append((at, port, canonical_row(tuple(payload)), more))  # type: ignore[arg-type]
        self.pages.put(WAITING, waiting)
        return ()

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Go on to where all inputs have come."""
        bounds = self.heard(port, punctuation)
        if bounds is None:
            return
        bound = min(bounds)
        waiting: list[Change] = self.pages.get(WAITING) or []
        due = sorted((c for c in waiting if c[0] < bound or bound == END_OF_TIME), key=lambda change: change[0])
        if due:
            self.pages.put(WAITING, [c for c in waiting if not (c[0] < bound or bound == END_OF_TIME)])
            rows = self._gone_through(due)
            if rows:
                yield Batch(self.schema, rows)
        yield from self.told(bound)

    def _gone_through(self, due: list[Change]) -> list[Row]:
        here: Here = self.pages.get(HERE) or [Counter() for _ in range(self.ports)]
        rows: list[Row] = []
        made: Counter[Row] = Counter()
        for place, (at, port, payload, more) in enumerate(due):
            for result, n in self.change(here, port, payload, more):
                made[result] += n
            if place + 1 == len(due) or due[place + 1][0] != at:
                told = [(n, result) for result, n in made.items() if n]
                for sign in (-1, 1):
                    rows += [(*result, sign, at) for n, result in told for _ in range(n * sign)]
                made = Counter()
        self.pages.put(HERE, here)
        return rows

    def values_held(self) -> int:
        """How many values are held."""
        here: Here = self.pages.get(HERE) or []
        return sum(len(payload) * n for each in here for payload, n in each.items())

    def to_plain(self, key: str, page: Any) -> Any:
        """Counters as pairs."""
        return [list(map(list, each.items())) for each in page] if key == HERE else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key == HERE:
            return [Counter({canonical_row(tuple(row)): n for row, n in each}) for each in data]
        return [(at, port, canonical_row(tuple(row)), n) for at, port, row, n in data] if key == WAITING else data


def _add(counted: Counter[Row], payload: Row, more: int) -> None:
    counted[payload] += more
    if not counted[payload]:
        del counted[payload]


class SignedJoin(InstantByInstant):
    """The pairs of what is there."""

    kind = "signed join"

    def __init__(self, left: Schema, right: Schema, on: Sequence[tuple[int, int]]) -> None:
        """`on` are pairs of places in the payloads."""
        super().__init__(signed_schema([*signed_types(left), *signed_types(right)]), 2)
        self.on = ([a for a, _ in on], [b for _, b in on])

    def change(self, here: Here, port: int, payload: Row, more: int) -> Iterable[tuple[Row, int]]:
        """A pair with each partner that is there."""
        _add(here[port], payload, more)
        key = key_of(payload, self.on[port])
        for partner, n in here[1 - port].items():
            if None not in key and key_of(partner, self.on[1 - port]) == key:
                yield (payload + partner if port == 0 else partner + payload), more * n


class SignedDistinct(InstantByInstant):
    """What is there, once."""

    kind = "signed dupelim"

    def __init__(self, schema: Schema) -> None:
        """Payloads are compared."""
        super().__init__(schema, 1)

    def change(self, here: Here, port: int, payload: Row, more: int) -> Iterable[tuple[Row, int]]:
        """One more if there was none, one less if none is left."""
        before = here[0][payload] > 0
        _add(here[0], payload, more)
        return [(payload, int(here[0][payload] > 0) - before)]


class SignedCount(InstantByInstant):
    """How many are there of each group; no row where none is."""

    kind = "signed count"

    def __init__(self, schema: Schema, by: Sequence[int]) -> None:
        """`by` are places of the payload."""
        types = signed_types(schema)
        super().__init__(signed_schema([*(types[at] for at in by), BIGINT]), 1)
        self.by = list(by)

    def change(self, here: Here, port: int, payload: Row, more: int) -> Iterable[tuple[Row, int]]:
        """The count before goes, the count now comes."""
        group = tuple([payload[at] for at in self.by])
        before = here[0][group]
        _add(here[0], group, more)
        now = here[0][group]
        return [((*group, n), sign) for n, sign in ((before, -1), (now, 1)) if n > 0]


class ToSigned(Progressing):
    """Events with lives as signed rows, in order of time."""

    kind = "to signed"

    def __init__(self, schema: Schema) -> None:
        """`schema` is that of the events."""
        super().__init__(signed_schema(payload_types(schema)))
        self.places = [at for at, field in enumerate(schema.fields) if field.name != schema.time]

    def process(self, port: int, batch: Batch) -> Outputs:
        """Hold a positive and a negative row of each."""
        waiting: list[Row] = self.pages.get(WAITING) or []
        ends = batch.its_lives().ends.tolist()
        for row, start, end in zip(batch.rows, batch.times().tolist(), ends, strict=True):
            payload = tuple([row[at] for at in self.places])
            waiting += [(*payload, 1, start), (*payload, -1, end)]
        self.pages.put(WAITING, waiting)
        return ()

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Let out what nothing earlier can come before; an end that is open never comes."""
        bounds = self.heard(port, punctuation)
        if bounds is None:
            return
        (bound,) = bounds
        waiting: list[Row] = self.pages.get(WAITING) or []
        due = [row for row in waiting if row[-1] < bound]  # type: ignore[operator]
        self.pages.put(WAITING, [row for row in waiting if row[-1] >= bound])  # type: ignore[operator]
        if due:
            yield Batch(self.schema, sorted(due, key=lambda row: row[:-3:-1]))
        yield from self.told(bound)

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """Rows are tuples."""
        return [tuple(row) for row in data] if key == WAITING else data


class FromSigned(Progressing):
    """Signed rows as events: what began first ends first, and comes out when it ends."""

    kind = "from signed"

    def __init__(self, schema: Schema) -> None:
        """`schema` is that of the signed rows, which come in order of time."""
        super().__init__(interval_schema(signed_types(schema)))

    def process(self, port: int, batch: Batch) -> Outputs:
        """Negative rows let out the events that they end."""
        begun: dict[Row, list[int]] = self.pages.get(HERE) or {}
        rows: list[Row] = []
        ends: list[int] = []
        for *values, sign, at in batch.rows:
            payload = canonical_row(tuple(values))
            if sign == 1:
                begun.setdefault(payload, []).append(at)  # type: ignore[arg-type]
                continue
            start = begun[payload].pop(0)
            if not begun[payload]:
                del begun[payload]
            rows.append((*payload, start))
            ends.append(at)  # type: ignore[arg-type]
        self.pages.put(HERE, begun)
        if rows:
            yield Batch(self.schema, rows, lives=Lives.of_inserts(np.array(ends, np.int64)))

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Events that have begun hold the bound back; what never ends comes out when all has."""
        bounds = self.heard(port, punctuation)
        if bounds is None:
            return
        (bound,) = bounds
        begun: dict[Row, list[int]] = self.pages.get(HERE) or {}
        if bound == END_OF_TIME and begun:
            rows = [(*payload, start) for payload, starts in begun.items() for start in starts]
            self.pages.delete(HERE)
            begun = {}
            yield Batch(self.schema, rows, lives=Lives.of_inserts(np.full(len(rows), END_OF_TIME)))
        yield from self.told(min([bound, *(start for starts in begun.values() for start in starts)]))

    def to_plain(self, key: str, page: Any) -> Any:
        """Payloads with the starts of their events."""
        return [[payload, starts] for payload, starts in page.items()] if key == HERE else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        return {canonical_row(tuple(payload)): starts for payload, starts in data} if key == HERE else data
