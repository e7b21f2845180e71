"""Stamps of streams whose times are given where they enter, on Spark: all rows of a micro-batch have that of its start.

Spark writes the time of a micro-batch into its log of offsets before it begins, to the millisecond, and goes by that
again when it is done again; `current_timestamp()` is that time. Where the clock has gone back, the record of the
micro-batch before says what was reached, and stamps stand still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.engines.spark.parts import Part
from penstock.engines.spark.sources import SparkSource, open_spark_source
from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.schema import TIMESTAMP, Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.timestamps import with_stamps
from penstock.plan.nodes import Source
from penstock.runtime.showing import reached_by


def open_stamped_source(
    spark: SparkSession, source: object, time: str, columns: Schema | None, delimiter: str | None
) -> SparkSource:
    """The source of a stream whose rows are stamped as they enter, which only those of a streaming DataFrame do."""
    found = open_spark_source(spark, source, None, columns, None, None, delimiter)
    if not found.is_streaming:
        raise StreamError(
            "Rows of a bounded DataFrame do not enter at any time, so they cannot be stamped.",
            got=type(source).__name__,
            hint="spark.readStream; or leave timestamps=pk.internal() out, and name the column that has the time",
        )
    made = found.frame.withColumn(time, F.current_timestamp())
    return replace(found, schema=with_stamps(found.schema, time), frame=made)


def floor_of(source: Source, before: Mapping[str, Any]) -> int:
    """The least stamp that rows may have after what was known of their stream; of those that bring times no matter."""
    if not source.stamped:
        return MIN_TICK
    outside = before.get("outside")
    known = [reached_by(source, before.get("progress")), MIN_TICK if outside is None else outside]
    return max((bound for bound in known if bound != END_OF_TIME), default=MIN_TICK)


def not_before(parts: Iterable[Part], floor: int) -> Iterator[Part]:
    """The parts with no stamp below the floor."""
    for part in parts:
        is_below = floor > MIN_TICK and len(part.batch) and int(part.batch.times().min()) < floor
        yield replace(part, batch=_raised(part.batch, floor)) if is_below else part


def _raised(batch: Batch, floor: int) -> Batch:
    schema = batch.schema
    at = schema.time_index
    stamps = pa.array(np.maximum(batch.times(), floor)).cast(TIMESTAMP.arrow)
    return Batch(schema, table=batch.table.set_column(at, schema.arrow.field(at), stamps))
