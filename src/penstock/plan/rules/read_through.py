"""Aggregates read through projections that only choose and rename columns.

The binder puts a projection below every aggregate, which computes keys and arguments. Where it computes nothing, the
aggregate can read the columns where they are. Queries over one stream whose projections differ then have the same
input, and can share what they have in common above it (`runtime.shared_graph`). Keys must keep their names, since
results have them.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.expressions import Column
from penstock.plan.nodes import Node, Project, WindowAggregate
from penstock.plan.windows import SlidingWindow


def read_through(plan: Node) -> Node:
    """The plan without projections that aggregates can do without."""
    return plan.transform(_read_through)


def _read_through(node: Node) -> Node:
    if not isinstance(node, WindowAggregate) or not isinstance(node.window, SlidingWindow):
        return node
    below = node.input
    if not isinstance(below, Project) or not below.keeps_time or below.time != below.input.schema.time:
        return node
    plain = {name: e.name for name, e in below.columns if isinstance(e, Column)}
    kept = {*node.keys, *node.window.columns}
    if len(plain) < len(below.columns) or any(plain.get(name) != name for name in kept):
        return node
    return replace(node, input=below.input, aggregates=tuple(a.reading(plain) for a in node.aggregates))
