"""Replicas for tests of merging: physically different streams with one meaning, as hypothesis strategies.

A replica presents the events of a TDB in its own order, with revisions (an event first gets other ends), with events
that it removes again, and with bounds wherever they are sound. One that attaches late presents only what ends at or
after the time from which it is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

from penstock.model.elements import Adjust, Element, Insert, linear
from penstock.model.tdb import Event
from penstock.model.time import END_OF_TIME, MIN_TICK


@st.composite
def histories(draw: st.DrawFn, *, bag: bool = False, max_size: int = 8) -> list[Event]:
    """The events of a stream: few payloads and small times, so that much coincides; with `bag`, repeats too."""
    starts = draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12)), max_size=max_size, unique=not bag))
    ends = [vs + draw(st.integers(1, 10)) if draw(st.integers(0, 9)) else END_OF_TIME for _, vs in starts]
    return [((p,), vs, ve) for (p, vs), ve in zip(starts, ends, strict=True)]


@st.composite
def replicas(
    draw: st.DrawFn, events: Sequence[Event], *, complete_from: int = MIN_TICK, bag: bool = False
) -> list[Element]:
    """One physical stream of these events, to its end."""
    lanes = [draw(_lane(event)) for event in events if event[2] >= complete_from]
    taken = {(p, vs) for p, vs, _ in events}
    for payload, vs in draw(st.lists(st.tuples(st.sampled_from("abz"), st.integers(0, 12)), max_size=2, unique=True)):
        if bag or ((payload,), vs) not in taken:
            ve = vs + draw(st.integers(1, 8))
            lanes.append([Insert((payload,), vs, ve), Adjust((payload,), vs, ve, vs)])  # and taken back
    elements: list[Element] = []
    bound = MIN_TICK
    while any(lanes):
        if draw(st.integers(0, 2)) == 0:
            allowed = min(_time(e) for lane in lanes for e in lane)
            if allowed > bound:
                bound = allowed if draw(st.booleans()) else max(bound + 1, allowed - draw(st.integers(0, 3)))
                elements.append(linear("vs", bound))
        lane = draw(st.sampled_from([lane for lane in lanes if lane]))
        elements.append(lane.pop(0))
    elements.append(linear("vs", END_OF_TIME))
    return elements


@st.composite
def ordered_replicas(
    draw: st.DrawFn, events: Sequence[Event], *, complete_from: int = MIN_TICK, shuffle_ties: bool = False
) -> list[Element]:
    """An insert-only stream in order of starts; ties in the order given, or in any."""
    given = [e for e in events if e[2] >= complete_from]
    if shuffle_ties:
        given = draw(st.permutations(given))
    given = sorted(given, key=lambda e: e[1])
    elements: list[Element] = []
    bound = MIN_TICK
    for payload, vs, ve in given:
        if vs > bound and draw(st.booleans()):
            bound = vs
            elements.append(linear("vs", bound))
        elements.append(Insert(payload, vs, ve))
    elements.append(linear("vs", END_OF_TIME))
    return elements


@st.composite
def _lane(draw: st.DrawFn, event: Event) -> list[Element]:
    """The elements of one event, in their order: an insert, and adjusts to its final end."""
    payload, vs, ve = event
    ends = [vs + n for n in draw(st.lists(st.integers(1, 10), max_size=2))]
    path = [*ends, ve]
    elements: list[Element] = [Insert(payload, vs, path[0])]
    for old, new in pairwise(path):
        if new != old:
            elements.append(Adjust(payload, vs, old, new))
    return elements


def _time(element: Element) -> int:
    """Below what a bound must stay to be sound before this element."""
    if isinstance(element, Insert):
        return element.vs
    assert isinstance(element, Adjust)
    return element.lateness_time
