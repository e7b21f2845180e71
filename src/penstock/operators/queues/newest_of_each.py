"""Rows on their way to an update queue: of each key the newest goes, and knows how many it stands for.

What is superseded within a batch need not travel to the queue that would pass it over. As in the queue, newest is by
event time, and of equal times the row that comes later in the batch. The queue takes the rows with how many updates
each stands for, so that its counts and rates are those of all of them. Only what is older is judged by the row that
stands for others: where that is new enough, those that it superseded on the way are counted as superseded.

Cost: a sort of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.model.batch import Batch
from penstock.operators.queues.key_table import KeyTable


def newest_of_each(batch: Batch, key: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The places of the newest row of each key, ascending, and for how many rows each of them stands."""
    keys = KeyTable(batch.schema, tuple(key)).numbers(batch)
    places = np.arange(len(batch))
    order = places if batch.schema.time is None else np.lexsort((places, batch.times()))
    newest = np.zeros(int(keys.max()) + 1, np.int64)
    newest[keys[order]] = order  # of several the last is kept
    counts = np.bincount(keys)
    found = np.sort(newest)
    return found, counts[keys[found]]
