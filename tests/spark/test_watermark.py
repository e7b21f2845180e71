"""Spark's own operators under a watermark that is the stream's punctuation.

The rows of most tests, one micro-batch each, in seconds after 1970:

```
batch   0      1      2       3        4         5       6
      10 (a)  P 60  100 (a)  60 (a)  59.999 (a)  P 300  301 (z)
                             at the   below the
                             bound    bound
```
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.engines.spark.watermark import EVENT_TIME, reached
from penstock.errors import StreamError
from penstock.model.time import END_OF_TIME, Domain, from_ticks, usable

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SECOND = 1_000_000
Record = dict[str, object]


def row(seconds: float, key: str | None, value: int) -> Record:
    return {"ts": at(seconds), "kind": "data", "key": key, "value": value}


def punct(seconds: float) -> Record:
    return {"ts": at(seconds), "kind": "punct"}


def at(seconds: float) -> str:
    return from_ticks(round(seconds * SECOND)).isoformat()


BATCHES = [
    [row(10, "a", 1)],
    [punct(60)],
    [row(100, "a", 2)],
    [row(60, "a", 3)],
    [row(59.999, "a", 4)],
    [punct(300)],
    [row(301, "z", 9)],
]


def write(folder: Path, batches: Iterable[list[Record]]) -> None:
    folder.mkdir()
    for i, records in enumerate(batches):
        path = folder / f"{i:03}.json"
        path.write_text("".join(json.dumps(r) + "\n" for r in records))
        os.utime(path, (1_000 + i, 1_000 + i))


def read(spark: Any, folder: Path, time: str = "timestamp") -> Any:
    schema = f"ts {time}, kind string, key string, value int"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))


def stream(spark: Any, folder: Path, batches: Iterable[list[Record]] = BATCHES, time: str = "timestamp") -> Any:
    """The watermarked stream of the batches."""
    write(folder, batches)
    flow = pk.Flow(spark).stream("s", read(spark, folder, time), time="ts", progress=pk.punctuated("kind = 'punct'"))
    return flow.watermarked("s")


@pytest.fixture
def run(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """Runs a streaming DataFrame over all that there is; its rows, and the watermark that it came to in seconds."""
    queries: list[Any] = []

    def go(frame: Any) -> tuple[list[tuple[object, ...]], float | None]:
        name = f"watermark_{os.getpid()}_{len(queries)}"
        writer = frame.writeStream.outputMode("append").format("memory").queryName(name)
        query = writer.option("checkpointLocation", str(tmp_path / name)).start()
        queries.append(query)
        query.processAllAvailable()
        bound = reached(query)
        query.stop()
        return sorted(tuple(r) for r in spark.table(name).collect()), None if bound is None else bound / SECOND

    yield go
    for query in queries:
        query.stop()


def windows(frame: Any, length: str = "60 seconds") -> Any:
    """The count and sum per window, whose end is given in milliseconds."""
    from pyspark.sql import functions as F

    grouped = frame.groupBy(F.window(EVENT_TIME, length).alias("w"))
    return grouped.agg(F.count("*").alias("n"), F.sum("value").alias("total")).select(
        F.unix_millis("w.end").alias("end"), "n", "total"
    )


def test_window_closes_at_its_end_and_keeps_the_row_at_the_bound(spark: Any, tmp_path: Path, run: Any) -> None:
    assert run(windows(stream(spark, tmp_path / "in"))) == ([(60_000, 1, 1), (120_000, 2, 5)], 300)


def test_filters_of_the_user_leave_punctuation_alone(spark: Any, tmp_path: Path, run: Any) -> None:
    frame = stream(spark, tmp_path / "in").filter("value > 0").filter("key = 'a'").filter("kind = 'data'")
    assert run(windows(frame)) == ([(60_000, 1, 1), (120_000, 2, 5)], 300)


def test_join_keeps_the_row_at_the_bound(spark: Any, tmp_path: Path, run: Any) -> None:
    """Punctuation rows have a null key, and the join infers that keys are not null."""
    from pyspark.sql import functions as F

    left = stream(spark, tmp_path / "left").alias("l")
    right = stream(spark, tmp_path / "right").filter("value < 9").alias("r")
    band = "l.key = r.key and l.event_time >= r.event_time - interval 5 seconds and l.event_time <= r.event_time"
    pairs = left.join(right, F.expr(band)).select(F.col("l.value").alias("left"), F.col("r.value").alias("right"))
    assert run(pairs) == ([(1, 1), (2, 2), (3, 3)], 300)


def test_duplicates_are_dropped_and_forgotten_by_punctuation(spark: Any, tmp_path: Path, run: Any) -> None:
    batches = [*BATCHES[:4], [row(60, "a", 5)], *BATCHES[4:]]
    frame = stream(spark, tmp_path / "in", batches).dropDuplicates(["key", EVENT_TIME]).select("value")
    assert run(frame) == ([(1,), (2,), (3,), (9,)], 300)


def test_spark_judges_lateness_by_the_micro_batch_before(spark: Any, tmp_path: Path, run: Any) -> None:
    """The same late row is kept or dropped as the input is cut, and Spark does not tell."""
    batches = [[punct(60)], [row(10, "a", 1)], [row(11, "a", 2)]]
    frame = stream(spark, tmp_path / "in", batches).dropDuplicates(["key", EVENT_TIME]).select("value")
    assert run(frame) == ([(1,)], 60)


def test_data_of_any_century(spark: Any, tmp_path: Path, run: Any) -> None:
    """Far data does not move the watermark; rows before 1970 are late, as the watermark starts there."""
    year_2500, year_9800 = 16_725_225_600, 247_090_953_600
    batches = [
        [row(year_9800, "a", 1), row(-5, "a", 2)],
        [row(30, "a", 3)],
        [punct(year_2500)],
        [row(year_2500, "a", 4)],
        [row(year_2500 - 1, "a", 5)],
        [punct(year_9800 + 60)],
    ]
    closed = [(60_000, 1, 3), ((year_2500 + 60) * 1000, 1, 4), ((year_9800 + 60) * 1000, 1, 1)]
    assert run(windows(stream(spark, tmp_path / "in", batches))) == (closed, year_9800 + 60)


def test_bound_within_a_millisecond_is_taken_as_its_start(spark: Any, tmp_path: Path, run: Any) -> None:
    batches = [
        [row(59.999_999, "a", 1)],
        [punct(60.000_500)],
        [row(61, "a", 2)],
        [row(60.000_200, "a", 3)],
        [row(59.999_999, "a", 4)],
        [punct(120)],
    ]
    assert run(windows(stream(spark, tmp_path / "in", batches))) == ([(60_000, 1, 1), (120_000, 2, 5)], 120)


def test_tick_of_an_integer_time_is_a_millisecond(spark: Any, tmp_path: Path, run: Any) -> None:
    """The greatest bound that a row may carry closes everything."""
    ticks = [[(3, 1), (9, 2)], [(10, None)], [(10, 3)], [(10, 4)], [(9, 5)], [(usable(Domain.INTEGER)[1], None)]]
    batches = [[{"ts": t, "kind": "punct" if v is None else "data", "value": v} for t, v in batch] for batch in ticks]
    frame = stream(spark, tmp_path / "in", batches, time="bigint")
    assert run(windows(frame, "10 milliseconds")) == ([(10, 2, 3), (20, 2, 7)], END_OF_TIME / SECOND)


def test_time_that_fits_no_watermark_stops_the_query(spark: Any, tmp_path: Path, run: Any) -> None:
    frame = stream(spark, tmp_path / "in", [[{"ts": 10**18, "kind": "data"}]], time="bigint")
    with pytest.raises(
        Exception, match="time of stream s is too far from 1970 for Spark's watermark: 1000000000000000000"
    ):
        run(windows(frame))


def below_watermark(frame: Any) -> str:
    """What the optimiser puts below the watermarks of a DataFrame."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain(True)
    plan = text.getvalue().split("== Optimized Logical Plan ==")[1].split("== Physical Plan ==")[0]
    assert "EventTimeWatermark" in plan
    depth, below = None, []
    for line in plan.splitlines():
        indent = len(re.match(r"[\s:+|-]*", line).group())  # type: ignore[union-attr]
        if depth is not None and indent > depth:
            below.append(line)
            continue
        depth = indent if "EventTimeWatermark" in line else None
    return "\n".join(below)


