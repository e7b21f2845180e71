"""The map side of the hosted plan: rows are conformed, spread over buckets and packed.

Each part of a micro-batch sends to every bucket the rows of that bucket and a summary of the progress that the whole
part shows, so that all buckets know the stream's progress exactly, in the same micro-batch, without a watermark. Dead
letters and punctuation rows go to bucket 0. Buckets go by ids that Spark spreads evenly (`buckets.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engines.spark.buckets import bucket_ids, bucket_of
from penstock.engines.spark.wire import Note, dump_note, pack, with_lives
from penstock.model.batch import Batch, Row, rows_of
from penstock.model.conform import DeadLetter, conform_table
from penstock.model.lived_rows import LivedRows
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import Expression
from penstock.plan.nodes import Source
from penstock.runtime.builder import Builder
from penstock.runtime.column_functions import column_function
from penstock.runtime.row_functions import row_function
from penstock.runtime.showing import Showing

PART_ROWS = 500_000


@dataclass(frozen=True)
class Mapper:
    """Packs the rows of one stream."""

    source: Source
    catalog: Catalog
    route: tuple[Expression, ...]
    buckets: int
    has_corrupt: bool = False
    """Whether the last two columns hold why records could not be parsed, and their text."""
    lived: tuple[LivedRows, Schema] | None = None
    """Which columns tell lives, and the columns as they are read, where rows have lives of their own."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`."""
        builder = Builder(self.catalog)
        showing = Showing(self.source, builder)
        spread = [self._values(e, builder) for e in self.route]
        for part in _parts(batches):
            table, corrupt = self._corrupt(part)
            batch, dead = self._conformed(table)
            dead = corrupt + dead
            shown = showing(batch)
            where = bucket_of([f(batch) for f in spread], len(batch), self.buckets)
            if shown.aside is not None:
                where = np.where(shown.aside, 0, where)
            # What is promised travels to every bucket, as the summary does.
            said = tuple([(each.promise.bounds, each.promise.constants, each.at) for each in shown.said])
            told = Note(shown.summary, said=said)
            yield self._packed(batch, where, told, tuple((d.reason, d.row) for d in dead), part.num_rows)

    def _conformed(self, table: pa.Table) -> tuple[Batch, list[DeadLetter]]:
        """The rows in the stream's schema, with their lives, and those that do not fit it."""
        if self.lived is None:
            return conform_table(self.source.schema, table)
        lives, read = self.lived
        batch, dead = conform_table(read, table)
        made, no_elements = lives.split(batch, self.source.schema)
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
        return table.filter(pc.is_null(texts)).select(table.column_names[:-2]), dead

    def _packed(
        self, batch: Batch, where: np.ndarray, told: Note, dead: tuple[tuple[str, str], ...], read: int
    ) -> pa.RecordBatch:
        order = np.argsort(where, kind="stable")
        rows = with_lives(batch)
        rows = rows.take(pa.array(order)) if self.buckets > 1 and len(batch) else rows
        counts = np.bincount(where, minlength=self.buckets)
        starts = np.cumsum(counts) - counts
        blobs, notes = [], []
        for bucket in range(self.buckets):
            size = int(counts[bucket])
            blobs.append(pack(rows.slice(int(starts[bucket]), size)) if size else None)
            own = replace(told, dead=dead, read=read) if bucket == 0 else told
            notes.append(dump_note(own))
        return pa.RecordBatch.from_arrays(
            [
                pa.array(bucket_ids(self.buckets), pa.int64()),
                pa.array([self.source.name] * self.buckets, pa.string()),
                pa.array(blobs, pa.binary()),
                pa.array(notes, pa.binary()),
            ],
            names=["bucket", "stream", "rows", "note"],
        )

    def _values(self, expression: Expression, builder: Builder) -> Callable[[Batch], np.ndarray]:
        """The hash of a routing expression's value for each row, the same in every process."""
        schema = self.source.schema
        by_row = row_function(expression, schema, builder.functions)
        by_column = column_function(expression, schema)

        def hashes(batch: Batch) -> np.ndarray:
            column: Any = None
            if by_column is not None and len(batch):
                try:
                    column = by_column(batch.table)
                except Exception:  # some rows have no value, or these values no columnar answer: one by one
                    column = None
            if column is None or isinstance(column, pa.Scalar):
                return hash_values([routed(row) for row in batch.rows])
            return _hash_column(column)

        def routed(row: Row) -> object:
            try:
                return by_row(row)
            except Exception:
                # Where the value is needed there is none, so no operator that goes by it ever sees the row: any bucket
                # will do, and the operator that finds no value says so.
                return None

        return hashes


def hash_values(values: Sequence[object]) -> np.ndarray:
    """A hash per value that does not depend on the process: equal values must meet in one bucket, nulls and NaN too."""
    texts = np.array(["\0" if v is None else str(v + 0.0 if isinstance(v, float) else v) for v in values], dtype=object)
    hashed: np.ndarray = pd.util.hash_array(texts, categorize=False)
    return hashed


def _hash_column(column: pa.ChunkedArray) -> np.ndarray:
    """The hashes of a column: each distinct value is hashed once."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = [row[0] for row in rows_of(pa.table({"v": encoded.dictionary}))]
    taken: np.ndarray = hash_values(values)[encoded.indices.to_numpy(zero_copy_only=False)]
    return taken


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Neighbouring Arrow batches as one table of at most so many rows."""
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


@dataclass(frozen=True)
class ControlMapper:
    """Bounds given from outside as notes for every bucket; what is none is a dead letter of the first stream."""

    buckets: int
    streams: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over lines of text."""
        for batch in batches:
            for line in batch.column(0).to_pylist():
                found = self._bound(line)
                if found is not None:
                    stream, bound = found
                    yield self._packed(stream, [Note(bound=bound)] * self.buckets)
                else:
                    letter = Note(dead=(("not a bound of a stream, in the control folder", line),), read=1)
                    yield self._packed(self.streams[0], [letter] + [Note()] * (self.buckets - 1))

    def _bound(self, line: str) -> tuple[str, int] | None:
        """Stream and bound of a line such as `{"stream": "main", "bound": 60}`."""
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or set(value) != {"stream", "bound"}:
            return None
        stream, bound = value["stream"], value["bound"]
        fits = type(bound) is int and MIN_TICK <= bound <= END_OF_TIME
        return (stream, bound) if stream in self.streams and fits else None

    def _packed(self, stream: str, notes: Sequence[Note]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                pa.array(bucket_ids(self.buckets), pa.int64()),
                pa.array([stream] * self.buckets, pa.string()),
                pa.array([None] * self.buckets, pa.binary()),
                pa.array([dump_note(n) for n in notes], pa.binary()),
            ],
            names=["bucket", "stream", "rows", "note"],
        )
