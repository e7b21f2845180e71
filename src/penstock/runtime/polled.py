"""Sources that are asked: they give an item, say that they are idle, or that they have ended.

A source is anything with `poll()`. It never waits: if there is nothing it gives `IDLE`, and is asked again a little
later, or when another source has given something. Where it knows how far it has come although nothing comes, it may
have `promise(now)`, with the engine's clock in microseconds: the tick below which nothing more will come, or None. A
promise that is not above what was promised before says nothing, since clocks go back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from penstock.errors import SourceError

T = TypeVar("T")


class Poll(Enum):
    """What a source gives that has no item."""

    IDLE = "idle"
    END = "end"

    def __repr__(self) -> str:
        return f"pk.{self.name}"


IDLE, END = Poll.IDLE, Poll.END


@runtime_checkable
class Polled(Protocol):
    """A source that is asked."""

    def poll(self) -> Any:
        """A row, an element or punctuation; `IDLE` or `END`."""


class PolledItems(Iterator[T | Poll], Generic[T]):
    """What a source gives as items of a stream; `IDLE` where it has none."""

    def __init__(self, source: Polled, made: Callable[[Any], Iterable[T]]) -> None:
        """`made` makes items of what the source gives."""
        self._source, self._made = source, made
        self._ready: deque[T] = deque()
        self.is_open = True
        """Whether somebody reads it: two would share its items between them."""

    def close(self) -> None:
        """Nobody reads it any more."""
        self.is_open = False

    def __next__(self) -> T | Poll:
        while not self._ready:
            given = self._polled() if self.is_open else END
            if given is END:
                self.close()
                raise StopIteration
            if isinstance(given, Poll):
                return given
            self._ready.extend(self._made(given))
        return self._ready.popleft()

    def _polled(self) -> Any:
        try:
            return self._source.poll()
        except StopIteration:  # it would be taken for the end
            self.close()
            raise SourceError(
                "poll() raised StopIteration.", got=type(self._source).__name__, hint="a source that ends gives pk.END"
            ) from None

    def promise(self, now: int) -> int | None:
        """The tick below which the source will give nothing more, if it can tell."""
        promise = getattr(self._source, "promise", None)
        found: int | None = promise(now) if callable(promise) else None
        return found
