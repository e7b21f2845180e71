"""Where rows come from: Arrow, pandas and Polars frames, lists, files, iterables of rows or elements.

A source is opened anew for each run and gives batches, dead letters and, from elements, punctuation. Lists and frames
come in large batches; a plain iterable comes row by row, so that a live one is never waited for.
"""

from __future__ import annotations

import glob
import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from penstock.errors import SourceError, StreamError
from penstock.io import infer
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter, conform_rows, conform_table
from penstock.model.elements import Adjust, Insert, Punctuation
from penstock.model.formats import file_kind
from penstock.model.schema import Schema

BATCH_ROWS = 65_536
Item = Batch | DeadLetter | Punctuation


@dataclass(frozen=True)
class LocalSource:
    """A schema and a way to open the input."""

    schema: Schema
    open: Callable[[], Iterator[Item]]


def open_source(source: object, time: str, schema: str | None = None) -> LocalSource:
    """The source for whatever the user gave."""
    declared = infer.parse_schema(schema, time) if schema is not None else None
    if isinstance(source, str | os.PathLike):
        return _files([os.fspath(source)], time, declared)
    table = _as_table(source)
    if table is not None:
        return _table_source(table, time, declared)
    if isinstance(source, pa.RecordBatchReader):
        return _reader_source(source, time, declared)
    if isinstance(source, Sequence) and source and all(isinstance(s, str | os.PathLike) for s in source):
        return _files([os.fspath(s) for s in source], time, declared)
    if isinstance(source, Sequence):
        if source and isinstance(source[0], Insert | Adjust | Punctuation):
            return _element_source(source, declared)
        rows = cast(Sequence[Mapping[str, object]], source)
        if not all(isinstance(r, Mapping) for r in rows):
            raise StreamError("A list must hold dictionaries, elements or paths.", got=type(rows[0]).__name__)
        final = declared or infer.from_rows(rows, time)
        return LocalSource(final, lambda: _in_batches(final, rows))
    if isinstance(source, Iterable):
        return _iterable_source(source, declared)
    raise StreamError(
        "This cannot be read as a stream.", got=type(source).__name__,
        hint="give an Arrow table or reader, a pandas or Polars frame, a list of dicts, a path, or an iterable",
    )  # fmt: skip


def _as_table(source: object) -> pa.Table | None:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    kind = type(source)
    family = (kind.__module__ or "").split(".")[0]
    if family == "pandas" and kind.__name__ == "DataFrame":
        return pa.Table.from_pandas(source, preserve_index=False)
    if family == "polars" and kind.__name__ in ("DataFrame", "LazyFrame"):
        frame: Any = source
        return (frame.collect() if kind.__name__ == "LazyFrame" else frame).to_arrow()
    return None


def _table_source(table: pa.Table, time: str, declared: Schema | None) -> LocalSource:
    schema = declared or infer.from_arrow(table.schema, time)
    _require(schema, table.schema.names)
    return LocalSource(schema, lambda: _conformed(schema, table.to_batches(BATCH_ROWS), table.schema))


def _reader_source(reader: pa.RecordBatchReader, time: str, declared: Schema | None) -> LocalSource:
    schema = declared or infer.from_arrow(reader.schema, time)
    _require(schema, reader.schema.names)
    return LocalSource(schema, lambda: _conformed(schema, reader, reader.schema))


def _require(schema: Schema, names: Sequence[str]) -> None:
    missing = [n for n in schema.names if n not in names]
    if missing:
        raise StreamError(
            "The input lacks columns of the schema.", got=", ".join(missing), hint=f"it has {', '.join(names)}"
        )


def _conformed(schema: Schema, batches: Iterable[pa.RecordBatch], arrow: pa.Schema) -> Iterator[Item]:
    for batch in batches:
        good, dead = conform_table(schema, pa.Table.from_batches([batch], arrow))
        yield from dead
        if len(good):
            yield good


def _in_batches(schema: Schema, rows: Sequence[Mapping[str, object]]) -> Iterator[Item]:
    for start in range(0, len(rows), BATCH_ROWS):
        good, dead = conform_rows(schema, rows[start : start + BATCH_ROWS])
        yield from dead
        if len(good):
            yield good


def _iterable_source(source: Iterable[object], declared: Schema | None) -> LocalSource:
    if declared is None:
        raise StreamError(
            "The columns of an iterable are not known before it is read.", hint="give schema='ts timestamp, …'"
        )
    schema = declared

    def read() -> Iterator[Item]:
        for item in source:
            if isinstance(item, Mapping):
                good, dead = conform_rows(schema, [item])
                yield from dead
                if len(good):
                    yield good
            else:
                yield _element(item, schema)

    return LocalSource(schema, read)


