"""Temporal patterns in a logical plan: rows that follow one another (Stream Mill, sections 2.1 and 5).

`SEQ(a, b, …)` is a row of each *step*, one after the other. Rows are in the order of their times, and each step is
*later* than the step before it: rows of one time do not follow one another, of whatever streams they are, and a row
does not follow itself. Of the rows of one step that have the same time the lesser one is the earlier, column by column,
null before everything else. So what follows what depends on the rows alone, and never on the order of arrival.

Which rows go together is the *context* (Snoop's word):

- *recent*: each row of the last step goes with the most recent row of the step before that is itself the end of such a
  sequence, and so on back. Rows are not used up. Of two steps it is the paper's asymmetric window join with one tuple.
- *chronicle*: the earliest go first, and every row is used once: a row of a step goes on with the sequence that has
  waited longest for that step, and no other row does. It is the paper's key-join constraint.
- *continuous*: each row of the first step begins a sequence of its own, which goes on with the first row of the next
  step that comes after it, and so on. A row may go on with many sequences.
- *cumulative*: a row of the last step takes with it all rows of the other steps that take part in some sequence which
  it ends; then all rows up to its time are used up. Columns of the other steps are arrays, in the order of the rows.

A *negated* step between two others must have no row in between: one ends what waits for the next step, and what has
ended does not begin again. After the last step it says that none comes until `within` has passed since the first: such
a sequence comes out at that time, which no row need tell.

With `keys`, all of that is among the rows that are equal in them. `within` is the longest time between the first and
the last row. A result is an event of one tick, at the time of its last row, or at the time until which nothing came.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

from penstock.errors import PlanError
from penstock.model.cached import cached_property
from penstock.model.properties import StreamProperties
from penstock.model.schema import Field, Schema
from penstock.model.time import Domain, show_span
from penstock.model.types import array_of
from penstock.plan.integrity import check_column, check_count
from penstock.plan.node import Node

Context = Literal["recent", "chronicle", "continuous", "cumulative"]
CONTEXTS: tuple[Context, ...] = get_args(Context)
DEADLINE = "__time"
WORDS = "the time until which nothing came"
"""What people are shown for it."""


@dataclass(frozen=True)
class PatternKey:
    """What is equal in rows that go together: a column of each step."""

    columns: tuple[str, ...]
    is_group: bool = False
    """Whether null is a value like any other, as in PARTITION BY; otherwise it equals nothing."""


@dataclass(frozen=True)
class Pattern(Node):
    """Sequences of rows."""

    steps: tuple[Node, ...]
    negated: tuple[bool, ...]
    """Of each step, whether it must not come."""
    context: Context
    keys: tuple[PatternKey, ...]
    names: tuple[str, ...]
    """What the columns of the steps that come are called in the output, one step after the other."""
    within: int | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The steps."""
        return self.steps

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, steps=inputs)

    def __post_init__(self) -> None:
        """Steps begin with one that comes; keys are of one type; the time that nothing comes has an end."""
        check_count("Pattern, negated", self.negated, len(self.steps))
        check_count("Pattern, names", self.names, sum(len(self.steps[at].schema) for at in self.places))
        if self.context not in CONTEXTS or len(self.steps) < 2 or self.negated[0]:
            raise PlanError("A pattern has steps, of which the first comes.", where="Pattern", got=self.context)
        if self.ends_with_nothing and self.within is None:
            raise PlanError("That nothing comes has an end.", where="Pattern", got="no bound on the time")
        first = self.steps[0].schema
        for step in self.steps[1:]:
            check_column("Pattern, time", str(step.schema.time), first[first.time].type, step.schema)
        for key in self.keys:
            check_count("Pattern, key", key.columns, len(self.steps))
            for name, step in zip(key.columns, self.steps, strict=True):
                check_column("Pattern, key", name, first[key.columns[0]].type, step.schema)

    @property
    def speaks_of_groups(self) -> bool:
        """Results are promised of all rows alike."""
        return False

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The steps that come, by their places among all."""
        return tuple(at for at, negated in enumerate(self.negated) if not negated)

    @property
    def last(self) -> int:
        """The last step that comes."""
        return self.places[-1]

    @property
    def ends_with_nothing(self) -> bool:
        """Whether a sequence waits for something not to come."""
        return self.negated[-1]

    def collects(self, at: int) -> bool:
        """Whether many rows of a step go into one result."""
        return self.context == "cumulative" and at != self.last

    @cached_property
    def named(self) -> dict[int, dict[str, str]]:
        """Of each step that comes, what its columns are called in the output."""
        names = iter(self.names)
        return {at: {name: next(names) for name in self.steps[at].schema.names} for at in self.places}

    @cached_property
    def schema(self) -> Schema:
        """The columns of the steps that come; of steps of which many rows are collected, arrays."""
        fields = [
            Field(called, array_of(own.type) if self.collects(at) else own.type, own.hidden, own.words)
            for at in self.places
            for own, called in zip(self.steps[at].schema.fields, self.named[at].values(), strict=True)
        ]
        below = self.steps[self.last].schema
        time = self.named[self.last][str(below.time)]
        if self.ends_with_nothing:
            time = DEADLINE
            while time.lower() in {name.lower() for name in self.names}:
                time = "_" + time
            fields.append(Field(time, below[below.time].type, hidden=True, words=WORDS))
        unusable = tuple(each for at in self.places for each in self.steps[at].schema.unusable)
        return Schema(tuple(fields), time, unusable=unusable)

    @cached_property
    def properties(self) -> StreamProperties:
        """Results come in any order."""
        return StreamProperties(lifetime=self.schema.lifetime)

    @cached_property
    def equal(self) -> tuple[tuple[str, ...], ...]:
        """The columns of the steps that are equal, without what else is said of them."""
        return tuple(key.columns for key in self.keys)

    @property
    def label(self) -> str:
        """Steps, bound, context and keys."""
        steps = [f"{'NOT ' if negated else ''}{_worded(step)}" for step, negated in zip(*self._pairs, strict=True)]
        domain = self.steps[0].schema.domain or Domain.INTEGER
        within = "" if self.within is None else f" within {show_span(self.within, domain)}"
        first = self.steps[0].schema
        by = ", ".join(first[key.columns[0]].words or key.columns[0] for key in self.keys)
        return f"Pattern SEQ({', '.join(steps)}){within} {self.context.upper()}{f' by {by}' if by else ''}"

    @property
    def _pairs(self) -> tuple[tuple[Node, ...], tuple[bool, ...]]:
        return self.steps, self.negated


def _worded(step: Node) -> str:
    """A step by the stream that it is of, if it is of one."""
    while len(step.inputs) == 1:
        (step,) = step.inputs
    return str(getattr(step, "name", type(step).__name__))
