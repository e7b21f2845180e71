"""Streams as they arrive, and what of them is on time: the input that the oracle shares with the engines it judges.

A row without a time is a dead letter: it takes no part, not even in progress; where several attributes progress, one
without any of them (`attributes`). Several streams arrive in step: the
first batch of each in the order in which they are given, then the second of each, and so on; a stream with fewer
batches runs dry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.model.batch import Row
from penstock.model.elements import Adjust, Insert
from penstock.model.progress import PerSource, Progress, Punctuated, Several
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import Expression, columns_in
from penstock.reference.attributes import Declared, JudgedAttributes, judge_attributes
from penstock.reference.lateness import Judged, Kind, judge, kind_of
from penstock.reference.scalars import Functions, value_of
from penstock.sql.predicates import punctuation_predicate, punctuation_predicates


@dataclass(frozen=True)
class Arrivals:
    """One stream: its declaration, and its rows in batches as they arrive.

    Rows are in the order of the schema, with timestamps as ticks, and with the columns of their lives if they have any.
    """

    name: str
    schema: Schema
    progress: Progress
    batches: tuple[tuple[Row, ...], ...]
    max_ahead: int | None = None
    lives: tuple[str, ...] | None = None
    """The columns of start, end and old end, where rows have lives of their own."""

    @property
    def timed(self) -> list[list[Row]]:
        """The batches without the rows that have no time; where several attributes progress, all rows."""
        if isinstance(self.progress, Several):
            return [list(batch) for batch in self.batches]
        time = self.schema.time_index
        return [[row for row in batch if row[time] is not None] for batch in self.batches]

    @property
    def untimed(self) -> int:
        """How many rows have no time; where several attributes progress they are judged with the others."""
        if isinstance(self.progress, Several):
            return 0
        time = self.schema.time_index
        return sum(row[time] is None for batch in self.batches for row in batch)

    def data(self, catalog: Catalog) -> list[Row]:
        """The rows that have a time and are not punctuation, late or not."""
        if isinstance(self.progress, Several):
            declared = self.declared(catalog)
            return [row for batch in self.batches for row in batch if declared.kind(row) == "data"]
        return [row for row, kind in self._kinds(catalog) if kind == "data"]

    def refused(self, catalog: Catalog) -> int:
        """How many rows take no part in any order: it cannot be told whether, or of what, they are punctuation."""
        if isinstance(self.progress, Several):
            kinds = map(self.declared(catalog).kind, (row for batch in self.batches for row in batch))
            return sum(kind in ("ambiguous", "unjudged", "incomplete") for kind in kinds)
        return sum(kind in ("ambiguous", "unjudged") for _, kind in self._kinds(catalog))

    def _kinds(self, catalog: Catalog) -> list[tuple[Row, Kind]]:
        """The rows that have a time, each with what it is."""
        assert not isinstance(self.progress, Several)
        is_punctuation, is_ambiguous = self._is_punctuation(catalog), self._is_ambiguous(catalog)
        rows = [row for batch in self.timed for row in batch]
        return [(row, kind_of(row, self.progress, is_punctuation, is_ambiguous)) for row in rows]

    def judge(self, granularity: Literal["row", "batch"], catalog: Catalog) -> Judged | JudgedAttributes:
        """Which rows are on time, late or punctuation, by row or by batch."""
        if isinstance(self.progress, Several):
            return judge_attributes(self.declared(catalog), self.batches, granularity)
        source = self.schema.index(self.progress.column) if isinstance(self.progress, PerSource) else None
        return judge(
            self.progress,
            self.schema.time_index,
            self.timed,
            granularity=granularity,
            is_punctuation=self._is_punctuation(catalog),
            is_ambiguous=self._is_ambiguous(catalog),
            source_index=source,
            per=self._per,
            domain=self.schema.domain,
            max_ahead=self.max_ahead,
            judged_by=None if self.lives is None else self.judged_by,
        )

    def declared(self, catalog: Catalog) -> Declared:
        """How the attributes progress, where there are several."""
        assert isinstance(self.progress, Several)
        predicates = punctuation_predicates(self.progress, self.schema, catalog, self.name)
        functions = {name: f.function for name, f in catalog.functions.items()}
        read = self.progress.attributes, *(columns_in(p) for p in predicates if p is not None)
        speaking = {name for names in read for name in names}
        silent = tuple(i for i, field in enumerate(self.schema.fields) if field.name not in speaking)
        return Declared(
            self.progress,
            self.schema,
            tuple(None if p is None else self._holds(p, functions) for p in predicates),
            tuple(
                silent if isinstance(how, Punctuated) and not how.whole_stream else ()
                for _, how in self.progress.entries
            ),
        )

    def _holds(self, predicate: Expression, functions: Functions) -> Callable[[Row], bool]:
        return lambda row: value_of(predicate, row, self.schema, functions) is True

    def judged_by(self, row: Row) -> int:
        """What a bound is compared with: the start of an insert, the lesser of an adjust's ends."""
        element = self.element(row)
        assert not isinstance(element, tuple)
        return element.lateness_time if isinstance(element, Adjust) else element.vs

    def element(self, row: Row) -> Row | Insert | Adjust:
        """A row with a life as an element: what is left of it without its ends is the payload."""
        if self.lives is None:
            return row
        start, end, *old = (self.schema.index(name) for name in self.lives)
        payload = tuple(v for i, v in enumerate(row) if i not in (end, *old))
        vs, ve, was = row[start], row[end], row[old[0]] if old else None
        assert isinstance(vs, int)
        ve = END_OF_TIME if ve is None else ve
        assert isinstance(ve, int)
        if was is None:
            return Insert(payload, vs, ve)
        assert isinstance(was, int)
        return Adjust(payload, vs, was, ve)

    @property
    def _per(self) -> list[int]:
        """The columns whose values in punctuation say which rows it is about."""
        return [self.schema.index(name) for name in self.progress.per] if isinstance(self.progress, Punctuated) else []

    def _is_punctuation(self, catalog: Catalog) -> Callable[[Row], bool] | None:
        if not isinstance(self.progress, Punctuated):
            return None
        predicate = punctuation_predicate(self.progress, self.schema, catalog, self.name)
        functions = {name: f.function for name, f in catalog.functions.items()}
        return lambda row: value_of(predicate, row, self.schema, functions) is True

    def _is_ambiguous(self, catalog: Catalog) -> Callable[[Row], bool] | None:
        """Punctuation with a value in a column that neither is the time nor stands in the predicate."""
        if not isinstance(self.progress, Punctuated) or self.progress.whole_stream:
            return None
        predicate = punctuation_predicate(self.progress, self.schema, catalog, self.name)
        read = columns_in(predicate) | {self.schema.time} | {self.schema.fields[i].name for i in self._per}
        silent = [i for i, field in enumerate(self.schema.fields) if field.name not in read]
        return lambda row: any(row[i] is not None for i in silent)


def in_step(
    streams: Sequence[Arrivals], data: Mapping[str, Sequence[tuple[Row, bool]]]
) -> tuple[list[tuple[str, Row]], list[int]]:
    """The data of all streams, each row with whether it is late, in one order of arrival; and the places of late ones.

    Each stream's are a subsequence of its own.
    """
    waiting = {stream.name: deque(data[stream.name]) for stream in streams}
    order: list[tuple[str, Row]] = []
    late: list[int] = []
    for step in range(max((len(s.batches) for s in streams), default=0)):
        for stream in streams:
            queue = waiting[stream.name]
            for row in stream.batches[step] if step < len(stream.batches) else ():
                if queue and queue[0][0] is row:
                    if queue.popleft()[1]:
                        late.append(len(order))
                    order.append((stream.name, row))
    return order, late
