"""What a query comes to that is replaced while it runs: old answers up to a time, new ones from there on.

A replaced query is a row of *generations*, each with what it asks. Every generation but the first has a place in the
arrivals, where it was *activated*, and a *split*: a time. It speaks from its split on, up to the split of the next, and
what it says is what it would always have said, of all rows that were on time. So every result is there once, and
nothing depends on how rows were cut into batches, or on how long two generations ran side by side.

A generation without state may take over *at once*, without a time: it speaks of the rows that came after it was
activated, and the one before it of those that came before.

A split must not be before the time from which on the generation is right although it has seen no row that came before
it was activated; `is_whole_from` asks that of a query by brute force.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.model.tdb import TDB, Event
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.plan.node import Node
from penstock.reference.evaluation import Arrival, evaluate

BEYOND = END_OF_TIME + 1


@dataclass(frozen=True)
class Generation:
    """What was asked, from when on."""

    plan: Node
    split: int | None = MIN_TICK
    """The first time of which it speaks; None if it took over at once."""
    activated: int = 0
    """How many rows had arrived by then."""


def replaced(
    generations: Sequence[Generation],
    arrivals: Sequence[Arrival],
    *,
    late: Collection[int] = (),
    functions: Mapping[str, Callable[..., object]] | None = None,
    aggregates: Mapping[str, object] | None = None,
) -> TDB:
    """What a replaced query comes to once every row has arrived and the streams have ended."""
    events: list[Event] = []
    since, first = MIN_TICK, 0
    beyond = Generation(generations[-1].plan, BEYOND, len(arrivals))
    for own, after in pairwise([*generations, beyond]):
        if own.split is None:
            first = own.activated
        else:
            since, first = own.split, 0
        until, end = (BEYOND, after.activated) if after.split is None else (after.split, len(arrivals))
        said = evaluate(
            own.plan,
            arrivals[first:end],
            late=[place - first for place in late if first <= place < end],
            functions=functions,
            aggregates=aggregates,
        )
        events += _of_time(said, since, until)
    return TDB(events)


def is_whole_from(
    plan: Node, arrivals: Sequence[Arrival], activated: int, split: int, *, late: Collection[int] = ()
) -> bool:
    """Whether what starts at a time or later is the same without the rows that came before a place."""
    later = [place - activated for place in late if place >= activated]
    whole = TDB(_of_time(evaluate(plan, arrivals, late=late), split, BEYOND))
    return whole == TDB(_of_time(evaluate(plan, arrivals[activated:], late=later), split, BEYOND))


def _of_time(said: TDB, since: int, until: int) -> list[Event]:
    """The events that start at or after a time, and before another."""
    return [event for event, times in said.items() if since <= event[1] < until for _ in range(times)]
