"""The parts of a micro-batch, as a task reads them: rows in their stream's schema, and those that do not fit it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter, conform_table
from penstock.model.lived_rows import LivedRows
from penstock.model.made import join_made, with_made
from penstock.model.schema import Schema
from penstock.plan.expressions import Expression

PART_ROWS = 500_000


@dataclass(frozen=True)
class Part:
    """Some rows that were read together."""

    batch: Batch
    dead: list[DeadLetter]
    read: int


@dataclass(frozen=True)
class PartReader:
    """Reads the rows of one stream."""

    schema: Schema
    has_corrupt: bool = False
    """Whether the last two columns hold why records could not be parsed, and their text."""
    lived: tuple[LivedRows, Schema] | None = None
    """Which columns tell lives, and the columns as they are read, where rows have lives of their own."""
    made: tuple[Expression, ...] = ()
    """What has been computed beside the rows; its columns come behind the stream's own."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
        """Neighbouring Arrow batches as one part of at most so many rows."""
        for table in _tables(batches):
            sound, corrupt = self._corrupt(table)
            own = sound.num_columns - 2 * len(self.made)
            batch, dead = self._conformed(sound.select(range(own)))
            if self.made:
                columns = sound.columns[own:] if len(batch) == len(sound) else None  # who is missing is not known here
                batch = join_made(batch, with_made(self.schema, [e.type for e in self.made]), columns)
            yield Part(batch, corrupt + dead, table.num_rows)

    def _conformed(self, table: pa.Table) -> tuple[Batch, list[DeadLetter]]:
        """The rows in the stream's schema, with their lives, and those that do not fit it."""
        if self.lived is None:
            return conform_table(self.schema, table)
        lives, read = self.lived
        batch, dead = conform_table(read, table)
        made, no_elements = lives.split(batch, self.schema)
        return made, dead + no_elements

    def _corrupt(self, table: pa.Table) -> tuple[pa.Table, list[DeadLetter]]:
        """The records that parsed, and those that did not as dead letters."""
        if not self.has_corrupt:
            return table, []
        texts = table.column(table.num_columns - 1)
        bad = table.filter(pc.is_valid(texts))
        said = zip(
            bad.column(bad.num_columns - 2).to_pylist(), bad.column(bad.num_columns - 1).to_pylist(), strict=True
        )
        dead = [DeadLetter(reason, text) for reason, text in said]
        return table.filter(pc.is_null(texts)).select(range(table.num_columns - 2)), dead


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= PART_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)
