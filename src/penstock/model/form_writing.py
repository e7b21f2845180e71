"""Inserts and adjusts as open/close or positive/negative streams, as they come.

*Open and close.* An insert opens its event, and an end that is known closes it; a new end is another close. A close
speaks of the event of its payload that was opened last, so an event waits, and with it the bound, while one of the same
payload is out whose end can still change. With `single_close` an end that was told does not change, and nothing waits
for it. Where the one that is out starts later and can still be taken back, it is, and follows. What cannot be said in
this form, an event beside one of its payload that never ends, is an error when the stream ends.

*Positive and negative.* Nothing can be revised, so a tuple comes when a bound has passed its time: the event can then
not be taken back, and its end not move. Tuples come in order of time.

State: what is out and can still change, what waits, and a queue of times; what a bound has passed is forgotten.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import Any

from penstock.errors import ElementError
from penstock.model.elements import Adjust, Element, Insert, Payload, linear
from penstock.model.form_state import FormState
from penstock.model.forms import OPEN_CLOSE, SIGNED, Close, Formed, Open, Signed, in_order
from penstock.model.tdb import Event
from penstock.model.time import END_OF_TIME, MIN_TICK

Life = tuple[int, int]
"""Start and end of an event."""
CLOSED_AGAIN = "an event that was closed would get another end, which this form cannot say any more"


class FormWriter(FormState):
    """What the writers share."""

    def __init__(self) -> None:
        """Nothing has been written."""
        super().__init__()
        self.unsaid: list[tuple[Adjust, str]] = []
        """What this form could not say, with the reason, until somebody takes it."""

    def write(self, elements: Iterable[Element]) -> list[Formed]:
        """What elements come to in this form, as far as it can be said by now."""
        said: list[Formed] = []
        for element in _inserts_in_order(elements):
            if isinstance(element, Insert):
                self._insert(element, said)
            elif isinstance(element, Adjust):
                self._adjust(element, said)
            elif element.is_linear and element.value > self.bound:
                self.bound = element.value
                self._advance(element.attribute, said)
        return said

    @abstractmethod
    def _insert(self, element: Insert, said: list[Formed]) -> None:
        """An event is there."""

    @abstractmethod
    def _adjust(self, element: Adjust, said: list[Formed]) -> None:
        """An event has another end."""

    @abstractmethod
    def _advance(self, attribute: str, said: list[Formed]) -> None:
        """The bound has moved."""

    @property
    @abstractmethod
    def held_back(self) -> int:
        """How many events have not come out at all."""


class OpenCloseWriter(FormWriter):
    """Opens and closes, one event of a payload after the other."""

    form = OPEN_CLOSE

    def __init__(self, *, single_close: bool = False) -> None:
        """With `single_close` an event that is closed gives way to the next of its payload."""
        super().__init__()
        self.single_close = single_close
        self.shown: dict[Payload, Life] = {}
        """Of each payload the event that was opened last, while its end can change."""
        self.waiting: dict[Payload, list[Life]] = {}
        self.said_to = MIN_TICK
        self._ends: list[tuple[int, int, Payload]] = []
        """Ends of shown events as a heap; one that has moved since is passed over."""
        self._count = 0

    def _insert(self, element: Insert, said: list[Formed]) -> None:
        self.waiting.setdefault(element.payload, []).append((element.vs, element.ve))
        self._release(element.payload, said)

    def _adjust(self, element: Adjust, said: list[Formed]) -> None:
        payload, old = element.payload, (element.vs, element.v_old)
        if self.shown.get(payload) == old:
            said.append(Close(payload, element.ve))
            if element.ve == element.vs:
                del self.shown[payload]
            else:
                self._show(payload, (element.vs, element.ve))
            self._release(payload, said)
        elif old in self.waiting.get(payload, ()):
            waiting = self.waiting[payload]
            waiting.remove(old)
            if element.ve > element.vs:
                waiting.append((element.vs, element.ve))
            elif not waiting:
                del self.waiting[payload]
        else:
            self.unsaid.append((element, CLOSED_AGAIN))

    def _show(self, payload: Payload, life: Life) -> None:
        self.shown[payload] = life
        if life[1] != END_OF_TIME:
            self._count += 1
            heappush(self._ends, (life[1], self._count, payload))

    def _gives_way(self, payload: Payload) -> bool:
        """Whether the next event of a payload may be opened."""
        shown = self.shown.get(payload)
        return shown is None or (shown[1] != END_OF_TIME and (self.single_close or self._has_passed(shown[1])))

    def _release(self, payload: Payload, said: list[Formed]) -> None:
        waiting = self.waiting.get(payload)
        while waiting and self._gives_way(payload):
            # When all is said, one that never ends goes last: nothing of its payload could follow it.
            life = min(waiting, key=lambda each: (self.bound == each[1] == END_OF_TIME, each))
            waiting.remove(life)
            said.append(Open(payload, life[0]))
            if life[1] != END_OF_TIME:
                said.append(Close(payload, life[1]))
            self._show(payload, life)
        if waiting is not None and not waiting:
            del self.waiting[payload]

    def _advance(self, attribute: str, said: list[Formed]) -> None:
        for payload in list(self.waiting):
            self._take_back(payload, said)
        while self._ends and self._has_passed(self._ends[0][0]):
            end, _, payload = heappop(self._ends)
            shown = self.shown.get(payload)
            if shown is not None and shown[1] == end:
                self._release(payload, said)
                if self.shown.get(payload) == shown:
                    del self.shown[payload]
        if self.bound == END_OF_TIME:
            self._end()
        oldest = min((vs for lives in self.waiting.values() for vs, _ in lives), default=self.bound)
        reached = min(self.bound, oldest)
        if reached > self.said_to:
            self.said_to = reached
            said.append(linear(attribute, reached))

    def _take_back(self, payload: Payload, said: list[Formed]) -> None:
        """Put an event that is out behind one that starts before it, if no bound forbids that."""
        shown = self.shown.get(payload)
        if shown is not None and shown[0] >= self.said_to and min(self.waiting[payload])[0] <= shown[0]:
            said.append(Close(payload, shown[0]))
            del self.shown[payload]
            self.waiting[payload].append(shown)
            self._release(payload, said)

    def _end(self) -> None:
        for payload, lives in self.waiting.items():
            raise ElementError(
                "An event lies beside one of its payload that never ends, which open and close cannot say.",
                got=f"{payload!r} at {min(lives)[0]} and at {self.shown[payload][0]}",
                hint='have the stream given as "elements"',
            )
        self.shown.clear()

    @property
    def held_back(self) -> int:
        """Those that wait for one of their payload."""
        return sum(map(len, self.waiting.values()))

    @property
    def size(self) -> int:
        """Those that are out and can change, and those that wait."""
        return len(self.shown) + self.held_back

    def to_plain(self) -> Any:
        """Bounds, and events that are out or wait."""
        waiting = [(p, life) for p, lives in self.waiting.items() for life in lives]
        events = list(self.shown), list(self.shown.values()), [p for p, _ in waiting], [life for _, life in waiting]
        return self.bound, self.said_to, *events

    def from_plain(self, data: Any) -> None:
        """The other way."""
        self.bound, self.said_to, payloads, lives, waiting, their_lives = data
        for payload, (vs, ve) in zip(payloads, lives, strict=True):
            self._show(tuple(payload), (vs, ve))
        for payload, (vs, ve) in zip(waiting, their_lives, strict=True):
            self.waiting.setdefault(tuple(payload), []).append((vs, ve))


class SignedWriter(FormWriter):
    """Positive and negative tuples, in order of time."""

    form = SIGNED

    def __init__(self) -> None:
        """Nothing has been written."""
        super().__init__()
        self.events: Counter[Event] = Counter()
        """The events whose end has not been told."""
        self.pending: Counter[tuple[Payload, int]] = Counter()
        """How many events of a payload and start have not been told at all."""
        self._moments: list[tuple[int, int, Event, int]] = []
        """Times of starts and ends as a heap; one that is no longer there is passed over."""
        self._count = 0

    def _insert(self, element: Insert, said: list[Formed]) -> None:
        self._add((element.payload, element.vs, element.ve), 1)
        self.pending[element.payload, element.vs] += 1
        self._push(element.vs, (element.payload, element.vs, element.ve), 1)

    def _adjust(self, element: Adjust, said: list[Formed]) -> None:
        self._add((element.payload, element.vs, element.v_old), -1)
        if element.ve == element.vs:
            self.pending[element.payload, element.vs] -= 1
        else:
            self._add((element.payload, element.vs, element.ve), 1)

    def _add(self, event: Event, count: int) -> None:
        self.events[event] += count
        if not self.events[event]:
            del self.events[event]
        if count > 0 and event[2] != END_OF_TIME:
            self._push(event[2], event, -1)

    def _push(self, time: int, event: Event, sign: int) -> None:
        self._count += 1
        heappush(self._moments, (time, self._count, event, sign))

    def _advance(self, attribute: str, said: list[Formed]) -> None:
        tuples: list[Signed] = []
        while self._moments and self._has_passed(self._moments[0][0]):
            time, _, event, sign = heappop(self._moments)
            if sign > 0:
                tuples += [Signed(event[0], time, 1)] * self.pending.pop((event[0], event[1]), 0)
            else:
                tuples += [Signed(event[0], time, -1)] * self.events.pop(event, 0)
        said += in_order(tuples)
        said.append(linear(attribute, self.bound))
        if self.bound == END_OF_TIME:
            self.events.clear()

    @property
    def held_back(self) -> int:
        """Those that no bound has passed."""
        return self.pending.total()

    @property
    def size(self) -> int:
        """Those whose end has not been told."""
        return self.events.total()

    def to_plain(self) -> Any:
        """The bound, the events, and how many of each start have not been told."""
        events, pending = list(self.events.items()), list(self.pending.items())
        return (
            self.bound, [e[0] for e, _ in events], [(e[1], e[2], n) for e, n in events],
            [p for (p, _), _ in pending], [(vs, n) for (_, vs), n in pending],
        )  # fmt: skip

    def from_plain(self, data: Any) -> None:
        """The other way."""
        self.bound, payloads, lives, waiting, starts = data
        for payload, (vs, ve, count) in zip(payloads, lives, strict=True):
            self._add((tuple(payload), vs, ve), count)
        for payload, (vs, count) in zip(waiting, starts, strict=True):
            self.pending[tuple(payload), vs] = count
            self._push(vs, (tuple(payload), vs, vs), 1)
        heapify(self._moments)


def _inserts_in_order(elements: Iterable[Element]) -> Iterator[Element]:
    """Inserts that come together in order of start, since events of a payload are told in that order."""
    for together, run in groupby(elements, key=lambda e: isinstance(e, Insert)):
        members = list(run)
        yield from sorted(members, key=lambda e: e.vs) if together else members  # type: ignore[union-attr]
