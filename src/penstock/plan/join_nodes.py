"""Joins of two streams in a logical plan (thesis, chapters 5.2 and 7).

Two rows meet if they are equal in some columns, if their times are near each other, and if a condition on both holds.
*Near* is one of two things. Within a band, `low <= right - left <= high`, which is what the windows of a sliding-window
join come to: with a range of W_L on the left and W_R on the right a row of the left is joined for W_L after it came,
and one of the right for W_R, so that `-W_R <= right - left <= W_L`, both ends included. Or in the same window of those
that neither overlap nor leave gaps. So every row has an end after which nothing more can meet it.

Or a row of the left meets the *latest* rows of the right as of its own time: a window of the last so many rows, of
those that are equal to it; of one row that is what others call an as-of join. What is the latest goes by time and not
by who came first, and of rows of one time the greater ones, column by column, are the later.

The times are those of the two streams, or other attributes of theirs that progress. What comes out has the columns of
both, the left's first, and starts when the later of the two rows does; it lives as long as the one that lives shorter.
A row without a partner, where those are kept, starts when it started itself.

*Semi* and *anti* joins are the rows of the left that have a partner, or none, as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from penstock.errors import PlanError
from penstock.model.cached import cached_property
from penstock.model.properties import StreamProperties, renamed_all
from penstock.model.schema import Field, Schema
from penstock.model.time import Domain, show_span, show_ticks
from penstock.plan.expressions import Expression, worded
from penstock.plan.integrity import check_column, check_count, check_predicate
from penstock.plan.node import Node

JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]
JOINED_TIME = "__time"


@dataclass(frozen=True)
class Band:
    """`low <= right - left <= high`, in ticks."""

    low: int
    high: int

    def worded(self, left: str, right: str, domain: Domain) -> str:
        """For `explain`."""
        if self.low == self.high == 0:
            return f"{right} = {left}"
        ends = [
            f"{left} {'-' if by < 0 else '+'} {show_span(abs(by), domain)}" if by else left
            for by in (self.low, self.high)
        ]
        return f"{right} BETWEEN {ends[0]} AND {ends[1]}"


@dataclass(frozen=True)
class SameWindow:
    """Both in one of the windows of `width` that begin at `origin`."""

    width: int
    origin: int = 0

    def worded(self, left: str, right: str, domain: Domain) -> str:
        """For `explain`."""
        origin = f", ORIGIN {show_ticks(self.origin, domain)}" if self.origin else ""
        return f"{left} and {right} in one window [RANGE TUMBLING {show_span(self.width, domain)}{origin}]"


@dataclass(frozen=True)
class Latest:
    """Of the rows of the right with `left + low <= right <= left + high`, the `rows` latest."""

    rows: int
    high: int = 0
    low: int | None = None

    def worded(self, left: str, right: str, domain: Domain) -> str:
        """For `explain`."""
        if self.low is not None:
            among = Band(self.low, self.high).worded(left, right, domain)
        else:
            moved = f" {'-' if self.high < 0 else '+'} {show_span(abs(self.high), domain)}" if self.high else ""
            among = f"{right} <= {left}{moved}"
        return f"the latest{f' {self.rows}' if self.rows > 1 else ''} of {among}"


Mutual = Band | SameWindow
"""How near rows are to be, whatever others there are."""
Near = Mutual | Latest


@dataclass(frozen=True)
class Join(Node):
    """Pairs of rows, or rows that have a partner or none."""

    left: Node
    right: Node
    kind: JoinKind
    near: Near
    on: tuple[str, str]
    """The attributes of the left and of the right that are to be near each other."""
    equal: tuple[tuple[str, str], ...]
    """Columns of the left and of the right that are to be equal; null equals nothing."""
    names: tuple[str, ...]
    """What the columns of the left, and then of the right, are called in the output, and in the condition."""
    condition: Expression | None = None
    """What else must hold of a pair, over the columns of both."""
    max_burst: int | None = field(default=None, compare=False)
    """How many rows without a partner come out at a time when punctuation settles them; None for all. It is no part of
    the meaning, nor of what the state is known by."""
    as_one: bool | None = None
    """Whether it is to be one operator with the joins below it, where the query says so (`rules.multiway`)."""
    why: str = field(default="", compare=False)
    """Why it is not, or what it stands for, for `explain`."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Left and right."""
        return self.left, self.right

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        left, right = inputs
        return replace(self, left=left, right=right)

    def __post_init__(self) -> None:
        """Attributes and columns are there, and those that are compared are of one type."""
        check_count("Join, names", self.names, len(self.left.schema.fields) + len(self.right.schema.fields))
        pairs = (self.on, *self.equal)
        for left, right in pairs:
            check_column("Join, left", left, None, self.left.schema)
            check_column("Join, right", right, self.left.schema[left].type, self.right.schema)
        if self.condition is not None:
            check_predicate("Join", self.condition, self.pairs)
        if isinstance(self.near, Latest) and (self.near.rows < 1 or self.kind not in ("inner", "left")):
            raise PlanError("A join with the latest rows is inner or left.", where="Join", got=self.kind)
        if isinstance(self.near, Band) and self.near.low > self.near.high:
            raise PlanError("A join of times that are never near each other.", where="Join", got=str(self.near))

    @property
    def is_of_pairs(self) -> bool:
        """Whether columns of both come out."""
        return self.kind not in ("semi", "anti")

    @property
    def keeps_left(self) -> bool:
        """Whether a row of the left without a partner comes out."""
        return self.kind in ("left", "full", "anti")

    @property
    def keeps_right(self) -> bool:
        """Whether a row of the right without a partner comes out."""
        return self.kind in ("right", "full")

    @cached_property
    def pairs(self) -> Schema:
        """The columns of both under their names, with the time of a pair."""
        both = [*self.left.schema.fields, *self.right.schema.fields]
        fields = [
            Field(name, field.type, field.hidden, field.words) for name, field in zip(self.names, both, strict=True)
        ]
        time = self.left.schema[self.left.schema.time].type
        fields.append(Field(self.time_name, time, hidden=True, words="the later of both times"))
        lifetime = min(self.left.schema.lifetime, self.right.schema.lifetime)
        unusable = self.left.schema.unusable + self.right.schema.unusable
        return Schema(tuple(fields), self.time_name, lifetime, unusable=unusable)

    @property
    def time_name(self) -> str:
        """What the time of a pair is called: nothing that a column of either is."""
        name = JOINED_TIME
        while name.lower() in {n.lower() for n in self.names}:
            name = "_" + name
        return name

    @cached_property
    def schema(self) -> Schema:
        """The columns of both and the time of the pair; or those of the left."""
        if self.is_of_pairs:
            return self.pairs
        below = self.left.schema
        fields = self.pairs.fields[: len(below.fields)]
        return Schema(fields, fields[below.time_index].name, below.lifetime, unusable=below.unusable)

    @property
    def attributes(self) -> tuple[str, ...]:
        """What progresses besides the time: the attributes that are near each other, unless they may be null."""
        left, right = self.named_on
        if not self.is_of_pairs:
            return (left,)
        if isinstance(self.near, Latest) and self.near.low is None:  # the latest may be of any time
            return (left,)
        return (*(() if self.keeps_right else (left,)), *(() if self.keeps_left else (right,)))

    @property
    def named_on(self) -> tuple[str, str]:
        """The attributes by the names that they have in the output of pairs."""
        return self._named(*self.on)

    @property
    def named_times(self) -> tuple[str, str]:
        """The times of both by the names that they have in the output of pairs."""
        return self._named(str(self.left.schema.time), str(self.right.schema.time))

    def _named(self, left: str, right: str) -> tuple[str, str]:
        half = len(self.left.schema.fields)
        return self.names[self.left.schema.index(left)], self.names[half + self.right.schema.index(right)]

    @cached_property
    def properties(self) -> StreamProperties:
        """Pairs come in any order; what is unique on a side of which each row is in one of them stays so."""
        half = len(self.left.schema.fields)
        called = (
            dict(zip(self.left.schema.names, self.names[:half], strict=True)),
            dict(zip(self.right.schema.names, self.names[half:], strict=True)),
        )
        unique = None
        if not self.is_of_pairs or (self.once[0] and not self.keeps_right):
            unique = renamed_all(self.left.properties.unique, called[0])
        elif self.once[1] and not self.keeps_left:
            unique = renamed_all(self.right.properties.unique, called[1])
        updated_by = renamed_all(self._update_key(), called[0])
        return StreamProperties(unique=unique, lifetime=self.schema.lifetime, update_key=updated_by)

    def _update_key(self) -> frozenset[str] | None:
        """What results update each other by, in columns of the left: the keys of both, which are equal (UpStream, 3.2).

        Rows of the left with the latest of the right are updates if they were; so are those that have a partner.
        """
        left, right = (side.properties.update_key for side in self.inputs)
        if left is None or self.keeps_right:
            return None
        if not self.is_of_pairs or isinstance(self.near, Latest):
            return left
        met = {one: other for one, other in self.equal if one in left and other in (right or ())}
        return left if right is not None and met.keys() == left and {*met.values()} == right else None

    @cached_property
    def once(self) -> tuple[bool, bool]:
        """Of each side, whether a row of it meets no more than one: what is unique on the other side is to be equal."""
        if isinstance(self.near, Latest):
            return False, False
        same = self.near == Band(0, 0)
        met = []
        for side in (0, 1):
            other = self.inputs[1 - side].properties.unique
            equal = {pair[1 - side] for pair in (*self.equal, *((self.on,) if same else ()))}
            met.append(other is not None and other <= equal)
        return met[0], met[1]

    @property
    def label(self) -> str:
        """How rows meet."""
        kind = "" if self.kind == "inner" else f"{self.kind} "
        left, right = self.named_on
        domain = self.left.schema[self.on[0]].type.domain or Domain.INTEGER
        said = [self.near.worded(left, right, domain)]
        half = len(self.left.schema.fields)
        for one, other in self.equal:
            names = self.names[self.left.schema.index(one)], self.names[half + self.right.schema.index(other)]
            said.append(" = ".join(self.pairs[name].words or name for name in names))
        if self.condition is not None:
            said.append(worded(self.condition, self.pairs))
        how = "As-of join" if isinstance(self.near, Latest) else "OA-Join"
        return f"Join {kind}ON {' AND '.join(said)} ({how})"
