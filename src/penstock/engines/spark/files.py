"""Files on Spark, read as they are in-process.

Lines of text come from Spark, which lists, splits and decompresses; what a line means is told by `model.lines`, in the
same Python code as in-process, so that both read alike. Each task knows the headers of all files, since a large file is
cut. Parquet is read by Spark itself, and by Arrow where Spark refuses a file that Arrow reads (nanoseconds, times of
day), or where the files differ in types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.engines.spark.types import schema_from_spark, spark_ddl
from penstock.errors import SourceError, StreamError
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter
from penstock.model.formats import TextFormat, check_delimiter, one_kind, text_format
from penstock.model.lines import BOM, conform_lines, header_names, parse_fields, parse_objects
from penstock.model.schema import Schema, timed
from penstock.model.shapes import Shapes, join_shapes, schema_of_shapes, shapes_of_objects, shapes_of_table
from penstock.storage.files import Place, place_of
from penstock.storage.parquet_files import parquet_schema, read_parquet
from penstock.storage.patterns import ANY_DEPTH, meets_file, split_pattern

CORRUPT = "_corrupt_record"
"""The text of a record that could not be read."""
REASON = "_corrupt_reason"
"""Why."""
Batches = Iterator[pa.RecordBatch]
SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException,)
"""What Spark raises; a session in this process passes some errors of the JVM on as they are."""
if find_spec("py4j") is not None:
    SPARK_ERRORS += (import_module("py4j.protocol").Py4JError,)


@dataclass(frozen=True)
class Files:
    """What some files hold, as a DataFrame in the schema's types, with dead letters in `CORRUPT` and `REASON`."""

    schema: Schema
    frame: DataFrame


def open_files(
    spark: SparkSession,
    given: list[str],
    time: str | None,
    declared: Schema | None,
    time_format: str | None,
    delimiter: str | None,
) -> Files:
    """The files of a stream."""
    paths = [path for p in given for path in _paths(spark, place_of(p))]
    files = _listed(spark, paths, given)
    kind = one_kind(files)
    if delimiter is not None:
        check_delimiter(delimiter, kind)
    if kind == "parquet":
        return _parquet(spark, paths, files, time, declared, time_format)
    form = text_format(kind, files[0], delimiter)
    lines = _lines(spark, paths)
    headers = _headers(lines, form) if kind == "csv" else {}
    if declared is None:
        shapes = _text_shapes(lines, form, headers, files)
        schema = timed(schema_of_shapes(shapes, time, time_format), time, time_format)
    else:
        schema = declared
        _require(schema, [n for names in headers.values() for n in names], kind)
    return _typed(lines, LineReader(form, schema, headers), schema)


def _paths(spark: SparkSession, place: Place) -> list[str]:
    """A path, a folder or a pattern as Spark means it; to Spark `**` is `*`, so there its files are found here."""
    base, pattern = split_pattern(place.path)
    if ANY_DEPTH not in pattern:
        return [place.uri]
    root = place.uri[: len(place.uri) - len(place.path) + len(base)]
    found = [
        f for f in _listed(spark, [root], [str(place)]) if meets_file(pattern, f.removeprefix(f"{root}/").split("/"))
    ]
    if not found:
        raise SourceError("There is no such file.", got=str(place), hint=f"no file below {root} is like the pattern")
    return [re.sub(r"[\\*?\[\]{}]", r"\\\g<0>", f) for f in found]


def _listed(spark: SparkSession, paths: list[str], given: list[str]) -> list[str]:
    try:
        files = spark.read.option("recursiveFileLookup", "true").text(paths).inputFiles()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise SourceError(
                "There is no such file.",
                got=", ".join(given),
                hint="check the path; patterns such as 'data/*.parquet' are fine",
            ) from None
        raise SourceError("The path cannot be read.", got=str(error).splitlines()[0]) from error
    if not files:
        raise SourceError("There is no such file.", got=", ".join(given), hint="the folder is empty")
    return sorted(unquote(f) for f in files)


