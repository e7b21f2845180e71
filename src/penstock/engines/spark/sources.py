"""Streams on Spark: DataFrames, tables, or files, brought into a stream's schema.

A row whose time is null or cannot be read, or with a value that does not fit a declared schema, is a dead letter. A
DataFrame that Spark read with a corrupt-record column keeps such rows as dead letters too. Columns of types that
queries cannot use pass by unread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.engines.spark.files import CORRUPT, REASON, open_files
from penstock.engines.spark.native_reading import problem, settled
from penstock.engines.spark.types import frame_of, schema_from_spark
from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter
from penstock.model.formats import check_delimiter, file_kind
from penstock.model.letters import DEAD_SCHEMA
from penstock.model.lived_rows import LivedRows
from penstock.model.schema import Schema, progressing, timed

AS_JSON = {"ignoreNullFields": "false", "timeZone": "UTC"}
"""How rows are kept as text: every column, times in UTC."""
_TABLE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,2}")


@dataclass(frozen=True)
class SparkSource:
    """A DataFrame with the schema that its rows are brought into."""

    schema: Schema
    frame: DataFrame
    arrival: str | None = None
    unread: tuple[DeadLetter, ...] = ()
    """Rows that never got into the DataFrame."""
    named: bool = False
    """Whether Spark knows the source of the stream by a name, see `readers`."""
    lived: tuple[LivedRows, Schema] | None = None
    """Which columns tell lives, and the columns as they are read, where rows have lives of their own."""

    @property
    def insert_only(self) -> bool:
        """Whether it is known that nothing is revised."""
        return self.lived is None or self.lived[0].old is None

    def with_lives(self, lives: LivedRows) -> SparkSource:
        """The source whose rows have the lives that some of its columns tell."""
        read = lives.read_as(self.schema)
        return replace(self, schema=lives.payload(read), lived=(lives, read))

    def with_attributes(self, attributes: Sequence[str]) -> SparkSource:
        """The source of a stream of which these attributes progress, if there are several."""
        return replace(self, schema=progressing(self.schema, attributes)) if attributes else self

    @property
    def is_streaming(self) -> bool:
        """Whether the DataFrame is a stream."""
        return bool(self.frame.isStreaming)

    def rows(self) -> DataFrame:
        """The good rows, in the schema's types."""
        given = self.frame.schema
        kept = [settled(f.name, given[f.name].dataType, f, self.schema).alias(f.name) for f in self.schema.fields]
        if self.arrival is not None:
            kept.append(F.col(f"`{self.arrival}`").alias("__arrival"))
        return self.frame.filter(self._problem.isNull()).select(*kept)

    @cached_property
    def _problem(self) -> Column:
        return problem(self.schema, self.frame.schema, self.corrupt_reason)

    @property
    def corrupt_reason(self) -> Column | None:
        """Why the reader of a file could not read a record; None if it did not say."""
        if CORRUPT not in self.frame.columns:
            return None
        why = F.col(REASON) if REASON in self.frame.columns else F.lit("the record is corrupt")
        return F.when(F.col(CORRUPT).isNotNull(), why)

    def dead_letters(self, stream: str) -> DataFrame:
        """The bad rows with their reason."""
        row = F.to_json(F.struct(*[F.col(f"`{f.name}`") for f in self.schema.fields]), AS_JSON)
        if CORRUPT in self.frame.columns:
            row = F.coalesce(F.col(CORRUPT), row)
        bad = self.frame.select(self._problem.alias("reason"), row.alias("row")).filter("reason IS NOT NULL")
        nowhere = F.lit(None).cast("string").alias("operator")
        found = bad.select(F.lit(stream).alias("stream"), nowhere, "reason", "row")
        if not self.unread:
            return found
        known = [(stream, None, letter.reason, letter.row) for letter in self.unread]
        return found.union(self.frame.sparkSession.createDataFrame(known, DEAD_SCHEMA.ddl))


def open_spark_source(
    spark: SparkSession,
    source: object,
    time: str | None,
    schema: Schema | None,
    arrival: str | None,
    time_format: str | None = None,
    delimiter: str | None = None,
) -> SparkSource:
    """The source for a DataFrame, a table's name, or paths."""
    if isinstance(source, str) and _is_table(spark, source):
        source = spark.table(source)
    if not _is_frame(source):
        given = [source] if isinstance(source, str | os.PathLike) else cast(Sequence[Any], source)
        files = open_files(spark, [os.fspath(p) for p in given], time, schema, time_format, delimiter)
        _check_arrival(arrival, list(files.schema.names))
        refuse_alike(files.schema.names)
        return SparkSource(files.schema, files.frame, arrival)
    if delimiter is not None:
        check_delimiter(delimiter, None)
    frame = cast(DataFrame, source)
    refuse_alike(frame.columns)
    _check_arrival(arrival, frame.columns)
    if schema is None:
        found = schema_from_spark(frame.drop(CORRUPT).schema)
        return SparkSource(timed(found, time, time_format), frame, arrival)
    missing = [n for n in schema.names if n not in frame.columns]
    if missing:
        raise StreamError(
            "The input lacks columns of the schema.", got=", ".join(missing), hint=f"it has {', '.join(frame.columns)}"
        )
    return SparkSource(schema, frame, arrival)


def refuse_alike(names: Sequence[str]) -> None:
    """Refuse names that differ in case only, which Spark takes for one."""
    lower = [n.lower() for n in names]
    double = [n for n in names if lower.count(n.lower()) > 1]
    if double:
        raise StreamError("Two columns have the same name.", got=", ".join(double), hint="rename one of them")


def _check_arrival(arrival: str | None, columns: list[str]) -> None:
    if arrival is not None and arrival not in columns:
        raise StreamError("The arrival column does not exist.", got=arrival, hint=f"columns: {', '.join(columns)}")


def _is_table(spark: SparkSession, name: str) -> bool:
    """Whether a text names a table of the catalog; what is a path, or has a file's ending, does not."""
    if file_kind(name) is not None or os.path.exists(name) or not _TABLE.fullmatch(name):
        return False
    return bool(spark.catalog.tableExists(name))


def open_spark_frame(
    spark: SparkSession, rows: Batch, dead: list[DeadLetter], arrival: str | None, *, insert_only: bool = True
) -> SparkSource:
    """The source for rows that are in memory; lives become columns under names that no stream has."""
    schema = Schema(rows.schema.fields, rows.schema.time, unusable=rows.schema.unusable)
    if rows.schema.lives is None:
        return SparkSource(schema, frame_of(spark, rows.table, schema), arrival, tuple(dead))
    lives = LivedRows("__ve") if insert_only else LivedRows("__ve", "__v_old", "__op")
    lived = lives.added(schema)
    found = SparkSource(lived, frame_of(spark, lives.joined(rows), lived), arrival, tuple(dead))
    named = found.with_lives(lives)
    return replace(named, schema=replace(named.schema, lives=rows.schema.lives))


def is_spark_readable(source: object) -> bool:
    """Whether Spark reads it itself: a DataFrame of its own, a table's name, or paths."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(s, str | os.PathLike) for s in source)
    return isinstance(source, str | os.PathLike) or _is_frame(source)


def _is_frame(source: object) -> bool:
    return hasattr(source, "isStreaming") and hasattr(source, "mapInArrow")
