"""Where rows come from: Arrow, pandas and Polars frames, lists, files, iterables of rows or elements.

A source is opened anew for each run and gives batches, dead letters and, from elements, punctuation. Lists and frames
come in large batches; a plain iterable comes row by row, so that a live one is never waited for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar, cast

import pyarrow as pa

from penstock.errors import SourceError, StreamError
from penstock.io import infer
from penstock.io.files import BATCH_ROWS, expand, file_source_schema, read_text_files
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter, conform_row, conform_rows, conform_table, described, written
from penstock.model.elements import Adjust, Insert, Punctuation
from penstock.model.formats import check_delimiter
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.storage.parquet_files import read_parquet

T = TypeVar("T")
Item = Batch | DeadLetter | Punctuation


@dataclass(frozen=True)
class LocalSource:
    """A schema and a way to open the input."""

    schema: Schema
    open: Callable[[], Iterator[Item]]
    paths: tuple[str, ...] = ()
    """What was given, where that is files."""


def open_source(
    source: object, time: str, schema: str | None = None, time_format: str | None = None, delimiter: str | None = None
) -> LocalSource:
    """The source for whatever the user gave."""
    declared = infer.parse_schema(schema, time, time_format) if schema is not None else None
    if _are_paths(source):
        given = [source] if isinstance(source, str | os.PathLike) else cast(Sequence[Any], source)
        return _files([os.fspath(s) for s in given], time, declared, delimiter, time_format)
    if delimiter is not None:
        check_delimiter(delimiter, None)
    table = _as_table(source)
    if table is not None:
        final = declared or infer.from_arrow(table.schema, time, time_format)
        _require(final, table.schema.names)
        return LocalSource(final, lambda: _conformed(final, table.to_batches(BATCH_ROWS), table.schema))
    if isinstance(source, pa.RecordBatchReader):
        final = declared or infer.from_arrow(source.schema, time, time_format)
        _require(final, source.schema.names)
        batches = _once(source)
        return LocalSource(final, lambda: _conformed(final, batches(), source.schema))
    if isinstance(source, Sequence) and not isinstance(source, bytes | bytearray):
        if source and not any(isinstance(item, Mapping | Insert | Adjust | Punctuation) for item in source):
            raise StreamError("A list must hold dictionaries, elements or paths.", got=type(source[0]).__name__)
        final = declared or infer.from_rows(_rows_among(source), time, time_format)
        return LocalSource(final, lambda: _in_batches(final, source))
    if isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | Mapping):
        return _iterable_source(source, declared)
    raise StreamError(
        "This cannot be read as a stream.", got=type(source).__name__,
        hint="give an Arrow table or reader, a pandas or Polars frame, a list of dicts, a path, or an iterable",
    )  # fmt: skip


def _are_paths(source: object) -> bool:
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(s, str | os.PathLike) for s in source)
    return isinstance(source, str | os.PathLike)


def _files(
    given: list[str], time: str, declared: Schema | None, delimiter: str | None, time_format: str | None
) -> LocalSource:
    paths = [p for name in given for p in expand(name)]
    _, form, schema = file_source_schema(paths, time, declared, delimiter, time_format)
    if form is None:
        return LocalSource(schema, lambda: _flat(read_parquet(paths, schema)), tuple(given))
    return LocalSource(schema, lambda: read_text_files(paths, form, schema), tuple(given))


def _once(source: Iterable[T]) -> Callable[[], Iterator[T]]:
    """A way to read an iterable; one that is its own iterator can be read once, and says so the second time."""
    state = {"read": False}

    def read() -> Iterator[T]:
        items = iter(source)
        if items is source or isinstance(source, pa.RecordBatchReader):
            if state["read"]:
                raise SourceError(
                    "The source has been read already, and can be read only once.",
                    got=type(source).__name__,
                    hint="declare the stream anew with a fresh one, or give a list or a table",
                )
            state["read"] = True
        return items

    return read


def _as_table(source: object) -> pa.Table | None:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    kind = type(source)
    family = (kind.__module__ or "").split(".")[0]
    frame: Any = source
    if family == "pandas" and kind.__name__ == "DataFrame":
        return _from_pandas(frame)
    if family == "polars" and kind.__name__ in ("DataFrame", "LazyFrame"):
        try:
            return (frame.collect() if kind.__name__ == "LazyFrame" else frame).to_arrow()
        except Exception as error:  # polars has errors of its own, and panics
            raise StreamError("The frame cannot be read.", got=str(error)[:300]) from error
    return None


def _from_pandas(frame: Any) -> pa.Table:
    names, columns = [str(n) for n in frame.columns], []
    for i, name in enumerate(names):
        try:
            columns.append(pa.chunked_array(pa.Array.from_pandas(frame.iloc[:, i])))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise StreamError(
                "A column holds values of types that do not go together.",
                got=f"{name}: {str(error)[:200]}",
                hint="convert it before, or leave it out",
            ) from None
    return pa.Table.from_arrays(columns, names=names)


def _require(schema: Schema, names: Sequence[str]) -> None:
    double = {n for n in schema.names if list(names).count(n) > 1}
    if double:
        raise StreamError("Two columns have the same name.", got=", ".join(sorted(double)), hint="rename one of them")
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


def _flat(parts: Iterable[tuple[Batch, list[DeadLetter]]]) -> Iterator[Item]:
    for good, dead in parts:
        yield from dead
        if len(good):
            yield good


def _rows_among(items: Sequence[object]) -> list[Mapping[str, object]]:
    """The rows of a list, of which its columns are told; elements do not tell them."""
    rows: list[Mapping[str, object]] = [item for item in items if isinstance(item, Mapping)]
    if not rows and any(isinstance(item, Insert | Adjust | Punctuation) for item in items):
        raise StreamError(
            "The columns of elements are not known.", hint="give schema='ts timestamp, …' for their payloads"
        )
    return rows


def _in_batches(schema: Schema, items: Sequence[object]) -> Iterator[Item]:
    """Rows in batches, and between them whatever else there is, in the order in which it stands."""
    for start in range(0, len(items), BATCH_ROWS):
        for are_rows, run in groupby(items[start : start + BATCH_ROWS], _is_row):
            if are_rows:
                good, dead = conform_rows(schema, cast(list[Mapping[str, object]], list(run)))
                yield from dead
                if len(good):
                    yield good
            else:
                yield from (_element(item, schema) for item in run)


def _is_row(item: object) -> bool:
    return isinstance(item, Mapping)


def _iterable_source(source: Iterable[object], declared: Schema | None) -> LocalSource:
    if declared is None:
        raise StreamError(
            "The columns of an iterable are not known before it is read.", hint="give schema='ts timestamp, …'"
        )
    schema = declared
    items = _once(source)

    def read() -> Iterator[Item]:
        for item in items():
            if isinstance(item, Mapping):
                good, dead = conform_rows(schema, [item])
                yield from dead
                if len(good):
                    yield good
            else:
                yield _element(item, schema)

    return LocalSource(schema, read)


def _element(item: object, schema: Schema) -> Item:
    if isinstance(item, Punctuation):
        if all(MIN_TICK <= bound <= END_OF_TIME for _, bound in item.bounds):
            return item
        return DeadLetter("a bound is not a number of 64 bits", repr(item))
    if isinstance(item, Insert):
        if len(item.payload) != len(schema) or item.payload[schema.time_index] != item.vs or item.ve != item.vs + 1:
            return DeadLetter(
                "the payload does not fit the schema, or its time is not vs, or it lives longer than a tick",
                written(described(item)),
            )
        row = conform_row(schema, item.payload)
        return row if isinstance(row, DeadLetter) else Batch(schema, [row])
    if isinstance(item, Adjust):
        return DeadLetter("this release reads streams of inserts only", written(described(item)))
    return _no_row(item)


def _no_row(item: object) -> DeadLetter:
    return DeadLetter("not a row or an element", written(described(item)))
