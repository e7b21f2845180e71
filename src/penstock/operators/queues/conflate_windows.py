"""Conflate by windows: what waits of a key is a window, and its rows go on all together or not at all (UpStream, 6).

The queue keeps promises to itself, since they say which windows are whole. What follows of them for results, that no
window to come ends before a time, is what goes on: the aggregates above take it for that (`MarkedPlan.punctuate`).
"""

from __future__ import annotations

from typing import Any

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.interleaved import Interleaved
from penstock.model.time import MIN_TICK
from penstock.operators.operator import Outputs
from penstock.operators.queues.conflate import ConflateOperator
from penstock.operators.queues.marks import MarkedRows
from penstock.operators.queues.window_queue import WindowQueue


class ConflateWindows(ConflateOperator):
    """A queue of windows."""

    kind = "conflate windows"

    def put(self, element: Batch | Punctuation | Interleaved, now: int) -> None:
        """Something arrived; promises stay."""
        if isinstance(element, Punctuation):
            self.queue.punctuate(element, self.at(now))
            self._keep()
        else:
            super().put(element, now)

    def release(self, now: int, most: int) -> Outputs:
        """At most so many rows of windows that are committed to, and what may be promised after them."""
        if self.queue.ready(self.at(now)):
            rows = self.queue.dequeue(self.at(now), most)
            assert isinstance(rows, MarkedRows)
            self._keep()
            if len(rows) or rows.closed:
                yield rows
        bound = self._bound()
        if bound is not None and self._passed_on.advance(self.pages, bound):
            yield self.output_bound(bound)

    def _bound(self) -> int | None:
        queue: Any = self.queue
        assert isinstance(queue, WindowQueue)
        bound = queue.promised()
        return bound if bound > max(self._passed_on.last(self.pages), MIN_TICK) else None
