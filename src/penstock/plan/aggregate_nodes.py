"""Aggregation in a logical plan: per window and group, or per group as a whole.

Both read plain columns only: a projection below computes keys and arguments, one above what the select list makes of
the results.

A group without a window is complete when its stream has promised that nothing more of it comes (`plan.complete`), or
has ended. Its result starts at the greatest time of its rows and lives one tick: that time is the same in whatever
order the rows came and whenever the promise did, and no other time is; the time of the promise is that of one arrival.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import PlanError
from penstock.model.cached import cached_property
from penstock.model.properties import StreamProperties
from penstock.model.schema import BIGINT, TIMESTAMP, Field, Schema
from penstock.model.time import Domain
from penstock.plan.expressions import AggregateCall
from penstock.plan.integrity import check_column
from penstock.plan.node import Unary
from penstock.plan.update_nodes import window_queue_below
from penstock.plan.windows import AnyWindow, LandmarkWindow, PartitionedWindow, SlideByTupleWindow, SlidingWindow

WINDOW_FIELDS = ("wid", "window_start", "window_end")


def window_fields(window: AnyWindow) -> tuple[Field, Field, Field]:
    """What every result of a window begins with: its number, its start and its end."""
    bound = TIMESTAMP if window.domain is Domain.TIMESTAMP else BIGINT
    wid, start, end = WINDOW_FIELDS
    return Field(wid, BIGINT), Field(start, bound), Field(end, bound)


def _check_grouped(keys: tuple[str, ...], aggregates: tuple[AggregateCall, ...], below: Schema) -> None:
    """Keys and arguments are columns of the input, of the types that they are taken for."""
    for key in keys:
        check_column("Aggregate, key", key, None, below)
    for call in aggregates:
        for column, type_ in zip(call.columns, call.column_types, strict=True):
            check_column(f"Aggregate, {call}", column, type_, below)


def _grouped_fields(keys: tuple[str, ...], aggregates: tuple[AggregateCall, ...], below: Schema) -> list[Field]:
    """The keys and the results; a query does not name these here, it does so in its select list."""
    found = [Field(key, below[key].type, words=below[key].words) for key in keys]
    return found + [Field(a.name, a.type, words=a.worded(below)) for a in aggregates]


def _in_words(keys: tuple[str, ...], aggregates: tuple[AggregateCall, ...], below: Schema) -> tuple[str, str]:
    """What is aggregated, and by what, as the query says it."""
    said = ", ".join(a.worded(below) for a in aggregates) or "nothing"
    return said, ", ".join(below[key].words or key for key in keys)


def _updated_by(below: StreamProperties, keys: tuple[str, ...]) -> frozenset[str] | None:
    """What results update each other by: their groups, if these keep the update key of the input (UpStream, 3.2)."""
    updates = below.update_key is not None and below.update_key <= set(keys)
    return frozenset(keys) if updates else None


@dataclass(frozen=True)
class WindowAggregate(Unary):
    """One row per window and group: the window's id and bounds, the group's keys, the aggregates."""

    window: AnyWindow
    keys: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        """Window, keys and arguments are columns of the input, of the types that they are taken for."""
        below = self.input.schema
        for attribute in self.window.columns:
            check_column("Aggregate, window", attribute, None, below)
        _check_grouped(self.keys, self.aggregates, below)

    @cached_property
    def schema(self) -> Schema:
        """Window, keys, aggregates; a result lives until the next window ends."""
        fields = list(window_fields(self.window))
        fields += _grouped_fields(self.keys, self.aggregates, self.input.schema)
        slides = isinstance(self.window, SlidingWindow | LandmarkWindow)
        return Schema(tuple(fields), "window_end", self.window.slide if slides else 1)

    @cached_property
    def properties(self) -> StreamProperties:
        """Windows close in order, all groups of one window together; without groups, each window once.

        Each partition of a partitioned window counts for itself, so there is no order among them, groups of which
        something is promised alone are ahead of the others, and keys of a queue overtake each other; rows that tie in a
        slide-by-tuple window each bring a result with the same id, so it is no key.
        """
        ordered = not isinstance(self.window, PartitionedWindow) and not (self.keys and self.input.speaks_of_groups)
        ordered = ordered and window_queue_below(self) is None
        ties = isinstance(self.window, SlideByTupleWindow)
        one_each = isinstance(self.window, SlidingWindow | LandmarkWindow) and not self.keys
        return StreamProperties(
            ordered=ordered,
            strictly_ordered=one_each and ordered,
            deterministic_ties=one_each and ordered,
            key=None if ties else frozenset({"wid", *self.keys}),
            unique=frozenset({str(self.schema.time), *self.keys}) if isinstance(self.window, SlidingWindow) else None,
            max_disorder=0 if ordered else None,
            lifetime=self.schema.lifetime,
            update_key=_updated_by(self.input.properties, self.keys),
        )

    @property
    def label(self) -> str:
        """Aggregates, window and keys."""
        said, by = _in_words(self.keys, self.aggregates, self.input.schema)
        return f"Aggregate {said} {self.window}{f' by {by}' if by else ''}"


@dataclass(frozen=True)
class GroupAggregate(Unary):
    """One row per group, once it is complete: its greatest time, its keys, the aggregates."""

    keys: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        """Keys and arguments are columns of the input; the time tells no groups apart, it is what is left of theirs."""
        _check_grouped(self.keys, self.aggregates, self.input.schema)
        if self.input.schema.time in self.keys:
            raise PlanError(
                "A group of one instant is a window of one tick.",
                where="Aggregate, key",
                got=str(self.input.schema.time),
            )

    @cached_property
    def schema(self) -> Schema:
        """The time, keys, aggregates; a result lives one tick."""
        below = self.input.schema
        time = below[below.time]
        fields = [Field(time.name, time.type), *_grouped_fields(self.keys, self.aggregates, below)]
        return Schema(tuple(fields), below.time)

    @cached_property
    def properties(self) -> StreamProperties:
        """Groups are complete in any order, each once."""
        keys = frozenset(self.keys)
        return StreamProperties(
            key=keys, unique=keys, lifetime=1, update_key=_updated_by(self.input.properties, self.keys)
        )

    @property
    def label(self) -> str:
        """Aggregates and keys."""
        said, by = _in_words(self.keys, self.aggregates, self.input.schema)
        return f"Aggregate {said} of whole groups by {by}"
