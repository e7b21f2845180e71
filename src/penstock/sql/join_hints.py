"""Hints after SELECT that say how joins are to run: `/*+ MULTIWAY_JOIN */` and `/*+ BINARY_JOINS */`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.plan.expressions import always_has_value
from penstock.plan.join_nodes import Join, Latest, SameWindow
from penstock.plan.nodes import Lookup, MultiJoin, Node, Select, Source
from penstock.plan.rules.multiway import joins_at_top, multiway
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
    as_one = HINTS[words[0]]
    made = _marked(node, as_one=as_one)
    can_be_one = any(isinstance(each, MultiJoin) for each in multiway(made, lambda _: True, hints=False).walk())
    if can_be_one and made is not node:
        return made
    found = [each for each in node.walk() if isinstance(each, Join)]
    if found and not as_one and not can_be_one:
        return node  # the tree that is asked for is the only way
    raise reading.error(
        "These joins cannot be one operator, so the hint says nothing.", tree.expressions[0],
        got=f"{words[0]} of {_reason(node, found)}",
        hint="leave it out; one operator takes inner joins of three streams and more within bands, and conditions that "
        "cannot fail",
    )  # fmt: skip


def _reason(node: Node, joins: Sequence[Join]) -> str:
    """What it is of the joins that makes them no one operator."""
    outer = [join.kind for join in joins if join.kind != "inner"]
    if outer:
        return f"a join that is not inner but {outer[0]}"
    if any(isinstance(join.near, Latest) for join in joins):
        return "a join with the latest rows"
    if any(isinstance(join.near, SameWindow) for join in joins):
        return "joins by a tumbling window"
    if len(joins) < 2:
        return "fewer than three streams"
    if any(isinstance(each, Source) and each.speaks_of_groups for each in node.walk()):
        return "streams that promise by groups, punctuated(per=…), which a tree makes use of"
    told = [each.predicate for each in node.walk() if isinstance(each, Select) and joins_at_top(each)]
    if not all(map(always_has_value, told)):
        return "conditions on several streams that can fail"
    return "times that are compared in more than one way"


def _marked(node: Node, *, as_one: bool) -> Node:
    """The node with a mark on the last of its joins."""
    if isinstance(node, Select | Lookup):
        below = _marked(node.input, as_one=as_one)
        return node if below is node.input else replace(node, input=below)
    return replace(node, as_one=as_one) if isinstance(node, Join) else node
