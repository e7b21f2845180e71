"""What is kept of each part of a merge: attributes, and for parts with an order of their own, how they are made anew.

Attributes that are plain data are kept as they are, other parts by their numbers. What follows from the rest is not
kept: entries of calendars, keys of indexes, payloads by likeness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any

from penstock.model.likeness import Likeness
from penstock.model.plain import NotPlain
from penstock.operators.merge.divergence import Watch
from penstock.operators.merge.index import Calendar, Days, Holds, Index
from penstock.operators.merge.r4 import Bag, EndBag

Number = Callable[[Any], int]
"""The number of a part, a new one if it has not been met."""


@dataclass(frozen=True)
class Part:
    """A class whose objects are kept."""

    kind: type
    name: str
    """What it is called in a page."""
    plain: tuple[str, ...] = ()
    """Attributes that are plain data."""
    parts: tuple[str, ...] = ()
    """Attributes that are a part, a list of parts, or a dictionary of them; or None."""
    made: frozenset[str] = frozenset()
    """Attributes that follow from the others, or from the settings of the merge."""
    later: tuple[str, ...] = ()
    """Attributes that are plain data and that older pages do not have, in the order in which they were added: there
    they stay as in a new merge."""

    def write(self, value: Any, number: Number) -> tuple[Any, ...]:
        """What is kept of an object, which must have nothing else."""
        if hasattr(value, "__dict__"):
            unknown = vars(value).keys() - self.made - set(self.plain) - set(self.parts) - set(self.later)
            if unknown:
                raise NotPlain(f"{self.name} with {', '.join(sorted(unknown))}, which no page has a place for")
        kept = [getattr(value, attribute) for attribute in self.plain]
        for attribute in self.parts:
            held = getattr(value, attribute)
            if isinstance(held, list):
                kept.append(list(map(number, held)))
            elif isinstance(held, dict):
                kept.append({key: number(each) for key, each in held.items()})
            else:
                kept.append(None if held is None else number(held))
        return tuple(kept + [getattr(value, attribute) for attribute in self.later])

    def read(self, value: Any, kept: tuple[Any, ...], parts: list[Any]) -> None:
        """Give an object what was kept of it."""
        found: Any
        names = (*self.plain, *self.parts)
        names += self.later[: len(kept) - len(names)]
        for attribute, held in zip(names, kept, strict=True):
            if attribute not in self.parts or held is None:
                found = held
            elif isinstance(held, list):
                found = [parts[number] for number in held]
            elif isinstance(held, dict):
                found = {key: parts[number] for key, number in held.items()}
            else:
                found = parts[held]
            object.__setattr__(value, attribute, found)


@dataclass(frozen=True)
class PlainPart(Part):
    """A class that has nothing but plain data, written in one go: there are many of these."""

    def write(self, value: Any, number: Number) -> tuple[Any, ...]:
        """All of it."""
        found: tuple[Any, ...] = self.values(value)
        return found

    @cached_property
    def values(self) -> Callable[[Any], tuple[Any, ...]]:
        """All attributes of an object."""
        return attrgetter(*self.plain)

    def read(self, value: Any, kept: tuple[Any, ...], parts: list[Any]) -> None:
        """Frozen ones too."""
        put = object.__setattr__
        for attribute, held in zip(self.plain, kept, strict=True):
            put(value, attribute, held)


class BagPart(Part):
    """A bag of R4: its multisets as ends and how often each is there, by turns; most bags then have the same shape."""

    def write(self, value: Bag, number: Number) -> tuple[Any, ...]:
        """Its own, and the ends of the output and of each input."""
        said = tuple([(each, _turns(ends)) for each, ends in value.inputs.items()])
        return value.payload, value.vs, value.due, value.agreed, value.first_seen, _turns(value.out), said

    def read(self, value: Bag, kept: tuple[Any, ...], parts: list[Any]) -> None:
        """The other way."""
        value.payload, value.vs, value.due, value.agreed, value.first_seen, out, said = kept
        value.out = _ends(out)
        value.inputs = {each: _ends(turns) for each, turns in said}


class IndexPart(Part):
    """An index: its nodes, in the order in which they came; keys and likeness follow from them."""

    def write(self, value: Index[Any], number: Number) -> tuple[Any, ...]:
        """The nodes, and the calendar."""
        return list(map(number, value.nodes.values())), number(value.due)

    def read(self, value: Index[Any], kept: tuple[Any, ...], parts: list[Any]) -> None:
        """Keys by start and payload."""
        nodes = [parts[number] for number in kept[0]]
        value.nodes, value.due, value.likeness = _keyed(nodes), parts[kept[1]], _likeness(nodes)


class WatchPart(Part):
    """The alarm of an index: its records, in the order in which they came."""

    def write(self, value: Watch, number: Number) -> tuple[Any, ...]:
        """What it has found and counted, the records, and the calendar."""
        found = list(map(number, value.found))
        records = list(map(number, value.records.values()))
        return found, value.count, value.unchecked, value.forgotten_to, records, number(value._due)

    def read(self, value: Watch, kept: tuple[Any, ...], parts: list[Any]) -> None:
        """Keys by start and payload."""
        found, value.count, value.unchecked, value.forgotten_to, numbers, due = kept
        records = [parts[number] for number in numbers]
        value.found = [parts[number] for number in found]
        value.records, value._due, value._likeness = _keyed(records), parts[due], _likeness(records)


class CleansePart(Part):
    """A Cleanse: the likeness of its events follows from them."""

    def read(self, value: Any, kept: tuple[Any, ...], parts: list[Any]) -> None:
        """With the likeness made anew."""
        super().read(value, kept, parts)
        value.likeness = Likeness()
        for key in value.events:
            value.likeness.add(*key)


class CalendarPart(Part):
    """A calendar: the nodes that wait, by time; what each waits for, it knows itself."""

    def write(self, value: Calendar[Any], number: Number) -> tuple[Any, ...]:
        """In order of time."""
        return (list(map(number, value.waiting())),)

    def read(self, value: Calendar[Any], kept: tuple[Any, ...], parts: list[Any]) -> None:
        """Only what is waited for."""
        days: dict[int, list[Any]] = {}
        for number in kept[0]:
            days.setdefault(parts[number].due, []).append(parts[number])
        value._days, value._times = days, list(days)
        value.entries = value.living = len(kept[0])


class DaysPart(Part):
    """Nodes by a time."""

    def write(self, value: Days[Any], number: Number) -> tuple[Any, ...]:
        """In order of time."""
        return ([(time, list(map(number, day))) for time, day in sorted(value._days.items())],)

    def read(self, value: Days[Any], kept: tuple[Any, ...], parts: list[Any]) -> None:
        """The other way."""
        value._days = {time: [parts[number] for number in day] for time, day in kept[0]}
        value._times = list(value._days)


class HoldsPart(Part):
    """Nodes that hold the output's bound."""

    def write(self, value: Holds[Any], number: Number) -> tuple[Any, ...]:
        """In order of their numbers: a set has another order in every process."""
        return (sorted(map(number, value)),)

    def read(self, value: Holds[Any], kept: tuple[Any, ...], parts: list[Any]) -> None:
        """By start."""
        value.__init__()  # type: ignore[misc]
        for number in kept[0]:
            value.add(parts[number])


def _turns(ends: EndBag) -> tuple[int, ...]:
    return tuple(chain.from_iterable(ends.counts.items()))


def _ends(turns: tuple[int, ...]) -> EndBag:
    made = EndBag()
    made.counts, made.size = dict(zip(turns[::2], turns[1::2], strict=True)), sum(turns[1::2])
    return made


def _keyed(nodes: Iterable[Any]) -> dict[tuple[int, Any], Any]:
    return {(node.vs, node.payload): node for node in nodes}


def _likeness(nodes: Iterable[Any]) -> Likeness:
    made = Likeness()
    for node in nodes:
        made.add(node.vs, node.payload)
    return made
