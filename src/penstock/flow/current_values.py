"""What is current of each key of a result: what was delivered last, for whoever asks.

Kept while a run goes on, if its result is an update stream and cannot be read from a queue (`reading_path`), which has
newer values. Of rows with lives only those that have not ended count, so that a key whose newest row was left out has
no value.
"""

from __future__ import annotations

import threading
from typing import Any

from penstock.errors import StreamError
from penstock.flow.given_keys import given_key
from penstock.model.batch import Batch, Row, present
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.plan.nodes import Node


class CurrentValues:
    """The newest delivered row of each key."""

    def __init__(self, plan: Node, where: str) -> None:
        """Of the result of a plan; nothing was delivered yet."""
        self.schema: Schema = plan.schema
        key = plan.properties.update_key
        self.key = None if key is None else tuple(name for name in self.schema.names if name in key)
        self._places = tuple(self.schema.index(name) for name in self.key or ())
        self._where = where
        self.is_kept = self.key is not None
        """Whether what is delivered is kept; not if it is read elsewhere."""
        self._rows: dict[Row, Row] = {}
        self._lock = threading.Lock()

    def take(self, batch: Batch) -> None:
        """These were delivered."""
        if not self.is_kept:
            return
        ends = [END_OF_TIME] * len(batch) if batch.lives is None else batch.lives.ends.tolist()
        at = self.schema.time_index
        with self._lock:
            for row, end in zip(batch.rows, ends, strict=True):
                own = canonical_row(tuple([row[i] for i in self._places]))
                before = self._rows.get(own)
                if end == END_OF_TIME:
                    if before is None or row[at] >= before[at]:  # type: ignore[operator]
                        self._rows[own] = row
                elif before == row:
                    del self._rows[own]

    def key_of(self, given: Any) -> Row:
        """A key as it is given by whoever asks: a value, or a tuple of them, one for each of its columns."""
        if self.key is None:
            raise StreamError(
                "The result has no update key to read it by.",
                where=self._where,
                hint="pk.conflate(query, key=…), or update_key=… where the stream is declared",
            )
        return given_key(given, self.key, self.schema, self._where)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the key, in the order of the result."""
        return self.key or ()

    def read(self, key: Row) -> dict[str, object] | None:
        """The row of a key that was delivered last, by column."""
        with self._lock:
            return self.shown(self._rows.get(canonical_row(key)))

    def shown(self, row: Row | None) -> dict[str, object] | None:
        """A row of the result by column."""
        return None if row is None else present(self.schema, row)
