"""The node of a running graph in which an old plan hands over to a new one (`operators.migration.handover`).

No text is bound to it: it is there while a query is replaced, above both plans, whose results have the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK, Domain, show_ticks
from penstock.plan.node import Node


@dataclass(frozen=True)
class Handover(Node):
    """Results of the old plan that start before the split, and of the new one from there on."""

    old: Node
    new: Node
    split: int

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Both plans."""
        return self.old, self.new

    def _over(self, inputs: tuple[Node, ...]) -> Handover:
        old, new = inputs
        return replace(self, old=old, new=new)

    @cached_property
    def schema(self) -> Schema:
        """That of the new plan; the old one has the same columns."""
        return self.new.schema

    @cached_property
    def properties(self) -> StreamProperties:
        """Nothing but that there are no revisions."""
        return StreamProperties()

    @property
    def label(self) -> str:
        """The split."""
        if self.split == MIN_TICK:
            return "Handover at once"
        return f"Handover at {show_ticks(self.split, self.schema.domain or Domain.INTEGER)}"