def _require(schema: Schema, known: list[str], kind: str) -> None:
    missing = [n for n in schema.names if n not in known]
    if missing and known and kind != "jsonl":
        raise StreamError(
            "The input lacks columns of the schema.",
            got=", ".join(missing),
            hint=f"it has {', '.join(dict.fromkeys(known))}",
        )


# Lines


def _lines(spark: SparkSession, paths: list[str]) -> DataFrame:
    read = spark.read.option("recursiveFileLookup", "true").text(paths)
    return read.select(
        F.col("value").cast("binary").alias("line"),
        F.col("_metadata.file_path").alias("path"),
        F.col("_metadata.file_block_start").alias("start"),
    )


def _runs(batches: Batches) -> Iterator[tuple[str, bool, list[bytes]]]:
    """The lines of one file at a time: its path, whether its first line is among them, and the lines."""
    before: tuple[str, int] | None = None
    for batch in batches:
        lines = batch.column("line").to_pylist()
        places = list(zip(batch.column("path").to_pylist(), batch.column("start").to_pylist(), strict=True))
        at = 0
        while at < len(lines):
            end = at
            while end < len(lines) and places[end] == places[at]:
                end += 1
            path, start = places[at]
            yield path, start == 0 and places[at] != before, lines[at:end]
            before, at = places[at], end


@dataclass(frozen=True)
class HeaderReader:
    """Finds the first line of each file that is not blank."""

    def __call__(self, batches: Batches) -> Batches:
        """For `mapInArrow`."""
        found: dict[str, bytes] = {}
        for path, _, lines in _runs(batches):
            if path not in found:
                first = next((line for line in lines if line.removeprefix(BOM).strip()), None)
                if first is not None:
                    found[path] = first
        yield pa.RecordBatch.from_arrays(
            [pa.array(list(found), pa.string()), pa.array(list(found.values()), pa.binary())], names=["path", "line"]
        )


def _headers(lines: DataFrame, form: TextFormat) -> dict[str, list[str]]:
    first = lines.filter("start = 0").mapInArrow(_function(HeaderReader()), "path string, line binary")
    return {r.path: header_names(bytes(r.line), form.delimiter, unquote(r.path)) for r in _told(first)}


def _told(frame: DataFrame) -> list[Any]:
    """The rows of a frame over files; a failure names the file."""
    with files_named():
        return frame.collect()


@contextmanager
def files_named() -> Iterator[None]:
    """While Spark reads files: one that it cannot read is an error of ours that names it."""
    try:
        yield
    except SPARK_ERRORS as error:
        text = str(error)
        if "FAILED_READ_FILE" not in text and "penstock.errors.SourceError" not in text:
            raise
        raise _unreadable(text) from error


def _unreadable(text: str) -> SourceError:
    named = re.search(r"reading file (\S+)|where: (\S[^\n]*)", text)
    cause = re.findall(r"Caused by: ([^\n]+)|got: +([^\n]+)", text)
    path = unquote((named.group(1) or named.group(2)).rstrip(".")) if named is not None else ""
    return SourceError(
        "The file cannot be read.",
        where=path,
        got="".join(cause[-1])[:300] if cause else text.splitlines()[0][:300],
        hint="it is damaged, still being written, or not what its ending says",
    )


def _body(path: str, first: bool, lines: list[bytes], headers: Mapping[str, list[str]]) -> list[bytes]:
    """The lines without the header."""
    if path in headers and first:
        for i, line in enumerate(lines):
            if line.removeprefix(BOM).strip():
                return lines[i + 1 :]
        return []
    return lines


@dataclass(frozen=True)
class ShapeReader:
    """What the values of each column look like."""

    form: TextFormat
    headers: Mapping[str, list[str]]

    def __call__(self, batches: Batches) -> Batches:
        """For `mapInArrow`."""
        shapes: Shapes = {}
        for path, first, lines in _runs(batches):
            if self.form.kind == "csv":
                body = _body(path, first, lines, self.headers)
                table = parse_fields(body, self.headers[path], self.form.delimiter)[0]
                join_shapes(shapes, shapes_of_table(table))
            else:
                join_shapes(shapes, shapes_of_objects(parse_objects(lines)[0]))
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(shapes)], pa.string())], names=["shapes"])


