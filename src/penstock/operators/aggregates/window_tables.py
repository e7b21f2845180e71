"""Windows that were put together from panes, as batches of results.

A group whose sum is none that SQL can hold fails for that window and costs no other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import reason_of
from penstock.model.batch import Batch, rows_of
from penstock.model.schema import Schema
from penstock.operators.aggregates.emission import failed_groups
from penstock.operators.aggregates.functions import sum_overflow
from penstock.operators.aggregates.group_codes import GroupCodes
from penstock.operators.aggregates.measures import Array, Measure, Result
from penstock.operators.aggregates.side_by_side import at_once
from penstock.operators.operator import Outputs, Rejected
from penstock.operators.windows.sliding import Sliding

Block = tuple[Array, Array, list[Array]]
"""Per result row the window's id, the group's code, and per measure the number."""


@dataclass(frozen=True)
class WindowTables:
    """Makes the result rows of an aggregate."""

    schema: Schema
    window: Sliding
    keys: int
    measures: tuple[Measure, ...]
    results: tuple[Result, ...]

    def of(self, blocks: list[Block], groups: GroupCodes) -> Outputs:
        """Result rows; the groups of which a sum overflows fail."""
        wids, codes, measures = joined(blocks)
        window, keys = at_once(
            len(wids), lambda: window_columns(self.schema, self.window, wids), lambda: groups.columns(codes)
        )
        return self.made(wids, window, keys, measures)

    def made(self, wids: Array, window: list[pa.Array], keys: list[pa.Array], measures: list[Array]) -> Outputs:
        """Result rows of windows and groups whose columns are there, and of the numbers of each."""
        reasons = self._overflows(measures)
        columns = [*window, *keys]
        if reasons:
            failed = np.zeros(len(wids), np.bool_)
            failed[list(reasons)] = True
            yield self._failed([c.filter(pa.array(failed)) for c in columns], [reasons[at] for at in sorted(reasons)])
            columns, measures = [c.filter(pa.array(~failed)) for c in columns], [m[~failed] for m in measures]
        if len(columns[0]):
            values = [r.lower(measures) for r in self.results]
            yield Batch(self.schema, table=pa.Table.from_arrays([*columns, *values], schema=self.schema.arrow))

    def _overflows(self, measures: list[Array]) -> dict[int, str]:
        """The positions at which a sum is none that SQL can hold, with the reason."""
        reasons: dict[int, str] = {}
        for result in self.results:
            for at in result.overflows(measures):
                reasons.setdefault(at, reason_of(sum_overflow(measures[result.value][at])))
        return reasons

    def _failed(self, columns: list[pa.Array], reasons: list[str]) -> Rejected:
        names = self.schema.names[: 3 + self.keys]
        table = pa.Table.from_arrays(columns, names=list(names))
        return failed_groups(self.schema, self.keys, list(zip(rows_of(table), reasons, strict=True)))


def joined(blocks: list[Block]) -> Block:
    """Blocks of the same measures as one."""
    wids = np.concatenate([b[0] for b in blocks])
    codes = np.concatenate([b[1] for b in blocks])
    return wids, codes, [np.concatenate([b[2][at] for b in blocks]) for at in range(len(blocks[0][2]))]


def window_columns(schema: Schema, window: Sliding, wids: Array) -> list[pa.Array]:
    """The number, the start and the end of each window."""
    ends = wids * window.slide + (window.origin + window.slide)
    bound_type = schema.fields[1].type.arrow
    starts = pc.cast(pa.array(ends - window.range), bound_type)
    return [pa.array(wids), starts, pc.cast(pa.array(ends), bound_type)]
