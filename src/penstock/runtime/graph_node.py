"""An operator in a query graph: its arcs, the buffer that it gives into, and what has gone through it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, last_bound
from penstock.model.interleaved import Interleaved
from penstock.model.time import MIN_TICK
from penstock.operators.operator import Operator, Output, Outputs, Rejected
from penstock.plan.node import Node
from penstock.runtime.arcs import Arc, Buffer, Given, Outlet, size_of
from penstock.runtime.sampling import FORCED, NEVER, UNIT, Clocks, Meter, Trace, stands_still

if TYPE_CHECKING:
    from penstock.runtime.ets_arcs import EtsArcs
    from penstock.runtime.installed_table import Part
    from penstock.runtime.rules import Rule


@dataclass
class Statistics:
    """What has gone through an operator."""

    rows_in: int = 0
    rows_out: int = 0
    punctuations_in: int = 0
    punctuations_out: int = 0
    failed: int = 0


@dataclass(eq=False)
class GraphNode:
    """An operator, the buffer that it gives into, and the arcs from and to it."""

    plan: Node
    operator: Operator
    identity: str
    """What its state is kept under."""
    stream: str | None = None
    statistics: Statistics = field(default_factory=Statistics)
    buffer: Buffer = field(default_factory=Buffer)
    arcs: list[Arc] = field(default_factory=list)
    """Who takes its output."""
    inputs: list[Arc] = field(default_factory=list)
    """What it takes, in the order of its ports."""
    promised: int = MIN_TICK
    """The linear bound that it gave last."""
    last_given: int = MIN_TICK
    """Results that start up to here were given already, or may not be complete; of operators that keep it."""
    keeps_last: bool = False
    how: str = ""
    """How the operator runs and why, for `explain`."""
    does: str = ""
    """What it does in words, where that is not what its plan says."""

    # What is under way

    given: Iterator[Output] | None = None
    """What came of the last element that it took, as far as it was not given yet."""
    inbox: deque[Given] = field(default_factory=deque)
    """Of an entrance: what came from outside and was not taken yet."""
    processed: int = 0
    """How many elements it has taken since control came to it."""

    # What is measured of a sample (`runtime.sampling`)

    meter: Meter = field(default_factory=lambda: Meter(Clocks()))
    due: int = NEVER
    """So many units of work until an element is timed."""
    giving: Trace | None = None
    """To what goes back that is given now, if it is traced."""

    # Its row of the state table (`runtime.executor`)

    rule: Rule = field(default=None, init=False, repr=False)  # type: ignore[assignment] # until it has a row
    part: Part = field(default=None, init=False, repr=False)  # type: ignore[assignment]
    is_woken: bool = False
    """Whether its part knows that it has something to do."""
    forward: tuple[Arc, ...] = ()
    """The arcs to its successors."""
    backward: tuple[Arc, ...] = ()
    """The same, the last one first."""
    outlets: tuple[Outlet, ...] = ()
    """Where results are taken."""
    broken: tuple[Arc, ...] = ()
    """The other arcs on which its path ends: break nodes and queues."""
    leaves: bool = False
    """Whether it has any of these."""
    ets: EtsArcs | None = None
    """By which its promises go past others (`runtime.ets_arcs`)."""
    ets_of: int = -1
    """The number of the table that those are derived from."""

    @property
    def label(self) -> str:
        """What the operator does, in words."""
        return self.does or self.plan.label

    @property
    def consumer(self) -> tuple[GraphNode, int] | None:
        """The only operator that takes its output, and on which port; None if there is none, or another taker."""
        if len(self.arcs) == 1 and (consumer := self.arcs[0].consumer) is not None:
            return consumer, self.arcs[0].port
        return None

    @property
    def follower(self) -> GraphNode | None:
        """The only operator that takes its output, if it is on the same path: no break node stands between them."""
        return self.forward[0].consumer if len(self.arcs) == len(self.forward) == 1 else None

    def go_on(self, forward: tuple[Arc, ...]) -> None:
        """These are the arcs to its successors; on all others its path ends."""
        self.forward = forward
        self.backward = forward if len(forward) < 2 else forward[::-1]
        self.leaves = len(forward) < len(self.arcs)
        known = set(forward)
        others = [arc for arc in self.arcs if arc not in known] if self.leaves else []
        self.outlets = tuple([arc for arc in others if isinstance(arc, Outlet)])
        self.broken = tuple([arc for arc in others if arc.consumer is not None])

    # What rules ask

    def has_given(self) -> bool:
        """Whether a successor has not taken all of its output."""
        return any(arc.unread for arc in self.forward)

    def has_more(self) -> bool:
        """Whether it has something to take, or to go on with."""
        return self.given is not None or bool(self.inbox) or any(arc.unread for arc in self.inputs)

    def successor(self) -> GraphNode:
        """The first successor that has not taken everything."""
        consumer = next(arc.consumer for arc in self.forward if arc.unread)
        assert consumer is not None
        return consumer

    def draw(self) -> bool:
        """Take the next element, of the input that was promised least; whether there was one."""
        if self.inbox:
            element = self.inbox.popleft()
            if self.is_traced(element):
                self.follow(Trace(self.meter.arrivals.since))
            self.given = iter(self.take_in(0, element))
            return True
        waiting = [arc for arc in self.inputs if arc.unread]
        if not waiting:
            return False
        arc = waiting[0] if len(waiting) == 1 else min(waiting, key=lambda each: each.register)
        self.given = iter(self.take_in(arc.port, arc.take()))
        return True

    def take_in(self, port: int, element: Given) -> Outputs:
        """Give the operator an element of an input."""
        statistics = self.statistics
        if isinstance(element, Batch):
            held = element._rows  # as `len` does, without a call: this is done for every element
            rows = len(element) if held is None else len(held)
            statistics.rows_in += rows
            self.due = due = self.due - 1 - (rows >> UNIT)
            if due > 0:
                return self.operator.process(port, element)
            units = 1 + (rows >> UNIT)
        elif isinstance(element, Interleaved):
            self.count_in(element)
            units = 1 + (element.size >> UNIT)
            self.due -= units
            if self.due > 0:
                return self.operator.interleave(port, element)
        else:
            statistics.punctuations_in += 1
            units = 1
            self.due -= 1
            if self.due > 0:
                return self.operator.punctuate(port, element)
        return self._measured(port, element, units)

    def _measured(self, port: int, element: Given, units: int) -> Outputs:
        """The same for an element that is timed, or traced."""
        if self.meter.taking is not None:
            self.due += FORCED
        hits = 0
        while self.due <= 0:
            self.due += self.meter.points.gap()
            hits += 1
        trace, self.meter.taking = self.meter.taking, None
        return self._observed(port, element, units, hits, trace)

    def _observed(self, port: int, element: Given, units: int, hits: int, trace: Trace | None) -> Iterator[Output]:
        clocks = self.meter.clocks
        processor = clocks.processor or stands_still
        began = processor()
        outputs = iter(self._operated(port, element))
        spent = 0.0
        while True:
            output = next(outputs, None)
            spent += processor() - began - clocks.reading
            if output is None:
                break
            if not isinstance(output, Rejected):
                self.giving = trace
            yield output
            began = processor()
        if hits:
            self.meter.take(hits, units, spent)

    def _operated(self, port: int, element: Given) -> Outputs:
        if isinstance(element, Batch):
            return self.operator.process(port, element)
        if isinstance(element, Interleaved):
            return self.operator.interleave(port, element)
        return self.operator.punctuate(port, element)

    @property
    def processor_seconds(self) -> float | None:
        """The processor time that it took, by the sample; None if it was never timed."""
        return self.meter.seconds(self.due) if self.meter.timed else None

    def come_together(self, elements: Sequence[Given], now: float) -> None:
        """These have come from outside, and wait."""
        self.inbox.extend(elements)
        self.meter.arrivals.wait(len(self.inbox), sum(map(size_of, self.inbox)), now)

    def is_traced(self, element: Given) -> bool:
        """Whether an element that comes in from outside is one of those that are traced."""
        return self.meter.arrivals.is_traced(1 + (size_of(element) >> UNIT))

    def follow(self, trace: Trace) -> None:
        """The next element that it takes is traced."""
        if self.meter.taking is None:
            self.due -= FORCED
        self.meter.taking = trace

    def measure(self, clocks: Clocks) -> None:
        """From now on a sample of what it takes is timed, and of what comes in traced."""
        self.meter = Meter(clocks)
        self.due = 1 if clocks.processor is not None else NEVER

    def count_in(self, element: Given) -> None:
        """An element of an input has come."""
        if isinstance(element, Batch):
            self.statistics.rows_in += len(element)
        elif isinstance(element, Interleaved):
            self.statistics.rows_in += element.size
            self.statistics.punctuations_in += len(element.said)
        else:
            self.statistics.punctuations_in += 1

    def give(self, element: Given) -> int:
        """Hold an element that the operator has given, for everybody who takes its output; how many are held of it."""
        if isinstance(element, Interleaved):
            self.statistics.rows_out += element.size
            if self.keeps_last:
                self._keep_last(element.batch)
            self.count_punctuation(element.said)
        elif isinstance(element, Batch):
            held = element._rows
            self.statistics.rows_out += len(element) if held is None else len(held)
            if self.keeps_last:
                self._keep_last(element)
            if self.giving is None and self.arcs:  # as `hold` does
                self.buffer.elements.append(element)
                return 1
        else:
            self.count_punctuation((element,))
        return self.hold(element)

    def _keep_last(self, batch: Batch) -> None:
        if len(batch):
            self.last_given = max(self.last_given, int(batch.times().max()))

    def count_punctuation(self, said: Sequence[Punctuation]) -> None:
        """The operator has given these."""
        self.statistics.punctuations_out += len(said)
        bound = last_bound(said, self.operator.schema.time)
        if bound is not None:
            self.promised = bound

    def hold(self, element: Given) -> int:
        """The same, uncounted. Results are held one after the other, as they are taken."""
        if not self.arcs:
            return 0
        if self.giving is not None:
            trace, self.giving = self.giving, None
            now = self.meter.clocks.stopwatch()
            for arc in self.arcs:
                arc.mark(trace, now)
        before = len(self.buffer.elements)
        if isinstance(element, Interleaved) and any(isinstance(arc, Outlet) for arc in self.arcs):
            self.buffer.elements.extend(element.elements())
        else:
            self.buffer.elements.append(element)
        return len(self.buffer.elements) - before
