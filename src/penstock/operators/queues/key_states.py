"""The states of keys whose updates are windows: the key transition graph (UpStream, section 6.2, Fig. 10).

    ENQ ── isUpdate ──> WAIT ── commit ──> READY ── end of window ──> DONE
                                            │  ▲                       ▲
                                 no isAvail ▼  │ doPromote             │
                                            IDLE ── promise ───────────┘

Serving a key takes as long as its window, so a key may wait and be served at a time. WAIT is the order of keys that the
queue was given (`wq` in the paper), READY is the queue of keys under processing (`upq`), of which the first is served
until its window ends or nothing of it is there; IDLE is the set of the latter (`il`).

The last edge is not in the paper, where a key whose window ends without a further tuple idles for good: a promise that
nothing more of the window comes ends it. That costs nothing, so it is done before anything else is served.

A key commits to one window at a time. One that has come to the head of the order while its window is not done keeps its
turn: it is the next to be served once it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

from penstock.operators.queues.queue import KeyOrder


class State(Enum):
    """Where a key is in its life."""

    ENQ = "enq"
    WAIT = "wait"
    READY = "ready"
    IDLE = "idle"
    DONE = "done"


EDGES = frozenset(
    {
        (State.ENQ, State.WAIT),
        (State.WAIT, State.WAIT),  # a newer update takes the place of one that waits
        (State.WAIT, State.READY),
        (State.READY, State.READY),
        (State.READY, State.IDLE),
        (State.READY, State.DONE),
        (State.IDLE, State.READY),
        (State.IDLE, State.DONE),
    }
)
Watch = Callable[[int, State, State], None]
"""Is told of a key and the edge that it takes."""


def _nobody(key: int, before: State, after: State) -> None:
    """Nobody watches."""


class KeyStates:
    """Which keys wait, are served, idle, and have ended."""

    def __init__(self, order: KeyOrder) -> None:
        """`order` is that of the keys that wait."""
        self.order = order
        self.ready: deque[int] = deque()
        self.idle: set[int] = set()
        self.ended: deque[int] = deque()
        """Idle keys whose windows a promise has ended."""
        self._turns: set[int] = set()
        """Keys that came to the head of the order while they were served, or idle."""
        self._due: deque[int] = deque()
        """Those of them that are done."""
        self._served: set[int] = set()
        self._held_up = 0
        """How many keys in the order are served."""
        self.watch: Watch = _nobody

    def is_served(self, key: int) -> bool:
        """Whether a window of the key is committed to and not done."""
        return key in self._served

    def waits(self, key: int) -> bool:
        """Whether an update of the key waits."""
        return key in self._turns or self.order.waits(key)

    @property
    def servable(self) -> int:
        """How many keys can be served, or are done."""
        return len(self.ready) + len(self.ended) + len(self._due) + len(self.order) - self._held_up

    # At enqueue

    def update(self, key: int, now: int) -> None:
        """`isUpdate` is true: the key waits, or goes on waiting."""
        waited = self.waits(key)
        self.watch(key, State.WAIT if waited else State.ENQ, State.WAIT)
        if key not in self._turns:
            self.order.arrive_one(key, now)
            self._held_up += not waited and key in self._served

    def promote(self, key: int) -> None:
        """`doPromote` is true: an idle key goes to the end of those that are served."""
        self.idle.remove(key)
        self.ready.append(key)
        self.watch(key, State.IDLE, State.READY)

    def end(self, key: int) -> None:
        """A promise ends the window of an idle key."""
        self.idle.remove(key)
        self.ended.append(key)

    # At dequeue

    def commit(self, now: int) -> int | None:
        """The next key that waits and has no window that is not done; None if there is none."""
        if self._due:
            key = self._due.popleft()
            self._turns.remove(key)
            return self._to_ready(key)
        while len(self.order):
            key = int(self.order.take(1, now)[0])
            if key not in self._served:
                return self._to_ready(key)
            self._turns.add(key)
            self._held_up -= 1
        return None

    def _to_ready(self, key: int) -> int:
        self.ready.append(key)
        self._served.add(key)
        self.watch(key, State.WAIT, State.READY)
        return key

    def go_on(self, *, available: bool, ended: bool) -> None:
        """The first key was served a tuple: it has more, its window has ended, or it idles."""
        key = self.ready[0]
        if available:
            self.watch(key, State.READY, State.READY)
            return
        self.ready.popleft()
        if ended:
            self._done(key, State.READY)
        else:
            self.idle.add(key)
            self.watch(key, State.READY, State.IDLE)

    def take_ended(self) -> int | None:
        """An idle key whose window has ended, which is done now."""
        if not self.ended:
            return None
        key = self.ended.popleft()
        self._done(key, State.IDLE)
        return key

    def _done(self, key: int, before: State) -> None:
        self.watch(key, before, State.DONE)
        self._served.remove(key)
        if key in self._turns:
            self._due.append(key)
        elif self.order.waits(key):
            self._held_up -= 1

    # State

    def to_plain(self) -> Any:
        """The keys of every state; the order of those that wait is the order's own."""
        sets = [sorted(self.idle), sorted(self._turns)]
        return [list(self.ready), list(self.ended), list(self._due), *sets, self.order.to_plain()]

    def from_plain(self, data: Any, version: int) -> None:
        """The same."""
        ready, ended, due, idle, turns, order = data
        self.ready, self.ended, self._due = deque(ready), deque(ended), deque(due)
        self.idle, self._turns = set(idle), set(turns)
        self._served = {*ready, *ended, *idle}
        self.order.from_plain(order, version)
        self._held_up = sum(map(self.order.waits, self._served))
