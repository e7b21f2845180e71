"""The bounds that close what streams have brought, and nothing more.

When everything that has come is to be put out, the end of time as bound would do, and would make every later row late.
The least bound that does it is the end of the last window that holds a row: results up to there are out, so a row below
it is late, and a row from there on falls into windows that nobody has seen. Windows of windows, a merge that stays
behind its inputs, computed times, and joins, whose rows reach into the time after them, need another one.

It is found in two directions: up the plan, how far what has come reaches (`greatest`); and from each node in which
something waits for that down to the streams, whom to ask for it (`asking`). Both ways are put together once for a plan,
since they are gone whenever a source is idle.

There is no such bound where a row can matter for ever: windows that do not slide over an attribute of the stream,
groups without a window, and elements whose end may still be told.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model.time import END_OF_TIME
from penstock.plan.asking import Asking, Bounds, asking_all, asking_for
from penstock.plan.greatest import (
    Last,
    NoBoundError,
    Times,
    after,
    end_of_pattern,
    end_of_windows,
    last_of,
    latest_of,
    same_in_inputs,
    sliding,
)
from penstock.plan.join_nodes import Band, SameWindow
from penstock.plan.nodes import AlterLifetime, Join, Merge, Node, Pattern, Project, RowNumber, Source, WindowAggregate

Wait = tuple[Last, Asking]
"""Up to which bound something waits, and who is asked for that."""


def closing_bound(plan: Node, greatest: int) -> int | None:
    """The least bound on all streams after which nothing is open, if their rows go up to `greatest`; None if none."""
    streams = {node.name.lower() for node in plan.walk() if isinstance(node, Source)}
    found = Closing(plan).bounds(dict.fromkeys(streams, greatest))
    return None if found is None else max(found.values())


class Closing:
    """What a plan waits for."""

    def __init__(self, plan: Node) -> None:
        """Nothing is asked of the plan any more afterwards."""
        time = str(plan.schema.time)
        self._waits: list[Wait] | None
        try:
            self._waits = [*_waits(plan), (after(last_of(plan, time)), asking_for(plan, time))]
        except NoBoundError:
            self._waits = None

    def bounds(self, times: Times) -> Bounds | None:
        """The least bound on each stream after which nothing is open; None if there are none.

        A stream of which nothing is waited for has no bound.
        """
        found: Bounds = {}
        try:
            for last, asking in self._waits or ():
                bound = last(times)
                if bound is not None:
                    asking(bound, found)
        except NoBoundError:
            return None
        if self._waits is None or any(bound >= END_OF_TIME for bound in found.values()):
            return None
        return found


def _waits(node: Node) -> Iterator[Wait]:
    """After which bounds nothing waits in a node, nor in those below it."""
    for below in node.inputs:
        yield from _waits(below)
    time = str(node.schema.time)
    match node:
        case Source() | Merge():
            yield after(last_of(node, time)), asking_for(node, time)
        case WindowAggregate() | RowNumber():
            yield end_of_windows(node), asking_for(node.input, sliding(node).attribute)
        case Join():
            yield _reach(node), asking_all([(side, on) for side, on in zip(node.inputs, node.on, strict=True)])
        case Pattern():
            yield from _of_steps(node)
        case AlterLifetime() | Project():
            return
        case _:
            for _ in same_in_inputs(node, time):  # which are all that others pass on
                pass


def _reach(node: Join) -> Last:
    """Rows that have come are settled, and meet none that come later, once the bound is beyond their reach.

    Rows that come out a few at a time are all out at the end of time only.
    """
    if node.schema.lives is not None or node.max_burst is not None:
        raise NoBoundError
    last = latest_of([last_of(side, on) for side, on in zip(node.inputs, node.on, strict=True)])
    if not isinstance(node.near, SameWindow):
        before = -node.near.low if isinstance(node.near, Band) else 0
        return after(last, max(node.near.high, before, 0) + 1)
    width, origin = node.near.width, node.near.origin

    def end(times: Times) -> int | None:
        found = last(times)
        return None if found is None else origin + ((found - origin) // width + 1) * width

    return end


def _of_steps(node: Pattern) -> Iterator[Wait]:
    """Sequences are out once every step is past the last row, and what must not come after it past their time."""
    end = end_of_pattern(node)
    last = last_of(node.steps[node.last], str(node.steps[node.last].schema.time))

    def of_last(times: Times) -> int | None:
        return None if end(times) is None else last(times)

    for at, step in enumerate(node.steps):
        yield after(end if at > node.last else of_last), asking_for(step, str(step.schema.time))
