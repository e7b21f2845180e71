"""What a lane stands for: a function for single rows, and the books that bring it and the graph to the same state.

The compiled function of a lane keeps what changes with every row in variables of its own; the books write these to the
operators' pages and statistics, read them back, and take over wherever a row does not go the usual way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.model.batch import Batch, Row
from penstock.model.conform import DeadLetter, conform_row
from penstock.model.elements import Punctuation
from penstock.model.interrupts import let_through
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.operator import Outputs, Rejected
from penstock.operators.progress.estimates import EstimateTracker
from penstock.operators.progress.ingest import RowIngest
from penstock.operators.progress.source_state import started
from penstock.operators.progress.sources import SourcesTracker
from penstock.operators.progress.timers import TimerTracker
from penstock.operators.progress.trackers import DelayTracker, RowsTracker
from penstock.operators.relational.attempt import by_row
from penstock.operators.relational.number import NumberOperator
from penstock.operators.relational.project import ProjectOperator
from penstock.operators.relational.select import SelectOperator
from penstock.plan.nodes import Select
from penstock.runtime.sampling import Trace

if TYPE_CHECKING:
    from penstock.runtime.graph import Graph, GraphNode

Push = Callable[[Row], None]
Bury = Callable[[DeadLetter], None]


@dataclass(frozen=True)
class Lane:
    """How to push a row, and how to bring the lane and the graph to the same state."""

    push: Push
    store: Callable[[], None]
    load: Callable[[], None]
    read: Callable[[], int]
    """How many rows were pushed, as far as they are stored."""
    retire: Callable[[], None] = lambda: None
    """The graph has changed: from now on rows go to the lane that took this one's place."""


def nothing(*_: object) -> None:
    """What a lane does that has no variables."""


