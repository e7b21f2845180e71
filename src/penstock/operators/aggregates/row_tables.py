"""Tables of single rows that are windows, as results: where windows tumble, a pane is a window.

A group whose sum is none that SQL can hold fails for that window and costs no other.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import EvaluationError, reason_of
from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema
from penstock.operators.aggregates.emission import failed_groups
from penstock.operators.aggregates.measures import Result
from penstock.operators.aggregates.row_code import Groups, emitter
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