FILTERS = {
    "plain": lambda df: df.filter("value > 7"),
    "after a projection": lambda df: df.select("key", "value", EVENT_TIME).filter("value > 7"),
    "of an expression": lambda df: df.selectExpr("value * 2 as twice", EVENT_TIME).filter("twice > 7"),
    "without the time": lambda df: df.select("value").filter("value > 7"),
    "semi join": lambda df: df.join(df.sparkSession.range(9).withColumnRenamed("id", "value"), "value", "leftsemi"),
    "join": lambda df: df.alias("l").join(df.alias("r"), ["value", EVENT_TIME]),
    "having no key": lambda df: df.na.drop(),
}


@pytest.mark.parametrize("name", FILTERS)
def test_no_filter_moves_below_the_watermark(spark: Any, tmp_path: Path, name: str) -> None:
    below = below_watermark(FILTERS[name](stream(spark, tmp_path / "in")))
    assert "isnotnull(ts" in below  # rows without a time are left out there
    assert "value" not in "".join(line for line in below.splitlines() if "Filter" in line)


def test_filters_do_move_below_a_plain_watermark(spark: Any, tmp_path: Path) -> None:
    """What the barrier is for; once this fails it may go."""
    write(tmp_path / "in", BATCHES)
    plain = read(spark, tmp_path / "in").withWatermark("ts", "1 day").filter("ts < timestamp'2900-01-01'")
    assert "value" in "".join(s for s in below_watermark(plain.filter("value > 7")).splitlines() if "Filter" in s)


