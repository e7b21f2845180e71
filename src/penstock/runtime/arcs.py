"""Buffers and arcs: what an operator has given, held once for all who take it (Stream Mill, sections 2 and 3).

An operator's output goes into one buffer. An arc is a head on that buffer: the place up to which one consumer has taken
it, with the bound that was promised up to there. An element is held until the last head has passed it, so that it costs
the same for one consumer and for fifty. A result is taken by whoever asks for it, and so is the end of an arc as well:
its *outlet*.

An arc into a *conflate* (`operators.queues.conflate`) has a queue of its own: what was given is taken up at once, and
waits there until the consumer has time. The queue is kept with the operator's state, so that a snapshot has it.

A query that joins a graph at work has not seen what came before. Its outlet says from which time on its results are
complete, and gives none that start before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, last_bound
from penstock.model.interleaved import Interleaved
from penstock.model.time import MIN_TICK
from penstock.operators.queues.conflate import ConflateOperator
from penstock.plan.useful import EVERY, Useful
from penstock.runtime.pacing import Pacing
from penstock.runtime.sampling import Trace, Waits

if TYPE_CHECKING:
    from penstock.runtime.graph_node import GraphNode

Given = Batch | Punctuation | Interleaved
"""What goes from operator to operator."""
Result = Batch | Punctuation
"""What is taken from an outlet."""


def size_of(element: Given) -> int:
    """How many rows an element has."""
    if isinstance(element, Batch):
        return len(element)
    return element.size if isinstance(element, Interleaved) else 0


class Buffer:
    """The elements that somebody has not taken yet, numbered from the first that ever was."""

    __slots__ = ("elements", "start")

    def __init__(self) -> None:
        """Nothing was given yet."""
        self.elements: deque[Given] = deque()
        self.start = 0
        """The number of the first element that is held."""

    @property
    def end(self) -> int:
        """The number that the next element will have."""
        return self.start + len(self.elements)

    def forget(self, number: int) -> None:
        """Everybody has taken what is before this."""
        while self.start < number:
            self.elements.popleft()
            self.start += 1


class Arc:
    """A head on a producer's buffer; `consumer` takes it on a port, or whoever asks if it has none."""

    __slots__ = (
        "consumer", "counted", "head", "is_break", "is_told", "marked", "needed", "noticed", "peak", "peak_rows",
        "port", "producer", "register", "rows", "since", "trace", "useful", "waits",
    )  # fmt: skip

    def __init__(self, producer: GraphNode, consumer: GraphNode | None = None, port: int = 0) -> None:
        """It begins with what is given from now on."""
        self.producer, self.consumer, self.port = producer, consumer, port
        self.head = producer.buffer.end
        self.register = producer.promised
        """The linear bound that was promised up to the head."""
        self.is_told = self.register == MIN_TICK
        """Whether the consumer knows what was promised before it came."""
        self.needed: int | None = None
        """The consumer no longer needs what ends before this; None if it has not said so."""
        self.useful: Useful = EVERY
        """The bounds that the consumer can use."""
        self.is_break = False
        """Whether it is a break node: what is given waits until the scheduler comes to the part behind it."""
        self.counted = self.head
        """The number up to which `rows` counts what it has not taken."""
        self.rows = self.peak = self.peak_rows = 0
        """How many rows of these wait; how many elements, and rows, waited at most."""
        self.marked = -1
        """The number of an element that is traced; since when it waits, and by what it was caused."""
        self.since = 0.0
        self.trace: Trace | None = None
        self.noticed = -1
        """The last number that is counted or marked."""
        self.waits = Waits()
        """How long elements waited, of those that were traced; of an outlet, from the entry of their last cause."""
        producer.arcs.append(self)

    @property
    def ends_path(self) -> bool:
        """Whether its consumer is not run as the successor of its producer."""
        return self.is_break

    @property
    def unread(self) -> int:
        """How many elements it has not taken."""
        return self.producer.buffer.end - self.head

    def take(self) -> Given:
        """The next element; it is forgotten if this was the last head to pass it."""
        producer = self.producer
        buffer = producer.buffer
        elements = buffer.elements
        number = self.head
        place = number - buffer.start
        if len(elements) - place > 1:
            self.count()
        element = elements[place]
        self.head = number + 1
        if number <= self.noticed:
            if number < self.counted:
                self.rows -= size_of(element)
            if number == self.marked:
                self.arrived()
        if not place:
            arcs = producer.arcs
            if len(arcs) == 1:
                elements.popleft()
                buffer.start = number + 1
            else:
                buffer.forget(min([arc.head for arc in arcs]))
        if not isinstance(element, Batch):
            self.hear(element.said if isinstance(element, Interleaved) else (element,))
        return element

    def take_last(self) -> Given:
        """The same of the only one that it has not taken, if that was not counted or marked: there is less to do."""
        producer = self.producer
        buffer = producer.buffer
        elements = buffer.elements
        if len(producer.arcs) == 1:
            element = elements.pop()
            self.head = buffer.start = buffer.start + 1
        else:
            element = elements[-1]
            self.head = buffer.start + len(elements)
            if len(elements) == 1:
                buffer.forget(min([arc.head for arc in producer.arcs]))
        if not isinstance(element, Batch):
            self.hear(element.said if isinstance(element, Interleaved) else (element,))
        return element

    def _take_all(self) -> list[Given]:
        """All elements that it has not taken, at once."""
        producer, buffer = self.producer, self.producer.buffer
        if not self.unread:
            return []
        self.count()
        if self.marked >= 0:
            self.arrived()
        self.rows = 0
        taken = list(islice(buffer.elements, self.head - buffer.start, None))
        self.head = buffer.end
        buffer.forget(min([arc.head for arc in producer.arcs]))
        for element in taken:
            if not isinstance(element, Batch):
                self.hear(element.said if isinstance(element, Interleaved) else (element,))
        return taken

    # What is measured

    def count(self) -> None:
        """Look at what waits; each element is looked at once."""
        buffer = self.producer.buffer
        end = buffer.end
        fresh = end - max(self.counted, self.head)
        if fresh <= 0:
            return
        self.rows += sum(map(size_of, islice(reversed(buffer.elements), fresh)))
        self.counted, self.noticed = end, max(end - 1, self.noticed)
        self.peak = max(self.peak, end - self.head)
        self.peak_rows = max(self.peak_rows, self.rows)

    def mark(self, trace: Trace, now: float) -> None:
        """The next element that is given is traced, unless one of another cause waits: of one cause the last counts."""
        if self.marked < self.head or self.trace is trace:  # a mark behind the head was on a promise that went past
            self.marked = self.noticed = self.producer.buffer.end
            self.since, self.trace = now, trace

    def arrived(self) -> None:
        """What was traced is taken."""
        self._waited_since(self.since)
        if self.consumer is not None and self.trace is not None:
            self.consumer.follow(self.trace)

    def _waited_since(self, began: float) -> None:
        self.marked = -1
        self.waits.take(self.producer.meter.clocks.stopwatch() - began)

    def hear(self, said: Sequence[Punctuation]) -> None:
        """Keep the bound that was promised last."""
        bound = last_bound(said, self.producer.operator.schema.time)
        if bound is not None:
            self.register = bound

    def cut(self) -> None:
        """Take nothing any more; what only this head held is forgotten."""
        producer = self.producer
        producer.arcs.remove(self)
        buffer = producer.buffer
        buffer.forget(min([arc.head for arc in producer.arcs], default=buffer.end))


