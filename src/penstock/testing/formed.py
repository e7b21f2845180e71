"""Open/close and positive/negative streams for tests, as hypothesis strategies.

A history has the events of a payload one after the other. Replicas tell it in their own order: the elements of a
payload in theirs, those of different payloads in any, with bounds wherever they are sound.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from penstock.model.elements import linear
from penstock.model.forms import Close, Formed, Open, Signed, time_of
from penstock.model.tdb import Event
from penstock.model.time import END_OF_TIME, MIN_TICK


@st.composite
def successions(draw: st.DrawFn, *, max_size: int = 4) -> list[Event]:
    """The events of a few payloads, those of each one after the other; the last of a payload may never end."""
    events: list[Event] = []
    for name in "abc":
        at = 0
        for _ in range(draw(st.integers(0, max_size))):
            vs = at + draw(st.integers(0, 3))
            at = vs + draw(st.integers(1, 4))
            events.append(((name,), vs, at))
        if events and events[-1][0] == (name,) and draw(st.booleans()):
            payload, vs, _ = events.pop()
            events.append((payload, vs, END_OF_TIME))
    return events


@st.composite
def opened_and_closed(draw: st.DrawFn, events: Sequence[Event], *, single_close: bool) -> list[Formed]:
    """One physical stream of opens and closes; unless each has a single close, ends are revised."""
    lanes: list[list[tuple[Formed, int]]] = []
    for name in dict.fromkeys(p for p, _, _ in events):
        told: list[Open | Close] = []
        for payload, vs, ve in (e for e in events if e[0] == name):
            told.append(Open(payload, vs))
            ends = [] if single_close else [vs + n for n in draw(st.lists(st.integers(1, 6), max_size=2))]
            told += [Close(payload, end) for end in [*ends, ve] if end != END_OF_TIME or ends]
        lanes.append(_with_least(told))
    return draw(_interleaved(lanes))


@st.composite
def positive_and_negative(draw: st.DrawFn, events: Sequence[Event]) -> list[Formed]:
    """One physical stream of positive and negative tuples, those of a payload in order of time."""
    lanes: list[list[tuple[Formed, int]]] = []
    for name in dict.fromkeys(p for p, _, _ in events):
        own = [e for e in events if e[0] == name]
        tuples = [Signed(p, vs, 1) for p, vs, _ in own] + [Signed(p, ve, -1) for p, _, ve in own if ve != END_OF_TIME]
        lanes.append([(s, s.time) for s in sorted(tuples, key=lambda s: (s.time, s.sign))])
    return draw(_interleaved(lanes))


def _with_least(told: list[Open | Close]) -> list[tuple[Formed, int]]:
    """Below what a bound must stay before each element: of a close that revises, also the end that it moves."""
    made: list[tuple[Formed, int]] = []
    end = END_OF_TIME
    for element in told:
        time = time_of(element)
        made.append((element, time if isinstance(element, Open) else min(time, end)))
        end = END_OF_TIME if isinstance(element, Open) else time
    return made


@st.composite
def _interleaved(draw: st.DrawFn, lanes: list[list[tuple[Formed, int]]]) -> list[Formed]:
    elements: list[Formed] = []
    bound = MIN_TICK
    left = [list(lane) for lane in lanes if lane]
    while left:
        if draw(st.integers(0, 2)) == 0:
            allowed = min(least for lane in left for _, least in lane)
            if allowed > bound:
                bound = allowed
                elements.append(linear("vs", bound))
        lane = draw(st.sampled_from(left))
        elements.append(lane.pop(0)[0])
        left = [each for each in left if each]
    return [*elements, linear("vs", END_OF_TIME)]
