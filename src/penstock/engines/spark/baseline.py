"""What people write today: Spark's own windows, for comparison with ours.

Under a watermark Spark drops a row silently when its window has been closed. How many rows were counted is the sum of
the windows' counts after the stream was driven to its end by one row far in the future, whose own window stays open.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F


def counted_under_watermark(spark: SparkSession, folder: str, time: str, delay: str, window: str, scratch: str) -> int:
    """How many of the rows in `folder` (parquet files, one micro-batch each) Spark counts."""
    source = Path(scratch, "in")
    shutil.copytree(folder, source)
    _far_future(source, time)
    schema = spark.read.parquet(folder).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    counts = frame.withWatermark(time, delay).groupBy(F.window(time, window)).agg(F.count("*").alias("n"))
    target = str(Path(scratch, "out"))

    def write(batch: DataFrame, number: int) -> None:
        batch.select("n").write.mode("overwrite").parquet(f"{target}/batch={number:09d}")

    stream = counts.writeStream.outputMode("append").foreachBatch(write)
    query = stream.option("checkpointLocation", str(Path(scratch, "checkpoint"))).trigger(availableNow=True).start()
    query.awaitTermination()
    total = spark.read.parquet(target).agg(F.sum("n").alias("n")).collect()[0].n
    return int(total or 0)


def _far_future(folder: Path, time: str) -> None:
    """One more file, with one row a year after the last."""
    files = sorted(folder.glob("*.parquet"))
    last = pa.parquet.read_table(files[-1]).slice(0, 1)
    index = last.schema.get_field_index(time)
    moment = last[time][0].as_py()
    moved = pa.array([moment.replace(year=moment.year + 1)], last.schema.field(time).type)
    path = folder / "zzz.parquet"
    pa.parquet.write_table(last.set_column(index, last.schema.field(time), moved), path)
    for i, file in enumerate([*files, path]):
        os.utime(file, (1_000_000 + i, 1_000_000 + i))


def native_sliding(frame: DataFrame, range_seconds: int, slide_seconds: int) -> DataFrame:
    """Count and max of `v` per `k` by Spark's `window()`, with the window's number as `wid`."""
    length, step = f"{range_seconds} seconds", f"{slide_seconds} seconds"
    windows = F.window("ts", length) if range_seconds == slide_seconds else F.window("ts", length, step)
    return _numbered(frame.groupBy(windows.alias("w"), "k"), slide_seconds)


def native_sliding_stream(frame: DataFrame, range_seconds: int, slide_seconds: int, delay: str) -> DataFrame:
    """The same over a stream, under a watermark."""
    return native_sliding(frame.withWatermark("ts", delay), range_seconds, slide_seconds)


def native_join_stream(left: DataFrame, right: DataFrame, band_ms: int, delay: str) -> DataFrame:
    """Rows of two streams of `ts`, `k` and `v` that are equal in `k`, those of the right up to a band later."""
    one, other = left.withWatermark("ts", delay).alias("l"), right.withWatermark("ts", delay).alias("r")
    near = F.expr(f"l.k = r.k AND r.ts >= l.ts AND r.ts <= l.ts + INTERVAL {band_ms / 1000} SECONDS")
    names = {"lt": "l.ts", "rt": "r.ts", "k": "l.k", "lv": "l.v", "rv": "r.v"}
    return one.join(other, near).select(*[F.col(column).alias(name) for name, column in names.items()])


def python_scan_stream(frame: DataFrame) -> DataFrame:
    """How many rows each task has read, counted in Python: the least that whoever looks at rows there can do."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"n": pa.array([sum(batch.num_rows for batch in batches)], pa.int64())})

    return frame.mapInArrow(count, "n bigint")


def _numbered(grouped: object, slide_seconds: int) -> DataFrame:
    wid: Column = (F.unix_seconds("w.end") / slide_seconds).cast("bigint") - 1
    counted: DataFrame = grouped.agg(F.count("*").alias("n"), F.max("v").alias("m"))  # type: ignore[attr-defined]
    return counted.select(wid.alias("wid"), "k", "n", "m")