class Books:
    """What a lane's variables stand for in the operators' pages and statistics."""

    def __init__(
        self,
        graph: Graph,
        entrance: GraphNode,
        ingest: RowIngest,
        chain: list[GraphNode],
        consumers: list[GraphNode],
        bury: Bury,
    ) -> None:
        self.bury = bury
        self.graph, self.entrance, self.ingest, self.tracker = graph, entrance, ingest, ingest.tracker
        self.state: Any = None
        """The tracker's state, where it is more than the greatest time."""
        self.numbers = next((node for node in chain if isinstance(node.operator, NumberOperator)), None)
        self.chain, self.consumers = chain, consumers
        self.lane = Lane(nothing, nothing, nothing, lambda: 0)
        self.pushed = 0
        """How many rows were pushed, whatever became of them."""
        self.failed = dict.fromkeys(range(len(chain)), 0)
        """How many rows failed at each step since they were last counted."""

    def read(self) -> tuple[int, int, int, int, int, int, dict[Any, int]]:
        """What the lane starts from.

        The greatest time, the bound that condemns, from when on a new bound is of use, from when on rows are, the next
        row number, from which one on numbers are of use, and how far each source is.
        """
        ingest = self.ingest
        state = self.state = ingest.pages.get("progress")
        bound = max(self.tracker.bound(state), ingest.outside())
        if ingest.by_arrival and not ingest.has_ended:
            bound = MIN_TICK
        greatest = state if isinstance(self.tracker, DelayTracker) and state is not None else MIN_TICK
        heard: dict[Any, int] = {}
        if isinstance(self.tracker, SourcesTracker):
            state = self.state = started(state, self.tracker.sources)
            greatest, heard = state["newest"], state["greatest"]
        return greatest, bound, self._edge(), ingest.needed(), *self._counting(), heard

    def _counting(self) -> tuple[int, int]:
        """The next row number, and the next that is of use."""
        if self.numbers is None:
            return 0, END_OF_TIME
        operator = self.numbers.operator
        assert isinstance(operator, NumberOperator)
        number = operator.pages.get("next") or 0
        return number, max(_edge(operator), number + 1)

    def write(self, greatest: int, number: int, counters: list[int]) -> None:
        """Keep how far the stream has come, and count the rows that each step saw."""
        read, count, late, skipped, spoken, *selected = counters
        self.pushed += read
        if not count + late + skipped + spoken:
            return
        if self.numbers is not None:
            self.numbers.operator.pages.put("next", number)
        if greatest > MIN_TICK:
            self.ingest.reach(greatest)
        if isinstance(self.tracker, DelayTracker) and not self.ingest.by_arrival:
            self.ingest.pages.put("progress", greatest)
        elif isinstance(self.tracker, TimerTracker) and not self.ingest.by_arrival:
            self.state = self.tracker.observe(self.state, greatest, None)
            self.ingest.pages.put("progress", self.state)
        elif self.state is not None and not self.ingest.by_arrival:
            if isinstance(self.tracker, SourcesTracker):
                self.state["newest"] = greatest
            self.ingest.pages.put("progress", self.state)
        self.entrance.statistics.rows_in += count + late + skipped + spoken
        self.entrance.meter.lane_rows += count
        self.ingest.punctuation += spoken
        self.ingest.skipped += skipped
        self.entrance.statistics.rows_out += count
        for at, node in enumerate(self.chain):
            node.statistics.rows_in += count
            node.meter.lane_rows += count
            count = selected.pop(0) if isinstance(node.plan, Select) else count - self.failed[at]
            self.failed[at] = 0
            node.statistics.rows_out += count
        for consumer in self.consumers:
            consumer.statistics.rows_in += count
            consumer.meter.lane_rows += count

    def mend(self, row: object) -> Row | None:
        """The row with its values brought into their types; None if that cannot be done."""
        mended = conform_row(self.ingest.schema, row)
        if isinstance(mended, DeadLetter):
            self.bury(mended)
            return None
        return mended

    def condemn(self, row: Row, bound: int) -> None:
        """A late row."""
        self.graph.reject(self.entrance, self.ingest.late(Batch(self.ingest.schema, [row]), [bound]))

    def aside(self, row: Row, error: Exception | None = None) -> None:
        """A punctuation row with which something is wrong, or one that may be none: it goes through the graph."""
        if error is not None:
            let_through(error)
        self.lane.store()
        self.graph.push(str(self.entrance.stream), Batch(self.ingest.schema, [row]))
        self.lane.load()

    def step(self, time: int) -> tuple[int, list[tuple[int, int]] | None]:
        """The bound after one more row, where the last rows do not count; and these, if from now on one goes with each.

        They came one by one, and are as many as they may be.
        """
        assert isinstance(self.tracker, RowsTracker)
        self.state = self.tracker.observe(self.state, time, None)
        counted, held, recent = self.state
        return counted, recent if 0 < self.tracker.rows == held == len(recent) else None

    def count(self, time: int) -> int:
        """The greatest time that counts is now this one."""
        self.state = (time, *self.state[1:])
        return time

    def estimate(self, time: int) -> int:
        """The bound after one more row, where the delay is estimated."""
        assert isinstance(self.tracker, EstimateTracker)
        self.state = self.tracker.observe(self.state, time, None)
        return self.tracker.bound(self.state)

    def hear(self, time: int, source: object, newest: int) -> tuple[int, int]:
        """The bound after one more row of a source, and the least of all sources as far as it is known."""
        assert isinstance(self.tracker, SourcesTracker)
        self.state["newest"] = newest
        least = self.tracker.settled(self.state, time, source)
        return self.state["bound"], least

    def blame(self, row: Row, error: Exception, number: int) -> None:
        """Something failed on the way of a row: the step that fails on it says so; if none does it was not the row."""
        let_through(error)
        for at, node in enumerate(self.chain):
            if isinstance(node.operator, NumberOperator):
                row = (*row, number)
                continue
            assert isinstance(node.operator, SelectOperator | ProjectOperator)
            good, failed = by_row([row], node.operator.single)
            if failed:
                self.failed[at] += 1
                batch = Batch(node.plan.inputs[0].schema, [row])
                self.graph.reject(node, Rejected("failed", batch, (), [failed[0][1]]))
                return
            if not good:
                break
            row = good[0][1]
        raise error

    def said(self, bound: int) -> None:
        """The row was punctuation."""
        self.state = bound
        self._pass_on(bound)

    def follow(self, bound: int) -> int:
        """The row moved the bound past the next useful one: punctuation follows it. From when on is the next of use?"""
        self._pass_on(bound)
        return self._edge()

    def _edge(self) -> int:
        """The time of rows from which on a new bound is of use."""
        return _edge(self.ingest) + (self.tracker.delay if isinstance(self.tracker, DelayTracker) else 0)

    def _pass_on(self, bound: int) -> None:
        """A bound goes the way of the rows, past the same operators; their variables are not looked at on the way."""
        for punctuation in self.ingest.pass_on(bound):
            passed = [punctuation]
            self.entrance.count_punctuation(passed)
            for node in self.chain:
                node.inputs[0].hear(passed)
                node.statistics.punctuations_in += len(passed)
                passed = [each for told in passed for each in _punctuation_of(node.operator.punctuate(0, told))]
                node.count_punctuation(passed)
            last = self.chain[-1] if self.chain else self.entrance
            for each in passed:
                if self.entrance.is_traced(each):
                    last.giving = Trace(self.graph.clocks.stopwatch())
                self.graph.hand_on(last, each)

    def numbered(self) -> None:
        """The row number passed the next useful one: punctuation follows the row."""
        assert self.numbers is not None
        assert isinstance(self.numbers.operator, NumberOperator)
        self.lane.store()
        self.graph.emit(self.numbers, self.numbers.operator.pass_on())
        self.lane.load()


def _punctuation_of(outputs: Outputs) -> Iterator[Punctuation]:
    for output in outputs:
        assert isinstance(output, Punctuation)
        yield output


def _edge(operator: RowIngest | NumberOperator) -> int:
    """The next bound of an operator that is of use to its consumer."""
    told: int | None = operator.pages.get(operator.passed_on.key)
    return MIN_TICK if told is None else (told + 1) * operator.step + operator.origin
