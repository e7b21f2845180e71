"""When a group of rows is complete without a window: the stream says so (thesis 2.1, group-wise punctuation).

A stream with `punctuated(…, per=["auction"], final=True)` promises of an auction that nothing more of it comes. A
grouping by that column, or by that and others, then has an end for each group. The columns of the promises are traced
from the grouping down to every source: through what passes them on as they are. Where a column is computed, or one
source of a union or a merge makes no such promises, groups complete with the end of the stream alone.

Of a join it is enough that one side makes them: once a group of it has ended, its rows that are still kept are given up
as the other side goes on. A column that must be equal is then as good as the one that it equals; but rows of the other
side that come out without a partner may have any value in it, and need promises of their own.
"""

from __future__ import annotations

from collections.abc import Collection

from penstock.model.progress import Punctuated
from penstock.plan.expressions import Column
from penstock.plan.join_nodes import Latest
from penstock.plan.nodes import (
    Distinct,
    Ends,
    GroupAggregate,
    Join,
    Lookup,
    Merge,
    Node,
    Project,
    Select,
    Settle,
    Source,
    Union,
    Unnest,
    WindowAggregate,
)


def completing(node: Node, columns: Collection[str]) -> frozenset[str] | None:
    """Which of some columns the promises are about that complete groups by these columns; None if there are none."""
    match node:
        case Source():
            return _of_source(node, columns)
        case (
            Select(input=below) | Distinct(input=below) | Settle(input=below) | Ends(input=below) | Unnest(input=below)
        ):
            return completing(below, [c for c in columns if c in below.schema.names])
        case Project(input=below):
            kept = {e.name: name for name, e in node.columns if isinstance(e, Column) and name in columns}
            found = completing(below, kept)
            return None if found is None else frozenset(kept[name] for name in found)
        case Lookup(input=below, called=called):
            found = completing(below, [own for own, name in called.items() if name in columns])
            return None if found is None else frozenset(called[name] for name in found)
        case Join():
            return _of_side(node, 0, columns) or _of_side(node, 1, columns)
        case Union(branches=branches) | Merge(branches=branches):
            each = [_of_branch(node, branch, columns) for branch in branches]
            known = [found for found in each if found is not None]
            return frozenset().union(*known) if len(known) == len(each) else None
        case WindowAggregate(input=below, keys=keys) | GroupAggregate(input=below, keys=keys):
            return completing(below, [c for c in columns if c in keys])
        case _:
            return None


def _of_source(node: Source, columns: Collection[str]) -> frozenset[str] | None:
    per = frozenset(node.schema.fields[i].name for i in node.per)
    is_final = isinstance(node.progress, Punctuated) and node.progress.final and node.speaks_of_groups
    return per if is_final and per <= set(columns) else None


def _of_branch(node: Node, branch: Node, columns: Collection[str]) -> frozenset[str] | None:
    """Branches line up by position."""
    names = dict(zip(branch.schema.names, node.schema.names, strict=True))
    found = completing(branch, [own for own, name in names.items() if name in columns])
    return None if found is None else frozenset(names[own] for own in found)


def _of_side(node: Join, side: int, columns: Collection[str]) -> frozenset[str] | None:
    """What promises of one side of a join complete; one with the latest rows makes no use of them."""
    if isinstance(node.near, Latest):
        return None
    if side and node.kind == "anti":  # rows of the left that come later have no partner, and come out
        return None
    half = len(node.left.schema.fields)
    shown = [
        dict(zip(below.schema.names, names, strict=True))
        for below, names in zip(node.inputs, (node.names[:half], node.names[half:]), strict=True)
    ]
    called = {own: [name] for own, name in shown[side].items()}
    for pair in node.equal:
        called[pair[side]].append(shown[1 - side][pair[1 - side]])
    known = {own: next((name for name in names if name in columns), None) for own, names in called.items()}
    found = completing(node.inputs[side], [own for own, name in known.items() if name is not None])
    if found is None:
        return None
    names = frozenset(str(known[own]) for own in found)
    others = (node.keeps_right, node.keeps_left)[side] and not any(called[own][0] in names for own in found)
    return None if others else names
