"""A physical plan as a tree for people: what each node computes, how it runs and why, what is known of its output."""

from __future__ import annotations

from penstock.plan.nodes import Node
from penstock.plan.physical import Physical


def explain(plan: Physical, *, properties: bool = True) -> str:
    """The tree, the result on top."""
    lines: list[str] = []

    def visit(at: Physical, lead: str, stem: str) -> None:
        lines.append(lead + at.node.label)
        bar = "|  " if at.inputs else "   "
        lines.append(f"{stem}{bar}   {at.how}")
        if properties:
            called = dict(zip(at.node.schema.names, at.node.schema.shown_names, strict=True))
            lines.append(f"{stem}{bar}   {', '.join(at.node.properties.describe(called))}")
        if at.exchange is not None:
            lines.append(f"{stem}{bar}   exchange {at.exchange.worded(at.node.schema)}")
        for i, below in enumerate(at.inputs):
            last = i == len(at.inputs) - 1
            visit(below, stem + "+- ", stem + ("   " if last else "|  "))

    visit(plan, "", "")
    return "\n".join(lines)


def outline(plan: Node) -> str:
    """The tree of what is computed, without how."""
    lines: list[str] = []

    def visit(node: Node, lead: str, stem: str) -> None:
        lines.append(lead + node.label)
        for i, below in enumerate(node.inputs):
            last = i == len(node.inputs) - 1
            visit(below, stem + "+- ", stem + ("   " if last else "|  "))

    visit(plan, "", "")
    return "\n".join(lines)
