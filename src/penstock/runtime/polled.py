"""Sources that are asked: they give an item, say that they are idle, or that they have ended.

A source is anything with `poll()`. It never waits: if there is nothing it gives `IDLE`, and is asked again a little
later, or when another source has given something. Where it knows how far it has come although nothing comes, it may
have `promise(now)`, with the engine's clock in microseconds: the tick below which nothing more will come, or None. A
promise that is not above what was promised before says nothing, since clocks go back.

A source that takes things in by itself, beside whoever asks (`Live`), is told when it is read and when no longer, and
says when it has something, so that nobody need wait until it is asked again.

One that can be gone on with (`positions.py`) has what it gives handed over with its position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from penstock.errors import SourceError
from penstock.runtime.positions import Handed, Resumable

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


@runtime_checkable
class Live(Polled, Protocol):
    """A source that takes things in from outside while it is read."""

    def begin(self, wake: Callable[[], object]) -> None:
        """It is read from now on; `wake` may be called from any thread, when there is something."""

    def halt(self) -> None:
        """Take nothing more in: what was taken in is still given, and then `END`. From any thread."""

    def close(self) -> None:
        """It is read no longer."""


class PolledItems(Iterator[T | Poll | Handed[T]], Generic[T]):
    """What a source gives as items of a stream; `IDLE` where it has none."""

    def __init__(
        self, source: Polled, made: Callable[[Any], Iterable[T]], ended: Callable[[], object] | None = None
    ) -> None:
        """`made` makes items of what the source gives; `ended` is called once when nobody reads it any more."""
        self._ended = ended
        self._source, self._made = source, made
        self._ready: deque[T | Handed[T]] = deque()
        self.is_resumable = isinstance(source, Resumable)
        """Whether it can be gone on with."""
        self.is_open = True
        """Whether somebody reads it: two would share its items between them."""
        self._live = source if isinstance(source, Live) else None
        self._has_begun = self._is_halted = False
        self.wake: Callable[[], object] = lambda: None
        """What a live source calls, from any thread, when it has something."""

    def halt(self) -> None:
        """What the source has taken in is still given, and nothing more; from any thread."""
        self._is_halted = True
        if self._live is None:
            self.is_open = False
        elif self._has_begun:
            self._live.halt()

    def close(self) -> None:
        """Nobody reads it any more; may be called from any thread."""
        was_open, self.is_open = self.is_open, False
        if was_open and self._has_begun and self._live is not None:
            self._live.close()
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()

    def __next__(self) -> T | Poll | Handed[T]:
        while not self._ready:
            given = self._asked() if self.is_open else END
            if given is END:
                self.close()
                raise StopIteration
            if isinstance(given, Poll):
                return given
        return self._ready.popleft()

    def _asked(self) -> Poll | None:
        """That it is idle, or has ended; what it gave else is ready."""
        try:
            given = self._polled()
            if isinstance(given, Poll):
                return given
            if self.is_resumable:
                self._ready.append(Handed(tuple(self._made(given)), self.position()))
            else:
                self._ready.extend(self._made(given))
        except BaseException:
            self.close()
            raise
        return None

    def _polled(self) -> Any:
        if self._live is not None and not self._has_begun:
            if self._is_halted:
                return END
            self._has_begun = True
            self._live.begin(self.wake)
            if self._is_halted:  # just then
                self._live.halt()
        try:
            return self._source.poll()
        except StopIteration:  # it would be taken for the end
            raise SourceError(
                "poll() raised StopIteration.", got=type(self._source).__name__, hint="a source that ends gives pk.END"
            ) from None
        except BaseException:
            self.close()
            raise

    def position(self) -> Any:
        """Where a source is that can be gone on with."""
        return self._source.position()  # type: ignore[attr-defined]

    def seek(self, position: Any) -> None:
        """Put it back, or forth."""
        self._source.seek(position)  # type: ignore[attr-defined]

    def promise(self, now: int) -> int | None:
        """The tick below which the source will give nothing more, if it can tell."""
        promise = getattr(self._source, "promise", None)
        found: int | None = promise(now) if callable(promise) else None
        return found