def _text_shapes(lines: DataFrame, form: TextFormat, headers: Mapping[str, list[str]], files: list[str]) -> Shapes:
    shapes: Shapes = {name: 0 for path in sorted(headers) for name in headers[path]}
    for row in _told(lines.mapInArrow(_function(ShapeReader(form, headers)), "shapes string")):
        join_shapes(shapes, json.loads(row.shapes))
    if not shapes:
        what = "The file is empty." if form.kind == "csv" else "No line holds a JSON object."
        hint = "give schema='ts timestamp, …'" if form.kind == "csv" else "one object per line is read"
        raise SourceError(what, got=", ".join(files[:3]), hint=hint)
    return shapes


@dataclass(frozen=True)
class LineReader:
    """Reads lines into a schema."""

    form: TextFormat
    schema: Schema
    headers: Mapping[str, list[str]]

    def __call__(self, batches: Batches) -> Batches:
        """For `mapInArrow`."""
        for path, first, lines in _runs(batches):
            body = _body(path, first, lines, self.headers)
            yield from _with_dead(*conform_lines(self.schema, self.form, self.headers.get(path, ()), body))


def _with_dead(good: Batch, dead: list[DeadLetter]) -> Batches:
    """Rows and dead letters as batches of one schema."""
    schema = good.schema
    wide = pa.schema([*schema.arrow, (REASON, pa.string()), (CORRUPT, pa.string())])
    if len(good):
        nothing = pa.nulls(len(good), pa.string())
        columns = [*good.table.columns, nothing, nothing]
        yield from pa.Table.from_arrays(columns, schema=wide).to_batches()
    if dead:
        empty = [pa.nulls(len(dead), f.type.arrow) for f in schema.fields]
        texts = [pa.array([d.reason for d in dead], pa.string()), pa.array([d.row for d in dead], pa.string())]
        yield from pa.Table.from_arrays([*empty, *texts], schema=wide).to_batches()


def _typed(frame: DataFrame, reader: Any, schema: Schema) -> Files:
    """What a reader makes of a frame: its rows are in the schema's types, the time too."""
    read = frame.mapInArrow(_function(reader), f"{spark_ddl(schema)}, {REASON} string, {CORRUPT} string")
    return Files(replace(schema, time_format=None), read)


def _function(callable_: Any) -> Any:
    """A plain function, which is what Spark asks for."""

    def apply(batches: Batches) -> Batches:
        yield from callable_(batches)

    return apply


# Parquet


def _parquet(
    spark: SparkSession,
    paths: list[str],
    files: list[str],
    time: str | None,
    declared: Schema | None,
    time_format: str | None,
) -> Files:
    reader = spark.read.option("recursiveFileLookup", "true").option("mergeSchema", str(len(files) > 1).lower())
    try:
        frame = reader.parquet(*paths)
        found = frame.schema  # over Spark Connect nobody has looked before this
    except SPARK_ERRORS:  # it tells of the footers; Arrow may read them, or tells of the file
        return _by_arrow(spark, files, time, declared, time_format)
    if declared is not None:
        _require(declared, frame.columns, "parquet")
        return Files(declared, frame)
    return Files(timed(schema_from_spark(found), time, time_format), frame)


@dataclass(frozen=True)
class ParquetReader:
    """Reads parquet files by their paths."""

    schema: Schema

    def __call__(self, batches: Batches) -> Batches:
        """For `mapInArrow`."""
        for batch in batches:
            files = [place_of(p) for p in batch.column("path").to_pylist()]
            for good, dead in read_parquet(files, self.schema):
                yield from _with_dead(good, dead)


def _by_arrow(
    spark: SparkSession, files: list[str], time: str | None, declared: Schema | None, time_format: str | None
) -> Files:
    found = parquet_schema([place_of(f) for f in files])
    schema = declared if declared is not None else timed(found, time, time_format)
    _require(schema, [*found.names, *[n for n, _ in found.unusable]], "parquet")
    tasks = min(len(files), max(spark.sparkContext.defaultParallelism if hasattr(spark, "sparkContext") else 2, 1))
    listed = spark.createDataFrame([(f,) for f in files], "path string").repartition(tasks)
    return _typed(listed, ParquetReader(schema), schema)
