"""The output folder of a running query as a streaming source: its results, and how far they have come.

A run writes the results of micro-batch N to `batch=N` and then, to `_progress`, the bound that its output has reached.
The source hands out micro-batches in that order, whole: the rows, then a row of punctuation with the bound as its time.
A micro-batch that is written again after a crash has the same rows, so what was read stays true.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.errors import SourceError
from penstock.model.schema import Field as Column
from penstock.model.schema import Schema, parse_type

FORMAT = "penstock_output"
PUNCTUATION = "__punctuation"
PROGRESS = "_progress"
TRIES = 20


@dataclass(frozen=True)
class OutputStream:
    """What an output folder tells of its stream."""

    columns: tuple[tuple[str, str], ...]
    time: str
    key: tuple[str, ...] | None

    @property
    def ddl(self) -> str:
        """The columns, and whether a row is punctuation."""
        return ", ".join([f"`{n}` {t}" for n, t in self.columns] + [f"{PUNCTUATION} boolean"])

    @property
    def arrow(self) -> pa.Schema:
        """The same for Arrow."""
        fields = tuple(Column(n, parse_type(t)) for n, t in self.columns)
        return Schema(fields).arrow.append(pa.field(PUNCTUATION, pa.bool_()))


def describe_output(schema: Schema, key: frozenset[str] | None) -> str | None:
    """The text that says what is in an output folder; None if its rows do not carry their time."""
    names = [f.name for f in schema.visible]
    if schema.time not in names:
        return None
    kept = sorted(key) if key is not None and key <= set(names) else None
    return json.dumps({"columns": [(f.name, str(f.type)) for f in schema.visible], "time": schema.time, "key": kept})


def output_stream(folder: str, patience: float = 60.0) -> OutputStream:
    """What is in an output folder; a run that has just begun may take a moment to say it."""
    path = Path(folder, PROGRESS, "stream.json")
    waited = 0.0
    while not path.exists():
        if waited >= patience:
            raise SourceError(
                "This is not the output folder of a query, or the query has not begun.",
                got=folder,
                hint="start the query with q.start(folder)",
            )
        time.sleep(0.5)
        waited += 0.5
    found = json.loads(path.read_text())
    key = None if found["key"] is None else tuple(found["key"])
    return OutputStream(tuple((n, t) for n, t in found["columns"]), found["time"], key)


@dataclass(frozen=True)
class MicroBatch(InputPartition):
    """One micro-batch of a folder."""

    number: int


class OutputReader(DataSourceStreamReader):
    """Reads whole micro-batches in order; the offset is the number of the next."""

    def __init__(self, folder: str) -> None:
        """The folder is read where Spark's workers run."""
        self.folder = folder

    def initialOffset(self) -> dict[str, int]:
        """The first micro-batch."""
        return {"next": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        """After the last micro-batch that is complete, with none missing before it."""
        following = 0 if start is None else int(start["next"])
        while Path(self.folder, PROGRESS, f"{following:09d}.json").exists():
            following += 1
        return {"next": following}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One per micro-batch."""
        return [MicroBatch(n) for n in range(start["next"], end["next"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a micro-batch, then its bound."""
        assert isinstance(partition, MicroBatch)
        stream = output_stream(self.folder)
        table = self._rows(partition.number, stream)
        if table.num_rows:
            yield from table.to_batches()
        record = json.loads(Path(self.folder, PROGRESS, f"{partition.number:09d}.json").read_text())
        if record["bound"] is not None:
            yield _punctuation(stream, record["bound"])

    def _rows(self, number: int, stream: OutputStream) -> pa.Table:
        """Again and again while the micro-batch is being written anew, which takes a moment after a crash."""
        arrow = stream.arrow
        for attempt in range(TRIES):
            files = sorted(Path(self.folder, f"batch={number:09d}").glob("*.parquet"))
            try:
                tables = [pq.read_table(f, partitioning=None) for f in files]
            except (FileNotFoundError, pa.ArrowInvalid):
                if attempt == TRIES - 1:
                    raise
                time.sleep(0.5)
                continue
            break
        if not tables:
            return arrow.empty_table()
        whole = pa.concat_tables(tables)
        marked = whole.append_column(PUNCTUATION, pa.repeat(pa.scalar(False), whole.num_rows))
        return marked.select(arrow.names).cast(arrow)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is thrown away: other readers may come."""


def _punctuation(stream: OutputStream, bound: int) -> pa.RecordBatch:
    arrays = []
    for field in stream.arrow:
        if field.name == PUNCTUATION:
            arrays.append(pa.array([True]))
        elif field.name == stream.time:
            arrays.append(pa.array([bound], pa.int64()).cast(field.type))
        else:
            arrays.append(pa.nulls(1, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=stream.arrow)


class OutputSource(DataSource):
    """`spark.readStream.format("penstock_output").load(folder)`."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return FORMAT

    def schema(self) -> str:
        """As the folder says."""
        return output_stream(self.options["path"]).ddl

    def streamReader(self, schema: Any) -> OutputReader:
        """For streams only; in batch, read the parquet files."""
        return OutputReader(self.options["path"])


def read_output(spark: SparkSession, folder: str) -> Any:
    """A streaming DataFrame over an output folder, with its punctuation as rows."""
    spark.dataSource.register(OutputSource)
    return spark.readStream.format(FORMAT).load(str(Path(folder).absolute()))
