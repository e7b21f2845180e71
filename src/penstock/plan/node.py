"""What every node of a logical plan is: frozen, with a schema and properties that it derives from its inputs.

A node that does not fit its inputs cannot be made (`integrity`). Rewrites build new nodes with `with_inputs` and
`transform`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from penstock.model.cached import cached_property
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema
from penstock.plan.integrity import check_agree, check_count


@dataclass(frozen=True)
class Node:
    """A relational operator over streams."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that feed this one."""
        return ()

    @cached_property
    def schema(self) -> Schema:
        """The columns that come out."""
        raise NotImplementedError(type(self).__name__)

    @cached_property
    def properties(self) -> StreamProperties:
        """What is promised of what comes out."""
        raise NotImplementedError(type(self).__name__)

    @property
    def takes_revisions(self) -> bool:
        """Whether it may be given adjusts; before a node that may not, a `Settle` is put (`rules.settle`)."""
        return False

    @property
    def speaks_of_groups(self) -> bool:
        """Whether what comes out may be promised of some groups alone, which are then ahead of the others."""
        return any(node.speaks_of_groups for node in self.inputs)

    @property
    def label(self) -> str:
        """One line for `explain`."""
        return type(self).__name__

    def walk(self) -> Iterator[Node]:
        """This node and all below it, inputs after their consumer."""
        yield self
        for node in self.inputs:
            yield from node.walk()

    def with_inputs(self, *inputs: Node) -> Self:
        """The same node over other inputs; the node itself if they are its own."""
        check_count(type(self).__name__, inputs, len(self.inputs))
        same = all(new is old for new, old in zip(inputs, self.inputs, strict=True))
        return self if same else self._over(inputs)

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        raise NotImplementedError(type(self).__name__)

    def transform(self, rule: Callable[[Node], Node]) -> Node:
        """The plan with every node replaced by what the rule makes of it, inputs before their consumer.

        What the rule leaves alone stays the same object, all the way up.
        """
        return rule(self.with_inputs(*[node.transform(rule) for node in self.inputs]))


@dataclass(frozen=True)
class Unary(Node):
    """A node with one input."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The one input."""
        return (self.input,)

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        (below,) = inputs
        return replace(self, input=below)


@dataclass(frozen=True)
class SameColumns(Unary):
    """A node out of which come the columns that go in."""

    @cached_property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema


@dataclass(frozen=True)
class Nary(Node):
    """A node over streams of one schema."""

    branches: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The branches."""
        return self.branches

    def __post_init__(self) -> None:
        """The branches agree."""
        check_agree(type(self).__name__, self.branches)

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, branches=inputs)

    @cached_property
    def schema(self) -> Schema:
        """The first branch's."""
        return self.branches[0].schema
