"""Conflate: rows wait in a queue until their consumer has time for them, and promises wait behind what they cover.

Whoever hosts it decides when: `put` takes what arrives, `release` gives what is next, `delivered` says that it has been
processed. The queue decides what is next, and what of the rows it passes over (UpStream, sections 4 and 5).

Promises never come out before a row that they cover. A linear bound on the time goes on as far as no row waits that is
before it: rows of keys that were overwritten since are at or after it. Rows may come out before a promise behind which
they arrived, which takes nothing from it. Promises of other shapes, of groups or of several attributes, go on when
nothing waits, since the queue knows of its rows the times alone; a bound that says as much may make them superfluous.
Out of a queue that keeps the order in which rows came, every promise goes on once those before it have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.interleaved import Interleaved
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.operators.operator import BoundMemory, Operator, Outputs
from penstock.operators.queues.current_rows import CurrentRows
from penstock.operators.queues.queue import Key, Queue
from penstock.operators.queues.update_queue import UpdateQueue
from penstock.operators.state import check_kind

QUEUE, HELD, REACHED, CURRENT = "queue", "held", "reached", "current"
"""The pages: the queue, promises of other shapes that wait, the bound that was promised last, and what went on last."""


Held = tuple[int, Punctuation]
"""How many rows have been taken out when all are that came before a promise, and the promise."""


class ConflateOperator(Operator):
    """A queue with the promises that wait behind its rows."""

    kind = "conflate"
    remembers = False
    """Whether what went on last of each key is kept, for whoever reads the result by its key."""

    def __init__(self, schema: Schema, made: Callable[[], Queue]) -> None:
        """`made` makes the queue, empty."""
        super().__init__(schema)
        self._made = made
        self._passed_on = BoundMemory()
        self._now = MIN_TICK

    @property
    def queue(self) -> Queue:
        """What waits."""
        found: Queue | None = self.pages.get(QUEUE)
        if found is None:
            found = self._made()
            self.pages.put(QUEUE, found)
        return found

    @property
    def older(self) -> int:
        """How many rows came too late to matter."""
        return self.queue.counts.older

    def current(self, key: Key) -> Row | None:
        """The newest row of a key: the one that waits, or else the one that went on last, where that is kept."""
        waiting = self.queue.read(key)
        found: CurrentRows | None = self.pages.get(CURRENT)
        return waiting if waiting is not None or found is None else found.read(key)

    def _remember(self, batch: Batch) -> None:
        """These go on; what was kept before, also by a run that this one takes up, must not grow old."""
        found: CurrentRows | None = self.pages.get(CURRENT)
        if found is None and not self.remembers:
            return
        found = CurrentRows(self.queue) if found is None else found
        found.take(batch)
        self.pages.put(CURRENT, found)

    def at(self, now: int) -> int:
        """The time as the queue is told it, which never goes back."""
        self._now = max(self._now, now)
        return self._now

    def put(self, element: Batch | Punctuation | Interleaved, now: int) -> None:
        """Something arrived."""
        if isinstance(element, Interleaved):
            for each in element.elements():
                self.put(each, now)
        elif isinstance(element, Batch):
            if len(element):
                self.queue.enqueue(element, self.at(now))
                self._keep()
        else:
            known = self.queue.forgotten
            self.queue.punctuate(element, self.at(now))
            self._keep()
            found: CurrentRows | None = self.pages.get(CURRENT) if self.queue.forgotten > known else None
            if found is not None:
                found.keep(self.queue)
                self.pages.put(CURRENT, found)
            if self.is_on_time(element) and not self.queue.keeps_order:
                self.pages.put(REACHED, max(element.value, self._reached()))
            else:
                held: deque[Held] = self.pages.get(HELD) or deque()
                held.append((self.queue.counts.dequeued + len(self.queue), element))
                self.pages.put(HELD, held)

    def put_newest(self, batch: Batch, stands_for: np.ndarray, now: int) -> None:
        """Rows arrived at once, each the newest of so many, the others having been left behind on their way."""
        queue = self.queue
        assert isinstance(queue, UpdateQueue)
        queue.enqueue_newest(batch, stands_for, self.at(now), is_at_once=True)
        self._keep()

    def _keep(self) -> None:
        """The queue has changed in place."""
        self.pages.put(QUEUE, self.queue)

    def is_ready(self, now: int) -> bool:
        """Whether anything could come out."""
        if self.queue.ready(self.at(now)) or self._bound() is not None:
            return True
        return self._may_pass(self.pages.get(HELD))

    def release(self, now: int, most: int) -> Outputs:
        """At most so many rows, those that are next, and what may be promised after them."""
        if self.queue.ready(self.at(now)):
            batch = self.queue.dequeue(self.at(now), most)
            self._keep()
            if len(batch):
                self._remember(batch)
                yield batch
        bound = self._bound()
        if bound is not None and self._passed_on.advance(self.pages, bound):
            yield self.output_bound(bound)
        held: deque[Held] | None = self.pages.get(HELD)
        while held and self._may_pass(held):
            promise = held.popleft()[1]
            self.pages.put(HELD, held)
            if self._is_new(promise):
                yield promise

    def _is_new(self, promise: Punctuation) -> bool:
        """Whether it says more than what has gone on before; if so it is remembered."""
        if self.is_on_time(promise):
            return self._passed_on.advance(self.pages, promise.value)
        return self._passed_on.promise(self.pages, promise, self.schema.time)

    def _may_pass(self, held: deque[Held] | None) -> bool:
        """Whether nothing waits that came before the first of what is promised."""
        if not held:
            return False
        return not len(self.queue) or (self.queue.keeps_order and self.queue.counts.dequeued >= held[0][0])

    def _reached(self) -> int:
        """The bound up to which everything has come."""
        found: int | None = self.pages.get(REACHED)
        return MIN_TICK if found is None else found

    def _bound(self) -> int | None:
        """The bound that could go on now; None if it is not beyond the last one."""
        reached = self._reached()
        if reached <= self._passed_on.last(self.pages):
            return None
        earliest = self.queue.earliest()
        bound = reached if earliest is None else min(reached, earliest)
        return bound if bound > self._passed_on.last(self.pages) else None

    def delivered(self, now: int) -> None:
        """What was released has been processed."""
        self.queue.delivered(self.at(now))
        self._keep()

    def process(self, port: int, batch: Batch) -> Outputs:
        """Rows that come by without waiting."""
        yield batch

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Likewise."""
        yield punctuation

    def to_plain(self, key: str, page: Any) -> Any:
        """The queue with its kind and version; promises by their parts."""
        if key == QUEUE:
            return [page.kind, page.version, page.to_plain()]
        if key == CURRENT:
            return page.to_plain()
        return [(after, each.bounds, each.constants) for after, each in page] if key == HELD else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key == HELD:
            return deque((after, Punctuation(tuple(map(tuple, b)), tuple(map(tuple, c)))) for after, b, c in data)
        if key == CURRENT:
            found = CurrentRows(self._made())
            found.from_plain(data)
            return found
        if key != QUEUE:
            return data
        kind, own, content = data
        queue = self._made()
        check_kind(queue, kind, own, self.kind)
        queue.from_plain(content, own)
        return queue
