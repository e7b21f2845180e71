"""A stream for Spark's own operators, whose watermark is the stream's punctuation and nothing else.

Spark derives a watermark from the rows it sees: the greatest event time minus a fixed delay. Here the delay is longer
than any two times of data lie apart, so that data never moves the watermark, and a punctuation `p` is a row at
`p + delay`, which moves it to exactly `p`. Punctuation rows are taken out again above the watermark. `window()`,
stream-stream joins and `dropDuplicates` on the column `event_time` then emit and purge by punctuation.

- Grain: Spark's watermark counts milliseconds, so `event_time` does too. It is the row's time in whole milliseconds
  plus half a one: a row at the bound is kept, one a millisecond below it is late, and a window that ends at the bound
  closes. A bound within a millisecond is taken as that millisecond's start, which is sound: no more rows are late by
  it, and a window that ends on a whole millisecond closes as soon as it may. The exact time stays in its own column.
  Where rows differ by less, use that column too: as a further key of `dropDuplicates`, and in a join as a second band
  beside the one on `event_time`. One tick of an integer time is one millisecond.
- Edges: Spark's watermark starts at 1970 and never goes down, so rows before 1970 are late. Rows with a null or
  unreadable time are left out.
- Late rows are dropped by Spark, silently, and judged by the punctuation of the micro-batch before: how many are
  dropped depends on how the input was cut. Penstock's own queries judge lateness themselves and keep what is late;
  this is for those who want Spark's operators.
- One watermark serves a whole query: with several streams it is the least of theirs.

The optimiser moves filters below the watermark if they do not mention its column: those of the user, and the
`isnotnull(key)` that it infers for joins. They would take out the punctuation, and the watermark would stand still. The
filter that takes out punctuation is therefore made nondeterministic, and no filter moves past that.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.engines.spark.attempts import Attempts
from penstock.engines.spark.session import other_meaning
from penstock.engines.spark.sources import AS_JSON, SparkSource
from penstock.errors import StreamError
from penstock.model.progress import Progress, Punctuated
from penstock.model.time import END_OF_TIME, Domain, to_ticks
from penstock.plan.catalog import Catalog
from penstock.sql.predicates import punctuation_predicate

EVENT_TIME = "event_time"
"""The column that Spark's operators are to use."""
DELAY_DAYS = 36_525_000
"""A hundred thousand years. Twice that still fits a timestamp."""
_DELAY = DELAY_DAYS * 86_400_000
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def watermarked(name: str, source: SparkSource, progress: Progress, catalog: Catalog) -> DataFrame:
    """The rows of a punctuated stream with the column `event_time`, whose watermark follows the punctuation."""
    _check(name, source, progress)
    assert isinstance(progress, Punctuated)
    rows, is_punctuation = _marked(name, source, progress, catalog)
    time = _milliseconds(source)
    bound = F.greatest(F.lit(0), F.least(time, F.lit(_DELAY - 1)))
    micros = F.when(is_punctuation, (bound + _DELAY) * 1_000).otherwise(_within_range(name, time) * 1_000 + 500)
    timed = rows.withColumn(EVENT_TIME, F.timestamp_micros(micros)).select(*source.rows().columns, EVENT_TIME)
    is_data = F.col(EVENT_TIME) < F.timestamp_millis(F.lit(_DELAY))
    barrier = F.spark_partition_id() >= 0  # always true, which the optimiser does not know (of rand() it does)
    return timed.withWatermark(EVENT_TIME, f"{DELAY_DAYS} days").filter(is_data & barrier)


def _marked(name: str, source: SparkSource, progress: Punctuated, catalog: Catalog) -> tuple[DataFrame, Column]:
    """The rows, and which of them are punctuation; an error where that cannot be told: nobody keeps dead letters."""
    attempts = Attempts(catalog.functions)
    made = attempts.of(punctuation_predicate(progress, source.schema, catalog, name))
    rows = source.rows()
    for column, prepared in attempts.prepared:
        rows = rows.withColumn(column, prepared)
    value = F.coalesce(made.value, F.lit(False))
    if made.failed is None:
        return rows, value
    row = F.to_json(F.struct(*[F.col(f"`{n}`") for n in source.schema.names]), AS_JSON)
    text = F.concat(F.lit(f"It cannot be told whether a row of stream {name} is punctuation: "), row)
    return rows, F.when(made.failed, F.raise_error(text).cast("boolean")).otherwise(value)


def _milliseconds(source: SparkSource) -> Column:
    """The time of a row in whole milliseconds; of an integer, its ticks."""
    time = F.col(f"`{source.schema.time}`")
    return F.unix_millis(time) if source.schema.domain is Domain.TIMESTAMP else time.cast("bigint")


def _within_range(name: str, time: Column) -> Column:
    """The time, or an error where it would be taken for punctuation."""
    text = F.concat(
        F.lit(f"A time of stream {name} is too far from 1970 for Spark's watermark: "),
        time.cast("string"),
        F.lit(" ms"),
    )
    return F.when(time.between(1 - _DELAY, _DELAY - 1), time).otherwise(F.raise_error(text))


def _check(name: str, source: SparkSource, progress: Progress) -> None:
    where = f"stream {name}"
    if not isinstance(progress, Punctuated):
        raise StreamError(
            "Only punctuation can drive Spark's watermark.",
            where=where,
            got=str(progress),
            hint="declare the stream with progress=pk.punctuated(…), or use withWatermark() as usual",
        )
    if progress.per:
        raise StreamError(
            "Spark has one watermark for all groups of a stream.",
            where=where,
            got=str(progress),
            hint="declare the stream without per=…, or run the query with penstock",
        )
    if not source.is_streaming:
        raise StreamError(
            "A bounded DataFrame has no watermark.", where=where, hint="declare the stream over spark.readStream"
        )
    if EVENT_TIME in source.schema:
        raise StreamError(f"The stream has a column {EVENT_TIME} of its own.", where=where, hint="rename it before")
    setting = other_meaning(source.frame.sparkSession)
    if setting is not None:
        raise StreamError(
            "The session would read the punctuation's condition differently.",
            where=where,
            got=setting,
            hint=f"spark.conf.set('{setting.partition('=')[0]}', 'true')",
        )
    policy = source.frame.sparkSession.conf.get(_POLICY)
    if policy != "min":
        raise StreamError(
            "The session lets the fastest stream drive the watermark, which would lose rows of the others.",
            where=where,
            got=f"{_POLICY}={policy}",
            hint=f"spark.conf.set('{_POLICY}', 'min')",
        )


def reached(query: Any) -> int | None:
    """The bound that the watermark of a streaming query has come to, in ticks of a timestamp.

    None before the first, `END_OF_TIME` past the year 9999. To check that it follows the punctuation. A micro-batch
    runs under the watermark that those before it came to.
    """
    progress = query.lastProgress
    shown = None if progress is None else progress.eventTime.get("watermark")
    if shown is None:
        return None
    if shown.startswith("+"):  # a year of more than four digits
        return END_OF_TIME
    return to_ticks(dt.datetime.fromisoformat(shown)) or None
