"""Difference over lives (`EXCEPT ALL`): as many events of a payload as the left has more than the right."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.batch import Row
from penstock.model.schema import Schema
from penstock.model.values import canonical_row
from penstock.operators.intervals.sweep import Numbers, Sweep


class IntervalDifference(Sweep):
    """Counts both sides."""

    kind = "interval difference"

    def __init__(self, left: Schema, right: Schema) -> None:
        """Payloads of the same columns."""
        super().__init__([left, right], left)

    def key(self, port: int, payload: Row) -> Row:
        """The whole payload."""
        return canonical_row(payload)

    def results(self, key: Row, numbers: Numbers) -> Iterable[Row]:
        """What the left has more."""
        left, right = numbers
        return [key] * (left - right)
