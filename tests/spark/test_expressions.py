"""Expressions and sums at their limits mean the same in-process and in a batch on Spark."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as pk

pytestmark = pytest.mark.spark

TEXTS = ["ab", "xaxbx", "a%b", "a_b", "a\\b", "a\nb", "", "😀a😀b", "aab", None]
PATTERNS = ["%a%b%", "%a%b", "a\\\\%b", "a_b", "_%a%_b", "%😀%b", "a\\\\\\\\b", "%a%", "a%b"]


def both(spark: SparkSession, rows: list[dict[str, object]], schema: str, sql: str) -> list[list[tuple[object, ...]]]:
    """The result rows of a query in-process and on Spark, sorted."""
    results = []
    for flow, source in (
        (pk.Flow(), spark.createDataFrame(rows, schema).toArrow()),
        (pk.Flow(spark), spark.createDataFrame(rows, schema)),
    ):
        table = flow.stream("s", source, time="t").query(sql).collect()
        results.append(sorted((tuple(row.values()) for row in table.to_pylist()), key=repr))
    return results


def test_like(spark: SparkSession) -> None:
    rows: list[dict[str, object]] = [{"t": i, "x": text, "y": "%a_"} for i, text in enumerate(TEXTS)]
    items = ", ".join(f"x LIKE '{pattern}' AS l{i}" for i, pattern in enumerate(PATTERNS))
    here, there = both(spark, rows, "t bigint, x string, y string", f"SELECT t, {items}, x LIKE y AS z FROM s")
    assert here == there
    assert (1, True, False, False, False, False, False, False, True, False, False) in here  # xaxbx


def test_like_does_not_try_every_combination_of_places(spark: SparkSession) -> None:
    rows: list[dict[str, object]] = [{"t": 1, "x": "a" * 20_000}]
    here, there = both(spark, rows, "t bigint, x string", "SELECT t FROM s WHERE NOT x LIKE '%a%a%a%a%a%a%b'")
    assert here == there == [(1,)]


def test_casts_of_text(spark: SparkSession) -> None:
    whole, real = [" 7 ", "+7", "\t-07\n"], ["1d", "0x1p3", " -Infinity", ".5e1f", "NaN"]
    times = ["2026-1-1", "2026-01-01 10:00:00 Europe/Berlin", "2026-01-01T1:2", "12026-01-01", "2026-1-1 9:0:0.5 PST"]
    rows: list[dict[str, object]] = []
    for kind, texts in (("i", whole), ("d", real), ("t", times)):
        rows += [{"t": len(rows) + i, "k": kind, "x": text} for i, text in enumerate(texts)]
    sql = """SELECT t, CASE WHEN k = 'i' THEN CAST(x AS bigint) END AS i,
        CASE WHEN k = 'd' THEN CAST(x AS double) END AS d,
        CASE WHEN k = 't' THEN CAST(CAST(x AS timestamp) AS string) END AS w FROM s"""
    here, there = both(spark, rows, "t bigint, k string, x string", sql)
    assert repr(here) == repr(there)
    assert "2026-01-01 09:00:00" in {row[3] for row in here}


def test_a_time_of_day_is_refused_where_spark_would_take_todays(spark: SparkSession) -> None:
    rows = spark.createDataFrame([{"t": 1, "x": "10:00:00"}], "t bigint, x string")
    q: Any = pk.Flow(spark).stream("s", rows, time="t").query("SELECT CAST(x AS timestamp) AS y FROM s")
    assert q.collect().num_rows == 0
    (letter,) = q.dead_letters.collect()
    assert letter.reason == "The value cannot be cast to timestamp: '10:00:00'"


LIMITS = [2**62, 2**62, 2**62, 2**62, -(2**63), 2**63 - 1, -(2**63), 2**62, -(2**62), 5, None]


@pytest.mark.parametrize("lengths", ["RANGE 4, SLIDE 1", "RANGE 6, SLIDE 2", "RANGE 40, SLIDE 40"])
def test_averages_and_variances_beyond_64_bits(spark: SparkSession, lengths: str) -> None:
    rows: list[dict[str, object]] = [{"t": i // 2, "v": v} for i, v in enumerate(LIMITS)]
    sql = f"SELECT avg(v) AS a, var_pop(v) AS w, count(v) AS n [{lengths}, WA t] FROM s"
    here, there = both(spark, rows, "t bigint, v bigint", sql)
    assert [row[:3] + row[5:] for row in here] == [row[:3] + row[5:] for row in there]
    for at, tolerance in ((3, 1e-12), (4, 1e-9)):
        assert [row[at] or 0.0 for row in there] == pytest.approx([row[at] or 0.0 for row in here], rel=tolerance)


def test_a_mean_of_values_whose_sum_needs_more_than_64_bits(spark: SparkSession) -> None:
    # 4 values of 2^62 in one window: their mean is 2^62, though their sum is 2^64
    rows: list[dict[str, object]] = [{"t": t, "v": 2**62} for t in range(4)]
    here, there = both(spark, rows, "t bigint, v bigint", "SELECT avg(v) AS a [RANGE 4, SLIDE 1, WA t] FROM s")
    assert here == there
    assert {row[3] for row in there} == {float(2**62)}


@pytest.mark.parametrize("clause", ["[RANGE 4, SLIDE 1, WA t]", "[RANGE 4, SLIDE 4, WA t]"])
@pytest.mark.parametrize("beside", ["", ", max(k)", ", count(DISTINCT v)", ", count(DISTINCT k), max(k)"])
def test_sums_whose_parts_overflow_and_whose_total_does_not(spark: SparkSession, clause: str, beside: str) -> None:
    values = [2**63 - 1, 2**63 - 1, -(2**63), -(2**63), 7, 2**62, 2**62, -(2**62)]
    rows: list[dict[str, object]] = [{"t": 0, "v": v, "k": "x"} for v in values]
    here, there = both(spark, rows, "t bigint, v bigint, k string", f"SELECT sum(v) AS a{beside} {clause} FROM s")
    assert here == there
    assert {row[3] for row in there} == {sum(values)}


@pytest.mark.parametrize("clause", ["[RANGE 4, SLIDE 1, WA t]", "[RANGE 4, SLIDE 4, WA t]"])
def test_a_total_that_does_not_fit_costs_its_window_and_is_told(spark: SparkSession, clause: str) -> None:
    values = [(0, 2**62), (0, 2**62), (40, 7)]
    rows = spark.createDataFrame([{"t": t, "v": v} for t, v in values], "t bigint, v bigint")
    q: Any = pk.Flow(spark).stream("s", rows, time="t").query(f"SELECT sum(v) AS a {clause} FROM s")
    assert set(q.collect()["a"].to_pylist()) == {7}
    letters = q.dead_letters.collect()
    assert len(letters) == (4 if "SLIDE 1" in clause else 1)  # the windows that hold t = 0
    assert all("overflow" in letter.reason.lower() for letter in letters)


FIRST = "(t - INTERVAL 106000000 days - INTERVAL 772445 days - INTERVAL 4 hours)"
"""Of a row at the start of 2026, less than a minute after the first moment that 64 bits of microseconds can say."""


@pytest.mark.parametrize(
    "expression",
    [
        f"date_trunc('day', {FIRST})", f"hour(date_trunc('minute', {FIRST}))",
        f"year({FIRST})", f"day({FIRST})",
        f"hour({FIRST})", f"second({FIRST})", "substring(x, n)", "substring(x, 2, n)", "x LIKE y", "NOT x LIKE y",
        "CASE WHEN n > 0 THEN x LIKE y ELSE x LIKE 'a%' END", "x LIKE concat(x, '%')",
        "split_part(x, 'b', n)", "repeat(x, CAST(n % 100000000 AS int))", "unix_seconds(timestamp_seconds(n))",
        *[pytest.param(text, marks=pytest.mark.slow) for text in (
            f"date_trunc('quarter', {FIRST})", f"date_format({FIRST}, 'yyyy')", f"to_date({FIRST})",
            f"weekofyear({FIRST})", f"date_trunc('week', {FIRST})", "date_add(t, CAST(n % 10000000 AS int))",
            "add_months(t, CAST(n % 1000000000 AS int))", "make_date(CAST(n % 3000 AS int), 2, 29)",
            "to_timestamp(x, 'yyyy')", "CAST(x AS date)", "lpad(x, CAST(n % 1000000000 AS int), y)", "pmod(n, n - 1)",
            "round(n * 8388607, -19)", "chr(n)", "ceil(CAST(n AS double) * 1e9, 1)", "rpad(x, 99999999)",
        )],
    ],
)  # fmt: skip
def test_no_value_stops_a_job(expression: str, spark: SparkSession) -> None:
    """At the ends of time and of integers, and with patterns of which only some rows have a wrong one."""
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows: list[dict[str, object]] = [
        {"t": start, "n": 2**40, "x": "abc", "y": "a%"},
        {"t": start, "n": -(2**40), "x": "a\\b", "y": "a\\b"},
        {"t": start, "n": None, "x": None, "y": "\\"},
        {"t": start, "n": 1, "x": "%", "y": "\\%"},
    ]
    schema = "t timestamp, n bigint, x string, y string"
    found = []
    for flow, source in (
        (pk.Flow(), spark.createDataFrame(rows, schema).toArrow()),
        (pk.Flow(spark), spark.createDataFrame(rows, schema)),
    ):
        q: Any = flow.stream("s", source, time="t").query(f"SELECT n, x, y, {expression} AS z FROM s")
        values = sorted(map(repr, q.collect().to_pylist()))
        letters = q.dead_letters if flow.engine == "local" else q.dead_letters.toArrow()
        found.append((values, sorted((str(r["reason"]), str(r["row"])) for r in letters.to_pylist())))
    assert found[0] == found[1]
    assert len(found[0][0]) + len(found[0][1]) == len(rows)
