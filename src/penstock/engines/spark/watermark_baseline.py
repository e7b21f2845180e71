"""What people write today: Spark's own tumbling window under a watermark, for comparison.

Spark drops a row silently when its window has been closed by the watermark. How many were counted is the sum of the
windows' counts after the stream was driven to its end by one row far in the future, whose own window stays open.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def counted_under_watermark(spark: SparkSession, folder: str, time: str, delay: str, window: str, scratch: str) -> int:
    """How many of the rows in `folder` (parquet files, one micro-batch each) Spark counts."""
    source = Path(scratch, "in")
    shutil.copytree(folder, source)
    _far_future(source, time)
    frame = (
        spark.readStream.schema(spark.read.parquet(folder).schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    )
    counts = frame.withWatermark(time, delay).groupBy(F.window(time, window)).agg(F.count("*").alias("n"))
    target = str(Path(scratch, "out"))

    def write(batch: DataFrame, number: int) -> None:
        batch.select("n").write.mode("overwrite").parquet(f"{target}/batch={number:09d}")

    query = (
        counts.writeStream.outputMode("append")
        .option("checkpointLocation", str(Path(scratch, "checkpoint")))
        .foreachBatch(write)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    total = spark.read.parquet(target).agg(F.sum("n").alias("n")).collect()[0].n
    return int(total or 0)


def _far_future(folder: Path, time: str) -> None:
    """One more file, with one row a year after the last."""
    files = sorted(folder.glob("*.parquet"))
    last = pa.parquet.read_table(files[-1]).slice(0, 1)
    index = last.schema.get_field_index(time)
    moved = pa.array([last[time][0].as_py().replace(year=last[time][0].as_py().year + 1)], last.schema.field(time).type)
    path = folder / "zzz.parquet"
    pa.parquet.write_table(last.set_column(index, last.schema.field(time), moved), path)
    for i, file in enumerate([*files, path]):
        os.utime(file, (1_000_000 + i, 1_000_000 + i))
