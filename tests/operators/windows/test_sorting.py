"""Numbers that stand for values are ordered as SQL orders these, and equal where these are."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.windows.sorting import By, codes_of, in_order

MINUS_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]


@pytest.mark.parametrize(
    ("type_", "ascending"),
    [
        (pa.float64(), [[-math.inf], [-1.5], [-0.0, 0.0], [5e-324], [2.0], [math.inf], [math.nan, MINUS_NAN]]),
        (pa.int64(), [[-(2**63)], [-1], [0, 0], [2**63 - 1]]),
        (pa.string(), [[""], ["a"], ["ab"], ["b"], ["ß"], ["日本"], ["\U0001f600"]]),
        (pa.bool_(), [[False, False], [True]]),
        (pa.binary(), [[b""], [b"\x00"], [b"\x7f"], [b"\xff"]]),
        (pa.timestamp("us", "UTC"), [[-5], [0, 0], [7]]),
    ],
    ids=str,
)
@pytest.mark.parametrize("nulls", [0, 2])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_last", [False, True])
def test_codes_are_ordered_as_values_are(
    type_: pa.DataType, ascending: list[list[Any]], nulls: int, descending: bool, nulls_last: bool
) -> None:
    ranks = [rank for rank, alike in enumerate(ascending) for _ in alike]
    values = [value for alike in ascending for value in alike]
    expected = [-rank if descending else rank for rank in ranks] + [1000 if nulls_last else -1000] * nulls
    places = np.random.default_rng(7).permutation(len(expected))
    column = pa.chunked_array([pa.array([*values, *[None] * nulls], type_).take(pa.array(places))])
    found = codes_of(column, By(0, descending, nulls_last))
    wanted = np.array(expected)[places]
    assert [np.sign(a - b) for a in wanted for b in wanted] == [np.sign(int(a) - int(b)) for a in found for b in found]


def test_rows_that_tie_are_ordered_by_further_columns() -> None:
    table = pa.table({"a": [2, 1, 2, 1, 2], "b": ["x", "z", None, "y", "a"]})
    order = in_order(table, [table["a"].to_numpy()], [By(1)])
    assert table.take(pa.array(order)).to_pylist() == [
        {"a": 1, "b": "y"}, {"a": 1, "b": "z"}, {"a": 2, "b": None}, {"a": 2, "b": "a"}, {"a": 2, "b": "x"},
    ]  # fmt: skip
    assert in_order(table.slice(0, 0), [], [By(1)]).tolist() == []


@given(st.lists(st.tuples(*[st.sampled_from([0, 1, -1, 5, 2**31, 2**62, -(2**63), 2**63 - 1])] * 4), max_size=20))
def test_numbers_that_are_put_together_are_ordered_as_they_were(rows: list[tuple[int, ...]]) -> None:
    table = pa.table({"x": range(len(rows))})
    codes = [np.array([row[at] for row in rows], np.int64) for at in range(4)]
    order = in_order(table, codes, [By(0)])
    assert order.tolist() == sorted(range(len(rows)), key=lambda at: (*rows[at], at))
