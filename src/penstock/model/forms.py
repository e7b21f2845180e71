"""Other physical forms of a stream, converted to elements and back.

- *Open and close*: `Open(p, vs)` begins an event, `Close(p, ve)` ends it; a later close of the same event revises the
  end. At most one event of a payload is open at a time (I-streams and D-streams).
- *Positive and negative*: `Signed(p, t, +1)` puts a payload into the relation from `t` on, `Signed(p, t, -1)` takes one
  out; nothing is revised, and the tuples of a payload come in order of time.

An event that is open has the end of time as its end. Converting back gives a stream with the same TDB, not the same
elements: an adjust that moves an end several times is one close more each time, and a positive-negative stream can only
be made of final events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.errors import ElementError
from penstock.model.elements import Adjust, Element, Insert, Payload, Punctuation
from penstock.model.tdb import TDB, tdb
from penstock.model.time import END_OF_TIME


@dataclass(frozen=True, slots=True)
class Open:
    """An event begins."""

    payload: Payload
    vs: int


@dataclass(frozen=True, slots=True)
class Close:
    """The event of a payload that was opened last ends, or gets another end."""

    payload: Payload
    ve: int


@dataclass(frozen=True, slots=True)
class Signed:
    """A payload comes (+1) or goes (-1) at a time."""

    payload: Payload
    time: int
    sign: int


def from_open_close(elements: Iterable[Open | Close | Punctuation]) -> Iterator[Element]:
    """Opens as inserts without an end, closes as adjusts; punctuation passes through."""
    last: dict[Payload, tuple[int, int]] = {}
    for element in elements:
        if isinstance(element, Punctuation):
            yield element
        elif isinstance(element, Open):
            known = last.get(element.payload)
            if known is not None and known[1] == END_OF_TIME:
                raise ElementError("The event is open already.", got=f"{element.payload!r}, opened at {known[0]}")
            last[element.payload] = element.vs, END_OF_TIME
            yield Insert(element.payload, element.vs, END_OF_TIME)
        else:
            known = last.get(element.payload)
            if known is None or element.ve < known[0]:
                raise ElementError(
                    "A close needs an event that was opened before it.", got=f"{element.payload!r} at {element.ve}"
                )
            vs, old = known
            if element.ve != old:
                last[element.payload] = vs, element.ve
                yield Adjust(element.payload, vs, old, element.ve)


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


def from_signed(elements: Iterable[Signed | Punctuation]) -> Iterator[Element]:
    """A positive tuple as an insert without an end, a negative one as the end of the oldest of its payload."""
    alive: dict[Payload, list[int]] = defaultdict(list)
    for element in elements:
        if isinstance(element, Punctuation):
            yield element
        elif element.sign > 0:
            alive[element.payload].append(element.time)
            yield Insert(element.payload, element.time, END_OF_TIME)
        else:
            starts = alive[element.payload]
            if not starts or element.time < starts[0]:
                raise ElementError(
                    "A negative tuple needs a positive one before it.", got=f"{element.payload!r} at {element.time}"
                )
            yield Adjust(element.payload, starts.pop(0), END_OF_TIME, element.time)


def to_signed(events: Iterable[Element] | TDB) -> Iterator[Signed]:
    """The final events in order of time; at one time, what goes comes before what comes."""
    final = events if isinstance(events, TDB) else tdb(events)
    moments: list[tuple[int, int, str, Payload]] = []
    for (payload, vs, ve), count in final.items():
        moments += [(vs, 1, repr(payload), payload)] * count
        if ve != END_OF_TIME:
            moments += [(ve, -1, repr(payload), payload)] * count
    for time, sign, _, payload in sorted(moments, key=lambda m: m[:3]):
        yield Signed(payload, time, sign)
