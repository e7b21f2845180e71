"""Groups as small numbers.

Each combination of keys that is alive has a code, so that per-group numbers can sit in arrays. A group is a row of
words (`word_table`): a number, a time or a date is its own word, a text is the code that it has among the texts of its
column (`text_codes`), and whatever else there is goes by its text, nested values by bytes. Nulls of other columns are a
word of their own, once there is one. Groups by a single text are its codes.

Cost: a batch costs its rows, however many groups there are. Kept: the words and the texts, and no Python objects but a
few keys that came lately by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import rows_of, ticks_of
from penstock.model.nested import column_from_bytes, column_of, column_of_bytes
from penstock.model.schema import Schema
from penstock.operators.aggregates.chosen import Chosen, Key
from penstock.operators.aggregates.measures import Array
from penstock.operators.aggregates.text_codes import TextCodes
from penstock.operators.aggregates.word_table import UNKNOWN, WordTable

Column: TypeAlias = "pa.ChunkedArray | pa.Array"
FEW_KEYS = 64
MANY_ROWS = 4096
"""From so many on it is worth looking whether all rows have the same key."""
SAMPLED, ALL_BUT = 16, 0.9
"""Of texts one in so many are looked at, and whether they are different but for as many as these leave."""
MOST_REMEMBERED = 1 << 14
_UNFIT = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)


class GroupCodes:
    """The codes of the groups seen."""

    def __init__(self, schema: Schema, keys: Sequence[Key] = ()) -> None:
        """`schema` is that of the key columns alone."""
        self.schema = schema
        self._types = [f.type.arrow for f in schema.fields]
        self._texts = [None if is_word(t) else TextCodes(_text_type(t)) for t in self._types]
        self._alone = self._texts[0] if len(self._texts) == 1 else None
        self._are_words = bool(self._types) and all(_is_whole(t) for t in self._types)
        self._rows = WordTable(max(len(self._types), 1))
        self._lately: dict[Key, int] = {}
        if keys:
            self._fill(self._arrays(keys), len(keys))

    def __len__(self) -> int:
        """How many groups have a code."""
        return len(self._rows if self._alone is None else self._alone)

    @property
    def keys(self) -> list[Key]:
        """The groups in the order of their codes."""
        columns = self.columns(np.arange(len(self)))
        return rows_of(pa.Table.from_arrays(columns, names=self.schema.names)) if columns else [()] * len(self)

    def encode(self, columns: Sequence[Column], rows: int) -> Array:
        """The code of every row; groups that are new get one."""
        if self._alone is not None:
            return self._encode(columns, adds=True)
        return self._rows.encode_close(self._words(columns, adds=True) if columns else [np.zeros(rows, np.int64)])

    def encode_keys(self, keys: Sequence[Key]) -> Array:
        """The codes of some groups; those that are new get one. Few at a time, as of single rows, are remembered."""
        if len(keys) > FEW_KEYS:
            return self.encode(self._arrays(keys), len(keys))
        known = [self._lately.get(key) for key in keys]
        if None not in known:
            return np.array(known, np.int64)
        if len(self._lately) > MOST_REMEMBERED:
            self._lately.clear()
        if self._are_words and all(type(value) is int for key in keys for value in key):
            codes = [self._one(key) if code is None else code for key, code in zip(keys, known, strict=True)]
        else:
            codes = self.encode(self._arrays(keys), len(keys)).tolist()
        self._lately.update(zip(keys, codes, strict=True))
        return np.array(codes, np.int64)

    def add(self, keys: Sequence[Key]) -> None:
        """Groups that have no code get the next ones, in this order, which those of a batch do not."""
        if self._types:
            self._encode(self._arrays(keys), adds=True)
        else:
            self.encode([], len(keys))

    def _one(self, key: Key) -> int:
        """The code of a key that is words as it is."""
        return self._rows.encode_one(key if len(self._rows.words) == len(key) else (*key, 0))

    def find(self, keys: Sequence[Key]) -> Array:
        """The codes of some groups, -1 for one that has none."""
        if not self._types:
            return self._rows.encode([np.zeros(len(keys), np.int64)], adds=False)
        try:
            return self._encode(self._arrays(keys), adds=False)
        except _UNFIT:  # no group can have such a key
            if len(keys) == 1:
                return np.array([UNKNOWN])
            return np.concatenate([self.find([key]) for key in keys])

    def chosen(self, chosen: Chosen) -> Array:
        """The codes of the groups that are meant, ascending."""
        if chosen.key is not None:
            found = self.find([chosen.key])
            return np.asarray(found[found != UNKNOWN])
        meant = np.ones(len(self), np.bool_)
        for at, value in chosen.wanted:
            try:
                word, nulls = self._word(at, column_of([value], self.schema.fields[at].type), adds=False)
            except _UNFIT:
                return np.zeros(0, np.int64)
            meant &= (self._rows.words[at].values == word[0]) & (self._nulls(at) == (nulls is not None))
        return np.flatnonzero(meant)

    def _encode(self, columns: Sequence[Column], *, adds: bool) -> Array:
        if self._alone is not None:
            return self._word(0, columns[0], adds=adds)[0]
        return self._rows.encode(self._words(columns, adds=adds), adds=adds)

    def _words(self, columns: Sequence[Column], *, adds: bool) -> list[Array]:
        """The rows of some columns, word by word."""
        words: list[Array] = []
        missing: Array | None = None
        for at, column in enumerate(columns):
            word, nulls = self._word(at, column, adds=adds)
            words.append(word)
            if nulls is not None:
                missing = np.zeros(len(word), np.int64) if missing is None else missing
                missing |= nulls.astype(np.int64) << at
        width = len(self._types)
        if missing is not None and len(self._rows.words) == width:
            self._rows.widen()
        if len(self._rows.words) > width:
            words.append(np.zeros(len(words[0]), np.int64) if missing is None else missing)
        return words

    def _word(self, at: int, column: Column, *, adds: bool) -> tuple[Array, Array | None]:
        """The words of a column, and where it is null, if there is no word for that; None if nowhere."""
        texts = self._texts[at]
        if texts is not None:
            nested = pa.types.is_nested(column.type)
            whole = column_of_bytes(column) if nested else one_chunk(column)
            if _is_constant(whole):
                return np.full(len(whole), texts.encode(as_text(whole[:1]), adds=adds)[0]), None
            if _are_different(whole):
                return texts.encode(as_text(whole), adds=adds), None
            values, indices = _distinct(whole)
            return texts.encode(as_text(values), adds=adds)[indices], None
        if not column.null_count:
            return words_of(column), None
        return words_of(pc.fill_null(column, _zero(column.type))), _booleans(pc.is_null(column))

    def _nulls(self, at: int) -> Array:
        """Per group whether a key is null."""
        if len(self._rows.words) == len(self._types):
            return np.zeros(len(self), np.bool_)
        return np.asarray((self._rows.words[-1].values >> at) & 1 == 1)

    def columns(self, codes: Array) -> list[pa.Array]:
        """The key columns of some codes."""
        return [self._column(at, codes) for at in range(len(self._types))]

    def _column(self, at: int, codes: Array) -> pa.Array:
        arrow, texts = self._types[at], self._texts[at]
        if pa.types.is_null(arrow):
            return pa.nulls(len(codes))
        if self._alone is not None:
            return self._from_text(at, self._alone.take(codes))
        words = self._rows.words[at].values[codes]
        if texts is not None:
            return self._from_text(at, texts.take(words))
        nulls = self._nulls(at)[codes] if len(self._rows.words) > len(self._types) else None
        numbers = pa.array(words.view(np.float64) if pa.types.is_floating(arrow) else words, mask=nulls)
        return numbers.cast(pa.int32()).cast(arrow) if pa.types.is_date32(arrow) else numbers.cast(arrow)

    def _from_text(self, at: int, texts: pa.Array) -> pa.Array:
        type_ = self.schema.fields[at].type
        return column_from_bytes(texts, type_) if type_.is_nested else texts.cast(type_.arrow)

    def words(self, at: int) -> Array:
        """Per group the number that stands for a key which is no text."""
        return self._rows.words[at].values

    def keep(self, live: Array) -> GroupCodes:
        """Only the groups with these codes, renumbered in that order."""
        return GroupCodes.of(self.schema, self.columns(live), len(live))

    @staticmethod
    def of(schema: Schema, columns: Sequence[Column], groups: int) -> GroupCodes:
        """The codes of groups, no two of which are the same, in their order."""
        made = GroupCodes(schema)
        made._fill(columns, groups)
        return made

    def _fill(self, columns: Sequence[Column], groups: int) -> None:
        """Where there are none yet: groups of which no two are the same get codes in their order."""
        if self._alone is not None:
            self._alone.fill(as_text(one_chunk(columns[0])))
        elif groups:
            self._rows.fill(self._words(columns, adds=True) if columns else [np.zeros(groups, np.int64)])

    def _arrays(self, keys: Sequence[Key]) -> list[pa.Array]:
        return (
            [column_of(v, f.type) for v, f in zip(zip(*keys, strict=True), self.schema.fields, strict=True)]
            if self._types
            else []
        )

    # State

    def to_plain(self) -> Any:
        """The key columns as a table; how many groups there are, where they have no key."""
        if not self._types:
            return len(self)
        return pa.Table.from_arrays(self.columns(np.arange(len(self))), names=[str(i) for i in range(len(self._types))])

    @staticmethod
    def from_plain(schema: Schema, data: Any) -> GroupCodes:
        """The other way; before version 3 of columnar panes it was a list of groups."""
        if isinstance(data, list):
            return GroupCodes(schema, data)
        return GroupCodes.of(schema, *(([], data) if isinstance(data, int) else (data.columns, data.num_rows)))


def is_word(arrow: pa.DataType) -> bool:
    """Whether a value fits a word as it is."""
    is_number = pa.types.is_signed_integer(arrow) or pa.types.is_boolean(arrow) or pa.types.is_floating(arrow)
    return bool(is_number or pa.types.is_date32(arrow) or pa.types.is_timestamp(arrow))


def _is_whole(arrow: pa.DataType) -> bool:
    """Whether its values come by themselves as the integers that are their words."""
    return bool(pa.types.is_signed_integer(arrow) or pa.types.is_timestamp(arrow))


def words_of(column: Column) -> Array:
    """The words of a column that has no nulls; equal values have the same."""
    arrow = column.type
    if pa.types.is_timestamp(arrow):
        return ticks_of(column)
    if pa.types.is_floating(arrow):
        floats = np.asarray(column.cast(pa.float64()).to_numpy()) + 0.0  # -0.0 becomes 0.0
        floats[np.isnan(floats)] = np.nan
        return floats.view(np.int64)
    numbers = column.cast(pa.int32()) if pa.types.is_date32(arrow) else column
    return np.asarray(numbers.cast(pa.int64()).to_numpy())


def _zero(arrow: pa.DataType) -> pa.Scalar:
    if pa.types.is_floating(arrow):
        return pa.scalar(0.0, arrow)
    return pa.scalar(0, pa.int32() if pa.types.is_date32(arrow) else pa.int64()).cast(arrow)


def _booleans(values: Column) -> Array:
    return np.asarray(values if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False))


def _text_type(arrow: pa.DataType) -> pa.DataType:
    return pa.binary() if pa.types.is_nested(arrow) or pa.types.is_binary(arrow) else pa.string()


def as_text(values: pa.Array) -> pa.Array:
    """Values of which none fits a word, as text or bytes."""
    if pa.types.is_nested(values.type):
        return column_of_bytes(values)
    return values if pa.types.is_binary(values.type) else values.cast(pa.string())


def one_chunk(column: Column) -> pa.Array:
    """A column in one piece."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _is_constant(values: pa.Array) -> bool:
    """Whether all values are the same one; that a few of them are is looked at first."""
    if len(values) < MANY_ROWS or values.null_count:
        return False
    first = values[0]
    is_likely = first == values[len(values) // 2] == values[-1]
    return bool(is_likely and pc.all(pc.equal(values, first)).as_py())


def _are_different(values: pa.Array) -> bool:
    """Whether nearly all of many values are different ones: then it does not pay to find those that are not."""
    sample = values[: len(values) // SAMPLED]
    return len(values) >= MANY_ROWS and pc.count_distinct(sample, mode="all").as_py() > ALL_BUT * len(sample)


def _distinct(values: pa.Array) -> tuple[pa.Array, Array]:
    """The different values of a column, null among them, and for each row which it has."""
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    return encoded.dictionary, np.asarray(encoded.indices.to_numpy(zero_copy_only=False))
