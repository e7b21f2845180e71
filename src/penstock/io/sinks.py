"""Where results go in-process: a file, a list, a function, also of coroutines, what is a sink itself, or nowhere.

In text, bytes are base64. In a CSV file of one column a null is a quoted empty field: a line without anything would be
no record.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from penstock.errors import SourceError
from penstock.io.awaited import CoroutineSink, is_coroutine_function
from penstock.io.published import Port
from penstock.model.conform import as_json
from penstock.model.text import write_bytes
from penstock.storage.files import place_of
from penstock.storage.holding import Hold

GROUP = 20_000
"""So many rows are written to a parquet file together."""


@runtime_checkable
class Sink(Protocol):
    """Takes tables until it is closed."""

    def write(self, table: pa.Table) -> None:
        """Take a table."""

    def close(self) -> None:
        """No more comes, and what came is whole."""

    def abandon(self) -> bool:
        """No more comes, and what came is a part; whether anything did."""


@runtime_checkable
class ResumableSink(Protocol):
    """A sink whose position a snapshot keeps, and that can be put back to it."""

    def position(self) -> Any:
        """Bring what was written to where it lasts; where it ends, as plain data."""

    def resume(self, position: Any) -> None:
        """Go on from a position, with nothing behind it, before anything is written; from None anew."""


@runtime_checkable
class SinkTarget(Protocol):
    """What can be given as a sink, and is opened by the run."""

    def open_sink(self, schema: pa.Schema | None) -> Sink:
        """A sink for tables of a schema, or, without one, of whatever comes."""


def open_sink(target: Any, schema: pa.Schema | None = None, *, continued: bool = False) -> Sink:
    """The sink for whatever the user gave; a file that is `continued` can be gone on with."""
    if isinstance(target, SinkTarget) and not isinstance(target, type):
        return target.open_sink(schema)
    if target is None:
        return FunctionSink(lambda table: None)
    if isinstance(target, list):
        return FunctionSink(lambda table: target.extend(table.to_pylist()))
    if isinstance(target, Port):
        return target.open()
    if isinstance(target, Sink) and not isinstance(target, type):
        return target
    if is_coroutine_function(target):
        return CoroutineSink(target)
    if callable(target):
        return FunctionSink(target)
    if isinstance(target, str | os.PathLike):
        if continued:
            from penstock.io.continued import ContinuedFile  # which builds on this module

            return ContinuedFile(os.fspath(target), schema)
        return FileSink(os.fspath(target), schema)
    raise SourceError(
        "Results cannot be written there.", got=type(target).__name__, hint="give a path, a list, a function, or a sink"
    )


class FunctionSink:
    """Calls a function with each table that has rows."""

    def __init__(self, function: Callable[[pa.Table], object]) -> None:
        """The function to call."""
        self.function = function

    def write(self, table: pa.Table) -> None:
        """Call it."""
        if not table.num_rows:
            return
        given: object = self.function(table)
        if inspect.iscoroutine(given):
            given.close()
            raise SourceError(
                "A function gave a coroutine, which nobody awaits.", hint="give the coroutine function itself"
            )

    def close(self) -> None:
        """Nothing to do."""

    def abandon(self) -> bool:
        """What was handed over stays there."""
        return True


class FileSink:
    """A parquet, csv or jsonl file, under its name once it is whole.

    Until then, and for good if the run fails, it is called `….partial`: a reader never takes a part for the whole.
    Nobody else can write it meanwhile. That somebody takes it away is an error, told with the next table or at the end.
    """

    def __init__(self, path: str, schema: pa.Schema | None = None) -> None:
        """The ending says the kind; with a schema the file is written even if no row comes."""
        self.kind = path.rsplit(".", 1)[-1].lower()
        if self.kind not in ("parquet", "csv", "jsonl"):
            raise SourceError(
                "The kind of file is not known.", got=path, hint="results are written as .parquet, .csv or .jsonl"
            )
        self.place, self.schema = place_of(path), schema
        self.partial = place_of(f"{path}.partial")
        self.stream: Any = None
        self.writer: Any = None
        self._rows = self._length = 0
        self._held: list[pa.Table] = []
        """Small tables for a parquet file, which nobody can read before it is closed: one group of rows for them."""
        with self._told():
            self.hold = Hold(self.place, self.partial)

    def _open(self, schema: pa.Schema) -> None:
        with self._told():
            self.stream = self.partial.fs.open_output_stream(self.partial.path)
            if self.kind == "parquet":
                self.writer = pa.parquet.ParquetWriter(self.stream, schema)
            elif self.kind == "csv":
                self.writer = CSVTables(self.stream, schema)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, pa.ArrowException) as error:
            raise SourceError("Results cannot be written there.", where=str(self.place), got=str(error)) from error

    def write(self, table: pa.Table) -> None:
        """Append a table."""
        self.hold.check(self._length)
        if self.stream is None:
            self._open(table.schema)
        with self._told():
            if self.kind == "parquet":
                self._held.append(table)
                self._rows += table.num_rows
                if self._rows >= GROUP:
                    self._flush()
            elif self.writer is not None:
                self.writer.write_table(table)
            else:
                self.stream.write("".join(as_json(row) + "\n" for row in table.to_pylist()).encode())
            self._length = self._written()

    def _written(self) -> int:
        """How much of it must be there by now."""
        return int(self.stream.tell())

    def close(self) -> None:
        """The run is over: the file gets its name."""
        try:
            if self.stream is None and self.schema is not None:
                self.hold.check()
                self._open(self.schema)
            if self._end():
                with self._told():
                    self.partial.move(self.place)
        finally:
            self.hold.release()

    def abandon(self) -> bool:
        """The run failed: what was written stays a part. Whether anything was."""
        try:
            return self._end()
        finally:
            self.hold.release()

    def _end(self) -> bool:
        if self.stream is None:
            return False
        with self._told():
            self._flush()
            if self.writer is not None:
                self.writer.close()
            self._length = self._written()
            self.stream.close()
        self.hold.check(self._length)
        return True

    def _flush(self) -> None:
        if self._held:
            self.writer.write_table(pa.concat_tables(self._held))
            self._held, self._rows = [], 0


class CSVTables:
    """Writes tables of a schema as delimited text."""

    def __init__(self, stream: Any, schema: pa.Schema | None = None) -> None:
        """With a schema begin with a line of names; without one go on below what is there."""
        self.stream = stream
        if schema is not None:
            self._put(schema.empty_table(), pa.csv.WriteOptions())

    def write_table(self, table: pa.Table) -> None:
        """Append a table."""
        self._put(table, pa.csv.WriteOptions(include_header=False))

    def _put(self, table: pa.Table, options: pa.csv.WriteOptions) -> None:
        for i in (i for i, field in enumerate(table.schema) if _is_bytes(field.type)):
            text = [None if v is None else write_bytes(v) for v in table.column(i).to_pylist()]
            table = table.set_column(i, table.schema.names[i], pa.array(text, pa.string()))
        if table.num_columns != 1 or not table.column(0).null_count:
            pa.csv.write_csv(table, self.stream, options)
        elif pa.types.is_string(table.schema.types[0]):
            pa.csv.write_csv(
                table.set_column(0, table.schema.names[0], table.column(0).fill_null("")), self.stream, options
            )
        else:  # of other types no value is empty, nor has it several lines
            made = pa.BufferOutputStream()
            pa.csv.write_csv(table, made, options)
            lines = made.getvalue().to_pybytes().split(b"\n")[:-1]
            self.stream.write(b"".join((line or b'""') + b"\n" for line in lines))

    def close(self) -> None:
        """The stream is closed by who has opened it."""


def _is_bytes(type_: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_binary(type_) or t.is_large_binary(type_) or t.is_fixed_size_binary(type_))
