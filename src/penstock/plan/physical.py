"""The physical plan: a tree that says of every node of a logical plan how it runs, and why.

One planner makes it (`planner`), `explain` prints it, engines run it, and nothing decides again. A physical node is one
logical node with what was decided of it. It is plain data: it travels to workers as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from penstock.plan.cost import Choice
from penstock.plan.distribution import ANY, Distribution
from penstock.plan.expressions import Expression, worded
from penstock.plan.nodes import Node, Source
from penstock.plan.stages import Exchange
from penstock.plan.useful import EVERY, Useful


class Runs(Enum):
    """Who runs a node."""

    IN_PROCESS = "in-process"
    NATIVE = "Spark, native"
    SLIDING = "Spark"
    """Natively, but for a total that slides over panes in Python."""
    HOSTED = "Spark, hosted"
    """By the operators that run in-process, in Spark's workers."""


@dataclass(frozen=True)
class Physical:
    """A logical node and how it runs."""

    node: Node
    identity: str
    """What its state, its statistics and its checkpoint are kept under, see `identity`."""
    inputs: tuple[Physical, ...]
    runs: Runs
    algorithm: str
    why: str = ""
    """The reason, in words."""
    choice: Choice | None = None
    """What the algorithms that could do it would cost, where there are several."""
    distribution: Distribution = ANY
    """Of a source, how its rows are spread over workers; of another node, what it needs of the rows it is given."""
    useful: Useful = EVERY
    """The bounds that the consumer of its output can use."""
    wanted: tuple[tuple[str, Useful], ...] = ()
    """Of a source of which several attributes progress: those that somebody can use bounds of, and which bounds."""
    stage: int = 0
    """On Spark, in a plan that is cut: which part of it the node is in, from where rows are read on."""
    exchange: Exchange | None = None
    """How its output changes places, if it does."""
    native: tuple[Expression, ...] = ()
    """On Spark, where rows are read: which of its expressions Spark computes before rows go to Python."""
    unread: frozenset[str] = frozenset()
    """Columns of its output that nobody reads, where the plan is run for itself alone."""

    @property
    def is_hosted(self) -> bool:
        """Whether the query graph runs it in Spark's workers."""
        return self.runs is Runs.HOSTED

    @property
    def how(self) -> str:
        """One line for `explain`."""
        said = [str(self.choice)] if self.choice is not None else []
        if self.why:
            said.append(self.why)
        if self.native:
            below = self.inputs[0].node.schema
            told = ", ".join(worded(expression, below) for expression in self.native)
            said.append(f"{told} natively, before rows go to Python, which would evaluate it row by row")
        return f"{self.runs.value}: {'; '.join(said)}" if said else self.runs.value

    @property
    def stages(self) -> int:
        """Into how many stages the plan is cut that a row is sent to, one after another; 0 if it is not cut."""
        return max((p.exchange.stage for p in self.walk() if p.exchange is not None), default=0)

    def made_of(self, stream: str) -> tuple[Expression, ...]:
        """What Spark computes of the rows of a stream before they go to Python."""
        found = [p for p in self.walk() if p.native and any(_reads(below, stream) for below in p.walk())]
        return tuple(dict.fromkeys(expression for p in found for expression in p.native))

    def walk(self) -> Iterator[Physical]:
        """This node and all below it, inputs after their consumer, as the logical plan walks."""
        yield self
        for below in self.inputs:
            yield from below.walk()


def _reads(planned: Physical, stream: str) -> bool:
    return isinstance(planned.node, Source) and planned.node.name == stream
