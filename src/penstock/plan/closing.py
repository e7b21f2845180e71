"""The bound that closes what a stream has brought, and nothing more.

When everything that has come is to be put out, the end of time as bound would do, and would make every later row late.
The least bound that does it is the end of the last window that holds a row: results up to there are out, so a row below
it is late, and a row from there on falls into windows that nobody has seen. Windows of windows, a merge that stays
behind its inputs, and joins, whose rows reach into the time after them, need a later bound; one pass over the plan
finds it.

There is no such bound where a row can matter for ever: windows that do not slide over the stream's own time, groups
without a window, and elements whose end may still be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.model.time import END_OF_TIME
from penstock.plan.expressions import Column
from penstock.plan.join_nodes import Band, Latest, SameWindow
from penstock.plan.nodes import (
    AlterLifetime,
    Conflate,
    Distinct,
    Join,
    Lookup,
    Merge,
    Newest,
    Node,
    Pattern,
    Project,
    RowNumber,
    Select,
    Source,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.windows import SlidingWindow


@dataclass(frozen=True)
class _Reached:
    """Of what comes out of a node: the greatest time, how far bounds stay behind, and the bound that closes it."""

    time: int
    behind: int
    needed: int


def closing_bound(plan: Node, greatest: int) -> int | None:
    """The least bound on all streams after which nothing is open, if their rows go up to `greatest`; None if none."""
    found = _reached(plan, greatest)
    return None if found is None or found.needed >= END_OF_TIME else found.needed


def _reached(node: Node, greatest: int) -> _Reached | None:
    match node:
        case Source():
            return _Reached(greatest, 0, greatest + 1)
        case Distinct() if node.schema.lives is not None:
            return None
        case Newest(lives=True):
            return None
        case (
            Select(input=below)
            | Lookup(input=below)
            | Unnest(input=below)
            | Distinct(input=below)
            | Conflate(input=below)
        ):
            return _reached(below, greatest)
        case AlterLifetime(input=below, shift=shift):  # rows and bounds move alike
            found = _reached(below, greatest)
            return found and _Reached(found.time + shift, found.behind - shift, found.needed)
        case Project(input=below, columns=columns, time=time):
            moved = dict(columns)[time]
            return _reached(below, greatest) if isinstance(moved, Column) and moved.name == below.schema.time else None
        case Union(branches=branches) | Newest(branches=branches):
            return _furthest([_reached(b, greatest) for b in branches])
        case Join(left=left, right=right) if node.on == (left.schema.time, right.schema.time):
            return _joined(node, _furthest([_reached(left, greatest), _reached(right, greatest)]))
        case Pattern(steps=steps, within=within):
            return _followed(node, _furthest([_reached(step, greatest) for step in steps]), within)
        case Merge(branches=branches, elements=False, lag=lag):
            found = _furthest([_reached(b, greatest) for b in branches])
            if found is None:
                return None
            behind = found.behind + lag
            return _Reached(found.time, behind, max(found.needed, found.time + 1 + behind))
        case (
            WindowAggregate(input=below, window=SlidingWindow() as window)
            | RowNumber(input=below, window=SlidingWindow() as window)
        ) if window.attribute == below.schema.time:
            found = _reached(below, greatest)
            if found is None:
                return None
            end = window.origin + (found.time - window.origin + window.range) // window.slide * window.slide
            last = max(end, found.time)
            return _Reached(last, found.behind, max(found.needed, last + found.behind))
        case _:
            return None


def _joined(node: Join, found: _Reached | None) -> _Reached | None:
    """Rows that have come are settled, and meet none that come later, once the bound is beyond their reach.

    Rows that come out a few at a time are all out at the end of time only.
    """
    if found is None or node.schema.lives is not None or node.max_burst is not None:
        return None
    match node.near:
        case SameWindow(width=width, origin=origin):
            after = before = width - 1
            end = origin + ((found.time - origin) // width + 1) * width
        case near:
            after, before = max(near.high, 0), max(-near.low, 0) if isinstance(near, Band) else 0
            end = found.time + max(after, before) + 1
    # Rows of a side that wait for what comes of the other start before the bound; pairs do not.
    waits_left = node.keeps_left or not node.is_of_pairs or isinstance(node.near, Latest)
    behind = found.behind + max(after if waits_left else 0, before if node.keeps_right else 0)
    return _Reached(found.time, behind, max(found.needed, end + found.behind))


def _followed(node: Pattern, found: _Reached | None, within: int | None) -> _Reached | None:
    """Sequences that have come are out once the bound has passed the last row, and what must not come after it."""
    if found is None:
        return None
    time = found.time + (within or 0) if node.ends_with_nothing else found.time
    return _Reached(time, found.behind, max(found.needed, time + 1 + found.behind))


def _furthest(found: Sequence[_Reached | None]) -> _Reached | None:
    known = [f for f in found if f is not None]
    if len(known) < len(found):
        return None
    return _Reached(max(f.time for f in known), max(f.behind for f in known), max(f.needed for f in known))
