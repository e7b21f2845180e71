"""The plans of the oracle as boxes of operators, and arrivals that their bounds allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Insert, Punctuation, linear
from penstock.model.lives import Lives
from penstock.model.schema import BIGINT, Schema
from penstock.model.tdb import TDB, Event, tdb
from penstock.operators.intervals.count import IntervalCount
from penstock.operators.intervals.difference import IntervalDifference
from penstock.operators.intervals.distinct import IntervalDistinct
from penstock.operators.intervals.join import HashJoin, NestedLoopsJoin
from penstock.operators.intervals.layout import START, Layout, interval_schema, payload_types, with_generations
from penstock.operators.intervals.window import IntervalWindow
from penstock.operators.migration.box import Box, Node
from penstock.operators.operator import Operator, Output
from penstock.operators.relational.meld import MeldOperator
from penstock.operators.relational.project import ProjectOperator
from penstock.operators.relational.select import SelectOperator
from penstock.reference.snapshot_plans import (
    Count,
    Difference,
    Distinct,
    Input,
    Join,
    Project,
    Select,
    SnapshotPlan,
    Union,
    Window,
)


@dataclass(frozen=True)
class HasOneOf:
    """A selection by row."""

    place: int
    values: frozenset[object]

    def __call__(self, rows: Sequence[Row]) -> list[Row]:
        """Those that have."""
        return [row for row in rows if row[self.place] in self.values]


@dataclass(frozen=True)
class Places:
    """A projection by row."""

    places: tuple[int, ...]

    def __call__(self, rows: Sequence[Row]) -> list[Row]:
        """These columns."""
        return [tuple([row[at] for at in self.places]) for row in rows]


@dataclass(frozen=True)
class Equal:
    """The condition of a join by nested loops."""

    on: tuple[tuple[int, int], ...]

    def __call__(self, left: Row, right: Row) -> bool:
        """Whether these places are equal."""
        return all(left[a] is not None and left[a] == right[b] for a, b in self.on)


def by_rows_only(batch: Batch) -> None:
    """There is no answer by column."""


def numbers(columns: int, *, generations: bool = False) -> Schema:
    """An interval schema of so many numbers."""
    return interval_schema([BIGINT] * columns, generations=generations)


@dataclass(frozen=True)
class Builder:
    """Makes boxes of plans over some inputs."""

    inputs: Sequence[Schema]
    nested_loops: bool = False
    kept_for: int | None = None
    """How long joins hold rows from their starts on, if not until their ends."""

    def box(self, plan: SnapshotPlan) -> Box:
        """A plan as a box."""
        made = self.node(plan)
        through = None if isinstance(made, Node) else MeldOperator(self.inputs[made], 1)
        return Box(made, len(self.inputs), through)

    def node(self, plan: SnapshotPlan) -> Node | int:
        """A plan as a node, or as a port."""
        if isinstance(plan, Input):
            return plan.port
        below = [self.node(getattr(plan, name)) for name in ("input", "left", "right") if hasattr(plan, name)]
        return Node(self.operator(plan, [self.schema(each) for each in below]), tuple(below))

    def schema(self, node: Node | int) -> Schema:
        """What a node gives."""
        return node.operator.schema if isinstance(node, Node) else self.inputs[node]

    def operator(self, plan: SnapshotPlan, below: Sequence[Schema]) -> Operator:
        """That of a node, over what these give."""
        if isinstance(plan, Join):
            if self.nested_loops:
                return NestedLoopsJoin(below[0], below[1], Equal(plan.on), kept_for=self.kept_for)
            return HashJoin(below[0], below[1], plan.on, kept_for=self.kept_for)
        if isinstance(plan, Union):
            return MeldOperator(below[0], 2, below)
        if isinstance(plan, Difference):
            return IntervalDifference(below[0], below[1])
        (only,) = below
        if isinstance(plan, Select):
            return SelectOperator(only, HasOneOf(Layout(only).places[plan.place], plan.values), by_rows_only)
        if isinstance(plan, Project):
            return _projection(only, plan.places)
        if isinstance(plan, Distinct):
            return IntervalDistinct(only)
        if isinstance(plan, Count):
            return IntervalCount(only, plan.by)
        assert isinstance(plan, Window)
        return IntervalWindow(only, plan.size)


def _projection(below: Schema, places: Sequence[int]) -> Operator:
    layout, types = Layout(below), payload_types(below)
    made = interval_schema([types[place] for place in places])
    kept = [layout.places[place] for place in places]
    if layout.generation is not None:
        made = with_generations(made)
        kept.append(layout.generation)
    return ProjectOperator(made, Places((*kept, layout.time)), _no_columns, {START: (START,)})


def _no_columns(batch: Batch) -> NoReturn:  # never asked: these batches are rows
    raise AssertionError("a batch of rows has no columns")


def batch_of(schema: Schema, events: Sequence[Event]) -> Batch:
    """Events as a batch of an interval schema."""
    layout = Layout(schema)
    rows = []
    for payload, vs, _ in events:
        values = iter(payload)
        mark = {layout.time: vs, layout.generation: 0}
        rows.append(tuple(mark[at] if at in mark else next(values) for at in range(len(schema))))
    return Batch(schema, rows, lives=Lives.of_inserts(np.array([ve for _, _, ve in events], np.int64)))


def events_of(outputs: Sequence[Output]) -> TDB:
    """What outputs come to, with the payloads alone."""
    return tdb(element for each in outputs if isinstance(each, Batch) for element in each.elements())


def starts_of(outputs: Sequence[Output]) -> list[int]:
    """When inserts that came out begin, in the order of their coming."""
    return [e.vs for each in outputs if isinstance(each, Batch) for e in each.elements() if isinstance(e, Insert)]


def bound(value: int) -> Punctuation:
    """A promise on the time of an interval schema."""
    return linear(START, value)
