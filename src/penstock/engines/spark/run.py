"""A running query on Spark: one streaming query whose micro-batches write results, late rows and dead letters together.

A folder sink is an output folder (`storage.folders`): parquet files in its root, each row once whatever is killed, and
a log that another query can read as a stream. The flow's path holds, per query: Spark's checkpoint, the manifest, the
identity of the run, its lease and its log, the control folder for bounds from outside, and late rows and dead letters
unless they were sent elsewhere.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol

from penstock.engines.spark.failure import failure_of, told
from penstock.engines.spark.manifest import keep_manifest, manifest_of
from penstock.engines.spark.serving import served
from penstock.engines.spark.streaming import Hosted
from penstock.engines.spark.watched import WatchedQuery
from penstock.engines.spark.writing import KINDS, Output, Writer
from penstock.errors import CheckpointError, RunError, StreamError
from penstock.model.accounts import Counts, DeadLimit
from penstock.model.changelog import ResultForm
from penstock.model.letters import DEAD_SCHEMA
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK, show_ticks
from penstock.plan.catalog import Catalog
from penstock.plan.closing import closing_bound
from penstock.plan.nodes import Node
from penstock.storage.files import Place, place_of
from penstock.storage.folders import OutputFolder, Owner, describe
from penstock.storage.home import Home, checked_name, open_home
from penstock.storage.log import Record, RecordLog
from penstock.storage.retention import Retention

ENDED = "ended.json"
"""There once `finish` was asked to end the streams of a query for good."""
RETAINED = "spark.sql.streaming.minBatchesToRetain"


class Startable(Protocol):
    """What a query must tell to be run."""

    name: str
    sql: str
    plan: Node
    catalog: Catalog
    path: str | None

    @property
    def schema(self) -> Schema:
        """The columns of the result."""

    @property
    def form(self) -> ResultForm:
        """How the result looks in a table."""

    @property
    def stream_names(self) -> list[str]:
        """The streams that it reads."""

    def hosted(self, control: str | None = None, buckets: int | None = None) -> Hosted:
        """The plan as one stateful operator."""


class SparkRun:
    """A query running on Spark."""

    def __init__(self, query: Startable, streaming: Any, home: Home) -> None:
        """Made by `SparkQuery.start`."""
        self.query, self.streaming, self.home = query, streaming, home.place
        self._lease, self._log = home.lease, RecordLog(home.place / "log")

    @property
    def is_active(self) -> bool:
        """Whether the run goes on."""
        return bool(self.streaming.isActive)

    @property
    def exception(self) -> RunError | None:
        """Why the run has failed, the reason first; None if it has not. Its `stack` is all that Spark says."""
        return failure_of(self.streaming, self.query.name)

    @property
    def progress(self) -> dict[str, Any]:
        """Where the rows have gone so far, micro-batches done, and how far the output has come.

        `bound` is that for people, `frontier` the same in ticks, and `ended` whether it has come to the end. `status`
        is `running`, `stopped` or `failed`, and `reason` the first line of why. It costs the reading of one record.
        """
        last = self._log.last()
        totals = {**asdict(Counts()), **(last.totals if last is not None else {})}
        frontier = last.frontier if last is not None else None
        failed = None if self.is_active else self.exception
        return {
            **totals,
            "status": "running" if self.is_active else "stopped" if failed is None else "failed",
            "reason": None if failed is None else failed.what,
            "batches": 0 if last is None else last.number + 1,
            "bound": None if frontier is None else show_ticks(frontier, self.query.schema.domain),
            "frontier": frontier,
            "ended": frontier == END_OF_TIME,
        }

    def punctuate(self, stream: str, bound: int) -> None:
        """Tell a stream from outside that nothing below `bound` (in ticks) comes any more."""
        names = {n.lower(): n for n in self.query.stream_names}
        if stream.lower() not in names:
            raise StreamError(
                "The query does not read that stream.", got=stream, hint=f"it reads {', '.join(names.values())}"
            )
        if type(bound) is not int or not MIN_TICK <= bound <= END_OF_TIME:
            raise StreamError(
                "A bound is a number of ticks.",
                where=f"stream {stream}",
                got=repr(bound)[:200],
                hint="ticks are the numbers of an integer column, or microseconds since 1970; pk.END_OF_TIME ends it",
            )
        record = {"stream": names[stream.lower()], "bound": bound}
        (self.home / "control" / f"{uuid.uuid4().hex}.json").write_json(record)

    def reached(self, batches: int) -> bool:
        """Whether so many micro-batches are done, or the run has ended; an error in it is raised here."""
        if not self.is_active:
            self.wait()
            return True
        return bool(self.progress["batches"] >= batches)

    def process_available(self) -> None:
        """Until everything that has come is processed; if the run fails, its error is raised."""
        with told(self.query.name):
            self.streaming.processAllAvailable()

    def finish(self, *, for_good: bool = False) -> None:
        """Process what has come, close every stream, put out the windows that were still open, and stop.

        Streams are closed up to the end of the last window that holds a row: started again, rows from there on are on
        time, and rows before it are late. With `for_good` they have ended, which whoever reads the output is told, and
        the query does not start again. That is so in any case where a row can matter for ever, as elements can.
        """
        self.process_available()
        last = self._log.last()
        starts = [t for s, t in last.greatest.items() if s] if last is not None else []
        closing = closing_bound(self.query.plan, max(starts)) if starts else None
        if for_good or (starts and closing is None):
            closing = END_OF_TIME
            (self.home / ENDED).write_json({"by": "finish"})
        if closing is not None:
            for stream in self.query.stream_names:
                self.punctuate(stream, closing)
            self.process_available()
        self.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Until the run ends by itself; whether it did."""
        try:
            with told(self.query.name):
                waited = () if timeout is None else (timeout,)
                ended = self.streaming.awaitTermination(*waited)
        finally:
            if not self.is_active:
                self._lease.release()
        return bool(ended is None or ended)

    def stop(self) -> None:
        """Stop after the micro-batch at hand; the checkpoint stays, and `start` goes on from it."""
        self.streaming.stop()
        self._lease.release()


