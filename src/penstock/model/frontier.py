"""What a stream has promised: an antichain of punctuations, linear, group-wise and joint, with a small algebra.

A frontier rules out every element that some promise in it rules out. None of its promises follows from another one, so
what a linear bound has passed is forgotten. Constants are equal as group keys are (`canonical`): null is a value, NaN
is one, and the two zeros are one. A bound of `MIN_TICK` rules nothing out and is no promise.

Promises of one shape, that is on the same attributes with constants for the same columns, are in one dictionary by
their constants. So asking about an element, or about the groups of one key, costs a look per shape, of which a stream
has a few, and not one per promise. Adding costs a look per shape as well, and a walk over the promises of a finer shape
where some of them may be passed. Thesis 2.1 and 4; the antichain is that of timely dataflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

from penstock.model.elements import Punctuation
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical

Constants = tuple[Any, ...]
Bounds = tuple[int, ...]
NOTHING: Mapping[str, Any] = {}


class Shape(NamedTuple):
    """What a promise is about: the attributes that it bounds and the columns that it has constants for, by name."""

    attributes: tuple[str, ...]
    columns: tuple[str, ...]

    def is_within(self, other: Shape) -> bool:
        """Whether a promise of this shape may imply one of the other."""
        return set(self.attributes) <= set(other.attributes) and set(self.columns) <= set(other.columns)


class _Parts(NamedTuple):
    """A punctuation taken apart; of two bounds on one attribute the lesser is what is promised."""

    shape: Shape
    bounds: dict[str, int]
    constants: dict[str, Any]

    @staticmethod
    def of(punctuation: Punctuation) -> _Parts:
        bounds: dict[str, int] = {}
        for name, bound in punctuation.bounds:
            bounds[name] = min(bound, bounds.get(name, bound))
        constants = {name: canonical(value) for name, value in punctuation.constants}
        return _Parts(Shape(tuple(sorted(bounds)), tuple(sorted(constants))), bounds, constants)

    def key(self, columns: Sequence[str]) -> Constants:
        return tuple([self.constants[name] for name in columns])

    def vector(self, attributes: Sequence[str]) -> Bounds:
        return tuple([self.bounds[name] for name in attributes])


class Frontier:
    """The promises of one stream; it is changed in place by `add`."""

    __slots__ = ("_least", "_promises")

    def __init__(self, promises: Iterator[Punctuation] | Sequence[Punctuation] = ()) -> None:
        """What these punctuations promise together."""
        self._promises: dict[Shape, dict[Constants, list[Bounds]]] = {}
        self._least: dict[Shape, int] = {}
        """Per shape, no bound in it is below this: a bound that is lower passes none of them."""
        for promise in promises:
            self.add(promise)

    def __iter__(self) -> Iterator[Punctuation]:
        """The promises: those with the fewest constants first, each kind in the order in which they came."""
        for shape in self._shapes():
            for key, vectors in self._promises[shape].items():
                yield from (_punctuation(shape, vector, key) for vector in vectors)

    def __len__(self) -> int:
        """How many promises there are."""
        return sum(len(vectors) for promises in self._promises.values() for vectors in promises.values())

    def __eq__(self, other: object) -> bool:
        """Whether both promise the same: an antichain is what it promises."""
        if not isinstance(other, Frontier):
            return NotImplemented
        return self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """The promises."""
        return f"Frontier({', '.join(map(str, self))})"

    def _content(self) -> dict[Shape, dict[Constants, set[Bounds]]]:
        return {
            shape: {key: set(vectors) for key, vectors in promises.items()}
            for shape, promises in self._promises.items()
        }

    def _shapes(self) -> list[Shape]:
        return sorted(self._promises, key=lambda shape: (len(shape.columns), shape))

    # Adding

    def add(self, promise: Punctuation) -> bool:
        """Take a promise in; whether it says anything new. What follows from it is forgotten."""
        parts = _Parts.of(promise)
        if self._implies(parts):
            return False
        for shape in [s for s in self._promises if parts.shape.is_within(s)]:
            self._pass(shape, parts)
        vector = parts.vector(parts.shape.attributes)
        of_shape = self._promises.setdefault(parts.shape, {})
        of_shape.setdefault(parts.key(parts.shape.columns), []).append(vector)
        self._least[parts.shape] = min(self._least.get(parts.shape, END_OF_TIME), *vector)
        return True

    def implies(self, promise: Punctuation) -> bool:
        """Whether a promise says nothing new."""
        return self._implies(_Parts.of(promise))

    def _implies(self, parts: _Parts) -> bool:
        if MIN_TICK in parts.bounds.values():
            return True
        for shape, promises in self._promises.items():
            if shape.is_within(parts.shape):
                wanted = parts.vector(shape.attributes)
                for vector in promises.get(parts.key(shape.columns), ()):
                    if all(w <= bound for w, bound in zip(wanted, vector, strict=True)):
                        return True
        return False

    def _pass(self, shape: Shape, parts: _Parts) -> None:
        """Forget the promises of a shape that follow from another one."""
        if shape != parts.shape and max(parts.bounds.values()) < self._least[shape]:
            return
        promises = self._promises[shape]
        bounds = [parts.bounds.get(name, END_OF_TIME) for name in shape.attributes]
        wanted = [(shape.columns.index(name), value) for name, value in parts.constants.items()]
        same = parts.key(shape.columns) if shape.columns == parts.shape.columns else None
        keys = list(promises) if same is None else [same] if same in promises else []
        for key in keys:
            if any(key[at] != value for at, value in wanted):
                continue
            kept = [v for v in promises[key] if any(mine > bound for mine, bound in zip(v, bounds, strict=True))]
            if kept:
                promises[key] = kept
            else:
                del promises[key]
        if not promises:
            del self._promises[shape], self._least[shape]
        elif same is None:
            self._least[shape] = min(min(vector) for vectors in promises.values() for vector in vectors)

    def forget(self, promise: Punctuation) -> None:
        """Take out a promise as it was made, where nobody asks for it any more; one that is not there is no error."""
        parts = _Parts.of(promise)
        of_shape, key = self._promises.get(parts.shape), parts.key(parts.shape.columns)
        vector = parts.vector(parts.shape.attributes)
        if of_shape is None or vector not in of_shape.get(key, ()):
            return
        of_shape[key].remove(vector)
        if not of_shape[key]:
            del of_shape[key]
        if not of_shape:
            del self._promises[parts.shape], self._least[parts.shape]

    # Asking

    def condemning(self, values: Mapping[str, object]) -> Punctuation | None:
        """The promise that an element with these values contradicts, the most general one; None if it may come."""
        for shape in self._shapes():
            key = tuple([canonical(values[name]) for name in shape.columns])
            for vector in self._promises[shape].get(key, ()):
                found = _punctuation(shape, vector, key)
                if found.condemns(values):
                    return found
        return None

    def bound(self, attribute: str, constants: Mapping[str, Any] = NOTHING) -> int:
        """No later element that has these constants is below this; `MIN_TICK` if nothing is promised of them."""
        found = MIN_TICK
        for shape, promises in self._promises.items():
            if shape.attributes == (attribute,) and all(name in constants for name in shape.columns):
                for vector in promises.get(tuple([canonical(constants[name]) for name in shape.columns]), ()):
                    found = max(found, vector[0])
        return found

    def groupings(self, attribute: str) -> list[tuple[str, ...]]:
        """The sets of columns that group-wise promises on an attribute are about."""
        return [s.columns for s in self._shapes() if s.attributes == (attribute,) and s.columns]

    def bound_of(self, attribute: str, columns: tuple[str, ...], key: Constants) -> int:
        """The bound of the one promise on an attribute that has just these constants, as keys; `MIN_TICK` if none."""
        vectors = self._promises.get(Shape((attribute,), columns), {}).get(key)
        return MIN_TICK if vectors is None else vectors[0][0]

    def newest(self, most: int) -> list[Punctuation]:
        """The last promises of each kind that are not linear, so many at most; anybody may ask at any time."""
        found: list[Punctuation] = []
        for shape, promises in list(self._promises.items()):
            if shape.columns or len(shape.attributes) > 1:
                last = list(islice(reversed(promises.items()), most))  # in one go: others may be adding
                found += [_punctuation(shape, vector, key) for key, vectors in reversed(last) for vector in vectors]
        return found[-most:]

    # Several streams

    def meet(self, promise: Punctuation) -> list[Punctuation]:
        """What this stream and one that makes the promise both rule out."""
        parts = _Parts.of(promise)
        met = []
        for shape in self._shapes():
            promises = self._promises[shape]
            known = set(shape.columns) <= set(parts.constants)
            keys = [parts.key(shape.columns)] if known else list(promises)
            for key in keys:
                constants = dict(zip(shape.columns, key, strict=True))
                if any(constants.get(name, value) != value for name, value in parts.constants.items()):
                    continue
                for vector in promises.get(key, ()):
                    bounds = dict(zip(shape.attributes, vector, strict=True))
                    for name, bound in parts.bounds.items():
                        bounds[name] = min(bound, bounds.get(name, bound))
                    met.append(_made(bounds, {**constants, **parts.constants}))
        return met

    def common(self, other: Frontier) -> Frontier:
        """What two streams both promise, and so their union does."""
        return Frontier([met for promise in other for met in self.meet(promise)])

    # Plain data

    def to_plain(self) -> list[tuple[tuple[tuple[str, int], ...], tuple[tuple[str, Any], ...]]]:
        """Bounds and constants of each promise."""
        return [(promise.bounds, promise.constants) for promise in self]

    @staticmethod
    def from_plain(data: Sequence[Sequence[Any]]) -> Frontier:
        """The other way."""
        return Frontier([Punctuation(_pairs(bounds), _pairs(constants)) for bounds, constants in data])


def carried(promise: Punctuation, names: Mapping[str, Sequence[str]]) -> list[Punctuation]:
    """A promise under the names that its attributes and columns have after an operator.

    One on something that does not survive is dropped, which is sound: it says nothing of what is left. A column that
    survives under two names is promised under each.
    """
    parts = _Parts.of(promise)
    if not all(names.get(name) for name in (*parts.bounds, *parts.constants)):
        return []
    renamed = product(*[names[name] for name in (*parts.bounds, *parts.constants)])
    values = [*parts.bounds.values(), *parts.constants.values()]
    size = len(parts.bounds)
    made = []
    for chosen in renamed:
        pairs = list(zip(chosen, values, strict=True))
        made.append(_made(dict(pairs[:size]), dict(pairs[size:])))
    return made


def _pairs(pairs: Sequence[Sequence[Any]]) -> tuple[tuple[str, Any], ...]:
    return tuple([(name, value) for name, value in pairs])


def _made(bounds: Mapping[str, int], constants: Mapping[str, Any]) -> Punctuation:
    return Punctuation(tuple(sorted(bounds.items())), tuple(sorted(constants.items(), key=lambda pair: pair[0])))


def _punctuation(shape: Shape, vector: Bounds, key: Constants) -> Punctuation:
    return Punctuation(tuple(zip(shape.attributes, vector, strict=True)), tuple(zip(shape.columns, key, strict=True)))
