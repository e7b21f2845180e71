"""Settle: events come out once they can no longer change, in order of start, as inserts (the papers' Cleanse).

An event is final when its end is below the bound (LMerge, section IV), or the stream has ended. It comes out when every
event that starts before it, or with it, is final too; so one that is open holds back whatever starts after it, and the
output's bound with it. Events that start together come in the order of their values, the same for every replica and
however the input was cut (`likeness.tie`), then by their ends. What is promised of some groups makes events of theirs
final by itself, and these come out ahead of the others (`settled_groups`).

Whoever keeps events can tell what contradicts them: an adjust of an event that is not there, since it never came, came
late or has another end, is given back with the reason. An adjust may tell floats anew that differ in their last bits
from those of its insert: where no row is the same, the nearest that is like it and has that end is meant
(`model.likeness`), and the event comes out with the values that it came with.

State: the events by start, in pages of neighbouring starts, and of each page its oldest event, so that a bound visits
the pages of which something may come out and no others.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Adjust, Insert, Punctuation
from penstock.model.likeness import has_float, nearest, tie
from penstock.model.lives import UNKNOWN_EVENT, Lives
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, SECOND, Domain
from penstock.model.values import canonical_row
from penstock.operators.aggregates.chosen import Chosen
from penstock.operators.operator import BoundMemory, Operator, Outputs, Rejected
from penstock.operators.relational.settled_groups import final_in

Slice = dict[int, dict[Row, Counter[int]]]
"""The ends of events, by start and row."""
HELD = "held"
"""The page with the bound of the input, while that of the output stays behind it."""


class SettleOperator(Operator):
    """Keeps events until they are final."""

    kind = "settle"
    version = 2  # a bound that was held back is remembered

    def __init__(self, schema: Schema) -> None:
        """Rows are told apart by all of their columns."""
        super().__init__(schema)
        self.span = 60 * SECOND if schema.domain is Domain.TIMESTAMP else 4096
        self.passed_on = BoundMemory()

    def process(self, port: int, batch: Batch) -> Outputs:
        """Apply inserts and adjusts."""
        touched: dict[int, Slice] = {}
        unknown: list[int] = []
        for place, element in enumerate(batch.elements(hidden=True)):
            number = element.vs // self.span
            if number not in touched:
                touched[number] = self.pages.get(f"s{number}") or {}
            if not _apply(touched[number], element):
                unknown.append(place)
        for number, page in touched.items():
            self._keep(number, page)
        if unknown:
            mask = np.zeros(len(batch), np.bool_)
            mask[unknown] = True
            yield Rejected("failed", batch.select(mask), (), [UNKNOWN_EVENT] * len(unknown))

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Put out what is final and next in order, then say how far that is."""
        if [name for name, _ in punctuation.bounds] != [self.schema.time]:
            return  # events are kept back, so what is promised of other attributes does not hold here
        if punctuation.is_linear:
            yield from self._settle(punctuation.value)
            return
        yield from self._settle_groups(punctuation)
        held: int | None = self.pages.get(HELD)
        if held is not None:  # by events that may just have come out
            yield from self._settle(held)

    def _settle_groups(self, promise: Punctuation) -> Outputs:
        """Put out what a promise of some groups makes final, then say how far these groups have come."""
        chosen = Chosen.by(promise, str(self.schema.time), self.schema.names)
        if chosen is None:
            return
        bound = reached = promise.value
        slices: dict[int, tuple[int, int]] = self.pages.get("slices") or {}
        for number in sorted(n for n, (oldest, _) in slices.items() if _is_before(oldest, bound)):
            page: Slice = self.pages.get(f"s{number}")
            settled, left = final_in(page, chosen, bound)
            reached = min(reached, left)
            if settled:
                self._keep(number, page)
                yield self._batch(settled)
        made = Punctuation(((str(self.schema.time), reached),), promise.constants)
        # No input says twice that a group ends, so what ends for good need not be remembered.
        if reached == END_OF_TIME or self.passed_on.promise(self.pages, made):
            yield made

    def _batch(self, settled: list[tuple[Row, int]]) -> Batch:
        rows, ends = zip(*settled, strict=True)
        return Batch(self.schema, list(rows), lives=Lives.of_inserts(np.array(ends, np.int64)))

    def _settle(self, bound: int) -> Outputs:
        reached = bound
        slices: dict[int, tuple[int, int]] = self.pages.get("slices") or {}
        for number in sorted(slices):
            oldest, end = slices[number]
            if not _is_before(oldest, bound):
                break
            if not _is_before(end, bound):
                reached = oldest
                break
            page: Slice = self.pages.get(f"s{number}")
            settled, reached = _settled(page, bound)
            self._keep(number, page)
            if settled:
                yield self._batch(settled)
            if reached != bound:
                break
        if reached != bound:
            self.pages.put(HELD, bound)
        elif self.pages.get(HELD) is not None:
            self.pages.delete(HELD)
        if self.passed_on.advance(self.pages, reached):
            yield self.output_bound(reached)

    def _keep(self, number: int, page: Slice) -> None:
        """Keep a page with its oldest event, or forget it if nothing is left."""
        slices: dict[int, tuple[int, int]] = self.pages.get("slices") or {}
        if page:
            oldest = min(page)
            slices[number] = oldest, max(end for ends in page[oldest].values() for end in ends)
            self.pages.put(f"s{number}", page)
        else:
            slices.pop(number, None)
            self.pages.delete(f"s{number}")
        self.pages.put("slices", slices)

    def to_plain(self, key: str, page: Any) -> Any:
        """A page as two columns: start, end and how often, and the row."""
        if key in ("slices", HELD, self.passed_on.key):
            return page
        events = [
            (vs, end, n, row) for vs, rows in page.items() for row, ends in rows.items() for end, n in ends.items()
        ]
        return [e[:3] for e in events], [e[3] for e in events]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The ends of events, by start and row."""
        if key in ("slices", HELD, self.passed_on.key):
            return data
        page: Slice = {}
        for (vs, end, count), row in zip(*data, strict=True):
            page.setdefault(vs, {}).setdefault(row, Counter())[end] = count
        return page


def _apply(page: Slice, element: Insert | Adjust) -> bool:
    """Take an element in; false if it is of an event that is not there."""
    row = canonical_row(element.payload)
    if isinstance(element, Insert):
        page.setdefault(element.vs, {}).setdefault(row, Counter())[element.ve] += 1
        return True
    rows = page.get(element.vs, {})
    ends = rows.get(row)
    if ends is None or not ends[element.v_old]:
        like = nearest(row, [r for r, e in rows.items() if e[element.v_old]]) if has_float(row) else None
        if like is None:
            return False
        row, ends = like, rows[like]
    ends[element.v_old] -= 1
    if not ends[element.v_old]:
        del ends[element.v_old]
    if element.ve > element.vs:
        ends[element.ve] += 1
    if not ends:
        del page[element.vs][row]
        if not page[element.vs]:
            del page[element.vs]
    return True


def _settled(page: Slice, bound: int) -> tuple[list[tuple[Row, int]], int]:
    """The events of a page that come out, with their ends, and how far that is; they leave the page."""
    found: list[tuple[Row, int]] = []
    for vs in sorted(page):
        if not _is_before(vs, bound):
            break
        ends = [(row, end) for row, counts in page[vs].items() for end in counts.elements()]
        if not all(_is_before(end, bound) for _, end in ends):
            return found, vs
        found += sorted(ends, key=lambda event: (tie(event[0]), event[1]))
        del page[vs]
    return found, bound


def _is_before(tick: int, bound: int) -> bool:
    """Whether a bound has passed a time; the end of time passes all."""
    return tick < bound or bound == END_OF_TIME
