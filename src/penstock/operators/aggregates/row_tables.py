"""Tables of single rows: as results, where windows tumble and a pane is a window, or else as the numbers of a pane.

A group whose sum is none that SQL can hold fails for that window and costs no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.errors import EvaluationError, reason_of
from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema
from penstock.operators.aggregates.emission import failed_groups
from penstock.operators.aggregates.measures import Array, Measure, Result
from penstock.operators.aggregates.pane_numbers import Pane
from penstock.operators.aggregates.row_code import Groups, emitter
from penstock.operators.aggregates.slide import Slide
from penstock.operators.operator import Output
from penstock.operators.windows.sliding import Sliding


class RowTables:
    """Makes the result rows of tumbling windows."""

    def __init__(self, schema: Schema, window: Sliding, keys: int, results: Sequence[Result]) -> None:
        """`schema` is that of the results, which begin with window and `keys` group keys."""
        self.schema, self.window, self.keys = schema, window, keys
        self._emit_rows = emitter(keys, results)

    def of(self, tables: dict[int, Groups], closed: int | None) -> list[Output]:
        """The results of tables that are windows, without those before `closed`, which count as closed."""
        rows: list[Row] = []
        failed: list[tuple[Row, str]] = []
        for pane, groups in tables.items():
            if closed is None or pane >= closed:
                self._emit(pane, groups, rows, failed)
        made: list[Output] = [Batch(self.schema, rows)] if rows else []
        return [*made, failed_groups(self.schema, self.keys, failed)] if failed else made

    def _emit(self, pane: int, groups: Groups, rows: list[Row], failed: list[tuple[Row, str]]) -> None:
        start, end = self.window.extent(pane)
        try:
            rows += self._emit_rows(pane, start, end, groups)
        except EvaluationError:
            for key, numbers in groups.items():
                try:
                    rows += self._emit_rows(pane, start, end, {key: numbers})
                except EvaluationError as error:
                    failed.append(((pane, start, end, *key), reason_of(error)))


def as_cells(
    measures: Sequence[Measure], codes: Array, columns: Sequence[Sequence[Any]], pane: int, state: Slide
) -> Pane:
    """The table of a pane, by columns, as numbers of the groups with these codes; sums of integers are weighed."""
    order = np.argsort(codes, kind="stable")
    arrays: list[Array] = []
    for measure, column in zip(measures, columns, strict=True):
        if measure.kind == "distinct":
            arrays.append(arrays[0])
            continue
        raw = [measure.identity if number is None else number for number in column]
        if measure.kind == "sum" and not measure.is_float:
            state.weigh(pane, sum(map(abs, raw)))
        dtype = object if state.is_wide(measure) else measure.dtype
        arrays.append(np.array(raw, dtype)[order])
    return codes[order], arrays
