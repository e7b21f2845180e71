"""Row numbers by arrival: given at the entrance of the system, from 0, to every row that can be used.

They are given before any WHERE, and to late rows too: a window of row numbers has no lateness, since no row number
comes late. So streams that are only read to be numbered are not judged by their time (`by_arrival`), as far down as
nothing uses it: through selections, projections, unions and what alters lives. Where the result of a sub-query is
numbered, the rows that it puts out are, as it puts them out.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.nodes import AlterLifetime, Node, NumberRows, Project, Select, Source, Union, Unnest


def numbered(node: Node, *, keeps_time: bool) -> NumberRows:
    """The rows of a node with their numbers; with `keeps_time` their time stays what it was, and they stay judged."""
    return NumberRows(node if keeps_time else by_arrival(node), keeps_time)


def by_arrival(node: Node) -> Node:
    """The node over streams that are not judged by their time, as far down as nothing uses it."""
    match node:
        case Source():
            return replace(node, by_arrival=True)
        case Select() | Project() | Unnest() | Union() | AlterLifetime():
            return node.with_inputs(*map(by_arrival, node.inputs))
        case _:
            return node
