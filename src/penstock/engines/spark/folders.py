"""The output folder of a running query as a streaming source: its results, and how far they have come.

A run writes the results of micro-batch N to `batch=N` and then, to `_progress`, the bound that its output has reached.
The source hands out micro-batches in that order, whole: the rows, then a row of punctuation with the bound as its time.
A micro-batch that is written again after a crash has the same rows, so what was read stays true.

With the option `signal`, the folder of a consumer's own output, micro-batches that lie wholly before what the consumer
has put out are not read: of these only the bound is handed on. So a replica that is behind catches up.
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
TRIES = 120


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
    needed: bool = True
    """Whether the consumer still needs its rows."""


class OutputReader(DataSourceStreamReader):
    """Reads whole micro-batches in order; the offset is the number of the next."""

    def __init__(self, folder: str, signal: str | None = None) -> None:
        """The folder is read where Spark's workers run; `signal` is the folder of the consumer's output."""
        self.folder, self.signal = folder, signal

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
        reached = None if self.signal is None else reached_by(self.signal)
        return [MicroBatch(n, self._is_needed(n, reached)) for n in range(start["next"], end["next"])]

    def _is_needed(self, number: int, reached: int | None) -> bool:
        """Whether a micro-batch may hold something that is not before what the consumer has put out."""
        bound = bound_after(self.folder, number)
        return reached is None or bound is None or bound > reached

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a micro-batch, then its bound."""
        assert isinstance(partition, MicroBatch)
        stream = output_stream(self.folder)
        if partition.needed:
            yield from self._rows(partition.number, stream).to_batches()
        bound = bound_after(self.folder, partition.number)
        if bound is not None:
            yield _punctuation(stream, bound)

    def _rows(self, number: int, stream: OutputStream) -> pa.Table:
        """All rows of a micro-batch; after a crash it is written anew, and waited for until it is whole again."""
        arrow = stream.arrow
        if not progress_of(self.folder, number)["results"]:
            return arrow.empty_table()
        part = Path(self.folder, f"batch={number:09d}")
        for _ in range(TRIES):
            table = _whole(part)
            if table is not None:
                marked = table.append_column(PUNCTUATION, pa.repeat(pa.scalar(False), table.num_rows))
                return marked.select(arrow.names).cast(arrow)
            time.sleep(0.5)
        raise SourceError(
            "A micro-batch of an output folder is not whole.", got=str(part), hint="is its query being restarted?"
        )

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is thrown away: other readers may come."""


def _whole(part: Path) -> pa.Table | None:
    """The rows of a folder that Spark has finished writing, before and after it was read; None if it has not."""
    mark = part / "_SUCCESS"
    try:
        before = mark.stat().st_mtime_ns
        table = pa.concat_tables([pq.read_table(f, partitioning=None) for f in sorted(part.glob("*.parquet"))])
        return table if mark.stat().st_mtime_ns == before else None
    except (FileNotFoundError, pa.ArrowInvalid):
        return None


def progress_of(folder: str, number: int) -> dict[str, Any]:
    """What a run says of a micro-batch: the bound after it, and whether it has results."""
    found: dict[str, Any] = json.loads(Path(folder, PROGRESS, f"{number:09d}.json").read_text())
    return found


def bound_after(folder: str, number: int) -> int | None:
    """How far an output has come with a micro-batch, if it came further."""
    found: int | None = progress_of(folder, number)["bound"]
    return found


def reached_by(folder: str) -> int | None:
    """How far an output has come."""
    numbers = sorted(int(p.stem) for p in Path(folder, PROGRESS).glob("0*.json"))
    return next((b for n in reversed(numbers) if (b := bound_after(folder, n)) is not None), None)


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
        return OutputReader(self.options["path"], self.options.get("signal"))


def read_output(spark: SparkSession, folder: str, signal: str | None = None) -> Any:
    """A streaming DataFrame over an output folder, with its punctuation as rows."""
    spark.dataSource.register(OutputSource)
    reader = spark.readStream.format(FORMAT)
    if signal is not None:
        reader = reader.option("signal", str(Path(signal).absolute()))
    return reader.load(str(Path(folder).absolute()))
