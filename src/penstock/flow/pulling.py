"""Elements of several sources as they come: each source is pulled by a thread of its own, so none waits for another.

A source that is a list or a tuple never blocks and needs no thread; it is read an element at a time, in turn. At most
`LIMIT` elements of a source are read ahead. A thread that is waiting for its source when nobody wants the elements any
more ends when the source gives the next one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.model.elements import Element

LIMIT = 1024
TURN = 64
"""So many elements are taken of a source before another one has its turn."""


@dataclass(frozen=True)
class Exhausted:
    """A source has no more elements, or failed."""

    error: BaseException | None = None


class _Lane:
    def __init__(self, name: str, source: Iterable[Element]) -> None:
        self.name, self.source = name, source
        self.ready: deque[Element] = deque()
        self.done = self.stopped = False
        self.error: BaseException | None = None


class Pulling:
    """The sources that are being read."""

    def __init__(self) -> None:
        """Start with none."""
        self._lanes: dict[str, _Lane] = {}
        self._changed = threading.Condition()
        self._idle = False

    def add(self, name: str, source: Iterable[Element]) -> None:
        """Begin to read a source."""
        lane = self._lanes[name] = _Lane(name, source)
        if isinstance(source, Sequence):
            lane.ready.extend(source)
            lane.done = True
        else:
            threading.Thread(target=self._pull, args=(lane,), name=f"penstock-merge-{name}", daemon=True).start()

    def drop(self, name: str) -> None:
        """Read a source no longer."""
        lane = self._lanes.pop(name, None)
        if lane is not None:
            self._stop(lane)

    def close(self) -> None:
        """Read nothing any more."""
        for name in list(self._lanes):
            self.drop(name)

    def _stop(self, lane: _Lane) -> None:
        with self._changed:
            lane.stopped = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[tuple[str, Element | Exhausted]]:
        """Every element, with the name of its source, and at last that the source is exhausted."""
        while self._lanes:
            found = False
            for lane in list(self._lanes.values()):
                for _ in range(1 if isinstance(lane.source, Sequence) else TURN):
                    if lane.stopped or not lane.ready:
                        break
                    found = True
                    yield lane.name, lane.ready.popleft()
                if lane.done and not lane.ready and not lane.stopped:
                    found = True
                    del self._lanes[lane.name]
                    yield lane.name, Exhausted(lane.error)
            if found:
                self._let_go_on()
            else:
                self._wait()

    def _let_go_on(self) -> None:
        """Wake those that had read far enough ahead."""
        with self._changed:
            self._changed.notify_all()

    def _wait(self) -> None:
        """Until a source gives something."""
        with self._changed:
            self._idle = True
            if not any(lane.ready or lane.done for lane in self._lanes.values()):
                self._changed.wait()
            self._idle = False

    def _pull(self, lane: _Lane) -> None:
        try:
            for element in lane.source:
                if lane.stopped:
                    return
                lane.ready.append(element)
                if self._idle or len(lane.ready) >= LIMIT:
                    self._tell(lane)
        except BaseException as error:  # handed to whoever iterates
            lane.error = error
        finally:
            lane.done = True
            self._let_go_on()

    def _tell(self, lane: _Lane) -> None:
        with self._changed:
            self._changed.notify_all()
            while len(lane.ready) >= LIMIT and not lane.stopped:
                self._changed.wait()
