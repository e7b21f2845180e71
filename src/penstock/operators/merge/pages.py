"""What is kept of a merge, as plain data.

A merge is a web of parts: an event is in the index and in a calendar, an input is among the inputs and leads. The table
below says what each part is called in a page and what is kept of it: attributes that are plain data as they are, and
attributes that are other parts, by number. What follows from the rest is not kept: the entries of calendars and the
payloads by likeness are made anew. Neither is what follows from the settings of a merge, so a page is opened into a
merge that was made with the same settings. Nothing but these parts comes out of a page, and only what is listed is set.

The names in the table are the format: who renames a class or an attribute keeps its name here, who adds one adds it
here with the next version of `MergeOperator`. What the table does not know is an error when it is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any

from penstock.model.elements import Adjust, Insert, Punctuation
from penstock.model.forms import Close, Open, Signed
from penstock.model.likeness import Likeness
from penstock.model.plain import NotPlain
from penstock.operators.merge.base import Input, LogicalMerge, MergeCounts, Misstep
from penstock.operators.merge.baselines import Cleanse, CleanseThenR1, R3Minus
from penstock.operators.merge.divergence import Divergence, Sighting, Watch
from penstock.operators.merge.index import Calendar, Days, Holds, Index, IndexNode
from penstock.operators.merge.ordered import R0, R1, R2
from penstock.operators.merge.parts import (
    BagPart,
    CalendarPart,
    CleansePart,
    DaysPart,
    HoldsPart,
    IndexPart,
    Part,
    PlainPart,
    WatchPart,
)
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.r4 import R4, Bag
from penstock.operators.merge.trail import Trail, Walk


def _part(kind: type, name: str, plain: str = "", parts: str = "", made: str = "", of: type[Part] = Part) -> Part:
    return of(kind, name, tuple(plain.split()), tuple(parts.split()), frozenset(made.split()))


_NUMBERS = "stable max_stable unjoined"
_WEB = "index inputs missteps counts out watch"
_SETTINGS = "attribute width quick key policy lag driver counts_unfrozen _first_seen elections tally"


def _merge(kind: type[LogicalMerge], plain: str, parts: str = "", later: str = "") -> Part:
    every = _WEB if "index" in parts else _WEB.removeprefix("index ")
    made = _part(kind, kind.name, f"{_NUMBERS} {plain}", f"{every} {parts.removeprefix('index')}", _SETTINGS)
    return replace(made, later=tuple(later.split()))


_REVISABLE = "index leader voters waiting early"
PARTS = (
    _merge(R0, "max_vs oldest_new"),
    _merge(R1, "max_vs oldest_new _ties_out", later="_first"),
    _merge(R2, "max_vs oldest_new _seen _like"),
    _merge(R3, "frozen undecided", _REVISABLE),
    _merge(R4, "frozen undecided _latest", _REVISABLE),
    _merge(R3Minus, "ends shown", "likeness"),
    _merge(CleanseThenR1, "max_vs oldest_new _ties_out raw", "cleansers", "_like _first"),
    replace(
        _part(
            Input,
            "input",
            "name number complete_from joined stable greatest least unfrozen tie_start ties excused_to bit",
            "held",
        ),
        later=("spoke",),
    ),
    _part(
        MergeCounts,
        "counts",
        "inserts_in adjusts_in inserts_out adjusts_out removals_out waited missteps",
        of=PlainPart,
    ),
    _part(Misstep, "misstep", "input reason", "element"),
    _part(Cleanse, "cleanse", "attribute events order stable", made="likeness", of=CleansePart),
    _part(Watch, "watch", made="found count unchecked forgotten_to records", of=WatchPart),
    _part(
        Trail,
        "trail",
        "count unchecked forgotten_to starts groups base kept",
        "found walks",
        "reaction patience limit runs",
    ),
    _part(Sighting, "record", "payload vs out said due blind_below", of=PlainPart),
    _part(Walk, "walk", "position start endings", of=PlainPart),
    _part(Divergence, "divergence", "input payload vs output_end input_end", of=PlainPart),
    _part(Index, "index", of=IndexPart),
    _part(IndexNode, "node", "payload vs end bits others out due first_seen", of=PlainPart),
    _part(Bag, "bag", of=BagPart),
    _part(Days, "days", of=DaysPart),
    _part(Calendar, "calendar", of=CalendarPart),
    _part(Holds, "holds", of=HoldsPart),
    _part(Likeness, "likeness", "known"),
    _part(Insert, "insert", "payload vs ve", of=PlainPart),
    _part(Adjust, "adjust", "payload vs v_old ve", of=PlainPart),
    _part(Punctuation, "punctuation", "bounds constants", of=PlainPart),
    _part(Open, "open", "payload vs", of=PlainPart),
    _part(Close, "close", "payload ve", of=PlainPart),
    _part(Signed, "signed", "payload time sign", of=PlainPart),
)
_OF_KIND = {part.kind: part for part in PARTS}
_BY_NAME = {part.name: part for part in PARTS}
_LEAVES = (PlainPart, BagPart)
"""Parts that others are put in order by: they are read first."""
Flat = tuple[list[int], list[tuple[str, int]], dict[str, list[Any]]]


def flatten(*roots: Any) -> Flat:
    """The numbers of some parts; the names of all parts met, in runs, in the order of their numbers; what is kept."""
    numbers: dict[int, int] = {}
    met: list[Any] = []

    def number(value: Any) -> int:
        found = numbers.get(id(value))
        if found is None:
            found = numbers[id(value)] = len(met)
            met.append(value)
        return found

    asked = list(map(number, roots))
    names: list[str] = []
    held: dict[str, list[Any]] = {}
    for value in met:  # which grows meanwhile
        part = _OF_KIND.get(type(value))
        if part is None:
            raise NotPlain(f"a value of type {type(value).__qualname__} as a part of a merge")
        if isinstance(value, Trail):
            value.unroll()  # batches are events in a page
        names.append(part.name)
        held.setdefault(part.name, []).append(part.write(value, number))
    return asked, [(name, len(list(run))) for name, run in groupby(names)], held


def unflatten(data: Flat, merge: LogicalMerge) -> list[Any]:
    """The parts that `flatten` was asked for, the first of them taken up in a merge with the same settings."""
    asked, names, held = data
    own = {_OF_KIND[type(each)].name: each for each in (merge, getattr(merge, "watch", None)) if each is not None}
    first = names[0][0]
    if first != merge.name or asked[0] != 0:
        raise ValueError(f"a page of {first} for {merge.name}")
    parts: list[Any] = []
    kept: list[tuple[Part, Any, Any]] = []
    contents = {name: iter(of_name) for name, of_name in held.items()}
    for name, times in names:
        part = _BY_NAME[name]
        for _ in range(times):
            value = own[name] if name in own else object.__new__(part.kind)
            parts.append(value)
            kept.append((part, value, next(contents[name])))
    for leaves in (True, False):
        for part, value, content in kept:
            if isinstance(part, _LEAVES) is leaves:
                part.read(value, content, parts)
    return [parts[number] for number in asked]


def settings_of(merge: LogicalMerge) -> dict[str, Any]:
    """What a page can only be opened with: plain values, for comparison."""
    alarm = getattr(merge, "watch", None)
    policy = getattr(merge, "policy", None)
    return {
        "algorithm": merge.name,
        "policy": None if policy is None else f"{policy.name}{_share(policy)}",
        "lag": getattr(merge, "lag", 0),
        "driver": getattr(merge, "driver", None),
        "alarm": alarm is not None,
    }


def _share(policy: Any) -> str:
    share = getattr(policy, "share", None)
    return "" if share is None else f" {share}"


def differing(saved: Any, now: dict[str, Any]) -> Iterable[str]:
    """The settings that are not as they were, in words; another driver may be followed at any time."""
    other = [name for name in now if saved.get(name) != now[name] and name != "driver"]
    return [f"{name}: was {saved.get(name)}, is {now[name]}" for name in other]
