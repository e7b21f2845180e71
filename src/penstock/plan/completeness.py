"""From which time on the results of a query are complete that joins streams at work.

Rows that came before the query did are gone for it. A result is complete if no row that counts in it can have been
among them: with rows up to some time seen, a window is complete if it begins after that time. So the last result that
may lack something follows from the last row that was seen, going up the plan; what an operator that is at work already
has given counts as seen as well. There is no such time where a row can matter for ever, or where rows are counted from
the beginning.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.plan.join_nodes import Latest
from penstock.plan.nodes import (
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
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.physical import Physical
from penstock.plan.windows import SlidingWindow

LastSeen = Callable[[Physical], int | None]
"""Of a source, and of an operator at work: the last start that was seen, `MIN_TICK` if none; of others None."""


def last_incomplete(planned: Physical, seen: LastSeen) -> int | None:
    """The last start of a result that may lack rows; `MIN_TICK` if none does, None if there is no such time."""
    known = seen(planned)
    if known is not None:
        return known
    below = [last_incomplete(each, seen) for each in planned.inputs]
    found = [each for each in below if each is not None]
    if len(found) < len(below):
        return None
    latest = max(found, default=MIN_TICK)
    return latest if latest == MIN_TICK else _above(planned.node, latest)


def _above(node: Node, latest: int) -> int | None:
    """The last start of a result in which a row of that start may count."""
    if node.schema.lives is not None or any(below.schema.lives is not None for below in node.inputs):
        return None
    match node:
        case Select() | Lookup() | Unnest() | Union() | Distinct() | Merge() | Newest() | Conflate():
            return latest
        case Pattern(within=int() as within, context="recent" | "continuous"):
            return latest + within
        case Join(near=Latest(low=int() as low)) if node.on == (node.left.schema.time, node.right.schema.time):
            return max(latest, latest - low)
        case Project():
            return latest if node.keeps_time else None
        case (
            WindowAggregate(input=below, window=SlidingWindow() as window)
            | RowNumber(input=below, window=SlidingWindow() as window)
        ) if window.attribute == below.schema.time:
            last = window.origin + (latest - window.origin + window.range) // window.slide * window.slide
            return None if last >= END_OF_TIME else max(last, latest)
        case _:
            return None