def _element_source(source: Sequence[object], declared: Schema | None) -> LocalSource:
    if declared is None:
        raise StreamError(
            "The columns of elements are not known.", hint="give schema='ts timestamp, …' for their payloads"
        )
    schema = declared
    return LocalSource(schema, lambda: (_element(item, schema) for item in source))


def _element(item: object, schema: Schema) -> Item:
    if isinstance(item, Punctuation):
        return item
    if isinstance(item, Insert):
        if len(item.payload) != len(schema) or item.payload[schema.time_index] != item.vs or item.ve != item.vs + 1:
            return DeadLetter(
                "the payload does not fit the schema, or its time is not vs, or it lives longer than a tick", repr(item)
            )
        return Batch(schema, [item.payload])
    if isinstance(item, Adjust):
        return DeadLetter("this release reads streams of inserts only", repr(item))
    return DeadLetter("not a row or an element", repr(item))


# Files


def _files(given: list[str], time: str, declared: Schema | None) -> LocalSource:
    paths = [p for name in given for p in expand(name)]
    kinds = {_kind(p) for p in paths}
    if len(kinds) != 1:
        raise SourceError(
            "The files are of different kinds.", got=", ".join(sorted(kinds)), hint="declare one stream per kind"
        )
    match kinds.pop():
        case "parquet":
            return _parquet(paths, time, declared)
        case "csv":
            return _csv(paths, time, declared)
        case _:
            return _jsonl(paths, time, declared)


def expand(name: str) -> list[str]:
    """The files that a path, folder or pattern stands for."""
    path = Path(name)
    if path.is_dir():
        found = sorted(str(p) for p in path.rglob("*") if p.is_file() and not p.name.startswith(("_", ".")))
    else:
        found = [name] if path.exists() else sorted(glob.glob(name))
    if not found:
        raise SourceError(
            "There is no such file.", got=name, hint="check the path; patterns such as 'data/*.parquet' are fine"
        )
    return found


def _kind(path: str) -> str:
    kind = file_kind(path)
    if kind is None:
        raise SourceError(
            "The kind of file is not known.",
            got=path,
            hint="files end in .parquet, .csv or .jsonl (the last two may be .gz)",
        )
    return kind


def _parquet(paths: list[str], time: str, declared: Schema | None) -> LocalSource:
    arrow = pa.parquet.read_schema(paths[0])
    schema = declared or infer.from_arrow(arrow, time)
    _require(schema, arrow.names)

    def read() -> Iterator[Item]:
        for path in paths:
            with pa.parquet.ParquetFile(path) as file:
                yield from _conformed(
                    schema, file.iter_batches(BATCH_ROWS, columns=list(schema.names)), _only(file.schema_arrow, schema)
                )

    return LocalSource(schema, read)


def _only(arrow: pa.Schema, schema: Schema) -> pa.Schema:
    return pa.schema([f for f in arrow if f.name in schema.names])


def _csv(paths: list[str], time: str, declared: Schema | None) -> LocalSource:
    schema = declared or infer.from_arrow(pa.csv.open_csv(paths[0]).schema, time)

    def read() -> Iterator[Item]:
        for path in paths:
            torn: list[DeadLetter] = []

            def keep(row: Any, torn: list[DeadLetter] = torn) -> str:
                torn.append(
                    DeadLetter(
                        f"{row.actual_columns} fields where {row.expected_columns} were expected", row.text or ""
                    )
                )
                return "skip"

            reader = pa.csv.open_csv(
                path,
                parse_options=pa.csv.ParseOptions(invalid_row_handler=keep),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(schema.names, pa.string()), strings_can_be_null=True
                ),
            )
            _require(schema, reader.schema.names)
            yield from _conformed(schema, reader, reader.schema)
            yield from torn

    return LocalSource(schema, read)


def _lines(paths: list[str]) -> Iterator[str]:
    for path in paths:
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as file:
            yield from (line for line in file if line.strip())


def _jsonl(paths: list[str], time: str, declared: Schema | None) -> LocalSource:
    schema = declared or infer.from_rows((row for _, row in _objects(_lines(paths)) if row is not None), time)

    def read() -> Iterator[Item]:
        rows: list[Mapping[str, object]] = []
        for line, row in _objects(_lines(paths)):
            if row is None:
                yield DeadLetter("not a JSON object", line.rstrip("\n"))
                continue
            rows.append(row)
            if len(rows) == BATCH_ROWS:
                yield from _in_batches(schema, rows)
                rows = []
        yield from _in_batches(schema, rows)

    return LocalSource(schema, read)


def _objects(lines: Iterable[str]) -> Iterator[tuple[str, Mapping[str, object] | None]]:
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        yield line, value if isinstance(value, dict) else None
