"""A plan as a tree for people: what each operator computes, how it is run and why, what is known of its output."""

from __future__ import annotations

from collections.abc import Callable

from penstock.plan.nodes import Node

How = Callable[[Node], str]


def explain(plan: Node, how: How, *, properties: bool = True) -> str:
    """The tree, the result on top; `how` says how an engine runs a node."""
    lines: list[str] = []

    def visit(node: Node, lead: str, stem: str) -> None:
        lines.append(lead + node.label)
        detail = how(node)
        bar = "|  " if node.inputs else "   "
        if detail:
            lines.append(f"{stem}{bar}   {detail}")
        if properties:
            lines.append(f"{stem}{bar}   {', '.join(node.properties.describe())}")
        for i, below in enumerate(node.inputs):
            last = i == len(node.inputs) - 1
            visit(below, stem + "+- ", stem + ("   " if last else "|  "))

    visit(plan, "", "")
    return "\n".join(lines)
