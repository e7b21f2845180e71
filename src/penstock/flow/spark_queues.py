"""What is told of the queues of a run on Spark, from the record of its last micro-batch."""

from __future__ import annotations

import time
from collections.abc import Sequence

from penstock.engines.spark.queue_rounds import SECOND, QueueState, queues_in
from penstock.flow.queue_progress import in_seconds
from penstock.flow.run_progress import QueueProgress
from penstock.plan.identity import Known
from penstock.plan.nodes import Conflate
from penstock.runtime.round_pacing import RoundPacing
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
    delivered = 0 if last is None else int(last.at * SECOND)
    stale = state.metered(delivered).staleness(int(time.time() * SECOND))
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