def start(
    query: Startable,
    sink: Any,
    trigger: Mapping[str, Any] | None,
    late: Any,
    dead: Any,
    buckets: int | None = None,
    retention: Retention | None = None,
    limit: DeadLimit | None = None,
) -> SparkRun:
    """Start a query, or go on with it where its checkpoint ends, with as many buckets as it has there."""
    retention = retention if retention is not None else Retention()
    limit = limit if limit is not None else DeadLimit()
    spark = query.hosted(buckets=buckets).spark
    keep = max(retention.records, int(spark.conf.get(RETAINED, None) or 0))
    home = open_home(place_of(str(query.path)) / checked_name(query.name), keep=keep)
    try:
        streaming = _streaming(query, home, (sink, late, dead), trigger, buckets, retention, limit)
    except BaseException:
        home.lease.release()
        raise
    home.lease.keep(in_use=lambda: _is_active(streaming))
    return SparkRun(query, streaming, home)


def _streaming(
    query: Startable,
    home: Home,
    targets: tuple[Any, Any, Any],
    trigger: Mapping[str, Any] | None,
    buckets: int | None,
    retention: Retention,
    limit: DeadLimit,
) -> Any:
    """The streaming query, after every check."""
    fresh = query.hosted(buckets=buckets)
    now = manifest_of(fresh.planned, query.catalog)
    kept = keep_manifest(home.place, now, buckets, buckets=fresh.buckets, named=fresh.named, sql=query.sql)
    control = home.place / "control"
    control.make_folder()
    hosted = query.hosted(control=control.uri, buckets=int(kept["buckets"]))
    schemas = {"result": query.form.schema, "late": hosted.late_schema, "dead": DEAD_SCHEMA}
    places = {
        "result": targets[0],
        "late": targets[1] or home.place / "late",
        "dead": targets[2] or home.place / "dead",
    }
    outputs = [_output(k, schemas[k], places[k], query, home, retention) for k in schemas]
    _check_places(outputs)
    writer = Writer(home, outputs, hosted.buckets, limit)
    _check_checkpoint(home, writer)
    _check_open(home.place, writer.log.last())
    for output in outputs:
        if output.folder is not None:
            output.folder.claim()
    writer.log.repair()

    def write(frame: Any, batch: int) -> None:
        writer(frame, batch)

    stream = hosted.tagged().writeStream.outputMode("append").queryName(query.name).foreachBatch(write)
    stream = stream.option("checkpointLocation", (home.place / "checkpoint").uri)
    if trigger is not None:
        stream = stream.trigger(**trigger)
    with told(query.name), served(hosted.spark, hosted.settings):
        return WatchedQuery(stream.start(), query.name)


