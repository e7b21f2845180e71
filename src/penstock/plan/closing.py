"""The bound that closes what a stream has brought, and nothing more.

When everything that has come is to be put out, the end of time as bound would do, and would make every later row late.
The least bound that does it is the end of the last window that holds a row: results up to there are out, so a row below
it is late, and a row from there on falls into windows that nobody has seen. Windows of windows, and a merge that stays
behind its inputs, need a later bound; one pass over the plan finds it.

There is no such bound where a row can matter for ever: windows that do not slide over the stream's own time, groups
without a window, and elements whose end may still be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.model.time import END_OF_TIME
from penstock.plan.expressions import Column
from penstock.plan.nodes import (
    AlterLifetime,
    Distinct,
    Lookup,
    Merge,
    Node,
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
        case Select(input=below) | Lookup(input=below) | Unnest(input=below) | Distinct(input=below):
            return _reached(below, greatest)
        case AlterLifetime(input=below, shift=shift):  # rows and bounds move alike
            found = _reached(below, greatest)
            return found and _Reached(found.time + shift, found.behind - shift, found.needed)
        case Project(input=below, columns=columns, time=time):
            moved = dict(columns)[time]
            return _reached(below, greatest) if isinstance(moved, Column) and moved.name == below.schema.time else None
        case Union(branches=branches):
            return _furthest([_reached(b, greatest) for b in branches])
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


def _furthest(found: Sequence[_Reached | None]) -> _Reached | None:
    known = [f for f in found if f is not None]
    if len(known) < len(found):
        return None
    return _Reached(max(f.time for f in known), max(f.behind for f in known), max(f.needed for f in known))
