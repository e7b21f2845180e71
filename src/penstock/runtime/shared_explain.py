"""The graph of several queries for people: what each query runs, and what of it is shared with whom.

Every query is a tree, its last operator on top. An operator whose output several take has a number; it is drawn once,
with all below it, and named by its number from then on. Streams that no query reads any more come last: their entrances
stay.
"""

from __future__ import annotations

from penstock.runtime.graph import GraphNode
from penstock.runtime.shared_graph import SharedGraph
from penstock.runtime.takers import takers_of


def explain_shared(graph: SharedGraph) -> str:
    """The trees of all queries, in the order in which they joined."""
    takers = takers_of(graph.nodes, graph.outlets)
    numbers: dict[GraphNode, int] = {}
    lines: list[str] = []

    def visit(node: GraphNode, lead: str, stem: str) -> None:
        if node in numbers:
            lines.append(f"{lead}[{numbers[node]}] as above")
            return
        if len(node.arcs) > 1:
            numbers[node] = len(numbers) + 1
            lead += f"[{numbers[node]}] "
        shared = f"shared by {', '.join(takers[node])}; " if len(takers[node]) > 1 else ""
        lines.append(lead + node.label)
        lines.append(f"{stem}{'|  ' if node.inputs else '   '}   {shared}{node.how}")
        for at, arc in enumerate(node.inputs, 1):
            visit(arc.producer, stem + "+- ", stem + ("   " if at == len(node.inputs) else "|  "))

    for name, outlet in graph.outlets.items():
        lines.append(f"query {name}")
        visit(outlet.producer, "+- ", "   ")
    unread = [node for node in graph.nodes if not takers[node]]
    lines += [f"no query: {node.label}" for node in unread]
    return "\n".join(lines)
