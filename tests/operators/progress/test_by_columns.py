"""Rows of a table are judged by columns under every kind of progress: twice the rows are not twice the calls."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as pk
from penstock.model.progress import PerSource, Punctuated

SQL = "SELECT k, count(*) AS n [RANGE 1000, SLIDE 1000, WA t] FROM s GROUP BY k"


def table(rows: int) -> pa.Table:
    """All in the same few windows, each source and punctuation equally often, whatever the number of rows."""
    n = np.arange(rows)
    kinds = np.where(n % (rows // 4) == rows // 4 - 1, "p", "d")
    keys = pa.array(n % 7, pa.int64(), mask=kinds == "p")
    return pa.table({"t": n * 4000 // rows, "k": keys, "source": n % 3, "router": n % 50, "kind": kinds})


def calls(rows: int, progress: Any) -> int:
    """How many calls of functions it takes, those of C among them."""
    source = table(rows)
    if not isinstance(progress, Punctuated):
        source = source.filter(pc.equal(source["kind"], "d")).drop(["kind"])
    if not isinstance(progress, PerSource):
        source = source.drop(["source", "router"])
    query: Any = pk.Flow().stream("s", source, time="t", progress=progress).query(SQL)
    count = 0

    def seen(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        found = query.collect()
    finally:
        sys.setprofile(None)
    assert found.num_rows == 28
    return count


@pytest.mark.parametrize(
    "progress",
    [
        pk.ordered(),
        pk.bounded(50),
        pk.bounded(rows=50),
        pk.estimated("3%", rows=50_000),
        pk.punctuated("kind = 'p'"),
        pk.per_source("source"),
        pk.per_source("router", idle=30),
    ],
    ids=str,
)
def test_twice_the_rows_are_not_twice_the_calls(progress: Any) -> None:
    calls(4000, progress)  # what is done once, and kept
    assert calls(16_000, progress) < 1.2 * calls(8000, progress)
