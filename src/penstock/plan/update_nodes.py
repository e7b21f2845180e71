"""Update streams in a logical plan: only the newest row of each key matters (UpStream, section 3).

Which columns are the update key is a property of a stream (`model.properties`), which every node derives. Selections
and projections keep it, an aggregate groups by it and perhaps by more, a join has it equal on both sides. Two nodes are
about updates alone.

*Newest* leaves out what comes too late to matter: a row that is older than one of its key that has come out. So it is
the union of update streams, and what a join of them comes to. Newer is a later time; of rows of one time a later one in
the columns of `ties`, then one of a stream that was named earlier, which is the one that is believed, then one that
came later. With `lives`, a row lives until the next of its key: what holds of each key at an instant is what lives
then. A selection above it ends a life as well, by leaving out the row that follows.

*Conflate* is where load is shed: between its input and its consumer rows wait, of each key the newest alone, and how
many of them are passed over depends on how much the consumer can take. So what comes out is settled by what was
delivered, and two runs agree in the last row of each key.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.model.cached import cached_property
from penstock.model.lived_rows import END, OLD
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema
from penstock.model.time import Domain, show_span
from penstock.plan.integrity import check_column
from penstock.plan.node import Nary, Node, SameColumns


@dataclass(frozen=True)
class Newest(Nary):
    """Of each key what is newer than all that has come out of it; of several streams, their union."""

    key: tuple[str, ...]
    ties: tuple[str, ...] = ()
    """Columns whose greater value is the newer among rows of one time; null is less than all else."""
    lives: bool = False
    """Whether rows live until the next of their key, instead of for a tick."""

    def __post_init__(self) -> None:
        """The branches agree, and have the columns."""
        super().__post_init__()
        for name in (*self.key, *self.ties):
            check_column("Newest", name, None, self.branches[0].schema)

    @cached_property
    def schema(self) -> Schema:
        """The first branch's, with lives if rows have them."""
        first = self.branches[0].schema
        return replace(first, lifetime=1, lives=(END, OLD)) if self.lives else first

    @cached_property
    def properties(self) -> StreamProperties:
        """Leaving rows out keeps what one stream promises; ends are told when the next update comes."""
        first = self.branches[0].properties
        found = first if len(self.branches) == 1 else StreamProperties(lifetime=self.schema.lifetime)
        found = replace(found, update_key=frozenset(self.key))
        if not self.lives:
            return found
        return replace(
            found, insert_only=False, ordered=False, strictly_ordered=False, deterministic_ties=False,
            max_disorder=None, lifetime=None, key=None, unique=None,
        )  # fmt: skip

    @property
    def label(self) -> str:
        """Of what, by what."""
        by = f" by {', '.join(self.key)}" if self.key else ""
        of = "" if len(self.branches) == 1 else f" of {len(self.branches)} (Union of updates)"
        return f"Newest{by}{of}{', until the next' if self.lives else ''}"


Pace = tuple[tuple[tuple[object, ...], int], ...]
"""How often values of some keys are wanted: a key, and the microseconds that pass between two."""


@dataclass(frozen=True)
class Conflate(SameColumns):
    """The newest row of each key, as fast as the consumer takes them; what it has no time for is passed over."""

    key: tuple[str, ...]
    policy: str = "in_place"
    """Which key is next: `in_place`, `fifo` or `linecutting`; or a queue of all rows: `append`, or `shedding`."""
    max_staleness: int | None = field(default=None, compare=False)
    """How many microseconds what was delivered of a key may be behind what has come."""
    budget: int | None = field(default=None, compare=False)
    """How many rows the consumer takes at a time; None where that follows from what they cost."""
    every: int | None = None
    """So many microseconds pass between two values of a key."""
    pace: Pace = ()
    """The same of some keys."""
    windows: str | None = None
    """What waits are windows of the aggregates above: `lazy`, the last that is whole, or `eager`, the last begun."""
    adaptive: bool = False
    """Whether nothing is passed over while the consumer keeps up."""
    forget_after: int | None = field(default=None, compare=False)
    """After so many microseconds a key is forgotten of which nothing comes, once nothing older can come."""
    memory: str = "on_demand"
    """Where tuples lie: on pages that go back once nothing waits there, or, `naive`, where each key has its place."""

    def __post_init__(self) -> None:
        """The key is among the columns."""
        for name in self.key:
            check_column("Conflate", name, None, self.input.schema)

    @cached_property
    def properties(self) -> StreamProperties:
        """Keys overtake each other, and a row updates the one before it of its key."""
        return replace(
            self.input.properties, update_key=frozenset(self.key), ordered=False, strictly_ordered=False,
            deterministic_ties=False, max_disorder=None,
        )  # fmt: skip

    @property
    def label(self) -> str:
        """By what, in which order, how fresh."""
        by = f" by {', '.join(self.key)}" if self.key else ""
        pace = "" if self.every is None else f", every {show_span(self.every, Domain.TIMESTAMP)}"
        pace += f", {len(self.pace)} keys at a pace of their own" if self.pace else ""
        pace += ", all rows while the consumer keeps up" if self.adaptive else ""
        fresh = "" if self.max_staleness is None else f", at most {show_span(self.max_staleness, Domain.TIMESTAMP)} old"
        of = "" if self.windows is None else f" {self.windows} windows"
        return f"Conflate{of}{by} ({self.policy.replace('_', ' ')}{fresh}{pace})"


def needs(node: Node) -> list[Any]:
    """What a consumer asks of a queue that is no part of its state: queries that ask for other things share none."""
    if not isinstance(node, Conflate):
        return []
    return [[node.max_staleness, node.budget, *([] if node.forget_after is None else [node.forget_after])]]


def window_queue_below(node: Node) -> Conflate | None:
    """The queue of windows below a node, where nothing but selections, projections and aggregates is between."""
    while len(node.inputs) == 1:
        (node,) = node.inputs
        if isinstance(node, Conflate):
            return node if node.windows is not None else None
    return None


def is_lossy(node: Node) -> bool:
    """Whether rows may have been passed over on the way to a node's output."""
    return any(isinstance(below, Conflate) for below in node.walk())
