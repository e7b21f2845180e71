"""Where rows come from: Arrow, pandas and Polars frames, lists, files, iterables of rows or elements.

A source is opened anew for each run and gives batches, dead letters and, from elements, punctuation. Lists and frames
come in large batches; a plain iterable comes row by row, so that a live one is never waited for. Rows may tell their
lives in columns (`model.lived_rows`); elements have them anyway.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import pyarrow as pa
import pyarrow.dataset

from penstock.engines.local.opening import Given, Item
from penstock.errors import SourceError, StreamError
from penstock.io import infer
from penstock.io.awaited import AsyncSource
from penstock.io.datasets import dataset_source
from penstock.io.elements import LocalSource, in_batches, list_source
from penstock.io.files import expand, file_source_schema, read_text_files
from penstock.io.live_lines import Lines
from penstock.io.messages import Messages, SourceTarget
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter, conform_rows, conform_table
from penstock.model.element_rows import Elements, with_lives
from penstock.model.elements import Adjust, Insert, Punctuation
from penstock.model.formats import check_delimiter
from penstock.model.lived_rows import LivedRows
from penstock.model.schema import Schema, progressing
from penstock.runtime.polled import Polled, PolledItems
from penstock.runtime.positions import Resumable, ResumableItems
from penstock.storage.parquet_files import read_parquet

T = TypeVar("T")
TABLE_ROWS = 131_072
"""A table is there already, so its batches are as large as they are cheapest."""
ROWS_AHEAD = 256
BATCHES_AHEAD = 4
"""Of an iterable and of a reader of Arrow batches."""


def open_source(
    source: object,
    time: str | None,
    schema: str | None = None,
    time_format: str | None = None,
    delimiter: str | None = None,
    lives: LivedRows | bool = False,
    attributes: Sequence[str] = (),
) -> LocalSource:
    """The source for whatever the user gave; `lives` are in columns, or with elements that may be revised.

    `attributes` are those that progress, where there are several.
    """
    if not isinstance(lives, LivedRows):
        ready = _as_it_is if not attributes else partial(progressing, attributes=attributes)
        return _open(source, time, schema, time_format, delimiter, ready, may_revise=lives)
    opened = _open(source, time, schema, time_format, delimiter, lives.read_as, may_revise=False)
    if opened.is_polled:
        raise StreamError("A polled source gives rows with lives as elements.", hint="lives=True, and pk.Insert(…)")
    if opened.is_resumable:
        raise StreamError("A source with a position gives rows with lives as elements.", hint="lives=True")
    payload = lives.payload(opened.schema)

    def read() -> Iterator[Given]:
        for item in opened.open():
            if not isinstance(item, Batch):
                yield item
                continue
            made, dead = lives.split(item, payload)
            yield from dead
            if len(made):
                yield made

    return LocalSource(payload, read, opened.paths, insert_only=lives.old is None)


def _as_it_is(schema: Schema) -> Schema:
    return schema


def _open(
    source: object,
    time: str | None,
    schema: str | None,
    time_format: str | None,
    delimiter: str | None,
    ready: Callable[[Schema], Schema],
    *,
    may_revise: bool,
) -> LocalSource:
    """The source with its columns made `ready`."""
    declared = ready(infer.parse_schema(schema, time, time_format)) if schema is not None else None
    if _are_paths(source):
        given = [source] if isinstance(source, str | os.PathLike) else cast(Sequence[Any], source)
        return _files([os.fspath(s) for s in given], time, declared, delimiter, time_format, ready)
    if delimiter is not None:
        check_delimiter(delimiter, None)
    table = _as_table(source)
    if table is not None:
        final = declared or ready(infer.from_arrow(table.schema, time, time_format))
        _require(final, table.schema.names)
        return LocalSource(final, lambda: _conformed(final, table.to_batches(TABLE_ROWS), table.schema))
    if isinstance(source, pa.dataset.Dataset):
        final = declared or ready(infer.from_arrow(source.schema, time, time_format))
        _require(final, source.schema.names)
        return dataset_source(source, final)
    if isinstance(source, pa.RecordBatchReader):
        final = declared or ready(infer.from_arrow(source.schema, time, time_format))
        _require(final, source.schema.names)
        batches = _once(source)
        return LocalSource(final, lambda: _conformed(final, _begun(batches), source.schema), ahead=BATCHES_AHEAD)
    if isinstance(source, Sequence) and not isinstance(source, bytes | bytearray):
        if source and not any(isinstance(item, Mapping | Insert | Adjust | Punctuation) for item in source):
            raise StreamError("A list must hold dictionaries, elements or paths.", got=type(source[0]).__name__)
        final = declared or ready(infer.from_rows(_rows_among(source), time, time_format))
        return list_source(source, final, may_revise=may_revise)
    if isinstance(source, SourceTarget) and not isinstance(source, type):
        return _broker_source(source, declared, may_revise=may_revise)
    if isinstance(source, Polled) and not isinstance(source, type):
        columns = getattr(source, "columns", None)  # of a source that has them whatever is read
        if declared is None and isinstance(columns, str):
            declared = ready(infer.parse_schema(columns, time, time_format))
        return _polled_source(source, declared, may_revise=may_revise)
    if isinstance(source, AsyncIterable) and not isinstance(source, type):
        return replace(_polled_source(AsyncSource(source), declared, may_revise=may_revise), is_async=True)
    if isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | Mapping):
        return _iterable_source(source, declared, may_revise=may_revise)
    raise StreamError(
        "This cannot be read as a stream.", got=type(source).__name__,
        hint="give an Arrow table, reader or dataset, a pandas or Polars frame, a list of dicts, a path, an iterable, "
        "an asynchronous one, or what has poll()",
    )  # fmt: skip


def _are_paths(source: object) -> bool:
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(s, str | os.PathLike) for s in source)
    return isinstance(source, str | os.PathLike)


def _files(
    given: list[str],
    time: str | None,
    declared: Schema | None,
    delimiter: str | None,
    time_format: str | None,
    ready: Callable[[Schema], Schema],
) -> LocalSource:
    paths = [p for name in given for p in expand(name)]
    _, form, found = file_source_schema(paths, time, declared, delimiter, time_format)
    schema = ready(found)
    if form is None:
        return LocalSource(schema, lambda: _flat(read_parquet(paths, schema)), tuple(given))
    return LocalSource(schema, lambda: read_text_files(paths, form, schema), tuple(given))


def _once(source: Iterable[T]) -> Callable[[], Iterator[T]]:
    """A way to read an iterable; one that is its own iterator can be read once, and says so the second time."""
    first = threading.Lock()
    """Held for good by whoever reads it."""

    def read() -> Iterator[T]:
        items = iter(source)
        if (items is source or isinstance(source, pa.RecordBatchReader)) and not first.acquire(blocking=False):
            raise SourceError(
                "The source has been read already, and can be read only once.",
                got=type(source).__name__,
                hint="declare the stream anew with a fresh one, or give a list or a table",
            )
        return items

    return read


def _begun(begin: Callable[[], Iterator[T]]) -> Iterator[T]:
    """It is read when the first is asked for: a run that is refused has not read it."""
    yield from begin()


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
    infer.check_names(names)
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


def _one_by_one(declared: Schema | None, *, may_revise: bool) -> Elements:
    """How single things become items of a stream, whose columns must be declared."""
    if declared is None:
        raise StreamError(
            "The columns of an iterable are not known before it is read.", hint="give schema='ts timestamp, …'"
        )
    return Elements(with_lives(declared) if may_revise else declared)


def _made(form: Elements, given: object) -> Iterator[Item]:
    """What becomes of one thing that a source gave: a row, an element, punctuation, or a list of them."""
    if isinstance(given, Lines | Messages):
        yield from given.items(form.schema)
    elif isinstance(given, list):
        yield from in_batches(form, given)
    elif isinstance(given, Mapping):
        good, dead = conform_rows(form.schema, [given])
        yield from dead
        if len(good):
            yield good
    else:
        yield form.item(given)


def _iterable_source(source: Iterable[object], declared: Schema | None, *, may_revise: bool) -> LocalSource:
    form, items = _one_by_one(declared, may_revise=may_revise), _once(source)

    def read() -> Iterator[Item]:
        for given in items():
            yield from _made(form, given)

    if isinstance(source, Resumable):
        return LocalSource(
            form.schema,
            lambda: ResumableItems(source, items, partial(_made, form)),
            insert_only=not may_revise,
            ahead=ROWS_AHEAD,
            is_resumable=True,
        )
    return LocalSource(form.schema, read, insert_only=not may_revise, ahead=ROWS_AHEAD)


def _broker_source(source: SourceTarget, declared: Schema | None, *, may_revise: bool) -> LocalSource:
    """Each run reads with a client of its own."""
    if may_revise:
        raise StreamError("Messages of a broker are plain rows, without lives.", got=repr(source)[:200])
    form = _one_by_one(declared, may_revise=False)
    source.check_columns(form.schema)

    def read() -> PolledItems[Item]:
        reader = source.open_source(form.schema)
        return PolledItems(reader, partial(_made, form), ended=reader.close)

    return LocalSource(form.schema, read, is_polled=True, is_resumable=True)


def _polled_source(source: Polled, declared: Schema | None, *, may_revise: bool) -> LocalSource:
    form = _one_by_one(declared, may_revise=may_revise)
    opening, last = threading.Lock(), list[PolledItems[Item]]()

    def read() -> PolledItems[Item]:
        with opening:
            if last and last[0].is_open:
                raise SourceError(
                    "The source is being read already.",
                    got=type(source).__name__,
                    hint="flow.start runs several queries over one source; or stop the other run first",
                )
            last[:] = [PolledItems(source, partial(_made, form))]
            return last[0]

    return LocalSource(
        form.schema, read, insert_only=not may_revise, is_polled=True, is_resumable=isinstance(source, Resumable)
    )
