"""What each side of a join keeps of some groups: the oldest rows that may still be met.

Rows that came a few at a time are found by their key, where the constants say all of it. Those in runs are compared
column by column, or, where very many groups are asked for at once, looked through one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import ticks_of
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical
from penstock.operators.joins.keys import KeyRows
from penstock.operators.joins.spoken import values_in
from penstock.operators.joins.waiting_groups import Group

if TYPE_CHECKING:
    from penstock.operators.joins.bounds import Bounds
    from penstock.operators.joins.oa_join import OAJoin

FEW_GROUPS = 4
"""So many groups are looked for one by one among the rows of a run; more of them row by row, all at once."""
Kept = tuple[int, int, int]
"""Of rows that are kept: the least attribute, the least time, and the least time of those that have met none."""
NONE: Kept = (END_OF_TIME, END_OF_TIME, END_OF_TIME)


class KeptRows:
    """Looks at the rows that a join keeps."""

    def __init__(self, join: OAJoin) -> None:
        """Whose rows they are."""
        self.join = join

    def of(self, side: int, groups: list[Group], settled: list[int], known: Bounds) -> list[Kept]:
        """What a side keeps of each of some groups that may still be met: nothing that is below a time of the group."""
        found = [NONE] * len(groups)
        by_columns: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for at, (naming, _) in enumerate(groups):
            if settled[at] < END_OF_TIME:
                by_columns.setdefault(naming.columns[side], []).append(at)
        for named, places in by_columns.items():
            columns = [column for column, _ in named]
            wanted = {at: tuple([groups[at][1][place] for _, place in named]) for at in places}
            for at, key in wanted.items():
                found[at] = self._loose(side, dict(zip(columns, key, strict=True)), settled[at])
            for number in known.runs[side]:
                self._in_run(side, number, columns, wanted, settled, found)
        return found

    def since(self, side: int, settled: int, known: Bounds) -> int:
        """No row that a side keeps starts before this; `settled` is what its attribute is not below."""
        own = self.join.sides[side]
        if own.on_time:
            return settled
        column = own.schema.time_index
        least = [int(ticks_of(self.join._run(n).select([column]).column(0)).min()) for n in known.runs[side]]
        least += [each.row[column] for each in self.join._loose(side)]  # type: ignore[misc]
        return min(least, default=END_OF_TIME)

    def _loose(self, side: int, constants: Mapping[int, Any], settled: int) -> Kept:
        own, found = self.join.sides[side], NONE
        time, is_done = own.schema.time_index, self.join.once.is_done(side)
        of_key = {at: constants[column] for at, column in enumerate(own.keys) if column in constants}
        others = [(column, value) for column, value in constants.items() if column not in own.keys]
        for rows in self.join._loose(side).of(of_key):
            for each in rows:
                if (each.met and is_done) or each.time < settled:
                    continue
                if all(canonical(each.row[column]) == value for column, value in others):
                    started: int = each.row[time]  # type: ignore[assignment]
                    found = _with(found, each.time, started, started if not each.met else END_OF_TIME)
        return found

    def _in_run(
        self,
        side: int,
        number: int,
        columns: list[int],
        wanted: dict[int, tuple[Any, ...]],
        settled: list[int],
        found: list[Kept],
    ) -> None:
        run, own = self.join._run(number), self.join.sides[side]
        is_open = run.times >= min(settled[at] for at in wanted)
        if self.join.once.is_done(side):
            is_open &= ~run.met
        if not is_open.any():
            return
        times = run.times if own.on_time else ticks_of(run.select([own.schema.time_index]).column(0))
        alone = np.where(run.met, END_OF_TIME, times)
        if len(wanted) <= FEW_GROUPS or not columns:
            for at, values in wanted.items():
                mask = is_open & (run.times >= settled[at])
                if columns:
                    mask &= having(run.select(columns), list(values))
                if mask.any():
                    found[at] = _with(found[at], *(int(each[mask].min()) for each in (run.times, times, alone)))
            return
        meant: dict[tuple[Any, ...], list[int]] = {}
        for at, values in wanted.items():
            meant.setdefault(values, []).append(at)
        places = np.flatnonzero(is_open)
        for place, values in zip(places.tolist(), values_in(run.take(places), columns), strict=True):
            for at in [at for at in meant.get(values, ()) if run.times[place] >= settled[at]]:
                found[at] = _with(found[at], int(run.times[place]), int(times[place]), int(alone[place]))


def _with(kept: Kept, attribute: int, time: int, alone: int) -> Kept:
    return min(kept[0], attribute), min(kept[1], time), min(kept[2], alone)


def having(table: pa.Table, values: list[Any]) -> np.ndarray:
    """Which rows of a table have these values in its columns, as constants are equal."""
    columns = range(table.num_columns)
    mask = np.ones(table.num_rows, np.bool_)
    for column, value in zip(columns, values, strict=True):
        told = pc.is_null(table.column(column)) if value is None else pc.is_valid(table.column(column))
        mask &= np.asarray(told.to_numpy())
    sought = [(column, value) for column, value in zip(columns, values, strict=True) if value is not None]
    places = np.flatnonzero(mask)
    if not sought or not len(places):
        return mask
    rows = table.select([column for column, _ in sought]).take(pa.array(places))
    one = _one(rows.schema, [value for _, value in sought])
    numbers = range(len(sought))
    same = KeyRows.of(rows, numbers).same(np.arange(len(places)), KeyRows.of(one, numbers), np.zeros(len(places), int))
    mask[places[~same]] = False
    return mask


def _one(schema: pa.Schema, values: list[Any]) -> pa.Table:
    """A table of one row."""
    arrays = [
        pc.cast(pa.array([value], pa.int64()), kind) if pa.types.is_timestamp(kind) else pa.array([value], kind)
        for value, kind in zip(values, schema.types, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
