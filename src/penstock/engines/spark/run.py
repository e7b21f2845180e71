"""A running query on Spark: one streaming query whose micro-batches write results, late rows and dead letters together.

A folder sink gets one folder of parquet files per micro-batch, overwritten when a micro-batch is replayed after a
crash, so every output is there exactly once; beside them, in `_progress`, how far the output has come, so that another
query can read it as a stream. The flow's path holds, per query: the checkpoint, the manifest, the
control folder for bounds from outside, the counts per micro-batch, and late rows and dead letters unless they were sent
elsewhere.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.algorithms.state import FORMAT_VERSION
from penstock.engines.local.execution import DEAD_SCHEMA
from penstock.engines.spark.folders import PROGRESS, describe_output
from penstock.engines.spark.serving import served
from penstock.engines.spark.streaming import Hosted, rows_of
from penstock.engines.spark.wire import load
from penstock.errors import CheckpointError, StreamError
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.query.nodes import Node


class Startable(Protocol):
    """What a query must tell to be run."""

    name: str
    sql: str
    plan: Node
    path: str | None

    @property
    def schema(self) -> Schema:
        """The columns of the result."""

    @property
    def stream_names(self) -> list[str]:
        """The streams that it reads."""

    def hosted(self, control: str | None = None, buckets: int | None = None) -> Hosted:
        """The plan as one stateful operator."""


Sink = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class FolderSink:
    """Parquet files in one folder per micro-batch; empty micro-batches leave none."""

    path: str

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write one micro-batch, again if it was written before."""
        frame.write.mode("overwrite").parquet(f"{self.path}/batch={batch:09d}")


@dataclass(frozen=True)
class Writer:
    """Writes the tagged outputs of one micro-batch."""

    schema: Schema
    late_schema: Schema
    dead_schema: Schema
    result: Sink
    late: Sink
    dead: Sink
    counts: str

    def __call__(self, tagged: DataFrame, batch: int) -> None:
        """For `foreachBatch`."""
        kept = tagged.persist()
        try:
            is_note = F.col("kind").isin("counts", "punctuation")
            noted = kept.select("kind", F.when(is_note, F.col("body")).alias("body")).collect()
            kinds = {row.kind for row in noted}
            if "result" in kinds:
                self.result(rows_of(kept, "result", self.schema), batch)
            if "late" in kinds:
                self.late(rows_of(kept, "late", self.late_schema), batch)
            if "dead" in kinds:
                self.dead(rows_of(kept, "dead", self.dead_schema), batch)
            self._count(batch, [row for row in noted if row.body is not None], has_results="result" in kinds)
        finally:
            kept.unpersist()

    def _count(self, batch: int, notes: list[Any], *, has_results: bool) -> None:
        total = {"read": 0, "on_time": 0, "late": 0, "dead": 0}
        bounds = []
        for row in notes:
            value = load(bytes(row.body))
            if row.kind == "counts":
                total = {k: total[k] + value[k] for k in total}
            else:
                bounds.append(value)
        # Every bucket has seen the same progress; one that had nothing new to say says nothing.
        bound = max(bounds) if bounds else None
        write_atomically(f"{self.counts}/{batch:09d}.json", json.dumps({**total, "bound": bound}))
        if isinstance(self.result, FolderSink):
            record = json.dumps({"bound": bound, "results": has_results})
            write_atomically(f"{self.result.path}/{PROGRESS}/{batch:09d}.json", record)


