"""The index of a table by itself: of many rows and of one it finds what going through the whole table finds."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from penstock.operators.joins.table_index import TableIndex, Versions

NAN = float("nan")
TYPES = {"s": pa.string(), "i": pa.int64(), "d": pa.float64()}
VALUES: dict[str, list[Any]] = {"s": ["a", "b", "", None], "i": [0, 1, 2, None], "d": [0.0, -0.0, NAN, 1.5, None]}


def same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return False
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def keys_of(rows: list[tuple[Any, ...]], kinds: str) -> list[pa.ChunkedArray]:
    return [pa.chunked_array([pa.array([row[i] for row in rows], TYPES[kind])]) for i, kind in enumerate(kinds)]


@pytest.mark.parametrize("kinds", ["", "s", "i", "d", "si", "dsi", "iii"])
@pytest.mark.parametrize("has_versions", [False, True])
def test_it_finds_what_the_whole_table_has(kinds: str, *, has_versions: bool) -> None:
    source = random.Random(kinds + str(has_versions))
    for _ in range(30):
        table, stream = (
            [tuple(source.choice(VALUES[kind]) for kind in kinds) for _ in range(source.randint(0, 30))] for _ in "ab"
        )
        starts = source.sample(range(100), len(table))
        ends = [source.choice([None, start + 5, 60]) for start in starts]
        times = [source.choice([None, *range(-5, 110)]) for _ in stream]
        versions = None
        if has_versions:
            held = pa.table({"f": pa.array(starts, pa.int64()), "t": pa.array(ends, pa.int64())})
            versions = Versions.of(held, "f", "t")
        index = TableIndex(keys_of(table, kinds), len(table), versions)
        expected = []
        for row, time in zip(stream, times, strict=True):
            met = [n for n, other in enumerate(table) if all(map(same, row, other))]
            if has_versions:
                met = [] if time is None else [n for n in met if starts[n] <= time]
                met = sorted(met, key=lambda n: starts[n])[-1:]
                met = [n for n in met if ends[n] is None or time < ends[n]]  # type: ignore[operator]
            expected.append(met)
        asked = pa.chunked_array([pa.array(times, pa.int64())]) if has_versions else None
        counts, first = index.find(keys_of(stream, kinds), asked, len(stream))
        left, right = index.pairs(counts, first)
        assert [right[left == n].tolist() for n in range(len(stream))] == expected
        assert [list(index.single(row, time)) for row, time in zip(stream, times, strict=True)] == expected
