"""What is current of each key of a queue besides what waits: the row that went on last, for whoever asks.

Kept where somebody may ask (`ConflateOperator.remembers`), with the operator's state, so that a run that goes on from a
snapshot knows it too. By event time, as all that is newest; of equal times what went on later. A key that its queue
forgets is forgotten here as well. Cost: a row for each key, and a step for each row that goes on.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.model.batch import Batch, Row, rows_of, table_of
from penstock.model.values import canonical_row
from penstock.operators.queues.queue import Key, Queue


class CurrentRows:
    """The last row of each key that went on."""

    def __init__(self, queue: Queue) -> None:
        """None has."""
        self._schema = queue.schema
        self._places = [queue.schema.index(name) for name in queue.key]
        self._time = None if queue.schema.time is None else queue.schema.time_index
        self._rows: dict[Key, Row] = {}

    def __len__(self) -> int:
        """Of how many keys one is known."""
        return len(self._rows)

    def take(self, batch: Batch) -> None:
        """These go on."""
        at = self._time
        for row in batch.rows:
            key = canonical_row(tuple([row[i] for i in self._places]))
            before = self._rows.get(key)
            if before is None or at is None or row[at] >= before[at]:  # type: ignore[operator]
                self._rows[key] = row

    def read(self, key: Key) -> Row | None:
        """The row of a key."""
        return self._rows.get(canonical_row(key))

    def keep(self, queue: Queue) -> None:
        """Only keys that a queue knows."""
        self._rows = {key: row for key, row in self._rows.items() if queue.knows(key)}

    def to_plain(self) -> pa.Table:
        """The rows."""
        return table_of(self._schema, list(self._rows.values()))

    def from_plain(self, data: pa.Table) -> None:
        """The other way."""
        self.take(Batch(self._schema, rows_of(data)))