def write_atomically(path: str, text: str) -> None:
    """A file that is there whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    partial = f"{os.path.dirname(path)}/.{uuid.uuid4().hex}.tmp"
    Path(partial).write_text(text)
    os.replace(partial, path)


class SparkRun:
    """A query running on Spark."""

    def __init__(self, query: Startable, streaming: Any, home: str) -> None:
        """Made by `SparkQuery.start`."""
        self.query, self.streaming, self.home = query, streaming, home

    @property
    def is_active(self) -> bool:
        """Whether the run goes on."""
        return bool(self.streaming.isActive)

    @property
    def progress(self) -> dict[str, int | None]:
        """Rows read, on time, late and dead so far, micro-batches done, and the bound of the output."""
        total: dict[str, int | None] = {"read": 0, "on_time": 0, "late": 0, "dead": 0, "batches": 0, "bound": None}
        folder = Path(self.home, "counts")
        for file in sorted(folder.glob("*.json")) if folder.exists() else ():
            record = json.loads(file.read_text())
            for key in ("read", "on_time", "late", "dead"):
                total[key] = (total[key] or 0) + record[key]
            total["batches"] = (total["batches"] or 0) + 1
            total["bound"] = record["bound"] if record["bound"] is not None else total["bound"]
        total["punctuation"] = (total["read"] or 0) - sum(total[k] or 0 for k in ("on_time", "late", "dead"))
        return total

    def punctuate(self, stream: str, bound: int) -> None:
        """Tell a stream from outside that nothing below `bound` (in ticks) comes any more."""
        names = {n.lower(): n for n in self.query.stream_names}
        if stream.lower() not in names:
            raise StreamError(
                "The query does not read that stream.", got=stream, hint=f"it reads {', '.join(names.values())}"
            )
        record = json.dumps({"stream": names[stream.lower()], "bound": bound})
        write_atomically(f"{self.home}/control/{uuid.uuid4().hex}.json", record)

    def reached(self, batches: int) -> bool:
        """Whether so many micro-batches are done, or the run has ended; an error in it is raised here."""
        if not self.is_active:
            self.streaming.awaitTermination()
            return True
        return (self.progress["batches"] or 0) >= batches

    def process_available(self) -> None:
        """Until everything that has come is processed."""
        self.streaming.processAllAvailable()

    def finish(self) -> None:
        """Process what has come, close every stream, put out the windows that were still open, and stop."""
        self.process_available()
        for stream in self.query.stream_names:
            self.punctuate(stream, END_OF_TIME)
        self.process_available()
        self.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Until the run ends by itself; whether it did."""
        ended = self.streaming.awaitTermination(timeout) if timeout is not None else self.streaming.awaitTermination()
        return bool(ended is None or ended)

    def stop(self) -> None:
        """Stop after the micro-batch at hand; the checkpoint stays, and `start` goes on from it."""
        self.streaming.stop()


def start(
    query: Startable,
    sink: Any,
    trigger: Mapping[str, Any] | None,
    late: Any,
    dead: Any,
    buckets: int | None = None,
) -> SparkRun:
    """Start a query, or go on with it where its checkpoint ends, with as many buckets as it has there."""
    home = str(Path(str(query.path), query.name).absolute())
    os.makedirs(f"{home}/control", exist_ok=True)
    kept = _check_manifest(home, query, buckets)
    hosted = query.hosted(control=f"{home}/control", buckets=kept)
    writer = Writer(
        query.schema,
        hosted.late_schema,
        DEAD_SCHEMA,
        _sink(sink),
        _sink(late or f"{home}/late"),
        _sink(dead or f"{home}/dead"),
        f"{home}/counts",
    )

    if isinstance(writer.result, FolderSink):
        described = describe_output(query.schema, query.plan.properties.key)
        if described is not None:
            write_atomically(f"{writer.result.path}/{PROGRESS}/stream.json", described)

    def write(frame: DataFrame, batch: int) -> None:
        writer(frame, batch)

    stream = hosted.tagged().writeStream.outputMode("append").queryName(query.name).foreachBatch(write)
    stream = stream.option("checkpointLocation", f"{home}/checkpoint")
    if trigger is not None:
        stream = stream.trigger(**trigger)
    with served(hosted.spark, hosted.settings):
        return SparkRun(query, stream.start(), home)


def _sink(target: Any) -> Sink:
    if callable(target):
        found: Sink = target
        return found
    if isinstance(target, str | os.PathLike):
        return FolderSink(str(Path(os.fspath(target)).absolute()))
    raise StreamError(
        "Results cannot be written there.",
        got=type(target).__name__,
        hint="give a folder, or a function of a DataFrame and a batch number",
    )


def _check_manifest(home: str, query: Startable, buckets: int | None) -> int:
    """A checkpoint belongs to one query and one format, and keeps its number of buckets, which is given back."""
    path = Path(home, "manifest.json")
    manifest = {"format": FORMAT_VERSION, "plan": [n.label for n in query.plan.walk()]}
    if not path.exists():
        chosen: int = query.hosted(buckets=buckets).buckets
        write_atomically(str(path), json.dumps({**manifest, "buckets": chosen, "sql": query.sql}, indent=2))
        return chosen
    saved = json.loads(path.read_text())
    if saved["format"] != manifest["format"]:
        raise CheckpointError(
            "The checkpoint has another format.",
            where=home,
            got=f"version {saved['format']}",
            hint=f"this release reads version {FORMAT_VERSION}",
        )
    if saved["plan"] != manifest["plan"]:
        raise CheckpointError(
            "The checkpoint is of another query.",
            where=home,
            got=saved["sql"],
            hint="give this query another name, or another flow path",
        )
    if buckets is not None and saved["buckets"] not in (buckets, 1):
        raise CheckpointError(
            "The checkpoint was made with another number of buckets.", where=home, got=str(buckets),
            hint=f"leave buckets out, which keeps to {saved['buckets']}; or give this query another name",
        )  # fmt: skip
    return int(saved["buckets"])
