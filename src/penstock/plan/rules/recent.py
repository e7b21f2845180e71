"""A pattern of two steps in the recent context is an as-of join: each row of the last step with the latest before it.

It is the paper's asymmetric window join with a window of one tuple (Stream Mill, section 5). Both go by the same order,
of times and then of columns, so they mean the same; the join takes batches as columns, and gives a row out when the
other stream is past it, whatever the row's own stream has promised. A pattern stays what it is where something must not
come, where null is a value of a key, and over rows that do not live for one tick, since a join's rows live as long.
"""

from __future__ import annotations

from penstock.plan.expressions import Column
from penstock.plan.join_nodes import Join, Latest
from penstock.plan.nodes import Node, Pattern, Project


def recent_as_joins(plan: Node) -> Node:
    """The plan with such patterns as joins."""
    return plan.transform(_as_join)


def _as_join(node: Node) -> Node:
    if not isinstance(node, Pattern) or node.context != "recent" or len(node.steps) != 2 or any(node.negated):
        return node
    first, last = node.steps
    if any(key.is_group for key in node.keys) or any(
        step.schema.lives is not None or step.schema.lifetime != 1 for step in node.steps
    ):
        return node
    called = node.named
    near = Latest(1, high=-1, low=None if node.within is None else -node.within)
    join = Join(
        last,
        first,
        "inner",
        near,
        (str(last.schema.time), str(first.schema.time)),
        tuple((other, one) for one, other in node.equal),
        (*called[1].values(), *called[0].values()),
        why="SEQ of two steps in the recent context",
    )
    time = str(node.schema.time)
    columns = []
    for field in node.schema.fields:  # the later of both times is that of the last step
        read = str(join.schema.time) if field.name == time else field.name
        columns.append((field.name, Column(read, field.type)))
    hidden = frozenset(field.name for field in node.schema.fields if field.hidden)
    return Project(join, tuple(columns), time, hidden, frozenset(f.name for f in node.schema.fields if f.words))
