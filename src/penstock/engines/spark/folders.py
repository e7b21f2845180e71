"""The output folder of a running query as a streaming source of Spark: its results, and how far they have come.

The source hands out micro-batches as the folder's log names them, in order and whole: the rows, then a row of
punctuation with the frontier as its time. Its offset is the run that wrote, the number of the last micro-batch, and how
many rows there were up to it, by which a reader that is far behind a compacted folder finds its place. A
folder that was wiped and written anew by another run is not the stream that the consumer began to read: that is an
error here. (`penstock merge` reads such folders itself and takes the replica for one that begins again.)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.errors import SourceError
from penstock.storage.files import place_of
from penstock.storage.folders import OutputStream
from penstock.storage.reader import BEGINNING, FolderReader, Portion, Position

FORMAT = "penstock_output"
PUNCTUATION = "__punctuation"


def output_stream(folder: str, patience: float = 60.0) -> OutputStream:
    """What is in an output folder; a run that has just begun may take a moment to say it."""
    reader = FolderReader(place_of(folder))
    waited = 0.0
    while (found := reader.stream()) is None:
        if waited >= patience:
            raise SourceError(
                "This is not the output folder of a query, or the query has not begun.",
                got=folder,
                hint="start the query with q.start(folder)",
            )
        time.sleep(0.5)
        waited += 0.5
    if found.time is None:
        raise SourceError(
            "The rows of this folder do not show their time, so they are no stream.",
            got=f"{folder}: {found.ddl}",
            hint="put the time column into the select list",
        )
    return found


@dataclass(frozen=True)
class MicroBatch(InputPartition):
    """Some micro-batches of a folder that lie together."""

    portion: Portion


class OutputReader(DataSourceStreamReader):
    """Reads whole micro-batches in order."""

    def __init__(self, folder: str) -> None:
        """The folder is read where Spark's workers run."""
        self.folder = folder

    def initialOffset(self) -> dict[str, Any]:
        """Nothing has been read."""
        return {"run": None, "number": BEGINNING, "rows": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        """After the last micro-batch that was recorded."""
        before = self.initialOffset() if start is None else dict(start)
        found = FolderReader(place_of(self.folder)).after(_position(before))
        if found.restarted:
            anew = found.run != before["run"]
            raise SourceError(
                "An output folder that is being read was written anew."
                if anew
                else "An output folder no longer knows the place up to which it was read.",
                where=self.folder,
                got=f"run {found.run} where run {before['run']} was read up to micro-batch {before['number']}",
                hint="start the reading query over too, with another flow path; penstock merge goes on by itself",
            )
        return _offset(found.portions[-1].position) if found.portions else before

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One for what lies together in the log."""
        if end["run"] is None:
            return []
        position, until = _position(start) or Position(end["run"]), _position(end)
        found = FolderReader(place_of(self.folder)).after(position, until)
        if found.restarted:
            raise SourceError(
                "An output folder no longer has what is to be read again.",
                where=self.folder,
                got=f"run {found.run}; micro-batches {start['number'] + 1} to {end['number']} of run {end['run']}",
                hint="start the reading query over, with another flow path",
            )
        return [MicroBatch(p) for p in found.portions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows, then how far they have come."""
        assert isinstance(partition, MicroBatch)
        reader = FolderReader(place_of(self.folder))
        stream = output_stream(self.folder)
        table = reader.rows(partition.portion)
        if table.num_rows:
            marked = table.append_column(PUNCTUATION, pa.repeat(pa.scalar(False), table.num_rows))
            yield from marked.cast(_arrow(stream)).to_batches()
        if partition.portion.frontier is not None:
            yield _punctuation(stream, partition.portion.frontier)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is thrown away: other readers may come."""


def _position(offset: dict[str, Any]) -> Position | None:
    """The position of an offset; one of an earlier release does not say how many rows there were."""
    return None if offset["run"] is None else Position(offset["run"], int(offset["number"]), offset.get("rows"))


def _offset(position: Position) -> dict[str, Any]:
    return {"run": position.run, "number": position.number, "rows": position.rows}


def _arrow(stream: OutputStream) -> pa.Schema:
    return stream.schema.arrow.append(pa.field(PUNCTUATION, pa.bool_()))


def _punctuation(stream: OutputStream, bound: int) -> pa.RecordBatch:
    arrays = []
    for field in _arrow(stream):
        if field.name == PUNCTUATION:
            arrays.append(pa.array([True]))
        elif field.name == stream.time:
            arrays.append(pa.array([bound], pa.int64()).cast(field.type))
        else:
            arrays.append(pa.nulls(1, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=_arrow(stream))


class OutputSource(DataSource):
    """`spark.readStream.format("penstock_output").load(folder)`."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return FORMAT

    def schema(self) -> str:
        """As the folder says, and whether a row is punctuation."""
        return f"{output_stream(self.options['path']).ddl}, {PUNCTUATION} boolean"

    def streamReader(self, schema: Any) -> OutputReader:
        """For streams only; in batch, read the parquet files."""
        return OutputReader(self.options["path"])


def read_output(spark: SparkSession, folder: str) -> Any:
    """A streaming DataFrame over an output folder, with its punctuation as rows."""
    spark.dataSource.register(OutputSource)
    return spark.readStream.format(FORMAT).load(place_of(folder).uri)
