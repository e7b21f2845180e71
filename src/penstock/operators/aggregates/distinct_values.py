"""Distinct values of groups: which pairs of a group and a value each pane has, and how many a window has.

A pair has a code, as groups have, and a pane has the codes of its pairs, each once. While a total slides over panes, it
is counted for each pair how many panes of the window have it: when that becomes one its group has one value more, and
when it becomes none, one less. So a pane costs its pairs when it enters and when it leaves, however many values a
window has. Nulls do not count.

State, per measure: a page for the codes of pairs, a page per pane, and the counts of panes with the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.nested import column_of
from penstock.model.schema import BIGINT, Field, Schema
from penstock.operators.aggregates.cells import FAR
from penstock.operators.aggregates.group_codes import FEW_KEYS, GroupCodes
from penstock.operators.aggregates.measures import Array, Measure
from penstock.operators.aggregates.pane_numbers import compress, different, put_in_pane, read_pane, runs_of
from penstock.operators.aggregates.totals import Totals
from penstock.operators.state import Pages

SPARE_PAIRS = 1024
"""So many codes of dead pairs, and half as many as are alive, may wait before living ones are renumbered."""


class DistinctValues:
    """The measures among some that count distinct values."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        """All measures of an aggregate."""
        self.columns = {at: m.column for at, m in enumerate(measures) if m.kind == "distinct"}
        types = {at: measures[at].values for at in self.columns}
        self._schemas = {at: Schema((Field("g", BIGINT), Field("v", t))) for at, t in types.items() if t is not None}

    def pairs(self, at: int, pages: Pages) -> GroupCodes:
        """The codes of the pairs of a measure."""
        found: GroupCodes | None = pages.get(f"v{at}")
        return GroupCodes(self._schemas[at]) if found is None else found

    # Taking rows

    def take(self, pages: Pages, batch: Batch, panes: Array, codes: Array) -> None:
        """Put the pairs of a batch into their panes."""
        for at, column in self.columns.items():
            assert column is not None
            values = batch.table.column(column)
            if values.null_count:
                valid = values.is_valid()
                there = np.asarray(valid)
                self._put(at, pages, panes[there], codes[there], values.filter(valid))
            else:
                self._put(at, pages, panes, codes, values)

    def take_sets(self, pages: Pages, pane: int, codes: Array, tables: Sequence[Sequence[Any]]) -> None:
        """Put the values of groups into a pane; per measure of all, and group, a set of them."""
        for at in self.columns:
            sets: Sequence[set[Any]] = tables[at]
            values = [value for one in sets for value in one]
            groups = np.repeat(codes, [len(one) for one in sets])
            if len(values) <= FEW_KEYS:
                self._put_few(at, pages, pane, list(zip(groups.tolist(), values, strict=True)))
                continue
            array = column_of(values, self._schemas[at].fields[1].type)
            self._put(at, pages, np.full(len(groups), pane), groups, array)

    def _put_few(self, at: int, pages: Pages, pane: int, pairs: list[tuple[Any, ...]]) -> None:
        if pairs:
            table = self.pairs(at, pages)
            codes = np.unique(table.encode_keys(pairs))
            pages.put(f"v{at}", table)
            put_in_pane(pages, f"d{at}:{pane}", (), (codes, []))

    def take_lists(self, pages: Pages, panes: Array, codes: Array, lists: Sequence[Any]) -> None:
        """Put the values of entries, each of a pane and a group, into their panes; per measure, lists of them."""
        for at in self.columns:
            lengths = np.asarray(lists[at].value_lengths())
            values = lists[at].flatten()
            self._put(at, pages, np.repeat(panes, lengths), np.repeat(codes, lengths), values)

    def lists(self, pages: Pages, panes: Sequence[int], codes: Sequence[Array]) -> dict[int, pa.Array]:
        """Per measure, the values of each pane's groups, whose codes are ascending, as lists."""
        found = {}
        for at in self.columns:
            table = self.pairs(at, pages)
            pairs, lengths = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
            for pane, groups in zip(panes, codes, strict=True):
                own = self._of_pane(at, pane, pages)
                places = np.searchsorted(groups, table.words(0)[own])
                pairs.append(own[np.argsort(places, kind="stable")])
                lengths.append(np.bincount(places, minlength=len(groups)))
            offsets = pa.array(np.cumsum(np.concatenate(lengths)), pa.int64())
            found[at] = pa.LargeListArray.from_arrays(offsets, table.columns(np.concatenate(pairs))[1])
        return found

    def _put(self, at: int, pages: Pages, panes: Array, codes: Array, values: pa.ChunkedArray | pa.Array) -> None:
        if not len(panes):
            return
        if int(panes.max()) - int(panes.min()) >= FAR:
            for part in (panes < 0, panes >= 0):
                self._put(at, pages, panes[part], codes[part], values.filter(pa.array(part)))
            return
        table = self.pairs(at, pages)
        pairs = table.encode([pa.array(codes), values], len(codes))
        pages.put(f"v{at}", table)
        first = int(panes.min())
        present, places = compress(panes - first)
        once = different(places * len(table) + pairs, len(present) * len(table))
        edges = np.searchsorted(once, np.arange(len(present) + 1) * len(table)).tolist()
        for place, pane in enumerate((present + first).tolist()):
            own = once[edges[place] : edges[place + 1]] - place * len(table)
            put_in_pane(pages, f"d{at}:{pane}", (), (own, []))

    def _of_pane(self, at: int, pane: int, pages: Pages) -> Array:
        key = f"d{at}:{pane}"
        return np.zeros(0, np.int64) if pages.get(key) is None else read_pane(pages, key, ())[0]

    # Windows

    def alone(self, at: int, pane: int, codes: Array, pages: Pages) -> Array:
        """How many values each group of a pane has in it."""
        groups = self.pairs(at, pages).words(0)[self._of_pane(at, pane, pages)]
        places = np.empty(int(codes[-1]) + 1, np.int64)  # only those of the pane's groups are written and read
        places[codes] = np.arange(len(codes))
        return np.bincount(places[groups], minlength=len(codes))

    def enter(self, totals: Totals, pane: int, pages: Pages, places: Array) -> None:
        """A pane enters the window; its groups have places in the total."""
        for at in self.columns:
            table = self.pairs(at, pages)
            held = totals.held.get(at, np.zeros(0, np.int32))
            if len(held) < len(table):
                held = np.concatenate([held, np.zeros(len(table) - len(held), np.int32)])
                totals.held[at] = held
            pairs = self._of_pane(at, pane, pages)
            fresh = pairs[held[pairs] == 0]
            held[pairs] += 1
            np.add.at(totals.added[at], places[table.words(0)[fresh]], 1)

    def leave(self, totals: Totals, pane: int, pages: Pages, places: Array) -> None:
        """A pane leaves the window."""
        for at in self.columns:
            self._leave(at, totals, self._of_pane(at, pane, pages), pages, places)

    def _leave(self, at: int, totals: Totals, pairs: Array, pages: Pages, places: Array) -> None:
        if not len(pairs):
            return
        held = totals.held[at]
        held[pairs] -= 1
        gone = pairs[held[pairs] == 0]
        np.subtract.at(totals.added[at], places[self.pairs(at, pages).words(0)[gone]], 1)

    # Some groups

    def copy_part(self, pages: Pages, pane: int, own: Array, part: Pages) -> None:
        """Give the pairs of some groups in a pane, whose codes are ascending, to pages in which they have others."""
        for at in self.columns:
            pairs = self._of_pane(at, pane, pages)
            table = self.pairs(at, pages)
            groups = table.words(0)[pairs]
            meant = np.isin(groups, own)
            values = table.columns(pairs[meant])[1]
            count = int(meant.sum())
            self._put(at, part, np.full(count, pane), np.searchsorted(own, groups[meant]), values)

    def drop(self, totals: Totals | None, pane: int, members: Array, pages: Pages, places: Array) -> None:
        """Some groups leave a pane, and the total if the pane is in it."""
        for at in self.columns:
            pairs = self._of_pane(at, pane, pages)
            meant = np.isin(self.pairs(at, pages).words(0)[pairs], members)
            if totals is not None:
                self._leave(at, totals, pairs[meant], pages, places)
            pages.put(f"d{at}:{pane}", (pairs[~meant], []))

    # What is no longer needed

    def give_up(self, panes: Sequence[int], pages: Pages) -> None:
        """Forget some panes."""
        for at in self.columns:
            for pane in panes:
                pages.delete(f"d{at}:{pane}")

    def tidy(self, totals: Totals, live: dict[int, int], panes: Sequence[int], pages: Pages) -> None:
        """Give living pairs new codes when many are of dead ones; `live` says how many there were at the last look."""
        for at in self.columns:
            count = len(self.pairs(at, pages))
            known = live.get(at, 0)
            if count > known + known // 2 + SPARE_PAIRS:
                live[at] = self._renumber(at, totals, panes, pages, None)

    def renumber(self, totals: Totals, panes: Sequence[int], pages: Pages, lookup: Array) -> None:
        """Groups have other codes, in the same order; those that have none are in no pane."""
        for at in self.columns:
            self._renumber(at, totals, panes, pages, lookup)

    def _renumber(self, at: int, totals: Totals, panes: Sequence[int], pages: Pages, lookup: Array | None) -> int:
        table = self.pairs(at, pages)
        keys = [key for pane in panes if pages.get(key := f"d{at}:{pane}") is not None]
        alive = np.zeros(len(table), np.bool_)
        for key in keys:
            for pairs, _ in runs_of(pages.get(key)):
                alive[pairs] = True
        live = np.flatnonzero(alive)
        code = np.full(len(table), -1, np.int64)
        code[live] = np.arange(len(live))
        for key in keys:
            page = pages.get(key)
            runs = [(code[pairs], numbers) for pairs, numbers in runs_of(page)]
            pages.put(key, runs if isinstance(page, list) else runs[0])
        groups = table.words(0)[live]
        values = table.columns(live)[1]
        columns = [pa.array(groups if lookup is None else lookup[groups]), values]
        pages.put(f"v{at}", GroupCodes.of(self._schemas[at], columns, len(live)))
        if at in totals.held:
            held = totals.held[at]
            totals.held[at] = np.concatenate([held, np.zeros(len(table) - len(held), np.int32)])[live]
        return len(live)

    # State

    def is_pairs(self, key: str) -> bool:
        """Whether a page has the codes of pairs."""
        return key[0] == "v" and key[1:].isdecimal() and int(key[1:]) in self.columns

    def from_plain(self, key: str, data: Any) -> GroupCodes:
        """Such a page of plain data."""
        return GroupCodes.from_plain(self._schemas[int(key[1:])], data)
