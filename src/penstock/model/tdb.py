"""The temporal database (TDB) of a stream, and equality with a readable difference.

The TDB is the multiset of events `(payload, vs, ve)` that a stream's elements come to when every adjust has been
applied. Two streams are equivalent when their TDBs are equal, however differently they arrived; floats within the
tolerance of `model.likeness`, by which an adjust finds its event too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from penstock.errors import ElementError
from penstock.model.elements import Adjust, Element, Insert, Payload, Punctuation
from penstock.model.likeness import alike, exact_part, has_float, nearest
from penstock.model.values import canonical_row

Event = tuple[Payload, int, int]


class TDB(Mapping[Event, int]):
    """A multiset of events."""

    def __init__(self, events: Iterable[Event] | Mapping[Event, int] = ()) -> None:
        """From events, or from events with their counts."""
        self._events: Counter[Event] = Counter()
        try:
            counted = events if isinstance(events, Mapping) else Counter(events)
            for (payload, vs, ve), count in counted.items():
                self._events[(canonical_row(payload), vs, ve)] += count
        except (TypeError, ValueError) as error:
            raise ElementError(
                "A TDB is made of events.",
                got=str(error),
                hint="(payload, vs, ve), each with values that can be hashed; of elements, pk.tdb(elements)",
            ) from None

    def __getitem__(self, event: Event) -> int:
        """How often the event is there."""
        key = (canonical_row(event[0]), event[1], event[2])
        if key not in self._events:
            raise KeyError(event)
        return self._events[key]

    def __iter__(self) -> Iterator[Event]:
        """The distinct events."""
        return iter(self._events)

    def __len__(self) -> int:
        """How many distinct events there are."""
        return len(self._events)

    def __hash__(self) -> int:
        """TDBs are compared, not hashed."""
        raise TypeError("a TDB is not hashable")

    def __eq__(self, other: object) -> bool:
        """Equal as multisets, floats within tolerance."""
        return isinstance(other, TDB) and not self.difference(other)

    @property
    def size(self) -> int:
        """How many events there are, counting repeats."""
        return sum(self._events.values())

    def difference(self, other: TDB) -> Difference:
        """What is here and not there, and the other way round."""
        missing, extra = Counter(self._events), Counter(other._events)
        both = missing & extra
        missing, extra = missing - both, extra - both
        if missing and extra:
            _cancel_close(missing, extra)
        return Difference(missing, extra)

    def __repr__(self) -> str:
        """The size."""
        return f"TDB({self.size} events)"


def tdb(elements: Iterable[Element]) -> TDB:
    """Apply every insert and adjust; punctuation changes nothing."""
    if not isinstance(elements, Iterable):
        raise ElementError(
            "Not a stream of elements.", got=repr(elements)[:200], hint="a list of elements, or a query's"
        )
    events: Counter[Event] = Counter()
    for element in elements:
        if isinstance(element, Insert):
            events[(_hashable(element), element.vs, element.ve)] += 1
        elif isinstance(element, Adjust):
            payload = _named(element, events)
            old = (payload, element.vs, element.v_old)
            if events[old] <= 0:
                raise ElementError(
                    "An adjust names an event that is not there.",
                    got=f"{element.payload!r} [{element.vs}, {element.v_old})",
                    hint="the insert must come first, and every adjust must name the current end",
                )
            events[old] -= 1
            if not events[old]:
                del events[old]
            if element.ve > element.vs:
                events[(payload, element.vs, element.ve)] += 1
        elif not isinstance(element, Punctuation):
            raise ElementError("Not an element of a stream.", got=repr(element))
    return TDB(events)


def _hashable(element: Insert | Adjust) -> Payload:
    try:
        payload = canonical_row(element.payload)
        hash(payload)
    except TypeError as error:
        raise ElementError("The values of a payload must be hashable.", got=f"{element}: {error}"[:200]) from None
    return payload


def _named(adjust: Adjust, events: Counter[Event]) -> Payload:
    """The payload of the event that an adjust names: its own, or where there is none the nearest that is like it."""
    payload, vs, old = _hashable(adjust), adjust.vs, adjust.v_old
    if events[payload, vs, old] > 0 or not has_float(payload):
        return payload
    like = nearest(payload, [p for (p, start, end), n in events.items() if n > 0 and (start, end) == (vs, old)])
    return payload if like is None else like


def equivalent(left: Iterable[Element] | TDB, right: Iterable[Element] | TDB) -> bool:
    """Whether two streams have the same TDB."""
    a = left if isinstance(left, TDB) else tdb(left)
    b = right if isinstance(right, TDB) else tdb(right)
    return a == b


@dataclass(frozen=True)
class Difference:
    """What one TDB has and the other has not; false when they are equal."""

    missing: Counter[Event] = field(default_factory=Counter)
    """In the first and not in the second."""
    extra: Counter[Event] = field(default_factory=Counter)
    """In the second and not in the first."""

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.missing or self.extra)

    def render(self, first: str = "expected", second: str = "got", limit: int = 10) -> str:
        """A few lines for a person."""
        if not self:
            return "equal"
        lines = []
        for title, events in ((f"only in {first}", self.missing), (f"only in {second}", self.extra)):
            if not events:
                continue
            lines.append(f"{title} ({sum(events.values())}):")
            ranked = sorted(events.items(), key=lambda item: (item[0][1], item[0][2], repr(item[0][0])))
            for (payload, vs, ve), count in ranked[:limit]:
                times = f" x{count}" if count > 1 else ""
                lines.append(f"  [{vs}, {ve}) {payload!r}{times}")
            if len(ranked) > limit:
                lines.append(f"  … and {len(ranked) - limit} more")
        return "\n".join(lines)

    def __str__(self) -> str:
        """The rendered difference."""
        return self.render()


def _cancel_close(missing: Counter[Event], extra: Counter[Event]) -> None:
    """Take out pairs of events that differ only within the tolerance of floats."""
    index: dict[object, list[Event]] = {}
    for event in extra:
        index.setdefault((exact_part(event[0]), event[1], event[2]), []).append(event)
    for event in list(missing):
        payload, vs, ve = event
        candidates = index.get((exact_part(payload), vs, ve), ()) if has_float(payload) else ()
        for other in candidates:
            while missing[event] and extra[other] and alike(payload, other[0]):
                missing[event] -= 1
                extra[other] -= 1
            if not missing[event]:
                break
    for counter in (missing, extra):
        for event in [e for e, n in counter.items() if not n]:
            del counter[event]
