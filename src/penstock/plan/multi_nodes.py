"""An inner join of three streams and more in one node, which keeps the rows of each stream and nothing else.

It means what the joins mean that it stands for, one after the other (`rules.multiway`), and has their columns. Rows
meet if they are equal in each class of columns, if the difference of the times of each two is within the bounds that
the joins gave, and if the conditions hold. Bounds between two streams that no join compares follow from the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from penstock.model.cached import cached_property
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema
from penstock.model.time import Domain
from penstock.plan.expressions import Expression, worded
from penstock.plan.integrity import check_column, check_count, check_predicate
from penstock.plan.join_nodes import Band
from penstock.plan.node import Node

Member = tuple[int, str]
"""A column of one of the inputs."""


@dataclass(frozen=True)
class Apart:
    """How far apart the times of two inputs are: `low <= second - first <= high`."""

    first: int
    second: int
    low: int
    high: int


@dataclass(frozen=True)
class Taken:
    """A column of the output: that of an input, by its place, or, of several inputs, the latest of their times."""

    inputs: tuple[int, ...]
    place: int = -1

    @property
    def is_time(self) -> bool:
        """Whether it is the latest of times."""
        return self.place < 0


@dataclass(frozen=True)
class MultiJoin(Node):
    """Rows of all inputs that meet."""

    streams: tuple[Node, ...]
    on: tuple[str, ...]
    """Of each input, the attribute that is to be near those of others."""
    apart: tuple[Apart, ...]
    equal: tuple[tuple[Member, ...], ...]
    """Classes of columns that are all equal; null equals nothing."""
    columns: tuple[Taken, ...]
    fields: Schema
    """What comes out."""
    conditions: tuple[Expression, ...] = ()
    """What else must hold, over what comes out; each always has a value."""
    last: tuple[int, int] = (0, 1)
    """The inputs that the last of the joins compares."""
    why: str = field(default="", compare=False)
    """Why it is one operator, for `explain`."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The streams."""
        return self.streams

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, streams=inputs)

    def __post_init__(self) -> None:
        """Attributes and columns are there, and those that are compared are of one type."""
        check_count("MultiJoin, attributes", self.on, len(self.streams))
        check_count("MultiJoin, columns", self.columns, len(self.fields.fields))
        for name, stream in zip(self.on, self.streams, strict=True):
            check_column("MultiJoin", name, None, stream.schema)
        for (first, column), *others in self.equal:
            for at, name in others:
                check_column("MultiJoin", name, self.streams[first].schema[column].type, self.streams[at].schema)
        for condition in self.conditions:
            check_predicate("MultiJoin", condition, self.fields)

    @cached_property
    def schema(self) -> Schema:
        """The columns of all, and the latest of their times."""
        return self.fields

    @cached_property
    def properties(self) -> StreamProperties:
        """Rows come in any order."""
        return StreamProperties(lifetime=self.schema.lifetime)

    def named(self, member: Member) -> str:
        """What a column of an input is called in the output."""
        at, name = member
        return self.fields.names[self.columns.index(Taken((at,), self.streams[at].schema.index(name)))]

    @property
    def attributes(self) -> tuple[str, ...]:
        """What progresses besides the time."""
        return tuple(self.named(member) for member in enumerate(self.on))

    @property
    def everywhere(self) -> list[dict[int, str]]:
        """The classes of equal columns that have one of every input, by input."""
        return [dict(members) for members in self.equal if {at for at, _ in members} == set(range(len(self.streams)))]

    @property
    def label(self) -> str:
        """How rows meet."""
        said = []
        for apart in self.apart:
            one, other = self.attributes[apart.first], self.attributes[apart.second]
            domain = self.fields[one].type.domain or Domain.INTEGER
            said.append(Band(apart.low, apart.high).worded(one, other, domain))
        said += [" = ".join(self.fields[n].words or n for n in map(self.named, members)) for members in self.equal]
        said += [worded(condition, self.fields) for condition in self.conditions]
        return f"Join of {len(self.streams)} ON {' AND '.join(said)} (MJoin)"
