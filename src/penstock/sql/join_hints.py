"""Hints after SELECT that say how joins are to run: `/*+ MULTIWAY_JOIN */` and `/*+ BINARY_JOINS */`."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.plan.join_nodes import Join
from penstock.plan.nodes import MultiJoin, Node, Select
from penstock.plan.rules.multiway import multiway
from penstock.sql.reading import Reading

HINTS = {"MULTIWAY_JOIN": True, "BINARY_JOINS": False}


def hinted(node: Node, tree: exp.Select, reading: Reading) -> Node:
    """What a SELECT reads, whose last join knows what the hints say; other hints are left for nobody to read."""
    hint = reading.part(tree, "hint")
    if hint is None:
        return node
    words = [reading.whole(each).name.upper() for each in reading.parts(hint, "expressions")]
    unknown = [word for word in words if word not in HINTS]
    if unknown or len(words) != 1:
        raise reading.error(
            "This hint is not known.", tree.expressions[0], got=" ".join(unknown or words),
            hint=f"use one of {', '.join(HINTS)}",
        )  # fmt: skip
    made = _marked(node, as_one=HINTS[words[0]])
    one = multiway(made, lambda _: True, hints=False)
    if made is node or not any(isinstance(each, MultiJoin) for each in one.walk()):
        raise reading.error(
            "These joins cannot be one operator, so the hint says nothing.", tree.expressions[0], got=words[0],
            hint="it takes inner joins of three streams and more within bands, and conditions that cannot fail",
        )  # fmt: skip
    return made


def _marked(node: Node, *, as_one: bool) -> Node:
    """The node with a mark on the last of its joins."""
    if isinstance(node, Select):
        below = _marked(node.input, as_one=as_one)
        return node if below is node.input else replace(node, input=below)
    return replace(node, as_one=as_one) if isinstance(node, Join) else node
