"""Streams on Spark: DataFrames, or files that Spark reads, brought into a stream's schema.

A row whose time is null or cannot be read is a dead letter. Files are read with the corrupt-record column where their
format can have corrupt records, so that such rows are kept too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.engines.spark.types import schema_from_spark
from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter
from penstock.model.formats import file_kind
from penstock.model.letters import DEAD_SCHEMA
from penstock.model.schema import Schema, timed

CORRUPT = "_corrupt_record"


@dataclass(frozen=True)
class SparkSource:
    """A DataFrame with the schema that its rows are brought into."""

    schema: Schema
    frame: DataFrame
    arrival: str | None = None
    unread: tuple[DeadLetter, ...] = ()
    """Rows that never got into the DataFrame."""

    @property
    def is_streaming(self) -> bool:
        """Whether the DataFrame is a stream."""
        return bool(self.frame.isStreaming)

    def time(self) -> Column:
        """The time as its type; null where it cannot be read."""
        name, type_ = self.schema.time, self.schema[self.schema.time].type
        given = F.col(f"`{name}`")
        is_text = self.frame.schema[str(name)].dataType.simpleString() == "string"
        return F.try_to_timestamp(given) if is_text else given.cast(str(type_))

    def rows(self) -> DataFrame:
        """The good rows, in the schema's types."""
        names = [f for f in self.schema.fields if f.name != self.schema.time]
        columns = [F.col(f"`{f.name}`").cast(str(f.type)).alias(f.name) for f in names]
        valid = self.frame.filter(self._readable())
        ordered = {f.name: c for f, c in zip(names, columns, strict=True)}
        ordered[str(self.schema.time)] = self.time().alias(str(self.schema.time))
        kept = [ordered[f.name] for f in self.schema.fields]
        if self.arrival is not None:
            kept.append(F.col(f"`{self.arrival}`").alias("__arrival"))
        return valid.select(*kept)

    def _readable(self) -> Column:
        readable = self.time().isNotNull()
        return readable & F.col(CORRUPT).isNull() if CORRUPT in self.frame.columns else readable

    def dead_letters(self, stream: str) -> DataFrame:
        """The bad rows with their reason."""
        time = F.col(f"`{self.schema.time}`")
        type_ = self.schema[self.schema.time].type
        reason = F.when(time.isNull(), F.lit(f"{self.schema.time} is null")).otherwise(
            F.concat(F.lit(f"{self.schema.time} is not a {type_}: '"), time.cast("string"), F.lit("'"))
        )
        row = F.to_json(F.struct(*[F.col(f"`{f.name}`") for f in self.schema.fields]), {"ignoreNullFields": "false"})
        if CORRUPT in self.frame.columns:
            corrupt = F.col(CORRUPT)
            reason = F.when(corrupt.isNotNull(), F.lit("the record is corrupt")).otherwise(reason)
            row = F.coalesce(corrupt, row)
        bad = self.frame.filter(~self._readable()).select(
            F.lit(stream).alias("stream"),
            F.lit(None).cast("string").alias("operator"),
            reason.alias("reason"),
            row.alias("row"),
        )
        if not self.unread:
            return bad
        known = [(stream, None, letter.reason, letter.row) for letter in self.unread]
        return bad.union(self.frame.sparkSession.createDataFrame(known, DEAD_SCHEMA.ddl))


def open_spark_source(
    spark: SparkSession, source: object, time: str, schema: Schema | None, arrival: str | None
) -> SparkSource:
    """The source for a DataFrame or a path."""
    frame: DataFrame = source if _is_frame(source) else read_files(spark, source, schema, streaming=False)  # type: ignore[assignment]
    found = schema_from_spark(frame.drop(CORRUPT).schema)
    if arrival is not None and arrival not in found:
        raise StreamError("The arrival column does not exist.", got=arrival, hint=f"columns: {', '.join(found.names)}")
    return SparkSource(timed(found, time), frame, arrival)


def open_spark_frame(spark: SparkSession, rows: Batch, dead: list[DeadLetter], arrival: str | None) -> SparkSource:
    """The source for rows that are in memory."""
    return SparkSource(rows.schema, spark.createDataFrame(rows.table), arrival, tuple(dead))


def is_spark_readable(source: object) -> bool:
    """Whether Spark reads it itself: a DataFrame of its own, or paths."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(s, str | os.PathLike) for s in source)
    return isinstance(source, str | os.PathLike) or _is_frame(source)


def _is_frame(source: object) -> bool:
    return hasattr(source, "isStreaming") and hasattr(source, "mapInArrow")


def read_files(
    spark: SparkSession, source: object, schema: Schema | None, *, streaming: bool, max_files: int | None = None
) -> DataFrame:
    """Parquet, CSV or JSON lines, in batch or as a stream of files."""
    given = source if isinstance(source, list | tuple) else [source]
    paths = [str(p) for p in given]
    kind = _kind(paths[0])
    reader = spark.readStream if streaming else spark.read
    if streaming and max_files is not None:
        reader = reader.option("maxFilesPerTrigger", max_files)
    if schema is not None:
        ddl = ", ".join(f"`{f.name}` {f.type}" for f in schema.fields)
        corrupt = "" if kind == "parquet" else f", {CORRUPT} string"
        reader = reader.schema(ddl + corrupt)
    if kind != "parquet":
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    if kind == "csv":
        reader = reader.option("header", "true").option("inferSchema", str(schema is None).lower())
    target = paths[0] if len(paths) == 1 or streaming else paths
    return reader.format("json" if kind == "jsonl" else kind).load(target)  # type: ignore[arg-type]


def _kind(path: str) -> str:
    names = [path]
    if os.path.isdir(path):
        names = sorted(n for _, _, files in os.walk(path) for n in files if not n.startswith(("_", ".")))
    kind = next((k for n in names if (k := file_kind(n)) is not None), None)
    if kind is None:
        raise StreamError("The kind of file is not known.", got=path, hint="files end in .parquet, .csv or .jsonl")
    return kind
