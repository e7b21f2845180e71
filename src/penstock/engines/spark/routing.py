"""Which bucket each row goes to: by a hash of what it is routed by, the same in every process.

State lives where it was put, so a hash is never changed. There are two: that of the text of values, by which plans are
spread that are not cut, and a quicker one, which hashes integers and times as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, Row, rows_of
from penstock.model.nested import values_of
from penstock.model.schema import Schema
from penstock.model.values import canonical
from penstock.plan.distribution import Distribution
from penstock.plan.expressions import Expression
from penstock.runtime.column_functions import column_function
from penstock.runtime.row_functions import Functions, row_function

NULL = "\0"
"""What null is hashed as."""


class Router:
    """Gives every row of a batch its bucket."""

    def __init__(
        self,
        distribution: Distribution,
        schema: Schema,
        functions: Functions,
        buckets: int,
        *,
        by_text: bool = False,
    ) -> None:
        """`by_text`: values are hashed as text."""
        self.kind, self.buckets = distribution.kind, buckets
        self._hashes = [_hashes(e, schema, functions, by_text=by_text) for e in distribution.keys]

    def __call__(self, batch: Batch, here: int = 0) -> np.ndarray:
        """The bucket of each row; rows that may go anywhere go `here`."""
        if self.kind != "keys" or self.buckets == 1:
            return np.full(len(batch), here % self.buckets if self.kind == "any" else 0, np.int64)
        return bucket_of([of(batch) for of in self._hashes], len(batch), self.buckets)


def bucket_of(hashes: Iterable[np.ndarray], rows: int, buckets: int) -> np.ndarray:
    """The bucket of each row, from the hashes of its routing values."""
    total = np.zeros(rows, np.uint64)
    for values in hashes:
        total = total * np.uint64(31) + values
    return (total % np.uint64(buckets)).astype(np.int64)


def spread(table: pa.Table, where: np.ndarray, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each bucket that has some, in the order in which they came."""
    counts = np.bincount(where, minlength=buckets)
    present = np.flatnonzero(counts)
    if len(present) > 1:
        table = table.take(pa.array(np.argsort(where, kind="stable")))
    start = 0
    for bucket in present.tolist():
        size = int(counts[bucket])
        yield bucket, table.slice(start, size)
        start += size


def _hashes(
    expression: Expression, schema: Schema, functions: Functions, *, by_text: bool
) -> Callable[[Batch], np.ndarray]:
    """The hash of a routing expression's value for each row."""
    by_row = row_function(expression, schema, functions)
    by_column = column_function(expression, schema)
    arrow = pa.int64() if expression.type.name == "timestamp" else expression.type.arrow
    hash_column = _hash_texts if by_text else _hash_column

    def hashes(batch: Batch) -> np.ndarray:
        column: Any = None
        if by_column is not None and len(batch):
            try:
                column = by_column(batch.table)
            except Exception:  # some rows have no value, or these values no columnar answer: one by one
                column = None
        if column is None or isinstance(column, pa.Scalar):
            values = [routed(row) for row in batch.rows]
            if by_text or pa.types.is_nested(arrow):
                return hash_values(values)
            column = pa.array(values, arrow)
        return hash_column(column)

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
    texts = np.array([NULL if v is None else str(canonical(v)) for v in values], dtype=object)
    hashed: np.ndarray = pd.util.hash_array(texts, categorize=False)
    return hashed


def _hash_texts(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """The hashes of a column's values as text: each distinct value is hashed once."""
    if pa.types.is_nested(column.type):
        return hash_values(values_of(column))
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    taken: np.ndarray = _hash_distinct(encoded.dictionary)[encoded.indices.to_numpy(zero_copy_only=False)]
    return taken


def _hash_distinct(values: pa.Array) -> np.ndarray:
    """What `hash_values` gives, for texts without a look at each of them: they are their own text."""
    if not pa.types.is_string(values.type):
        return hash_values([row[0] for row in rows_of(pa.table({"v": values}))])
    texts = values.fill_null(NULL) if values.null_count else values
    hashed: np.ndarray = pd.util.hash_array(texts.to_numpy(zero_copy_only=False), categorize=False)
    return hashed


def _hash_column(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """The hashes of a column: of numbers and times as such, of anything else as text."""
    if pa.types.is_timestamp(column.type):
        column = pc.cast(pc.cast(column, pa.timestamp("us", column.type.tz)), pa.int64())
    if not pa.types.is_integer(column.type):
        return _hash_texts(column)
    known = column if column.null_count == 0 else pc.fill_null(column, 0)
    hashed: np.ndarray = pd.util.hash_array(np.asarray(known.to_numpy(zero_copy_only=False)).astype(np.int64))
    if column.null_count:
        hashed = np.where(np.asarray(pc.is_null(column)), np.uint64(1), hashed)
    return hashed
