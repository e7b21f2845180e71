"""Which queries an operator of a graph takes part in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.runtime.arcs import Outlet
from penstock.runtime.graph_node import GraphNode


def takers_of(nodes: Iterable[GraphNode], outlets: Mapping[str, Outlet]) -> Mapping[GraphNode, Mapping[str, None]]:
    """The queries that each operator takes part in, in the order in which they joined."""
    found: dict[GraphNode, dict[str, None]] = {node: {} for node in nodes}

    def visit(node: GraphNode, name: str) -> None:
        if name not in found[node]:
            found[node][name] = None
            for arc in node.inputs:
                visit(arc.producer, name)

    for name, outlet in outlets.items():
        visit(outlet.producer, name)
    return found
