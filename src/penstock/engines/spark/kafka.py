"""A Kafka topic on Spark: what `pk.kafka` says, as Spark's own source of it (the package `spark-sql-kafka`).

Positions are in Spark's checkpoint, as of any source. The columns are those of the in-process source. A message that is
no JSON object, or whose values do not fit, has nulls, as Spark reads JSON, so it is a dead letter for its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from penstock.engines.spark.failure import explained
from penstock.errors import PenstockError, SourceError, StreamError
from penstock.model.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PREFIX = "kafka_"
TOLD = ("topic", "partition", "offset", "timestamp", "key", "headers", "value")
"""Columns of Spark's source; ours have the prefix."""


def kafka_frame(spark: Any, topic: Any, name: str, schema: Schema | None) -> DataFrame:
    """The topic as a DataFrame with the columns of a stream's schema."""
    if schema is None:
        raise StreamError(
            "The columns of a topic are not known before it is read.",
            where=f"stream {name}",
            hint="give schema='ts timestamp, …'",
        )
    topic.check_columns(schema)
    if schema.time_format is not None:
        raise StreamError(
            "On Spark the time of a topic is read as Spark reads JSON.",
            where=f"stream {name}",
            got=f"time_format={schema.time_format!r}",
            hint="read it with spark.readStream.format('kafka') and make a timestamp of it",
        )
    reader = (spark.readStream if topic.until is None else spark.read).format("kafka")
    for option, value in options_of(topic).items():
        reader = reader.option(option, value)
    try:
        frame = reader.load()
        frame.schema  # noqa: B018 - over Spark Connect nobody has looked before this
    except PySparkException as error:
        raise _unread(error, name) from error
    return rows_of(frame, topic.value, schema)


def options_of(topic: Any) -> dict[str, str]:
    """The options of Spark's source."""
    start = topic.start
    if not isinstance(start, str):
        raise StreamError(
            "On Spark a topic is begun at its earliest or latest messages.",
            where=f"topic {topic.topic}",
            got=f"start={dict(start)}"[:200],
            hint="Spark wants one for each partition: option('startingOffsets', '{\"topic\": {\"0\": 12, …}}') of "
            "spark.readStream.format('kafka')",
        )
    if topic.until is not None and start == "latest":
        raise StreamError(
            "What lies between the latest message and the end is nothing.",
            where=f"topic {topic.topic}",
            hint="leave out until='end' or start='latest'",
        )
    own = {f"kafka.{option}": str(value) for option, value in topic.options.items()}
    place = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.topic, "startingOffsets": start}
    return own | place | {"includeHeaders": "true"}


def rows_of(frame: DataFrame, value: str, schema: Schema) -> DataFrame:
    """The columns of a schema from those of Spark's source."""
    members = [f for f in schema.fields if not _is_told(f.name)]
    ddl = ", ".join(f"`{f.name}` {f.type}" for f in members)
    columns: list[Column] = []
    if members and value == "json":
        frame = frame.withColumn("penstock_row", F.from_json(F.col("value").cast("string"), ddl))
    for field in schema.fields:
        if _is_told(field.name):
            columns.append(_told(field.name.lower().removeprefix(PREFIX), str(field.type)).alias(field.name))
        elif value == "json":
            columns.append(F.col("penstock_row").getField(field.name).alias(field.name))
        else:
            columns.append(F.lit(None).cast(str(field.type)).alias(field.name))
    return frame.select(*columns)


def _is_told(name: str) -> bool:
    return name.lower().startswith(PREFIX) and name.lower().removeprefix(PREFIX) in TOLD


def _told(name: str, type_: str) -> Column:
    column = F.col(name)
    if name != "headers":
        return column.cast(type_)
    pairs = F.filter(column, lambda pair: pair.getField("key").isNotNull())
    return F.map_from_entries(pairs).cast(type_)


def _unread(error: PySparkException, name: str) -> PenstockError:
    if "kafka" in str(error).lower() and "find" in str(error).lower():
        return SourceError(
            "Spark's package for Kafka is not there.",
            where=f"stream {name}",
            got=str(error).splitlines()[0][:200],
            hint="start the session with spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:…, of the "
            "version of Spark; or pk.Flow() reads the topic in-process",
        )
    return SourceError(
        "Spark cannot read the topic.",
        where=f"stream {name}",
        got=explained(str(error), name).what,
        hint="look at the brokers, the topic and the options",
    )
