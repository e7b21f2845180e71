"""From which time on the results of a query are complete that joins streams at work.

Rows that came before the query did are gone for it. A result is complete if no row that counts in it can have been
among them: with rows up to some time seen, a window is complete if it begins after that time. So the last result that
may lack something follows from the last row that was seen, going up the plan; what an operator that is at work already
has given counts as seen as well. There is no such time where a row can matter for ever, or where rows are counted from
the beginning (`reach` says why).
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.plan.nodes import Node, RowNumber, WindowAggregate
from penstock.plan.physical import Physical
from penstock.plan.reach import Endless, Reach, further
from penstock.plan.windows import SlidingWindow

LastSeen = Callable[[Physical], int | None]
"""Of a source, and of an operator at work: the last start that was seen, `MIN_TICK` if none; of others None."""


def last_incomplete(planned: Physical, seen: LastSeen) -> int | None:
    """The last start of a result that may lack rows; `MIN_TICK` if none does, None if there is no such time."""
    found = _last(planned, seen)
    return None if isinstance(found, Endless) else found


def never_complete(planned: Physical, seen: LastSeen) -> Endless | None:
    """Why there is no such time; None if there is one."""
    found = _last(planned, seen)
    return found if isinstance(found, Endless) else None


def _last(planned: Physical, seen: LastSeen) -> Reach:
    known = seen(planned)
    if known is not None:
        return known
    latest = MIN_TICK
    for port, each in enumerate(planned.inputs):
        below = _last(each, seen)
        if isinstance(below, int) and below != MIN_TICK:
            below = _above(planned.node, port, below)
        if isinstance(below, Endless):
            return below
        latest = max(latest, below)
    return latest


def _above(node: Node, port: int, latest: int) -> Reach:
    """The last start of a result in which a row of that start may count."""
    reach = further(node, port)
    if isinstance(reach, Endless):
        return reach
    match node:
        case WindowAggregate(window=SlidingWindow() as window) | RowNumber(window=window):
            last = window.origin + (latest - window.origin + window.range) // window.slide * window.slide
            if last >= END_OF_TIME:
                return Endless("its windows end beyond all time", node.label)
            return max(last, latest)
        case _:
            return latest + reach
