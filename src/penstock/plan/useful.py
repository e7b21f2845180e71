"""Which bounds a node can use, told to those that feed it (thesis 8.1, the Describe idea).

A bound is of use if it passes a multiple of a step, counted from an origin: for a window its SLIDE, for whatever has
state of another kind one tick. Nodes that only pass rows on can use what their consumer can, where they move rows as
much earlier or later, and so can an aggregate of whole groups, which no bound completes; where a time is computed from
another, those at which it rises; what waits for events to end can use any. Where several consumers take the same
output, a bound is of use if any of them can use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from penstock.plan.monotone import turns
from penstock.plan.nodes import (
    AlterLifetime,
    Conflate,
    Ends,
    GroupAggregate,
    Lookup,
    Merge,
    Newest,
    Node,
    Project,
    RowNumber,
    Select,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.windows import SlidingWindow

Useful = tuple[int, int]
"""A step and an origin."""
EVERY: Useful = (1, 0)
"""Every bound is of use."""


def useful_below(node: Node, above: Useful) -> Useful:
    """The bounds that a node can use, if its consumer can use those `above`."""
    match node:
        case (
            WindowAggregate(window=SlidingWindow(slide=slide, origin=origin))
            | RowNumber(window=SlidingWindow(slide=slide, origin=origin))
        ):
            return slide, origin
        case Merge() if node.schema.lives is not None:
            return EVERY
        case AlterLifetime(shift=shift):
            step, origin = above
            return step, origin - shift
        case Project() if node.maps_time:
            return turns(dict(node.columns)[node.time])
        case Select() | Project() | Lookup() | Unnest() | Union() | Merge() | Ends() | GroupAggregate():
            return above
        case Conflate() | Newest():
            return above
        case _:
            return EVERY


def useful_to_any(wanted: Iterable[Useful]) -> Useful:
    """The bounds that one consumer or another can use, and perhaps a few more; every bound where there is none."""
    found: Useful | None = None
    for step, origin in wanted:
        found = (step, origin) if found is None else (gcd(found[0], step, abs(found[1] - origin)), found[1])
    return EVERY if found is None else found
