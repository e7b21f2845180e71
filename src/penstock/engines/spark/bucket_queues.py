"""The update queues of one bucket: what a micro-batch does to them, and what is told of them.

A micro-batch first notes that what went on with the one before was processed, then takes in rows, which only makes what
waits newer, and lets as many go on as the round says. What follows the queue sees these alone. Where windows wait,
their rows may go on over several micro-batches, and the aggregates keep what they have of them.

With every micro-batch a bucket tells of each queue: counts so far, what waits, what was metered of staleness, how many
keys could have gone on, and how long it took to hand on those that did. The driver has a few numbers per bucket, and no
bucket knows of another. All but the time that it took is the same when a micro-batch is done again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

import numpy as np

from penstock.engines.spark.rounds import Round
from penstock.engines.spark.wire import Packet, dump, output, pack, unpack_updates
from penstock.errors import InternalError
from penstock.model.letters import superseded_table
from penstock.operators.queues.update_queue import UpdateQueue
from penstock.operators.queues.windowed import WindowedQueue
from penstock.plan.nodes import Conflate
from penstock.runtime.arcs import QueuedArc
from penstock.runtime.stage_graph import StageGraph

QUEUES = "queues"
"""The tag under which buckets tell, and the name under which a record's state has it."""


class BucketQueues:
    """The queues of a stage, in whichever bucket is attached to its graph."""

    def __init__(self, graph: StageGraph, *, keeps_superseded: bool) -> None:
        """Of the graph of a stage; rows that are passed over are given out if they are wanted."""
        self.graph, self.keeps_superseded = graph, keeps_superseded
        self.arcs: list[QueuedArc] = list(reversed(graph.queued))
        """Those that are nearer to the sources first."""

    def begin(self, round_: Round) -> None:
        """What went on before was processed, and a micro-batch begins."""
        self.graph.clock = lambda: round_.now
        for arc in self.arcs:
            queue = queue_of(arc)
            if self.keeps_superseded and isinstance(queue, UpdateQueue):
                queue.passed = []
            if round_.delivered is not None:
                arc.operator.delivered(round_.delivered)

    def take(self, port: str, blobs: list[bytes]) -> None:
        """Rows that were brought down to the newest of each key where they came from."""
        consumer = self.graph.edges[port].consumer
        arc = next((each for each in self.arcs if consumer is not None and each.consumer is consumer[0]), None)
        if arc is None or arc.consumer is None:
            raise InternalError("Updates have come to an operator that takes rows.", where=port)
        for blob in blobs:
            batch, stands_for = unpack_updates(arc.producer.operator.schema, blob)
            arc.consumer.statistics.rows_in += int(np.sum(stands_for))
            arc.operator.put_newest(batch, stands_for, self.graph.clock())

    def release(self, round_: Round, bucket: int) -> Iterator[Packet]:
        """Let go what may, and tell of it."""
        told = {}
        for arc in self.arcs:
            assert arc.consumer is not None
            queue, began = queue_of(arc), time.perf_counter()
            each = _rows_each(arc, queue)
            waited, before = queue.ready(round_.now), _done(queue)
            most = round_.share(arc.consumer.identity, bucket)
            if most is None:
                self._release_all([arc])
            else:
                for _ in self.graph.release(arc, ceil(most * each)):
                    pass
            took = int((time.perf_counter() - began) * 1e6)
            told[arc.consumer.identity] = _told(queue, round_.now, waited, _done(queue) - before, took)
            for why, batch in (isinstance(queue, UpdateQueue) and queue.passed) or ():
                yield output("superseded", pack(superseded_table(arc.consumer.label, why, batch)))
            if isinstance(queue, UpdateQueue):
                queue.passed = None
        if told:
            yield output(QUEUES, dump((bucket, told)))

    def release_all(self) -> None:
        """Nothing more comes: everything goes on."""
        self._release_all(self.arcs)

    def _release_all(self, arcs: Sequence[QueuedArc]) -> None:
        while ready := [arc for arc in arcs if arc.operator.is_ready(self.graph.clock())]:
            for arc in ready:
                for _ in self.graph.release(arc, max(len(arc.operator.queue), 1)):
                    pass


Hosted = UpdateQueue | WindowedQueue
"""The queues that are hosted; others are refused when a query is made."""


def queue_of(arc: QueuedArc) -> Hosted:
    """The queue of an arc."""
    queue = arc.operator.queue
    if not isinstance(queue, Hosted):
        raise InternalError("This queue is not hosted on Spark.", where=queue.kind)
    return queue


def _done(queue: Hosted) -> int:
    """How many updates have gone on: rows, or windows."""
    return queue.counts.windows_closed if isinstance(queue, WindowedQueue) else queue.counts.dequeued


def _rows_each(arc: QueuedArc, queue: Hosted) -> float:
    """How many rows an update is: where windows wait, and their number was not given in rows, as many as they had."""
    plan = arc.consumer.plan if arc.consumer is not None else None
    if not isinstance(queue, WindowedQueue) or (isinstance(plan, Conflate) and plan.budget is not None):
        return 1.0
    return max(queue.counts.given / max(queue.counts.windows_closed, 1), 1.0)


def _told(queue: Hosted, now: int, waited: int, rows: int, took: int) -> dict[str, Any]:
    return {
        "counts": queue.counts.as_dict(), "waiting": len(queue), "ready": queue.ready(now),
        "staleness": queue.metered(now).to_plain(),
        "waited": waited, "rows": rows, "took": took,
    }  # fmt: skip
