"""Rows as bytes: alone and column by column they are the same bytes, and the same rows come back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Row, rows_of, table_of
from penstock.model.schema import schema_of
from penstock.operators.queues.page_pool import rounded
from penstock.operators.queues.tuples import TupleCodec
from tests.profiles import examples

EVERY = schema_of(
    [
        ("note", "string"), ("ts", "timestamp"), ("a", "tinyint"), ("b", "smallint"), ("c", "int"), ("d", "bigint"),
        ("e", "float"), ("f", "double"), ("g", "boolean"), ("h", "date"), ("i", "binary"), ("j", "decimal(9,2)"),
        ("k", "array<int>"),
    ],
    "ts",
)  # fmt: skip
INTEGERS = [8, 16, 32, 64]


def _values() -> st.SearchStrategy[Row]:
    wide = [st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for bits in INTEGERS]
    cents = st.integers(-(10**8), 10**8).map(lambda n: Decimal(n).scaleb(-2))
    dates = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
    others = [
        st.floats(width=32, allow_nan=False), st.floats(allow_nan=False), st.booleans(), dates, st.binary(max_size=40),
        cents, st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=4).map(tuple),
    ]  # fmt: skip
    columns = [st.text(max_size=30), st.integers(0, 1 << 50), *wide, *others]
    return st.tuples(*[st.one_of(st.none(), column) for column in columns])


@examples(40)
@given(rows=st.lists(_values(), min_size=1, max_size=5))
def test_rows_come_back_as_they_were(rows: list[Row]) -> None:
    codec = TupleCodec(EVERY)
    data, starts = codec.encode(table_of(EVERY, rows))
    for at, row in enumerate(rows):
        alone = codec.encode_row(row)
        together = data[starts[at] : starts[at + 1]].tobytes()
        assert len(together) == rounded(len(alone))
        assert together == alone.ljust(len(together), b"\0")
        assert codec.decode_row(memoryview(together)) == row
    assert rows_of(codec.decode(data, starts)) == rows


def test_numbers_alone_and_one_text_take_the_short_ways() -> None:
    for types in (["bigint", "double"], ["bigint", "string"], ["string", "bigint", "string"]):
        schema = schema_of([(f"c{i}", type_) for i, type_ in enumerate(types)])
        row = tuple({"bigint": -7, "double": 2.5, "string": "größe"}[type_] for type_ in types)
        codec = TupleCodec(schema)
        data, starts = codec.encode(table_of(schema, [row, row]))
        assert data[: starts[1]].tobytes() == codec.encode_row(row).ljust(int(starts[1]), b"\0")
        assert codec.decode_row(memoryview(codec.encode_row(row))) == row
        assert rows_of(codec.decode(data, starts)) == [row, row]


def test_no_rows_are_no_bytes() -> None:
    codec = TupleCodec(EVERY)
    data, starts = codec.encode(table_of(EVERY, []))
    assert len(data) == 0
    assert starts.tolist() == [0]
    assert codec.decode(data, np.array([0])).num_rows == 0
