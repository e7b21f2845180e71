"""What is told of the queues of a run on Spark: by the record of its last micro-batch, and of a key by its state."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.engines.spark.queue_rounds import SECOND, QueueState, queues_in
from penstock.engines.spark.state_reading import pages_named
from penstock.flow.queue_progress import in_seconds
from penstock.flow.run_progress import QueueProgress
from penstock.model.batch import Row
from penstock.operators.queues.conflate import QUEUE, ConflateOperator
from penstock.operators.queues.queue import Queue, Staleness
from penstock.operators.queues.update_queue import UpdateQueue
from penstock.operators.state import unseal
from penstock.plan.identity import Known
from penstock.plan.nodes import Conflate
from penstock.runtime.queue_building import queue_of
from penstock.runtime.round_pacing import RoundPacing
from penstock.storage.files import Place
from penstock.storage.log import Record


def spark_queues(nodes: Sequence[Known], last: Record | None) -> tuple[QueueProgress, ...]:
    """The queues of a query, the last one first; how stale they are by the clock of whoever asks."""
    found = queues_in(last)
    return tuple(
        _progress(each, each.node, found.get(each.identity, QueueState()), last)
        for each in nodes
        if isinstance(each.node, Conflate)
    )


def _progress(known: Known, node: Conflate, state: QueueState, last: Record | None) -> QueueProgress:
    pacing = RoundPacing.after(state.pacing, node.max_staleness, node.budget)
    stale = state.metered(_delivered(last)).staleness(int(time.time() * SECOND))
    least = pacing.least_bound
    return QueueProgress(
        known.identity,
        node.label,
        node.policy,
        state.waiting,
        **state.counts.as_dict(),
        **in_seconds(stale),
        budget=state.budget,
        cost=None if pacing.cost is None else pacing.cost / SECOND,
        max_staleness=None if node.max_staleness is None else node.max_staleness / SECOND,
        least_bound=None if least is None else least / SECOND,
        is_met=pacing.is_met,
    )


def _delivered(last: Record | None) -> int:
    """When what went on was delivered: the last micro-batch has happened then."""
    return 0 if last is None else int(last.at * SECOND)


class QueueReader:
    """Reads of the last queue of a query what its state has of a key."""

    def __init__(self, spark: Any, home: Place, known: Known, last: Record | None) -> None:
        """`known` is the queue; `last` the last record."""
        assert isinstance(known.node, Conflate)
        self.spark, self.home, self.known, self.node, self.last = spark, home, known, known.node, last

    def staleness(self, key: Row) -> Mapping[str, float]:
        """How stale a key is; one that was never seen is fresh."""
        now = max(int(time.time() * SECOND), _delivered(self.last))
        for queue in self._queues():
            queue.delivered(_delivered(self.last))
            found = queue.staleness(now, key)
            if found != Staleness():
                return in_seconds(found)
        return in_seconds(Staleness())

    def newest(self, key: Row) -> tuple[Row | None, int | None]:
        """The row of a key that waits, if one does, and the time of the newest that has come; None if none has."""
        for queue in self._queues():
            time = queue.newest(key) if isinstance(queue, UpdateQueue) else None
            if time is not None:
                return queue.read(key), time
        return None, None

    def _queues(self) -> Iterator[Queue]:
        operator = ConflateOperator(self.node.schema, lambda: queue_of(self.node))
        for page in pages_named(self.spark, self.home, f"{self.known.identity}/{QUEUE}"):
            yield unseal(operator, QUEUE, page, self.node.label)


def last_queue(nodes: Sequence[Known]) -> Known | None:
    """The queue out of which a result comes, through operators of one input."""
    found = next((each for each in nodes if isinstance(each.node, Conflate)), None)
    return found if found is not None and all(len(n.node.inputs) == 1 for n in nodes[: nodes.index(found)]) else None
