"""Groups as small numbers.

Each combination of keys that is alive has a code, so that per-group numbers can sit in arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import rows_of
from penstock.model.schema import Schema

Key = tuple[Any, ...]
DENSE_CODES = 1 << 22
MAX_LOOKUP = 4
"""Looking values up is cheap while there are at most so many groups per row."""


class GroupCodes:
    """The codes of the groups seen; a plain list of keys is all there is to keep."""

    def __init__(self, schema: Schema, keys: Sequence[Key] = ()) -> None:
        """`schema` is that of the key columns alone."""
        self.schema = schema
        self.keys: list[Key] = list(keys)
        self.codes: dict[Key, int] = {key: code for code, key in enumerate(self.keys)}
        self._arrays: list[pa.Array] = []

    def __len__(self) -> int:
        """How many groups have a code."""
        return len(self.keys)

    def code(self, key: Key) -> int:
        """The code of a group, a new one if it is new."""
        code = self.codes.get(key)
        if code is None:
            code = self.codes[key] = len(self.keys)
            self.keys.append(key)
        return code

    def encode(self, columns: Sequence[pa.ChunkedArray], rows: int) -> np.ndarray:
        """The code of every row."""
        if not columns:
            self.code(())
            return np.zeros(rows, np.int64)
        if len(columns) == 1 and len(self.keys) <= MAX_LOOKUP * rows:
            return self._look_up(columns[0])
        combined, dictionaries = _combine(columns)
        sizes = [len(d) for d in dictionaries]
        space = int(np.prod(sizes, dtype=object))
        if space <= max(DENSE_CODES, 4 * rows):
            present = np.flatnonzero(np.bincount(combined, minlength=space))
            lookup = np.zeros(space, np.int64)
            lookup[present] = self._codes_of(present, dictionaries, sizes)
            codes: np.ndarray = lookup[combined]
            return codes
        present, inverse = np.unique(combined, return_inverse=True)
        return self._codes_of(present, dictionaries, sizes)[inverse]

    def _look_up(self, column: pa.ChunkedArray) -> np.ndarray:
        """By looking every value up among those known, after the new ones were made known."""
        found = pc.index_in(column, value_set=self._values()[0])
        if found.null_count:
            new = pc.unique(column.filter(pc.is_null(found)))
            for key in rows_of(pa.table([new], names=["key"])):
                self.code(key)
            found = pc.index_in(column, value_set=self._values()[0])
        return np.asarray(found.to_numpy()).astype(np.int64)

    def _codes_of(self, present: np.ndarray, dictionaries: list[pa.Array], sizes: list[int]) -> np.ndarray:
        parts = []
        rest = present
        for dictionary, size in zip(reversed(dictionaries), reversed(sizes), strict=True):
            parts.append(dictionary.take(pa.array(rest % size)))
            rest = rest // size
        table = pa.Table.from_arrays(parts[::-1], names=[str(i) for i in range(len(parts))])
        return np.fromiter((self.code(key) for key in rows_of(table)), np.int64, count=len(present))

    def columns(self, codes: np.ndarray) -> list[pa.Array]:
        """The key columns of some codes."""
        if not len(self.schema):
            return []
        taken = pa.array(codes)
        return [values.take(taken) for values in self._values()]

    def _values(self) -> list[pa.Array]:
        """The key columns of all codes in order."""
        if not self._arrays or len(self._arrays[0]) != len(self.keys):
            columns = list(zip(*self.keys, strict=True)) or [()] * len(self.schema)
            self._arrays = [_array(v, f.type.arrow) for v, f in zip(columns, self.schema.fields, strict=True)]
        return self._arrays

    def keep(self, live: np.ndarray) -> GroupCodes:
        """Only the groups with these codes, renumbered in that order."""
        return GroupCodes(self.schema, [self.keys[code] for code in live.tolist()])


def _array(values: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(arrow):
        return pa.array(values, pa.int64()).cast(arrow)
    return pa.array(values, arrow)


def _combine(columns: Sequence[pa.ChunkedArray]) -> tuple[np.ndarray, list[pa.Array]]:
    """One number per row for its combination of values, and the values of each column in the order of their numbers."""
    combined: np.ndarray | None = None
    dictionaries = []
    for column in columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        encoded = pc.dictionary_encode(array, null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        dictionaries.append(encoded.dictionary)
        indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        combined = indices if combined is None else combined * len(encoded.dictionary) + indices
    assert combined is not None
    return combined, dictionaries
