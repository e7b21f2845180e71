"""Aggregates of whole groups: a group is put out once, when nothing more of it comes (thesis 2.1, 4).

A key may be an attribute that progresses, as the times of both streams are after a join. A bound on such attributes,
one or several together (joint punctuation), completes the groups that are below it in all of them; one with constants
those that have these too.

A final promise completes the groups whose keys have its constants; one with a constant that is no key speaks for a part
of a group, and completes nothing. The end of the stream completes all. What comes of a group starts at the greatest
time of its rows and lives one tick; it fails as a whole if an aggregate has no value.

What is promised of results: as a whole, no less than the input's bound and than the greatest time of every open group,
which only goes up; it moves with bounds, with groups that leave, and with rows that move the oldest group on. Of some
groups, what is promised of their rows; where that is not final, no more than their greatest times at that moment.

State: the open groups in pages by what promises are about (`open_groups`), of each page the oldest group's time, so
that a bound reads no page and a promise of all these columns reads one. A row costs one update; over Arrow a batch is
first brought down to a row per group. Memory grows with the groups that are open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from penstock.errors import reason_of
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.interrupts import let_through
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical
from penstock.operators.aggregates.chosen import Chosen
from penstock.operators.aggregates.emission import PORTION
from penstock.operators.aggregates.open_groups import OpenGroups, page_of
from penstock.operators.aggregates.partials import Grouping, Key, Table
from penstock.operators.operator import BoundMemory, Operator, Outputs, Rejected

PAGES = 64
INPUT, OLDEST = "input", "oldest"
"""The pages with the bound of the input, and with the oldest group's time of every page of groups."""


