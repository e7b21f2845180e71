"""What is kept of a merge, as plain data.

A merge is a web of parts: an event is in the index and in a calendar, an input is among the inputs and leads. The table
below says what each part is called in a page and what is kept of it; what follows from the settings of a merge is not,
so a page is opened into a merge that was made with the same settings. Parts are numbered as they are met, written each
once, and name each other by number. Nothing but these parts comes out of a page, only what is listed is set, and
nothing is called.

The names in the table are the format: who renames a class or an attribute keeps its name here, who adds one adds it
here with the next version of `MergeOperator`. What the table does not know is an error when it is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.algorithms.merge.base import Counts, Input, LogicalMerge, Misstep
from penstock.algorithms.merge.baselines import Cleanse, CleanseThenR1, R3Minus
from penstock.algorithms.merge.divergence import Divergence, Record, Watch
from penstock.algorithms.merge.index import Calendar, Days, Holds, Index, Node
from penstock.algorithms.merge.ordered import R0, R1, R2
from penstock.algorithms.merge.r3 import R3
from penstock.algorithms.merge.r4 import R4, Bag, Ends
from penstock.algorithms.merge.trail import Trail, Walk
from penstock.model.elements import Adjust, Insert, Punctuation
from penstock.model.likeness import Likeness
from penstock.model.plain import NotPlain


@dataclass(frozen=True)
class Part:
    """A class whose objects are kept."""

    kind: type
    name: str
    """What it is called in a page."""
    kept: tuple[str, ...]
    """Its attributes, in the order in which they are written."""
    settings: frozenset[str] = frozenset()
    """Attributes that follow from the settings of the merge."""

    def values(self, value: Any) -> list[Any]:
        """What is kept of an object, which must have nothing else."""
        if hasattr(value, "__dict__"):
            unknown = vars(value).keys() - self.settings - set(self.kept)
            if unknown:
                raise NotPlain(f"{self.name} with {', '.join(sorted(unknown))}, which no page has a place for")
        return [getattr(value, attribute) for attribute in self.kept]


_EVERY = "inputs missteps counts stable max_stable out unjoined watch"
_ORDERED = f"{_EVERY} max_vs oldest_new"
_REVISABLE = f"{_EVERY} frozen leader voters undecided waiting early index"
_SET_EVERY = "attribute width quick key policy lag driver counts_unfrozen _first_seen"


def _part(kind: type, name: str, kept: str, settings: str = "") -> Part:
    return Part(kind, name, tuple(kept.split()), frozenset(settings.split()))


PARTS = (
    _part(R0, "R0", _ORDERED, _SET_EVERY),
    _part(R1, "R1", f"{_ORDERED} _ties_out", _SET_EVERY),
    _part(R2, "R2", f"{_ORDERED} _seen _like", _SET_EVERY),
    _part(R3, "R3", _REVISABLE, _SET_EVERY),
    _part(R4, "R4", f"{_REVISABLE} _latest", _SET_EVERY),
    _part(R3Minus, "R3-", f"{_EVERY} ends shown likeness", _SET_EVERY),
    _part(CleanseThenR1, "Cleanse + R1", f"{_ORDERED} _ties_out cleansers raw", _SET_EVERY),
    _part(
        Input,
        "input",
        "name number complete_from joined stable greatest least unfrozen held tie_start ties excused_to bit",
    ),
    _part(Counts, "counts", "inserts_in adjusts_in inserts_out adjusts_out removals_out waited missteps"),
    _part(Misstep, "misstep", "input element reason"),
    _part(Cleanse, "cleanse", "attribute events order stable"),
    _part(Watch, "watch", "found count unchecked forgotten_to records _due _likeness", "reaction patience"),
    _part(Trail, "trail", "found count unchecked forgotten_to starts groups base kept walks", "reaction patience"),
    _part(Record, "record", "payload vs out said due blind_below"),
    _part(Walk, "walk", "position start endings"),
    _part(Divergence, "divergence", "input payload vs output_end input_end"),
    _part(Index, "index", "nodes due likeness"),
    _part(Node, "node", "payload vs end bits others out due first_seen"),
    _part(Bag, "bag", "payload vs inputs out due agreed first_seen"),
    _part(Ends, "ends", "counts size"),
    _part(Days, "days", "_days _times"),
    _part(Calendar, "calendar", "_days _times entries living"),
    _part(Holds, "holds", "_held _starts"),
    _part(Likeness, "likeness", "known"),
    _part(Insert, "insert", "payload vs ve"),
    _part(Adjust, "adjust", "payload vs v_old ve"),
    _part(Punctuation, "punctuation", "bounds constants"),
)
_OF_KIND = {part.kind: part for part in PARTS}
_BY_NAME = {part.name: part for part in PARTS}
_CONTAINERS: dict[type, str] = {list: "list", dict: "dict", set: "set"}
_ATOMS = frozenset({type(None), bool, int, float, str, bytes})

# In a page a value is itself where it is an atom or a tuple of atoms; else a list: a part's number, or a mark and more.
_TUPLE, _PLAIN = "t", "v"


Flat = tuple[list[str], dict[str, list[Any]]]


def flatten(root: Any) -> Flat:
    """The name of every part in the order of their numbers, `root` first; and by name what is kept of each."""
    numbers: dict[int, int] = {}
    met: list[Any] = []

    def refer(value: Any) -> Any:
        kind = type(value)
        if kind in _ATOMS:
            return value
        if kind is tuple:
            return value if _ATOMS.issuperset(map(type, value)) else [_TUPLE, *map(refer, value)]
        if kind not in _CONTAINERS and kind not in _OF_KIND:
            return [_PLAIN, value]
        number = numbers.get(id(value))
        if number is None:
            number = numbers[id(value)] = len(met)
            met.append(value)
        return [number]

    refer(root)
    names: list[str] = []
    held: dict[str, list[Any]] = {}
    for value in met:  # which grows meanwhile
        kind = type(value)
        name = _CONTAINERS.get(kind) or _OF_KIND[kind].name
        names.append(name)
        if kind is dict:
            content: Any = ([refer(k) for k in value], [refer(v) for v in value.values()])
        elif kind is set:  # which has an order of its own in every process
            content = sorted([refer(v) for v in value], key=repr)
        elif kind is list:
            content = [refer(v) for v in value]
        else:
            content = tuple([refer(v) for v in _OF_KIND[kind].values(value)])
        held.setdefault(name, []).append(content)
    return names, held


def unflatten(data: Flat, merge: LogicalMerge) -> LogicalMerge:
    """Take up what `flatten` gave in a merge with the same settings, made for this."""
    own = _OF_KIND[type(merge)].name
    if data[0][0] != own:
        raise ValueError(f"a page of {data[0][0]} for {own}")
    rebuild(data, merge, getattr(merge, "watch", None))
    return merge


def rebuild(data: Flat, *given: Any) -> Any:
    """What `flatten` was given; the objects given here take their parts themselves."""
    names, held = data
    own = {_OF_KIND[type(each)].name: each for each in given if each is not None}
    made = [_empty(name, own) for name in names]

    def resolve(value: Any) -> Any:
        if type(value) is not list:
            return value
        if value[0] == _TUPLE:
            return tuple([resolve(v) for v in value[1:]])
        return value[1] if value[0] == _PLAIN else made[value[0]]

    contents = {name: iter(of_name) for name, of_name in held.items()}
    pairs = [(value, next(contents[name]), name) for value, name in zip(made, names, strict=True)]
    for value, content, name in pairs:
        if name not in _CONTAINERS.values():
            for attribute, kept in zip(_BY_NAME[name].kept, content, strict=True):
                object.__setattr__(value, attribute, resolve(kept))
    for value, content, name in pairs:  # keys must be whole before they are put in
        if name == "list":
            value.extend(map(resolve, content))
        elif name == "set":
            value.update(map(resolve, content))
        elif name == "dict":
            value.update(zip(map(resolve, content[0]), map(resolve, content[1]), strict=True))
    return made[0]


def _empty(name: str, own: dict[str, Any]) -> Any:
    """A part without anything in it; the merge and its alarm are there already."""
    for kind, container in _CONTAINERS.items():
        if name == container:
            return kind()
    return own[name] if name in own else object.__new__(_BY_NAME[name].kind)


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
    """The settings that are not as they were, in words."""
    return [f"{name}: was {saved.get(name)}, is {now[name]}" for name in now if saved.get(name) != now[name]]
