"""Where results go in-process: a file, a list, a function, or nowhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from penstock.errors import SourceError
from penstock.model.conform import as_json


class Sink(Protocol):
    """Takes tables until it is closed."""

    def write(self, table: pa.Table) -> None:
        """Take a table."""

    def close(self) -> None:
        """No more comes."""


def open_sink(target: Any) -> Sink:
    """The sink for whatever the user gave."""
    if target is None:
        return FunctionSink(lambda table: None)
    if isinstance(target, list):
        return FunctionSink(lambda table: target.extend(table.to_pylist()))
    if callable(target):
        return FunctionSink(target)
    if isinstance(target, str | os.PathLike):
        return FileSink(os.fspath(target))
    raise SourceError(
        "Results cannot be written there.", got=type(target).__name__, hint="give a path, a list or a function"
    )


def abandon(sink: Sink) -> None:
    """The run failed: what a file has got so far is kept, but not under the name of a whole result."""
    if isinstance(sink, FileSink):
        sink.abandon()
    else:
        sink.close()


class FunctionSink:
    """Calls a function with each table that has rows."""

    def __init__(self, function: Callable[[pa.Table], None]) -> None:
        """The function to call."""
        self.function = function

    def write(self, table: pa.Table) -> None:
        """Call it."""
        if table.num_rows:
            self.function(table)

    def close(self) -> None:
        """Nothing to do."""


class FileSink:
    """A parquet, csv or jsonl file, made whole when it is closed."""

    def __init__(self, path: str) -> None:
        """The ending says the kind."""
        self.kind = path.rsplit(".", 1)[-1].lower()
        if self.kind not in ("parquet", "csv", "jsonl"):
            raise SourceError(
                "The kind of file is not known.", got=path, hint="results are written as .parquet, .csv or .jsonl"
            )
        self.path, self.partial = path, f"{path}.partial"
        self.writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Append a table."""
        if self.writer is None:
            if self.kind == "parquet":
                self.writer = pa.parquet.ParquetWriter(self.partial, table.schema)
            elif self.kind == "csv":
                self.writer = pa.csv.CSVWriter(self.partial, table.schema)
            else:
                self.writer = open(self.partial, "w", encoding="utf-8")  # noqa: SIM115 - closed in close()
        if self.kind == "jsonl":
            self.writer.writelines(as_json(row) + "\n" for row in table.to_pylist())
        else:
            self.writer.write_table(table)

    def abandon(self) -> None:
        """Leave the file under the name that it has while it is written."""
        if self.writer is not None:
            self.writer.close()

    def close(self) -> None:
        """Give the file its name."""
        if self.writer is not None:
            self.writer.close()
            os.replace(self.partial, self.path)
