"""Open/close and positive/negative streams as inserts and adjusts, as they come.

A reader takes one element and gives what it comes to, or the reason why it makes no sense in its stream; then nothing
has changed. It knows the stream's own bound, so an element below it is refused before it is believed.

State: the events of which something can still be said. An open event is kept until it is closed, a closed one until the
bound has passed its end, after which no close can revise it; of positive tuples their times until a negative one comes.
What a bound passes is swept out when it is the greater part, and counts as gone before that.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.errors import ElementError
from penstock.model.elements import Adjust, Element, Insert, Payload, Punctuation
from penstock.model.form_state import FormState
from penstock.model.forms import OPEN_CLOSE, SIGNED, Close, Formed, Open, Signed
from penstock.model.time import END_OF_TIME, MIN_TICK

SPARE = 64
"""So much that is done with is left alone."""


class FormReader(FormState):
    """What the readers share: when to sweep."""

    def __init__(self) -> None:
        """Nothing has come."""
        super().__init__()
        self._kept = 0

    def read(self, element: Formed) -> list[Element] | str:
        """What an element comes to, or why it cannot be."""
        if isinstance(element, Punctuation):
            if element.is_linear and element.value >= self.bound:
                self.bound = element.value
                if self.size > 2 * self._kept + SPARE:
                    self._sweep()
                    self._kept = self.size
            return [element]
        return self._event(element)

    @abstractmethod
    def _event(self, element: Formed) -> list[Element] | str:
        """What an element that is no punctuation comes to."""

    @abstractmethod
    def _sweep(self) -> None:
        """Give up what the bound has passed."""


class OpenCloseReader(FormReader):
    """Opens as inserts without an end, closes as adjusts."""

    form = OPEN_CLOSE

    def __init__(self, *, single_close: bool = False) -> None:
        """With `single_close` an open has at most one close, and a second one makes no sense."""
        super().__init__()
        self.single_close = single_close
        self.last: dict[Payload, tuple[int, int]] = {}
        """Of each payload the event that was opened last: start and end."""

    def _event(self, element: Formed) -> list[Element] | str:
        if isinstance(element, Open):
            return self._open(element.payload, element.vs)
        if isinstance(element, Close):
            return self._close(element.payload, element.ve)
        return f"no element of an {OPEN_CLOSE} stream"

    def _open(self, payload: Payload, vs: int) -> list[Element] | str:
        known = self.last.get(payload)
        if known is not None and known[1] == END_OF_TIME:
            return f"The event is open already, since {known[0]}"
        if self._has_passed(vs):
            return f"an open at {vs}, below the input's own bound {self.bound}"
        self.last[payload] = vs, END_OF_TIME
        return [Insert(payload, vs, END_OF_TIME)]

    def _close(self, payload: Payload, ve: int) -> list[Element] | str:
        vs, old = self.last.get(payload, (END_OF_TIME, MIN_TICK))
        if ve < vs or (old != END_OF_TIME and self._has_passed(old)):
            return "A close needs an event that was opened before it, and that is not final"
        if ve == old:
            return []
        if self.single_close and old != END_OF_TIME:
            return f"a second close where an open has one, which was at {old}"
        if self._has_passed(ve):
            return f"a close at {ve}, below the input's own bound {self.bound}"
        if ve == vs:
            del self.last[payload]
        else:
            self.last[payload] = vs, ve
        return [Adjust(payload, vs, old, ve)]

    @property
    def size(self) -> int:
        """The events that can still be closed, and those that nobody has swept out."""
        return len(self.last)

    def _sweep(self) -> None:
        self.last = {p: e for p, e in self.last.items() if e[1] == END_OF_TIME or not self._has_passed(e[1])}

    def to_plain(self) -> Any:
        """Bound and events."""
        return self.bound, list(self.last), list(self.last.values())

    def from_plain(self, data: Any) -> None:
        """The other way."""
        self.bound, payloads, events = data
        self.last = {tuple(p): (vs, ve) for p, (vs, ve) in zip(payloads, events, strict=True)}


class SignedReader(FormReader):
    """A positive tuple as an insert without an end, a negative one as the end of the oldest of its payload."""

    form = SIGNED

    def __init__(self) -> None:
        """Nothing has come."""
        super().__init__()
        self.alive: dict[Payload, deque[int]] = {}
        """The times of positive tuples, until a negative one takes them out."""
        self.last: dict[Payload, int] = {}
        """The time of the last tuple of a payload, while another one could come before it."""

    def _event(self, element: Formed) -> list[Element] | str:
        if not isinstance(element, Signed):
            return f"no element of a {SIGNED} stream"
        payload, time = element.payload, element.time
        if self._has_passed(time):
            return f"a tuple at {time}, below the input's own bound {self.bound}"
        if time < self.last.get(payload, MIN_TICK):
            return f"a tuple at {time} after one of the same payload at {self.last[payload]}"
        if element.sign > 0:
            self.alive.setdefault(payload, deque()).append(time)
            self.last[payload] = time
            return [Insert(payload, time, END_OF_TIME)]
        starts = self.alive.get(payload)
        if starts is None:
            return "A negative tuple needs a positive one before it"
        start = starts.popleft()
        if not starts:
            del self.alive[payload]
        self.last[payload] = time
        return [Adjust(payload, start, END_OF_TIME, time)]

    @property
    def size(self) -> int:
        """The payloads of which something is known."""
        return len(self.alive) + len(self.last)

    def _sweep(self) -> None:
        self.last = {payload: time for payload, time in self.last.items() if not self._has_passed(time)}

    def to_plain(self) -> Any:
        """Bound, times of positive tuples, and of the last ones."""
        alive = list(self.alive), [list(starts) for starts in self.alive.values()]
        return self.bound, *alive, list(self.last), list(self.last.values())

    def from_plain(self, data: Any) -> None:
        """The other way."""
        self.bound, payloads, starts, last, times = data
        self.alive = {tuple(p): deque(s) for p, s in zip(payloads, starts, strict=True)}
        self.last = {tuple(p): t for p, t in zip(last, times, strict=True)}


def from_open_close(elements: Iterable[Open | Close | Punctuation]) -> Iterator[Element]:
    """A whole stream of opens and closes; punctuation passes through, and what makes no sense is an error."""
    yield from _whole(OpenCloseReader(), elements)


def from_signed(elements: Iterable[Signed | Punctuation]) -> Iterator[Element]:
    """A whole stream of positive and negative tuples, likewise."""
    yield from _whole(SignedReader(), elements)


def _whole(reader: FormReader, elements: Iterable[Formed]) -> Iterator[Element]:
    for element in elements:
        found = reader.read(element)
        if isinstance(found, str):
            raise ElementError(f"{found[0].upper()}{found[1:]}.", got=repr(element)[:200])
        yield from found
