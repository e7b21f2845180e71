"""Windows with very many panes, or very many windows: memory follows rows, and results come as they are made."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.model.batch import Batch


def query(table: pa.Table, items: str, window: str, by: str = "") -> Any:
    sql = f"SELECT {items} [{window}, WA t] FROM s {by}"
    return pk.Flow().stream("s", table, time="t").query(sql)


@pytest.mark.parametrize("items", ["sum(v) AS x", "min(v) AS x", "count(*) AS x", "avg(v) AS x, var_pop(v) AS y"])
def test_a_billion_windows_are_put_out_as_they_are_made(items: str) -> None:
    table = pa.table({"t": [0, 5], "v": [1.5, 2.5]})
    found = query(table, items, "RANGE 1000000000, SLIDE 1").elements()
    first = [e for e in itertools.islice(found, 200_000) if isinstance(e, pk.Insert)]
    assert [e.vs for e in first[:100]] == list(range(1, 101))
    values = [e.payload[3] for e in first]
    expected = {"sum": (1.5, 4.0), "min": (1.5, 1.5), "count": (1, 2), "avg": (1.5, 2.0)}[items.partition("(")[0]]
    assert values == [expected[0]] * 5 + [expected[1]] * (len(values) - 5)
    found.close()


@pytest.mark.parametrize("function", ["sum", "min", "max", "count", "var_samp"])
@pytest.mark.parametrize("grouped", [False, True])
def test_runs_of_equal_windows_are_those_of_single_ones(function: str, grouped: bool) -> None:
    """Sparse rows, so that most windows hold what the one before holds; every window is also counted by hand."""
    rng = np.random.default_rng(3)
    t, v, k = np.sort(rng.integers(0, 400, 12)), rng.integers(-5, 6, 12).astype(float), rng.integers(0, 3, 12)
    by = "GROUP BY k" if grouped else ""
    q = query(
        pa.table({"t": t, "v": v, "k": k}), f"{'k, ' if grouped else ''}{function}(v) AS x", "RANGE 90, SLIDE 2", by
    )
    got = {(r["wid"], r.get("k")): r["x"] for r in q.collect().to_pylist()}
    expected = {}
    for wid, group in itertools.product(range(-2, 260), range(3) if grouped else (None,)):
        end = 2 * wid + 2
        inside = v[(t >= end - 90) & (t < end) & ((k == group) if grouped else True)]
        if len(inside):
            answer = {
                "sum": inside.sum(), "min": inside.min(), "max": inside.max(), "count": len(inside),
                "var_samp": inside.var(ddof=1) if len(inside) > 1 else None,
            }[function]  # fmt: skip
            expected[wid, group] = answer
    assert got.keys() == expected.keys()
    assert all(got[key] == pytest.approx(expected[key], abs=1e-9) for key in got)


FLOATS = [float("inf"), float("-inf"), 1e308, -1e308, float("nan"), 0.0, 1.0, None]


@pytest.mark.parametrize("batch", ["arrow", "rows", "mixed"])
@pytest.mark.parametrize("window", ["RANGE 8, SLIDE 1", "RANGE 5, SLIDE 5", "RANGE 9, SLIDE 4"])
def test_infinities_are_data_and_nothing_is_said_on_the_terminal(batch: str, window: str) -> None:
    rng = np.random.default_rng(5)
    rows = [(t // 2, "ab"[int(rng.integers(2))], FLOATS[int(rng.integers(len(FLOATS)))]) for t in range(400)]
    schema = "t bigint, k string, v double"
    items = "sum(v) AS s, avg(v) AS a, min(v) AS l, max(v) AS g, var_pop(v) AS p, stddev_samp(v) AS d"
    q: Any = pk.Flow().stream("s", [], time="t", schema=schema).query(
        f"SELECT k, {items} [{window}, WA t] FROM s GROUP BY k"
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        execution = q.execution()
        source = q.catalog.streams["s"].schema
        push = execution.pusher("s")
        for start in range(0, len(rows), 40):
            portion = rows[start : start + 40]
            if batch == "arrow" or (batch == "mixed" and start % 80):
                table = pa.Table.from_pylist([dict(zip("tkv", r, strict=True)) for r in portion], source.arrow)
                execution.feed("s", Batch(source, table=table))
            else:
                for row in portion:
                    push(row)
            execution.take()
        execution.close()
    assert execution.counts.on_time == len(rows)
