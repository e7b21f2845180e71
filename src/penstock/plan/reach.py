"""The reach of a plan: how long a row can matter to results.

A row of time `t` counts in results that start up to `t + reach`, and in none that start later: the length of a window,
the sum of those that are nested, how far the partners of a row can be in a join, what is `WITHIN` a pattern. Of a
stream that is read twice it is the longer way. So a plan that begins to run when rows up to `g` have gone by is right
in everything that starts after `g + reach`, although it has seen none of them.

There is no reach where a row can matter for ever: a landmark, rows that are counted, groups without a window, patterns
that use rows up, what lives until it is told otherwise. Then it is said why, and what to do instead.

Reach is of lengths alone. Where windows stand, and what operators at work have seen already, may make it shorter
(`completeness`).
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.time import END_OF_TIME
from penstock.operators.joins.reach import reach_of as times_apart
from penstock.plan.expressions import Column
from penstock.plan.join_nodes import Latest, SameWindow
from penstock.plan.nodes import (
    AlterLifetime,
    Conflate,
    Distinct,
    GroupAggregate,
    Join,
    Lookup,
    Merge,
    MultiJoin,
    Newest,
    Node,
    NumberRows,
    Pattern,
    Project,
    RowNumber,
    Select,
    Source,
    Stamp,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.windows import LandmarkWindow, PartitionedWindow, SlideByTupleWindow, SlidingWindow

FROM_THE_START = "start it with the flow, or beside the one that runs, on a replay of its streams"


@dataclass(frozen=True)
class Endless:
    """There is no reach: why, where, and what to do instead."""

    reason: str
    where: str
    instead: str = FROM_THE_START

    def __str__(self) -> str:
        """One line."""
        return f"{self.where}: {self.reason}"


Reach = int | Endless
"""So many ticks, or for ever."""


def plan_reach(plan: Node) -> dict[str, Reach]:
    """How long a row of each stream can matter to results of a plan, by the names of the streams."""
    found: dict[str, Reach] = {}
    for name, reach in _ways(plan):
        found[name] = reach if name not in found else farther(found[name], reach)
    return found


def farther(one: Reach, other: Reach) -> Reach:
    """The greater of two; what is without end is greatest."""
    if isinstance(one, Endless) or isinstance(other, Endless):
        return one if isinstance(one, Endless) else other
    return max(one, other)


def _ways(node: Node) -> list[tuple[str, Reach]]:
    """Each way from a stream up to a node, with how much later results can start for which a row matters."""
    if isinstance(node, Source):
        own = endless_of(node)
        return [(node.name, own if own is not None else 0)]
    found: list[tuple[str, Reach]] = []
    for port, below in enumerate(node.inputs):
        step = further(node, port)
        found += [(name, _sum(reach, step)) for name, reach in _ways(below)]
    return found


def _sum(below: Reach, step: Reach) -> Reach:
    if isinstance(below, Endless) or isinstance(step, Endless):
        return below if isinstance(below, Endless) else step
    return below + step


def endless_of(node: Node) -> Endless | None:
    """Why a row matters for ever that comes out of a node, whoever takes it."""
    if node.schema.lives is not None:
        return Endless(
            "rows have lives of their own, of which those that began before would be missing",
            node.label,
            "stop it, and start the new query with the flow",
        )
    return None


def further(node: Node, port: int) -> Reach:
    """How much later than a row of an input the results of a node can start in which the row counts."""
    for each in (node, *node.inputs):
        if (lived := endless_of(each)) is not None:
            return lived
    match node:
        case Select() | Lookup() | Unnest() | Union() | Distinct() | Merge():
            return 0
        case Project():
            return 0 if node.keeps_time else _endless(node, "its time is another than that of the rows below it")
        case AlterLifetime(shift=shift):
            return shift
        case WindowAggregate(input=below, window=window):
            return _window(node, window, str(below.schema.time))
        case RowNumber(window=window):
            return window.range
        case Join() | MultiJoin() if (of_pairs := _partners(node, port)) is not None:
            return of_pairs
        case Pattern():
            return _pattern(node)
        case _:
            return _endless(node, _WHY.get(type(node), "a row can matter for ever"))


_WHY: dict[type[Node], str] = {
    NumberRows: "rows are counted from the first on",
    GroupAggregate: "groups without a window are of all rows that there ever were",
    Newest: "rows update each other, and the newest of a key may be as old as any",
    Conflate: "rows update each other, and the newest of a key may be as old as any",
    Stamp: "rows get their times from the clock",
    Join: "rows are not joined by their times, or with the latest of any age",
    MultiJoin: "rows are not joined by their times",
}


def _endless(node: Node, reason: str) -> Endless:
    return Endless(reason, node.label)


def _window(node: Node, window: object, time: str) -> Reach:
    match window:
        case SlidingWindow(attribute=attribute, range=length) if attribute == time:
            return length  # the last window that holds a row ends no later
        case LandmarkWindow():
            return _endless(node, "its windows all begin at the landmark, so a row is in every one that follows")
        case PartitionedWindow():
            return _endless(node, "it keeps the last rows of each key, however old they are")
        case SlideByTupleWindow():
            return _endless(node, "its windows end at every so many rows, counted from the first")
        case _:
            return _endless(node, "its windows are on another attribute than the time")


def _partners(node: Join | MultiJoin, port: int) -> int | None:
    """How much later than a row the time of a result can be that it has a part in; None if that may be any time."""
    if isinstance(node, MultiJoin):
        if any(name != stream.schema.time for name, stream in zip(node.on, node.streams, strict=True)):
            return None
        apart = [(each.first, each.second, each.low, each.high) for each in node.apart]
        found = max(times_apart(len(node.streams), apart)[port])
        return found if found < END_OF_TIME else None
    apart_by = _times_apart(node)
    return None if apart_by is None else max(apart_by[1] if port == 0 else -apart_by[0], 0)


Lengths = tuple[int, int]
"""The least and the most."""


def _times_apart(node: Join) -> Lengths | None:
    """How much later the time of the right can be than that of the left, of rows that meet."""
    left, right = behind(node.left, node.on[0]), behind(node.right, node.on[1])
    if left is None or right is None:
        return None
    match node.near:
        case SameWindow(width=width):
            low, high = 1 - width, width - 1
        case Latest(low=None):
            return None
        case near:
            assert near.low is not None
            low, high = near.low, near.high
    return low + right[0] - left[1], high + right[1] - left[0]


def behind(node: Node, attribute: str) -> Lengths | None:
    """How much an attribute can be behind the time of the same row; None if that may be any length."""
    if attribute == node.schema.time:
        return 0, 0
    match node:
        case Select(input=below) | Distinct(input=below):
            return behind(below, attribute)
        case Project(input=below, columns=columns) if node.keeps_time:
            kept = dict(columns)[attribute]
            return behind(below, kept.name) if isinstance(kept, Column) else None
        case Join() if (apart := _times_apart(node)) is not None:
            at, half = node.names.index(attribute), len(node.left.schema.fields)
            if at < half:
                own, after = behind(node.left, node.left.schema.names[at]), apart[1]
            else:
                own, after = behind(node.right, node.right.schema.names[at - half]), -apart[0]
            return None if own is None else (own[0], own[1] + max(after, 0))
        case _:
            return None


def _pattern(node: Pattern) -> Reach:
    if node.within is None:
        return _endless(node, "it has no bound on the time, so the first row of a sequence may be as old as any")
    if node.context in ("chronicle", "cumulative"):
        return _endless(node, "it uses rows up, so which go together follows from all that came before")
    return node.within