class GroupAggregateOperator(Operator):
    """Keeps groups until they are complete."""

    kind = "whole groups"

    def __init__(
        self,
        schema: Schema,
        grouping: Grouping,
        lead: tuple[int, ...] = (),
        useful: tuple[int, int] = (1, 0),
        timed: Mapping[str, int] | None = None,
    ) -> None:
        """`schema` is that of the results: time, keys, aggregates.

        The last function of the grouping gives the greatest time. `lead` are the places in a key that promises are
        about; `useful` is step and origin of bounds that the consumer can use; `timed` the attributes that progress and
        are keys, with their places in a key.
        """
        super().__init__(schema)
        self.timed = timed or {}
        self.grouping, self.lead = grouping, lead or tuple(range(len(grouping.keys)))
        self.step, self.origin = useful
        self.passed_on = BoundMemory()

    def require(self, useful: tuple[int, int], told: int) -> None:
        """Bounds of use are others now."""
        self.step, self.origin = useful

    def process(self, port: int, batch: Batch) -> Outputs:
        """Put every row into its group."""
        touched: dict[int, OpenGroups] = {}
        if self.grouping.is_columnar(batch):
            for _, key, partials in self.grouping.reduce(batch, np.zeros(len(batch), np.int64)):
                self._add(key, partials, touched)
        else:
            for row in batch.rows:
                self._add(self.grouping.key(row), self.grouping.lift(row), touched)
        for number, page in touched.items():
            self.pages.put(f"g{number}", page)
        self._keep_oldest(touched)
        yield from self._pass_on()

    def _add(self, key: Key, partials: list[Any], touched: dict[int, OpenGroups]) -> None:
        lot = tuple([key[at] for at in self.lead])
        number = page_of(lot, PAGES)
        page = touched.get(number)
        if page is None:
            page = touched[number] = self.pages.get(f"g{number}") or OpenGroups(self.grouping, self.lead)
        page.add(lot, key, partials)

    # Punctuation

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Put out the groups that are complete now, then say what follows for the results."""
        if all(name in self.timed for name, _ in punctuation.bounds):
            yield from self._passed(punctuation)
        elif not punctuation.is_linear:
            yield from self._promised(punctuation)
        elif punctuation.attribute == self.grouping.schema.time:
            if punctuation.is_end:
                for number in sorted(self._oldest()):
                    yield from self._complete(number, self.pages.get(f"g{number}").all())
            self.pages.put(INPUT, max(punctuation.value, self._input()))
        yield from self._pass_on()

    def _passed(self, promise: Punctuation) -> Outputs:
        """Put out the groups that are below every bound of a promise and have its constants, where these are keys.

        A group without a value that is bounded is never below it.
        """
        bounds = [(self.timed[name], bound) for name, bound in promise.bounds]
        names = [self.grouping.schema.fields[i].name for i in self.grouping.keys]
        if not all(name in names for name, _ in promise.constants):
            return
        constants = [(names.index(name), canonical(value)) for name, value in promise.constants]
        for number in sorted(self._oldest()):
            groups = self.pages.get(f"g{number}").all()
            over = {
                key: partials
                for key, partials in groups.items()
                if all(key[at] is not None and key[at] < bound for at, bound in bounds)
                and all(canonical(key[at]) == value for at, value in constants)
            }
            if over:
                yield from self._complete(number, over)

    def _promised(self, promise: Punctuation) -> Outputs:
        below = self.grouping.schema
        chosen = Chosen.by(promise, str(below.time), [below.fields[i].name for i in self.grouping.keys])
        if chosen is None:
            return
        bound = promise.value
        for number, groups in list(self._meant(chosen)):
            if bound == END_OF_TIME:
                yield from self._complete(number, groups)
            else:
                bound = min([bound, *(partials[-1] for partials in groups.values())])
        made = Punctuation(((str(self.schema.time), bound),), promise.constants)
        # No input says twice that a group ends, so what ends for good need not be remembered.
        if bound == END_OF_TIME or self.passed_on.promise(self.pages, made):
            yield made

    def _meant(self, chosen: Chosen) -> Iterator[tuple[int, Table]]:
        """The open groups that a promise is about, by page."""
        said = dict(chosen.wanted)
        lot = tuple([said[at] for at in self.lead]) if all(at in said for at in self.lead) else None
        open_pages = self._oldest()
        for number in sorted(open_pages) if lot is None else [page_of(lot, PAGES)]:
            groups = self.pages.get(f"g{number}").chosen(chosen, lot) if number in open_pages else {}
            if groups:
                yield number, groups

    def _complete(self, number: int, groups: Table) -> Outputs:
        """Put out groups of a page, in portions; whatever is not asked for stays open."""
        keys = list(groups)
        for start in range(0, len(keys), PORTION):
            portion = keys[start : start + PORTION]
            page: OpenGroups = self.pages.get(f"g{number}")
            page.take(portion)
            if page.size:
                self.pages.put(f"g{number}", page)
            else:
                self.pages.delete(f"g{number}")
            self._keep_oldest({number: page})
            yield from self._results({key: groups[key] for key in portion})

    def _results(self, groups: Table) -> Outputs:
        rows: list[Row] = []
        failed: list[Row] = []
        reasons: list[str] = []
        for key, partials in groups.items():
            try:
                *values, greatest = self.grouping.results(partials)
                rows.append((greatest, *key, *values))
            except Exception as error:  # an overflow, or whatever a user's aggregate raised
                let_through(error)
                failed.append((partials[-1], *key))
                reasons.append(reason_of(error))
        if rows:
            yield Batch(self.schema, rows)
        if failed:
            shown = Schema(self.schema.fields[: 1 + len(self.grouping.keys)], self.schema.time)
            yield Rejected("failed", Batch(shown, failed), (), reasons)

    # How far the results have come

    def _input(self) -> int:
        found: int | None = self.pages.get(INPUT)
        return MIN_TICK if found is None else found

    def _oldest(self) -> dict[int, int]:
        return self.pages.get(OLDEST) or {}

    def _keep_oldest(self, pages: dict[int, OpenGroups]) -> None:
        known = self._oldest()
        now = {number: page.oldest() for number, page in pages.items()}
        if any(known.get(number) != oldest for number, oldest in now.items()):
            kept = {**known, **now}
            self.pages.put(OLDEST, {number: oldest for number, oldest in kept.items() if oldest is not None})

    def _pass_on(self) -> Outputs:
        bound = min([self._input(), *self._oldest().values()])
        last: int | None = self.pages.get(self.passed_on.key)
        is_useful = last is None or bound == END_OF_TIME or self._number(bound) > self._number(last)
        if bound > MIN_TICK and is_useful and self.passed_on.advance(self.pages, bound):
            yield self.output_bound(bound)

    def _number(self, bound: int) -> int:
        """Of the last useful bound up to this one."""
        return (bound - self.origin) // self.step

    # State

    def to_plain(self, key: str, page: Any) -> Any:
        """Keys and partials of a page of groups, as two columns."""
        if not isinstance(page, OpenGroups):
            return page
        groups = self.grouping.to_plain(page.all())
        return list(groups), list(groups.values())

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key in (INPUT, OLDEST, self.passed_on.key):
            return data
        groups = {tuple(k): list(partials) for k, partials in zip(*data, strict=True)}
        return OpenGroups(self.grouping, self.lead, self.grouping.from_plain(groups))