class QueuedArc(Arc):
    """An arc whose elements wait for their consumer in a queue that may pass some of them over."""

    __slots__ = ("pacing",)

    def __init__(self, producer: GraphNode, consumer: GraphNode, port: int, pacing: Pacing) -> None:
        """`pacing` says how many rows the consumer is given at a time."""
        super().__init__(producer, consumer, port)
        self.pacing = pacing

    @property
    def ends_path(self) -> bool:
        """What is in the queue goes on when the consumer has time."""
        return True

    @property
    def operator(self) -> ConflateOperator:
        """What has the queue."""
        assert self.consumer is not None
        operator = self.consumer.operator
        assert isinstance(operator, ConflateOperator)
        return operator

    def arrived(self) -> None:
        """What was traced is in the queue, which has a measure of its own: staleness."""
        self._waited_since(self.since)

    def take_up(self, now: int) -> None:
        """Put what was given into the queue."""
        assert self.consumer is not None
        for element in self._take_all():
            if isinstance(element, Interleaved):
                self.hear(element.said)
            self.consumer.count_in(element)
            self.operator.put(element, now)


class Outlet(Arc):
    """Where the results of a query are taken."""

    __slots__ = ("complete_from", "is_passed", "name")

    def __init__(self, producer: GraphNode, name: str = "", complete_from: int = MIN_TICK) -> None:
        """`complete_from`: results that start before it may lack rows that came before the query did."""
        super().__init__(producer)
        self.name, self.complete_from = name, complete_from
        self.is_passed = complete_from == MIN_TICK
        """Whether nothing before that can come any more."""

    def arrived(self) -> None:
        """A result whose last cause was traced is taken."""
        assert self.trace is not None
        self._waited_since(self.trace.entered)

    def drain(self) -> list[Result]:
        """What has come since the last time, without results that may not be complete."""
        taken = list(map(result_of, self._take_all()))
        if self.is_passed:
            return taken
        kept: list[Result] = []
        for element in taken:
            if isinstance(element, Punctuation):
                kept.append(element)
                self.is_passed = self.is_passed or self.register >= self.complete_from
            elif (found := self._complete(element)) is not None:
                kept.append(found)
        return kept

    def _complete(self, batch: Batch) -> Batch | None:
        late_enough = batch.times() >= self.complete_from
        if late_enough.all():
            return batch
        return batch.select(late_enough) if late_enough.any() else None


def result_of(element: Given) -> Result:
    """What is held for an outlet, which is given rows and punctuation one after the other."""
    assert not isinstance(element, Interleaved)
    return element.alone() if isinstance(element, Batch) else element
