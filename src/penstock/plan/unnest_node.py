"""One row for each element of an array, or each entry of a map: Spark's `explode`.

The columns of the row stay beside the element, and so does its time, so what was promised of rows holds of what comes
of them. A row whose array is empty or null gives nothing, or, with `outer`, one row without an element.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.model.cached import cached_property
from penstock.model.properties import StreamProperties
from penstock.model.schema import INT, Field, Schema
from penstock.plan.integrity import check_column
from penstock.plan.node import Unary


@dataclass(frozen=True)
class Unnest(Unary):
    """Rows with one element each of a column that is an array or a map; a hidden column is left out afterwards."""

    column: str
    names: tuple[str, ...]
    """What the element is called, or key and value; before them the place, counted from 0, if it is wanted."""
    outer: bool = False
    place: bool = False

    def __post_init__(self) -> None:
        """The column is one of the input."""
        check_column("Unnest", self.column, None, self.input.schema)

    @cached_property
    def parts(self) -> tuple[Field, ...]:
        """The columns that are new."""
        type_ = self.input.schema[self.column].type
        types = [*([INT] if self.place else []), *(part for _, part in type_.parts)]
        return tuple(Field(name, kind) for name, kind in zip(self.names, types, strict=True))

    @property
    def kept(self) -> tuple[int, ...]:
        """The places of the columns that stay."""
        below = self.input.schema
        return tuple(i for i, f in enumerate(below.fields) if not (f.name == self.column and f.hidden))

    @cached_property
    def schema(self) -> Schema:
        """The input's columns and those of the elements."""
        below = self.input.schema
        fields = tuple(below.fields[i] for i in self.kept)
        return Schema((*fields, *self.parts), below.time, below.lifetime, lives=below.lives)

    @property
    def takes_revisions(self) -> bool:
        """An insert and its adjusts become the same rows."""
        return True

    @cached_property
    def properties(self) -> StreamProperties:
        """Elements of a row start together, and no column tells them apart."""
        return replace(self.input.properties, strictly_ordered=False, key=None, update_key=None)

    @property
    def label(self) -> str:
        """What is taken apart, and into what."""
        field = self.input.schema[self.column]
        function = f"{'pos' if self.place else ''}explode{'_outer' if self.outer else ''}"
        return f"Unnest {function}({field.words or field.name}) AS {', '.join(self.names)}"
