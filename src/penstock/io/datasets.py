"""An Arrow dataset as a source: files that Arrow reads and parses, some ahead, beside the query that takes them.

Of a dataset only the columns are read that a query reads, so what is wrong with values of the others is not noticed.
Rows that are put aside at the entrance, since they are late, are kept with all of their columns: for these the dataset
is read a second time, beside the first and no further than the last of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.dataset

from penstock.engines.local.opening import Item
from penstock.io.elements import LocalSource
from penstock.model.batch import Batch
from penstock.model.conform import conformed
from penstock.model.schema import Schema

BATCH_ROWS = 131_072


def dataset_source(dataset: pa.dataset.Dataset, schema: Schema) -> LocalSource:
    """The source of a dataset that has the columns of a schema."""

    def narrowed(columns: Collection[str]) -> Iterator[Item]:
        return _read(dataset, schema, [name for name in schema.names if name in columns])

    paths = tuple(dataset.files) if isinstance(dataset, pa.dataset.FileSystemDataset) else ()
    return LocalSource(schema, lambda: narrowed(schema.names), paths, narrowed=narrowed)


def _scanned(dataset: pa.dataset.Dataset, names: Sequence[str]) -> Iterator[pa.Table]:
    parts = dataset.scanner(columns=list(names), batch_size=BATCH_ROWS).to_batches()
    return (pa.Table.from_batches([part]) for part in parts if part.num_rows)


def _read(dataset: pa.dataset.Dataset, schema: Schema, names: Sequence[str]) -> Iterator[Item]:
    again, first = _Again(dataset, schema), 0
    is_whole = len(names) == len(schema)
    for part in _scanned(dataset, names):
        count = part.num_rows
        found = conformed(schema, part)
        read = Batch(schema, table=found.table, origin=None if is_whole else partial(again.batch, first, count))
        if found.failed is not None:
            yield from found.letters(part if is_whole else again.rows(first, count))
            read = read.select(~found.failed)
        if len(read):
            yield read
        first += count


class _Again:
    """All columns of some rows, which are asked for in their order; of the last ones several times."""

    def __init__(self, dataset: pa.dataset.Dataset, schema: Schema) -> None:
        self._dataset, self._schema = dataset, schema
        self._parts: Iterator[pa.Table] | None = None
        self._held = pa.schema([dataset.schema.field(name) for name in schema.names]).empty_table()
        self._first = 0

    def rows(self, first: int, count: int) -> pa.Table:
        """As they are in the dataset."""
        if self._parts is None:
            self._parts = _scanned(self._dataset, self._schema.names)
        while self._first + self._held.num_rows < first + count:
            passed = min(first - self._first, self._held.num_rows)
            self._held, self._first = self._held.slice(passed), self._first + passed
            self._held = pa.concat_tables([self._held, next(self._parts)])
        return self._held.slice(first - self._first, count)

    def batch(self, first: int, count: int) -> Batch:
        """In the schema; a value that does not fit it is null, since the row was taken without looking at it."""
        return Batch(self._schema, table=conformed(self._schema, self.rows(first, count)).table)
