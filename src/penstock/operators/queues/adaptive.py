"""A queue that is one of all rows while its consumer keeps up, and an update queue while it does not (UpStream, 8).

Rows wait in the order in which they came. When more wait than the consumer can take in half of the time that they may
be stale, the line is *collapsed*: of each key the newest row stays, at the place of the first that waited (IN-PLACE),
and the others are superseded. So nothing is passed over at low load, the line is short at high load, and between the
two nothing is handed over from one queue to another: rows of a key keep their order, and the last of them stays. Newest
is by event time: a row that is older than the newest of its key that has come is left out, and counted as `older`.

What a row costs is measured as rows are delivered; until it is known, and where no bound on staleness is given, a
number of rows is the limit. After a collapse the next one waits until the line is twice as long, so that it costs a few
steps per row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.model.batch import Batch
from penstock.model.schema import Schema
from penstock.operators.queues.append_queue import ANSWERS, KEY, LOCATION, SINCE, AppendQueue
from penstock.operators.queues.key_table import NONE
from penstock.operators.queues.queue import MemoryManager

LIMIT = 1000
"""So many rows may wait where nothing else is known."""
FADING = 1 / 16


class AdaptiveQueue(AppendQueue):
    """Rows in the order in which they came, as long as that goes well."""

    kind = "adaptive queue"
    keeps_order = False
    keeps_older = False

    def __init__(
        self,
        schema: Schema,
        key: tuple[str, ...],
        max_staleness: int | None = None,
        limit: int | None = None,
        memory: MemoryManager | None = None,
    ) -> None:
        """`max_staleness` in ticks of the clock; `limit` is how many rows may wait, where that does not follow."""
        super().__init__(schema, key, memory)
        self.max_staleness, self.fixed = max_staleness, limit
        self.collapses = 0
        """How often the line was collapsed."""
        self._left = 0
        self._cost: float | None = None

    @property
    def limit(self) -> int:
        """How many rows may wait before older ones are passed over."""
        if self.fixed is not None:
            return self.fixed
        if self.max_staleness is None or not self._cost:
            return LIMIT
        return max(int(self.max_staleness / 2 / self._cost), 1)

    def enqueue(self, batch: Batch, now: int) -> None:
        """Rows behind those that wait; of too many the newest of each key."""
        super().enqueue(batch, now)
        if len(self) > max(self.limit, 2 * self._left):
            self._collapse(now)
        elif len(self) <= self.limit // 2:
            self._left = 0

    def _collapse(self, now: int) -> None:
        entries = self._entries.take(len(self._entries))
        places = np.flatnonzero(entries[:, SINCE] != NONE)  # the others are older than what came before them
        keys = entries[places, KEY]
        different, first, which = np.unique(keys, return_index=True, return_inverse=True)
        last = self._occurrences.last(keys)
        last = last[np.argsort(keys[last])]
        answers = np.zeros(len(different), np.int64)
        np.add.at(answers, which, entries[places, ANSWERS])
        kept = entries[places[last]]
        kept[:, SINCE], kept[:, ANSWERS] = entries[places[first], SINCE], answers
        gone = np.setdiff1d(np.arange(len(entries)), places[last])
        self.tuples.account(now)
        self.tuples.free_many(entries[gone, KEY], entries[gone, LOCATION])
        self.counts.older += len(entries) - len(places)
        self.counts.superseded += len(places) - len(kept)
        line = np.argsort(first)
        number = self._entries.add(kept[line])
        self._tail.array[different[line]] = number + np.arange(len(line))
        self._floor.left(len(gone))
        self._left = len(kept)
        self.collapses += 1

    def delivered(self, now: int, most: int | None = None) -> None:
        """What was dequeued has been processed; what a row costs is measured by it."""
        for rows, cost in self._meter.delivered(now, most):
            self.counts.delivered += rows
            each = cost / rows
            self._cost = each if self._cost is None else self._cost + (each - self._cost) * FADING

    def to_plain(self) -> dict[str, Any]:
        """The same, and what decides when the line is collapsed next."""
        own = {"left": self._left, "cost": self._cost, "collapses": self.collapses}
        return {**super().to_plain(), "adaptive": own}

    def from_plain(self, data: Any, version: int) -> None:
        """The other way."""
        super().from_plain(data, version)
        own = data["adaptive"]
        self._left, self._cost, self.collapses = own["left"], own["cost"], own["collapses"]
