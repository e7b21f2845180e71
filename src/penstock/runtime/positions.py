"""Sources that can be gone on with: they say how far they were read, and can be put back to it.

A source is *resumable* if it has `position()`, plain data, which says where it is after all that it has given so far,
and `seek(position)`, which is called before anything is asked of it: what was given before that position does not come
again, and what came after it does, in the same order. It may be polled (`polled.py`) or an iterable. A position travels
with what was given just before it, as `Handed`, so what is read ahead and not yet taken does not count: the state of a
graph and the positions of its streams are of the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Resumable(Protocol):
    """A source that can be gone on with."""

    def position(self) -> Any:
        """Where it is after what it has given: plain data, which the source does not change any more."""

    def seek(self, position: Any) -> None:
        """Give next what came after a position; called once at most, before anything else but `position`."""


@dataclass(frozen=True, slots=True)
class Handed(Generic[T]):
    """What a source gave at once, all of it to be taken together, and where the source is after that."""

    items: tuple[T, ...]
    position: Any


class Counted(Iterable[T]):
    """A source at rest, which gives the same things whenever it is opened: its position is how many it has given."""

    def __init__(self, open_: Callable[[], Iterator[T]]) -> None:
        """It is opened when it is read."""
        self._open = open_
        self._at = 0

    def position(self) -> int:
        """How many things it has given."""
        return self._at

    def seek(self, position: int) -> None:
        """Pass over so many."""
        self._at = position

    def __iter__(self) -> Iterator[T]:
        for at, given in enumerate(self._open()):
            if at >= self._at:
                self._at = at + 1
                yield given


class ResumableItems(Iterator[Handed[T]], Generic[T]):
    """An iterable that can be gone on with, as items of a stream."""

    def __init__(self, source: Any, begin: Callable[[], Iterator[Any]], made: Callable[[Any], Iterable[T]]) -> None:
        """`begin` starts the iteration, `made` makes items of what the source gives."""
        self._source, self._begin, self._made = source, begin, made
        self._given: Iterator[Any] | None = None

    def __next__(self) -> Handed[T]:
        if self._given is None:
            self._given = self._begin()
        given = next(self._given)
        return Handed(tuple(self._made(given)), self._source.position())

    def position(self) -> Any:
        """Where the source is."""
        return self._source.position()

    def seek(self, position: Any) -> None:
        """Put it back, or forth."""
        self._source.seek(position)