class TestErrors:
    def test_stream_without_punctuation(self, spark: Any, tmp_path: Path) -> None:
        write(tmp_path / "in", [])
        flow = pk.Flow(spark).stream("s", read(spark, tmp_path / "in"), time="ts", progress=pk.bounded("5 seconds"))
        with pytest.raises(
            StreamError, match=r"Only punctuation can drive(.|\n)*stream s(.|\n)*bounded\('5 seconds'\)"
        ):
            flow.watermarked("s")

    def test_bounded_frame(self, spark: Any) -> None:
        flow = pk.Flow(spark).stream("s", spark.range(3), time="id", progress=pk.punctuated("id = 2"))
        with pytest.raises(StreamError, match=r"A bounded DataFrame has no watermark(.|\n)*readStream"):
            flow.watermarked("s")

    def test_column_of_that_name(self, spark: Any, tmp_path: Path) -> None:
        write(tmp_path / "in", [])
        frame = read(spark, tmp_path / "in").withColumnRenamed("value", EVENT_TIME)
        flow = pk.Flow(spark).stream("s", frame, time="ts", progress=pk.punctuated("kind = 'punct'"))
        with pytest.raises(StreamError, match=r"has a column event_time of its own(.|\n)*rename it"):
            flow.watermarked("s")

    def test_policy_that_loses_rows(self, spark: Any, tmp_path: Path) -> None:
        spark.conf.set("spark.sql.streaming.multipleWatermarkPolicy", "max")
        try:
            with pytest.raises(StreamError, match=r"would lose rows(.|\n)*multipleWatermarkPolicy=max"):
                stream(spark, tmp_path / "in")
        finally:
            spark.conf.unset("spark.sql.streaming.multipleWatermarkPolicy")

    def test_unknown_stream(self, spark: Any) -> None:
        flow = pk.Flow(spark).stream("main", spark.range(3), time="id")
        with pytest.raises(StreamError, match=r"no such stream(.|\n)*mian(.|\n)*did you mean main"):
            flow.watermarked("mian")

    def test_in_process(self) -> None:
        flow = pk.Flow().stream("s", [{"t": 1}], time="t")
        with pytest.raises(StreamError, match=r"Only Spark has a watermark(.|\n)*pk.Flow\(spark\)"):
            flow.watermarked("s")
