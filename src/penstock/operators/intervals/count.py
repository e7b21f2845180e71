"""Aggregation over lives: how many events of each group are valid, while that is so; no row where none is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.model.batch import Row
from penstock.model.schema import BIGINT, Schema
from penstock.operators.intervals.layout import Layout, interval_schema, key_of, payload_types, with_generations
from penstock.operators.intervals.sweep import Numbers, Sweep


class IntervalCount(Sweep):
    """Counts by group."""

    kind = "interval count"

    def __init__(self, schema: Schema, by: Sequence[int]) -> None:
        """`by` are places of the payload; without any there is one group."""
        types = payload_types(schema)
        made = interval_schema([*(types[at] for at in by), BIGINT])
        super().__init__([schema], with_generations(made) if Layout(schema).generation is not None else made)
        self.by = list(by)

    def key(self, port: int, payload: Row) -> Row:
        """The group."""
        return key_of(payload, self.by)

    def results(self, key: Row, numbers: Numbers) -> Iterable[Row]:
        """One row."""
        return [(*key, *numbers)]
