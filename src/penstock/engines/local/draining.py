"""When what waits in queues goes on: as fast as whoever is given the results comes back for more.

A run takes in and lets go in turn, in one thread. What sources have is taken in first, since that is cheap: it only
makes what waits newer. When there is nothing to take in, or it has been taken in for as long as a round takes, every
queue has a round. A source at rest waits for the consumer anyway, so after each of its items everything goes on. At the
end of the streams everything does. A run that is stopped leaves what waits where it is, and its snapshot has it.

Whoever feeds by hand says when, with `release`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.engines.local.opening import Given
from penstock.errors import StreamError
from penstock.model.batch import Batch, concat
from penstock.model.elements import is_whole
from penstock.model.time import Domain, show_span
from penstock.operators.queues.queue import Queue
from penstock.operators.queues.window_cells import WindowCounts
from penstock.runtime.arcs import QueuedArc
from penstock.runtime.polled import PolledItems
from penstock.runtime.pulling import Exhausted, OtherWork

if TYPE_CHECKING:
    from penstock.engines.local.hosting import Hosting

Out = TypeVar("Out")
MOST = 1000
"""So many items are taken in together."""
LOGGER = logging.getLogger("penstock.run")
Stopped = Callable[[], object]


class Draining(Generic[Out]):
    """The queues of one running graph."""

    def __init__(self, host: Hosting[Out]) -> None:
        """Of the graph that somebody hosts."""
        self.host = host
        self._last = 0
        """When the last round was."""

    @property
    def _ready(self) -> list[QueuedArc]:
        now = self.host.clock()
        return [arc for arc in self.host.graph.queued if arc.operator.is_ready(now)]

    def work(self) -> OtherWork:
        """Whether anything could go on now, or later although nothing comes."""
        if self._ready:
            return "now"
        return "later" if any(map(_is_timed, self.host.graph.queued)) else "none"

    def together(self, stream: str, item: Given | Exhausted) -> Given | Exhausted:
        """An item, with what came behind it while nobody had time, if all of that goes into a queue."""
        pulling = self.host._pulling
        if not isinstance(item, Batch) or not self.host.graph.queued or pulling is None:
            return item
        more = pulling.more(stream, Batch, MOST)
        self.host.taken += len(more)
        return concat(item.schema, [item, *more]) if more else item

    def after(self, stream: str | None, stopped: Stopped) -> Iterator[Out]:
        """What goes on after an item of a stream was taken in, or, without one, while there is nothing to take in."""
        if not self.host.graph.queued:
            return
        if stream is not None and self._is_at_rest(stream):
            yield from self.all(stopped)
        elif stream is None or self._is_due():
            yield from self._rounds(stopped)

    def _is_at_rest(self, stream: str) -> bool:
        reading = self.host._reading.get(stream)
        return stream.lower() not in self.host._ahead and not isinstance(reading, PolledItems)

    def _is_due(self) -> bool:
        length = min((arc.pacing.slice for arc in self.host.graph.queued), default=0)
        return not 0 <= self.host.clock() - self._last < length

    def all(self, stopped: Stopped) -> Iterator[Out]:
        """Everything that waits, unless it is stopped before."""
        while self._ready and not stopped():
            yield from self._rounds(stopped)
            if self.host._under_way is not None:
                return

    def last(self, stopped: Stopped) -> Iterator[Out]:
        """The same where a run is finished: also what is not wanted yet, or the last value of a key would be missing.

        What comes out of a queue may be put to sleep in the next, which is why it is asked again.
        """
        self._wake()
        while self._ready and not stopped():
            yield from self.all(stopped)
            if self.host._under_way is not None:
                return
            self._wake()

    def _wake(self) -> None:
        now = self.host.clock()
        with self.host._gate.alone():
            for arc in self.host.graph.queued:
                arc.operator.queue.wake(arc.operator.at(now))

    def _rounds(self, stopped: Stopped) -> Iterator[Out]:
        for arc in self._ready:
            yield from self._round(arc, stopped)
            if self.host._under_way is not None:
                return
        self._last = self.host.clock()

    def _round(self, arc: QueuedArc, stopped: Stopped) -> Iterator[Out]:
        """Let some rows of one queue go on, and measure how long their consumer took."""
        host, queue, pacing = self.host, arc.operator.queue, arc.pacing
        began, before = host.clock(), _done(queue)
        waited = queue.ready(arc.operator.at(began))
        yield from host._in_portions(partial(host.graph.release, arc, pacing.most), stopped)
        if host._under_way is not None:
            return
        now = host.clock()
        with host._gate.alone():
            arc.operator.delivered(now)
            pacing.measured(_done(queue) - before, max(now - began, 0), waited)
        if pacing.is_out_of_reach and not pacing.is_told:
            pacing.is_told = True
            LOGGER.warning("%s", out_of_reach(arc))

    def by_hand(self, most: int | None) -> None:
        """At most so many rows of each queue; everything if that is not said. What went on before is delivered."""
        if most is not None and (not is_whole(most) or most < 0):
            raise StreamError("A number of rows is expected.", where="release", got=repr(most)[:200])
        now = self.host.clock()
        for arc in self.host.graph.queued:
            arc.operator.delivered(now)
        while arcs := self._ready:
            for arc in arcs:
                for _ in self.host.graph.release(arc, max(len(arc.operator.queue), 1) if most is None else most):
                    pass
            if most is not None:
                return


def _is_timed(arc: QueuedArc) -> bool:
    queue = arc.operator.queue
    return queue.is_timed and len(queue) > 0


def _done(queue: Queue) -> int:
    """How many updates have gone on: rows, or windows."""
    return queue.counts.windows_closed if isinstance(queue.counts, WindowCounts) else queue.counts.dequeued


def out_of_reach(arc: QueuedArc) -> str:
    """What is said when the staleness that is allowed cannot be met."""
    assert arc.consumer is not None
    pacing = arc.pacing
    allowed, least = (show_span(ticks or 0, Domain.TIMESTAMP) for ticks in (pacing.max_staleness, pacing.least_bound))
    return (
        f"{arc.consumer.label}: max_staleness of {allowed} cannot be met: a row costs "
        f"{(pacing.cost or 0) / 1000:.3g} ms, and {int(pacing.longest)} keys waited at once; the least bound is {least}"
    )
