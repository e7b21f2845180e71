"""What queues of tuples have in common, whether all rows wait or the newest of each key does.

Keys have numbers, what is known of each is in columns of cells, tuples lie as bytes where the memory manager says, and
staleness is metered as it changes. A few rows are taken one by one, more of them column by column.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from penstock.errors import StreamError
from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema
from penstock.operators.queues.floor import Floor
from penstock.operators.queues.key_orders import Occurrences
from penstock.operators.queues.key_table import NONE, KeyCells, KeyTable
from penstock.operators.queues.meter import FEW, StalenessMeter
from penstock.operators.queues.paging import OnDemandPaging
from penstock.operators.queues.queue import Key, KeyOrder, MemoryManager, MemoryUsage, Queue, QueueCounts, Staleness
from penstock.operators.queues.tuples import TupleCodec
from penstock.operators.state import check_kind


class TupleQueue(Queue):
    """Rows that wait as tuples on pages."""

    def __init__(
        self, schema: Schema, key: tuple[str, ...], memory: MemoryManager | None, known: Sequence[int]
    ) -> None:
        """`known` is what columns of cells hold of a key that has just come, beside the time of its newest value."""
        super().__init__(schema, key)
        self.tuples = OnDemandPaging() if memory is None else memory
        self._codec = TupleCodec(schema)
        self._time = None if schema.time is None else schema.time_index
        self._keys = KeyTable(schema, self.key)
        self._cells = KeyCells()
        self._newest, *self._known = [self._cells.add(value) for value in (NONE, *known)]
        """Per key: the event time of the newest value that came, and what the queue knows beside it."""
        self._meter = StalenessMeter(self._cells)
        self._occurrences = Occurrences()
        self._floor = Floor()

    def enqueue(self, batch: Batch, now: int) -> None:
        """Take rows, in this order."""
        if batch.lives is not None:
            raise _lives_refused(self.kind)
        count = len(batch)
        if count == 1:
            self._enqueue_one(batch.rows[0], now)
        elif count <= FEW and not batch.columnar:
            for row in batch.rows:
                self._enqueue_one(row, now)
        elif count:
            self._enqueue_many(batch, now)

    @abstractmethod
    def _enqueue_one(self, row: Row, now: int) -> None:
        """Take one row."""

    @abstractmethod
    def _enqueue_many(self, batch: Batch, now: int) -> None:
        """Take many, by columns."""

    def _know(self, now: int) -> None:
        """There may be more keys than before."""
        self._cells.grow(len(self._keys))
        self._meter.know(len(self._keys), now)

    def staleness(self, now: int, key: Key | None = None) -> Staleness:
        """Of one key, or of all on average."""
        number = None if key is None else self._keys.find(key)
        return Staleness() if key is not None and number is None else self._meter.staleness(now, number)

    def memory(self, now: int) -> MemoryUsage:
        """What the tuples take."""
        return self.tuples.usage(now)

    def to_plain(self) -> dict[str, Any]:
        """Keys, what is known of each, and where tuples lie."""
        return {
            "keys": self._keys.to_plain(), "cells": self._cells.to_plain(len(self._keys)),
            "counts": self.counts.as_dict(), "meter": self._meter.to_plain(), "memory": part_plain(self.tuples),
        }  # fmt: skip

    def from_plain(self, data: Any, version: int) -> None:
        """The other way; memory must be of the kind that wrote it."""
        self._keys.from_plain(data["keys"])
        self._cells.from_plain(data["cells"])
        self.counts = QueueCounts(**data["counts"])
        self._meter.from_plain(data["meter"])
        self._floor.forget()
        self._take_up(self.tuples, data["memory"], "memory")

    def _take_up(self, part: KeyOrder | MemoryManager, data: Any, name: str) -> None:
        """The state of a part, which must be of the kind that wrote it."""
        kind, version, plain = data
        check_kind(part, kind, version, f"{self.kind}, {name}")
        part.from_plain(plain, version)


def part_plain(part: KeyOrder | MemoryManager) -> list[Any]:
    """The state of a part, with its kind and version."""
    return [part.kind, part.version, part.to_plain()]


def _lives_refused(kind: str) -> StreamError:
    """A queue was given rows that have lives."""
    return StreamError(
        "A queue takes updates: rows that live until the next of their key, not rows with ends of their own.",
        where=kind,
        got="a batch with lives",
        hint="put the queue before what gives them lives, or settle them first",
    )
