"""Other physical forms of a stream, converted to elements and back.

- *Open and close*: `Open(p, vs)` begins an event, `Close(p, ve)` ends it; a later close of the same event revises the
  end, one at its start takes it back. At most one event of a payload is open at a time (I-streams and D-streams).
- *Positive and negative*: `Signed(p, t, +1)` puts a payload into the relation from `t` on, `Signed(p, t, -1)` takes one
  out; nothing is revised, and the tuples of a payload come in order of time.

An event that is open has the end of time as its end. Converting back gives a stream with the same TDB, not the same
elements: an adjust that moves an end several times is one close more each time, and a positive-negative stream can only
be made of final events. Here whole streams are converted; `form_reading` and `form_writing` do it as elements come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.errors import ElementError
from penstock.model.elements import Element, Insert, Payload, Punctuation, check_kinds
from penstock.model.tdb import TDB, tdb
from penstock.model.time import END_OF_TIME

ELEMENTS, OPEN_CLOSE, SIGNED = "elements", "open/close", "signed"
FORMS = (ELEMENTS, OPEN_CLOSE, SIGNED)
"""What the forms of a stream are called."""


@dataclass(frozen=True, slots=True)
class Open:
    """An event begins."""

    payload: Payload
    vs: int

    def __post_init__(self) -> None:
        """The start is a tick, after which there is another."""
        check_kinds(self.payload, self.vs)
        if self.vs >= END_OF_TIME:
            raise ElementError("An event begins before the end of time.", got=repr(self.vs)[:200])


@dataclass(frozen=True, slots=True)
class Close:
    """The event of a payload that was opened last ends, or gets another end; one at its start takes it back."""

    payload: Payload
    ve: int

    def __post_init__(self) -> None:
        """The end is a tick."""
        check_kinds(self.payload, self.ve)


@dataclass(frozen=True, slots=True)
class Signed:
    """A payload comes (+1) or goes (-1) at a time."""

    payload: Payload
    time: int
    sign: int

    def __post_init__(self) -> None:
        """The time is a tick, and there are two signs."""
        check_kinds(self.payload, self.time)
        if self.sign not in (1, -1):
            raise ElementError("A tuple is positive or negative.", got=repr(self.sign)[:200], hint="+1 or -1")
        if self.time >= END_OF_TIME:
            raise ElementError("A tuple comes before the end of time.", got=repr(self.time)[:200])


Formed = Element | Open | Close | Signed
"""An element of a stream in any form."""


def time_of(element: Open | Close | Signed) -> int:
    """When an event begins or ends."""
    return element.vs if isinstance(element, Open) else element.ve if isinstance(element, Close) else element.time


def to_open_close(elements: Iterable[Element]) -> Iterator[Open | Close | Punctuation]:
    """Inserts as opens with their closes, adjusts as further closes.

    The events of a payload must come one after the other, or a close could not tell which of them it ends.
    """
    last: dict[Payload, int] = {}
    for element in elements:
        if isinstance(element, Punctuation):
            yield element
        elif isinstance(element, Insert):
            last[element.payload] = element.vs
            yield Open(element.payload, element.vs)
            if element.ve != END_OF_TIME:
                yield Close(element.payload, element.ve)
        else:
            if last.get(element.payload) != element.vs:
                raise ElementError(
                    "Only the event that was opened last can be closed again.",
                    got=f"{element.payload!r} of {element.vs}",
                    hint="keep this stream as inserts and adjusts",
                )
            yield Close(element.payload, element.ve)


def to_signed(events: Iterable[Element] | TDB) -> Iterator[Signed]:
    """The final events in order of time; at one time, what goes comes before what comes."""
    final = events if isinstance(events, TDB) else tdb(events)
    moments: list[Signed] = []
    for (payload, vs, ve), count in final.items():
        moments += [Signed(payload, vs, 1)] * count
        if ve != END_OF_TIME:
            moments += [Signed(payload, ve, -1)] * count
    yield from in_order(moments)


def in_order(tuples: Iterable[Signed]) -> list[Signed]:
    """By time; at one time, what goes comes before what comes."""
    return sorted(tuples, key=lambda s: (s.time, s.sign, repr(s.payload)))