def _is_active(streaming: Any) -> bool:
    try:
        return bool(streaming.isActive)
    except Exception:  # whatever a connection to a JVM that is gone says
        return False


def _output(kind: str, schema: Schema, target: Any, query: Startable, home: Home, retention: Retention) -> Output:
    """Where an output goes."""
    if callable(target):
        function: Callable[[Any, int], None] = target
        return Output(kind, schema, function=function)
    if not isinstance(target, str | os.PathLike | Place):
        raise StreamError(
            "Results cannot be written there.",
            where=query.name,
            got=type(target).__name__,
            hint="give a folder, a URI, or a function of a DataFrame and the number of the micro-batch",
        )
    owner = Owner(home.run, str(home.place), query.name, KINDS[kind])
    key = query.plan.properties.key if kind == "result" else None
    folder = OutputFolder(
        place_of(target),
        owner,
        describe(schema, key),
        compact=retention.compact,
        keep={"late": retention.seconds("late"), "dead": retention.seconds("dead_letters")}.get(kind),
    )
    return Output(kind, schema, folder)


def _check_places(outputs: list[Output]) -> None:
    """Outputs of one query do not share a folder either."""
    seen: dict[str, str] = {}
    for output in outputs:
        if output.folder is None:
            continue
        uri = output.folder.place.uri
        if uri in seen:
            raise StreamError(
                "Two outputs of a query go to one folder.",
                where=str(output.folder.place),
                got=f"{seen[uri]} and {KINDS[output.kind]}",
                hint="give each a folder of its own",
            )
        seen[uri] = KINDS[output.kind]


def _check_checkpoint(home: Home, writer: Writer) -> None:
    """The log and Spark's checkpoint tell of the same micro-batches."""
    last = writer.log.last()
    offsets = home.place / "checkpoint" / "offsets"
    if last is not None and not (offsets / str(last.batch)).exists():
        got = f"the log ends with micro-batch {last.batch}, which the checkpoint does not have"
    elif last is None and any(n.isdigit() for n in (home.place / "checkpoint" / "commits").files()):
        got = "the checkpoint has micro-batches, the log has none"
    else:
        return
    raise CheckpointError(
        "The checkpoint and the log of this query are not of the same moment.",
        where=str(home.place),
        got=got,
        hint="one of them was deleted, restored from a copy, or made by an earlier release; restore the other as well, "
        "or start over with another flow path and another folder",
    )


def _check_open(home: Place, last: Record | None) -> None:
    """Streams that were ended from outside do not begin again: every row would be late."""
    if last is not None and last.frontier == END_OF_TIME and (home / ENDED).exists():
        raise CheckpointError(
            "The streams of this query have ended.",
            where=str(home),
            got="run.finish() has closed them for good",
            hint="give the query another name or flow path; to go on later, use run.stop(), or run.finish() without "
            "for_good where windows come to an end",
        )
