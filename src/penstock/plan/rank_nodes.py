"""Rows numbered in an order of their own, within windows that tumble and groups: SQL's ROW_NUMBER.

The first n of every window and group (top-n), and the first or the last of those that are alike (deduplication), are
the rows whose number is at most n. A window is complete when the bound has passed it, and so are its numbers; a number
never changes. Rows that are equal in what they are ordered by are ordered by all of their columns, the first column
first, ascending, null before everything else: so numbers do not depend on the order of arrival, and rows that are equal
in all columns can change places without a trace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.errors import PlanError
from penstock.model.cached import cached_property
from penstock.model.properties import StreamProperties
from penstock.model.schema import INT, Field, Schema
from penstock.plan.aggregate_nodes import window_fields
from penstock.plan.integrity import check_column
from penstock.plan.node import Unary
from penstock.plan.windows import SlidingWindow


@dataclass(frozen=True)
class Sorting:
    """A column that rows are ordered by."""

    column: str
    descending: bool = False
    nulls_last: bool = False

    def __str__(self) -> str:
        """As in SQL."""
        usual = self.nulls_last == self.descending
        return f"{self.column}{' DESC' if self.descending else ''}{'' if usual else self._nulls}"

    @property
    def _nulls(self) -> str:
        return " NULLS LAST" if self.nulls_last else " NULLS FIRST"


@dataclass(frozen=True)
class RowNumber(Unary):
    """Every row with the bounds of its window and its number there, once the window is complete."""

    window: SlidingWindow
    keys: tuple[str, ...]
    order: tuple[Sorting, ...]
    bounds: tuple[str, str]
    """What the start and the end of the window are called."""
    name: str
    """What the number is called."""
    most: int | None = None
    """Rows with a greater number are left out."""

    def __post_init__(self) -> None:
        """Windows tumble; keys and what is ordered by are columns of the input."""
        below = self.input.schema
        if not self.window.is_tumbling or self.window.attribute != below.time:
            raise PlanError(
                "Rows are numbered in tumbling windows of their time.", where="RowNumber", got=str(self.window)
            )
        for column in (*self.keys, *(each.column for each in self.order)):
            check_column("RowNumber", column, None, below)

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, the window's bounds and the number; a result lives until the next window ends."""
        _, *ends = window_fields(self.window)
        bounds = [Field(name, end.type) for name, end in zip(self.bounds, ends, strict=True)]
        fields = (*self.input.schema.fields, *bounds, Field(self.name, INT))
        return Schema(fields, self.bounds[1], self.window.slide)

    @cached_property
    def properties(self) -> StreamProperties:
        """Windows come in order, and in a window and a group every number once."""
        key = frozenset({self.bounds[1], *self.keys, self.name})
        return StreamProperties(ordered=True, key=key, max_disorder=0, lifetime=self.schema.lifetime)

    def of_first(self, most: int) -> RowNumber:
        """The same without rows that have a greater number."""
        return replace(self, most=most)

    @property
    def label(self) -> str:
        """Order, window and keys."""
        below = self.input.schema
        by = ", ".join(below[key].words or key for key in self.keys)
        order = ", ".join(map(str, self.order))
        first = "" if self.most is None else f"first {self.most} "
        return f"RowNumber {first}by {order} {self.window}{f' by {by}' if by else ''}"
