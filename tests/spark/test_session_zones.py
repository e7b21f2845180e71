"""A query means the same in every session: in any time zone, with any default type of timestamps, with ANSI off.

The in-process engine, which knows of no session, is the judge. Times lie around the hours that New York skips and
repeats.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import penstock as pk
from penstock.errors import StreamError, UnsupportedError
from tests.spark.modes import session_beside

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
ZONES = ("America/New_York", "Asia/Kolkata", "Pacific/Apia")

HOURS = [dt.datetime(2026, 3, 8, 6, 30) + dt.timedelta(minutes=25 * i) for i in range(8)]
HOURS += [dt.datetime(2026, 11, 1, 4, 30) + dt.timedelta(minutes=25 * i, microseconds=i) for i in range(8)]
TEXTS = [f"{t.isoformat(sep=' ')}{zone}" for t in HOURS for zone in ("", "Z", "-05:00", " Asia/Kolkata")]
ROWS = [
    {"ts": t, "n": t.replace(tzinfo=None), "d": t.date(), "s": s, "v": i % 5}
    for i, (t, s) in enumerate(zip(HOURS * 4, TEXTS, strict=True))
]
ARROW = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("d", pa.date32()),
        ("s", pa.string()),
        ("v", pa.int32()),
    ]
)
EXPRESSIONS = (
    "SELECT ts, n, d, year(ts) AS y, month(n) AS mo, day(ts) AS da, hour(ts) AS h, minute(n) AS mi, second(ts) AS se, "
    "date_trunc('hour', ts) AS th, date_trunc('DAY', n) AS td, CAST(ts AS string) AS t, CAST(s AS timestamp) AS st, "
    "CAST(d AS timestamp) AS dt, CAST(d AS string) AS ds, ts + INTERVAL '90' MINUTE AS later, "
    "coalesce(n, ts) AS c, CASE WHEN ts >= '2026-11-01 05:30:00' THEN 'after' ELSE 'before' END AS w "
    "FROM main WHERE ts <> '2026-03-08 07:20:00' AND CAST(s AS timestamp) > '2020-01-01'"
)
DAILY = (
    "SELECT hour(n) AS h, count(*) AS c, min(ts) AS lo, max(n) AS hi, max(d) AS md "
    "[RANGE 2 hours, SLIDE 1 hour, WA ts, ORIGIN '2026-01-01 00:10:00'] FROM main GROUP BY hour(n)"
)
QUERIES = (EXPRESSIONS, DAILY)
NAIVE = "timestamp_ntz"


def session(spark: Any, **settings: str) -> Any:
    made = session_beside(spark)
    for key, value in {"spark.sql.streaming.stateStore.providerClass": "", **settings}.items():
        if value:
            made.conf.set(key, value)
    return made


def table() -> pa.Table:
    return pa.Table.from_pylist(ROWS, ARROW)


def frame_of(spark: Any) -> Any:
    """The rows as a DataFrame in their own types; left alone, PySpark takes `n` to be in the session's zone."""
    found = spark.createDataFrame(table().set_column(1, "n", table()["n"].cast(pa.timestamp("us", "UTC"))))
    return found.withColumn("n", F.timestamp_add("MICROSECOND", F.unix_micros("n"), F.lit("1970-01-01").cast(NAIVE)))


def judged(sql: str) -> Counter[tuple[object, ...]]:
    return rows(pk.Flow().stream("main", table(), time="ts", progress=pk.bounded("365 days")).query(sql).collect())


