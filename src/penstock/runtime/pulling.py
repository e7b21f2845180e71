"""Items of several sources as they come, so that none waits for another.

A source at rest, such as a list or a file, never blocks: it is read in the caller's own thread, an item in each turn. A
live one is read by a thread of its own, and taken when it has something; at most `ahead` of its items are read before
they are wanted. One that is polled (`polled.py`) is asked in its turn; that it is idle is told, and it is asked again
after a pause, or when another one has given something. Each source's own order is kept. Between sources it is a turn
for each, as it was declared, in which one that has nothing is passed over: so with sources at rest alone the order is
always the same. Where time is shared by weight (`shares.py`), a source whose share is used up is passed over meanwhile.

A thread that is waiting for its source when nobody wants the items any more ends when the source gives the next one.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Generic, Literal, TypeVar

from penstock.model.interrupts import let_through
from penstock.runtime.polled import IDLE, Poll, PolledItems
from penstock.runtime.shares import Shares

T = TypeVar("T")
U = TypeVar("U")
OtherWork = Literal["now", "later", "none"]
"""Whether whoever pulls has something else to do, when it has pulled everything that there is."""
LIMIT = 1024
PAUSE = 0.01
"""So many seconds pass before sources that are idle are asked again."""
TURN = 64
"""So many items are taken of a live source before another one has its turn."""
LOGGER = logging.getLogger("penstock.sources")


@dataclass(frozen=True)
class Exhausted:
    """A source has no more items, or failed."""

    error: BaseException | None = None


class Leisure(Enum):
    """There is nothing to take, and time for something else."""

    LEISURE = "leisure"


class _End:
    """What no source gives."""


_END = _End()


class _Lane(Generic[T]):
    def __init__(self, name: str, source: Iterable[T], ahead: int) -> None:
        self.name, self.source, self.ahead = name, source, ahead
        self.items: Iterator[T] | None = None
        """Of a source at rest."""
        self.ready: deque[T] = deque()
        self.done = self.stopped = False
        self.is_polled = isinstance(source, PolledItems)
        self.is_idle = False
        """Whether it was polled and had nothing."""
        self.is_woken = False
        """Whether it has said since it was last polled that it has something."""
        self.error: BaseException | None = None

    @property
    def is_ready(self) -> bool:
        """Whether something can be taken at once."""
        return bool(self.ready) or self.done or (self.items is not None and not self.is_idle)


class Pulling(Generic[T]):
    """The sources that are being read."""

    def __init__(self, turn: int = TURN) -> None:
        """Start with none; `turn` is how many items of a live source are taken in one turn."""
        self.turn = turn
        self._lanes: dict[str, _Lane[T]] = {}
        self._said: deque[tuple[str, T]] = deque()
        self._changed = threading.Condition()
        self._idle = self._halted = self._closing = self._closed = False
        self.is_done = False
        """Whether every source has ended, and this was noticed."""
        self._full = 0
        self.other_work: Callable[[], OtherWork] = lambda: "none"
        """Asked before sources are waited for: as long as there is other work now, that is told instead."""
        self.says_when_silent: Callable[[str], bool] = lambda name: False
        """Whether it matters that a live source has nothing in its turn: then it is told, as of one that is polled."""
        self.shares: Shares | None = None
        """Where time is shared: a source whose component has none left is passed over while others have something."""

    def add(self, name: str, source: Iterable[T], ahead: int | None = LIMIT) -> bool:
        """Begin to read a source, of which so many items may be read ahead; one without that is at rest.

        Whether it will be read: not if all the others have ended, or nothing more is to be read.
        """
        with self._changed:
            if self.is_done or self._halted or self._closing:
                return False
            lane = self._lanes[name] = _Lane(name, source, ahead or 1)
        if isinstance(source, Sequence):
            lane.ready.extend(source)
            lane.done = True
        elif ahead is None or lane.is_polled:
            if isinstance(source, PolledItems):
                source.wake = partial(self._woken, lane)
            lane.items = iter(source)
            self._wake()
        else:
            threading.Thread(target=self._pull, args=(lane,), name=f"penstock-source-{name}", daemon=True).start()
        return True

    def say(self, name: str, item: T) -> None:
        """Put in an item from outside; if the source is no longer read it is lost, as is its own next one."""
        self._said.append((name, item))
        self._wake()

    def drop(self, name: str) -> None:
        """Read a source no longer."""
        lane = self._lanes.pop(name, None)
        if lane is not None:
            self._stop(lane)

    def close(self) -> None:
        """Read nothing any more, and forget what was read ahead."""
        with self._changed:
            self._closing = True  # from here on none is added
        for name, lane in list(self._lanes.items()):
            if lane.items is None and lane.ready and not isinstance(lane.source, Sequence):
                LOGGER.warning("source %s: %d items that were read ahead are not taken", name, len(lane.ready))
            self.drop(name)
        self._closed = True
        self._wake()

    def halt(self, *, at_rest: bool) -> None:
        """Read live sources no further, nor, with `at_rest`, those at rest; what was read ahead still comes.

        May be called from any thread, and is heard even while every source is silent.
        """
        with self._changed:
            self._halted = True
            for lane in self._lanes.values():
                if lane.items is None:
                    lane.stopped = not lane.done
                elif isinstance(lane.source, PolledItems):  # what it has taken in by then still comes
                    lane.source.halt()
                    lane.stopped, lane.is_idle = True, False
                elif at_rest:
                    lane.items = iter(())
                    lane.stopped = True
            self._changed.notify_all()

    def wait_until_idle(self) -> None:
        """Until everything that the sources gave has been taken and the next is waited for, or nothing is read.

        Those that are polled are asked once more.
        """
        with self._changed:
            for lane in self._lanes.values():
                lane.is_idle = False
            self._changed.notify_all()
            while not self._closed and (not self._idle or self._has_something()):
                self._changed.wait()

    def _has_something(self) -> bool:
        return bool(self._said) or any(lane.is_ready for lane in self._lanes.values())

    def _stop(self, lane: _Lane[T]) -> None:
        with self._changed:
            lane.stopped = True
            self._changed.notify_all()
        if isinstance(lane.source, PolledItems):  # what waits for a thread of its own may need the lock meanwhile
            lane.source.close()

    def __iter__(self) -> Iterator[tuple[str, T | Exhausted]]:
        """Every item, with the name of its source, and at last that the source is exhausted."""
        for name, item in self.turns():
            if not isinstance(item, Leisure | Poll):
                yield name, item

    def turns(self) -> Iterator[tuple[str, T | Exhausted | Leisure | Poll]]:
        """The same, whenever one has nothing that it is idle, and, without a name, leisure for other work."""
        while not self._has_ended():
            found, passed = False, []
            for lane in list(self._lanes.values()):
                if self._said:
                    yield from self._heard()
                if self.shares is not None and not self.shares.admits(lane.name) and lane.is_ready:
                    passed.append(lane)
                    continue
                if lane.items is not None:
                    lane.is_woken = False
                    item = self._at_rest(lane, lane.items)
                    with self._changed:
                        lane.is_idle = item is IDLE and not lane.is_woken and not lane.stopped
                    if not isinstance(item, _End):
                        found = found or not lane.is_idle
                        yield lane.name, item
                    continue
                is_silent = not lane.ready and not lane.done
                for item in self._turn(lane):
                    found = True
                    yield lane.name, item
                if is_silent and self.says_when_silent(lane.name):
                    yield lane.name, IDLE
            if found:
                continue
            if passed and self.shares is not None:
                self.shares.replenish()
            elif self._halted:
                self._leave_silent()
            elif self.other_work() == "now":
                yield "", Leisure.LEISURE
            else:
                self._wait()

    def more(self, name: str, kind: type[U], most: int) -> list[U]:
        """What else a live source has given, as long as it is of a kind: it is taken at once, out of turn."""
        lane = self._lanes.get(name)
        found: list[U] = []
        if lane is None or lane.items is not None or isinstance(lane.source, Sequence):
            return found
        while lane.ready and len(found) < most and not lane.stopped:
            item = lane.ready[0]
            if not isinstance(item, kind):
                break
            found.append(item)
            lane.ready.popleft()
        if found and self._full:
            self._wake()
        return found

    def _has_ended(self) -> bool:
        with self._changed:
            self.is_done = not self._lanes
            return self.is_done

    def _heard(self) -> Iterator[tuple[str, T]]:
        while self._said:
            name, item = self._said.popleft()
            if name in self._lanes:
                yield name, item

    def _turn(self, lane: _Lane[T]) -> Iterator[T | Exhausted]:
        """What a live source gives in its turn."""
        ready = lane.ready
        for _ in range(1 if isinstance(lane.source, Sequence) else self.turn):
            if not ready or (lane.stopped and not self._halted):
                break
            item = ready.popleft()
            if self._full:
                self._wake()
            yield item
        if lane.done and not ready and self._lanes.get(lane.name) is lane:
            del self._lanes[lane.name]
            if not lane.stopped or lane.error is not None:
                yield Exhausted(lane.error)

    def _at_rest(self, lane: _Lane[T], items: Iterator[T]) -> T | Exhausted | _End:
        """What a source at rest gives in its turn; nothing if it was halted."""
        try:
            item = next(items, _END)
        except Exception as error:  # handed on, as that of a live one is
            let_through(error)
            lane.error = error
            item = _END
        if not isinstance(item, _End):
            return item
        left = self._lanes.pop(lane.name, None)
        told = left is lane and (not lane.stopped or lane.error is not None)
        return Exhausted(lane.error) if told else _END

    def _leave_silent(self) -> None:
        """Once halted, live sources that have nothing left are not waited for."""
        for name, lane in list(self._lanes.items()):
            if lane.stopped and not lane.ready:
                del self._lanes[name]

    def _woken(self, lane: _Lane[T]) -> None:
        """One that is polled says that it has something; from any thread."""
        with self._changed:
            lane.is_woken, lane.is_idle = True, False
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait(self) -> None:
        """Until a source gives something."""
        with self._changed:
            self._idle = True
            if not (self._halted or self._has_something()):
                self._changed.notify_all()  # whoever waits for that
                asked = [lane for lane in self._lanes.values() if lane.is_polled or self.says_when_silent(lane.name)]
                asks = bool(asked) or self.other_work() != "none"
                self._changed.wait(PAUSE if asks else None)
            self._idle = False

    def _pull(self, lane: _Lane[T]) -> None:
        try:
            for item in lane.source:
                if lane.stopped:
                    LOGGER.warning("source %s: an item that came after the stop is not taken", lane.name)
                    return
                lane.ready.append(item)
                if self._idle or len(lane.ready) >= lane.ahead:
                    self._tell(lane)
        except BaseException as error:  # handed to whoever iterates
            lane.error = error
        finally:
            lane.done = True
            self._wake()

    def _tell(self, lane: _Lane[T]) -> None:
        with self._changed:
            self._changed.notify_all()
            self._full += 1
            while len(lane.ready) >= lane.ahead and not lane.stopped:
                self._changed.wait()
            self._full -= 1