def rows(found: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("default", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_a_batch_means_the_same(spark: Any, zone: str, default: str) -> None:
    made = session(spark, **{ZONE: zone, "spark.sql.timestampType": default})
    flow = pk.Flow(made).stream("main", frame_of(made), time="ts")
    for sql in QUERIES:
        assert rows(flow.query(sql).collect()) == judged(sql)
    assert made.conf.get(ZONE) == zone


@pytest.mark.parametrize("zone", ZONES[:2])
def test_text_as_time_and_what_cannot_be_read(spark: Any, zone: str) -> None:
    """As a batch, with late rows by an order of arrival, and from a file that Spark reads."""
    made = session(spark, **{ZONE: zone})
    texts = [*(t for t in TEXTS[:16] if "Asia" not in t), "tomorrow", None, "10:30", "2026-03-08"]
    frame = made.createDataFrame([(i, s) for i, s in enumerate(texts)], "i bigint, ts string")
    sql = "SELECT ts, i FROM main"
    own = pk.Flow().stream(
        "main", [{"i": i, "ts": s} for i, s in enumerate(texts)], time="ts", schema="i bigint, ts timestamp"
    )
    expected = own.query(sql)
    found = pk.Flow(made).stream("main", frame, time="ts", arrival="i").query(sql)
    assert rows(found.collect()) == rows(expected.collect())
    late = Counter(tuple(json.loads(r.row).items()) for r in found.late.select("row").collect())
    assert {dict(row)["i"] for row in late} == {json.loads(r)["i"] for r in expected.late["row"].to_pylist()}
    dead = {json.loads(r.row)["i"] for r in found.dead_letters.select("row").collect()}
    assert dead == {12, 13, 14}


def test_a_file_that_penstock_opens_is_read_in_utc(spark: Any, tmp_path: Path) -> None:
    made = session(spark, **{ZONE: "America/New_York"})
    (tmp_path / "a.jsonl").write_text('{"ts": "2026-03-08 02:30:00", "v": 1}\n{"ts": "2026-07-01 10:00:00", "v": 2}\n')
    flow = pk.Flow(made).stream("main", str(tmp_path / "a.jsonl"), time="ts", schema="ts timestamp, v int")
    own = pk.Flow().stream("main", str(tmp_path / "a.jsonl"), time="ts", schema="ts timestamp, v int")
    sql = "SELECT ts, v FROM main"
    assert rows(flow.query(sql).collect()) == rows(own.query(sql).collect())


def test_a_stream_means_the_same(spark: Any, tmp_path: Path) -> None:
    made = session(spark, **{ZONE: "America/New_York", ANSI: "false", "spark.sql.timestampType": "TIMESTAMP_NTZ"})
    source = tmp_path / "in"
    frame_of(made).coalesce(1).write.parquet(str(source))
    frame = made.readStream.schema(made.read.parquet(str(source)).schema).parquet(str(source))
    flow = pk.Flow(made, path=str(tmp_path / "flow"))
    flow.stream("main", frame, time="ts", progress=pk.bounded("365 days"))
    for i, sql in enumerate(QUERIES):
        folder = tmp_path / f"seen{i}"  # over Spark Connect the function is called in another process
        folder.mkdir()

        def sink(found: Any, number: int, folder: Path = folder) -> None:
            pq.write_table(found.toArrow(), folder / f"{number}.parquet")

        flow.query(sql, name=f"q{i}").start(sink).finish()
        seen = [pq.read_table(file) for file in sorted(folder.iterdir())]
        wanted = judged(sql)
        assert sum((rows(t.cast(seen[0].schema)) for t in seen), Counter()) == wanted


def test_without_ansi_a_batch_is_hosted_and_means_the_same(spark: Any) -> None:
    made = session(spark, **{ANSI: "false", ZONE: "America/New_York"})
    flow = pk.Flow(made).stream("main", frame_of(made), time="ts")
    for sql in QUERIES:
        query = flow.query(sql)
        assert "hosted" in query.explain()
        assert "spark.sql.ansi.enabled=false" in query.explain()
        assert rows(query.collect()) == judged(sql)


def test_without_ansi_numbers_do_not_wrap(spark: Any) -> None:
    made = session(spark, **{ANSI: "false"})
    frame = made.createDataFrame([(1, 2**31 - 1), (2, 5)], "t bigint, v int")
    query = pk.Flow(made).stream("s", frame, time="t").query("SELECT t, v + 1 AS n FROM s")
    with contextlib.suppress(PySparkException):  # where one bad row stops a batch
        assert {row["n"] for row in query.collect().to_pylist()} == {6}


def test_without_ansi_what_needs_native_operators_is_refused(spark: Any, tmp_path: Path) -> None:
    made = session(spark, **{ANSI: "false"})
    frame = made.createDataFrame([(1, 2)], "t bigint, v int")
    with pytest.raises(UnsupportedError, match=r"(?s)order of an arrival.*ansi.enabled=false.*ansi.enabled to true"):
        pk.Flow(made).stream("s", frame, time="t", arrival="v").query("SELECT t FROM s")
    stream = made.readStream.schema("t bigint, kind string").json(str(tmp_path))
    flow = pk.Flow(made).stream("s", stream, time="t", progress=pk.punctuated("kind = 'p'"))
    with pytest.raises(
        StreamError, match=r"(?s)condition differently.*spark.conf.set\('spark.sql.ansi.enabled', 'true'\)"
    ):
        flow.watermarked("s")


def test_an_order_of_arrival_is_not_lost_on_a_hosted_batch(spark: Any) -> None:
    class Longest:
        def lift(self, value: Any) -> Any:
            return value

        def combine(self, left: Any, right: Any) -> Any:
            return max(left, right)

        def lower(self, value: Any) -> Any:
            return value

    frame = spark.createDataFrame([(1, 2)], "t bigint, i int")
    flow = pk.Flow(spark).stream("s", frame, time="t", arrival="i").aggregate("longest", Longest, "int")
    with pytest.raises(UnsupportedError, match="order of an arrival"):
        flow.query("SELECT longest(i) AS l [RANGE 1, SLIDE 1, WA t] FROM s")
