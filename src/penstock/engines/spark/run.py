"""Setting a query going on Spark: one streaming query whose micro-batches write all of its outputs together.

A folder sink is an output folder (`storage.folders`): parquet files in its root, each row once whatever is killed, and
a log that another query can read as a stream. The flow's path holds, per query: Spark's checkpoint, the manifest, the
identity of the run, its lease and its log, the control folder for bounds from outside, and late rows and dead letters
unless they were sent elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.engines.spark.checkpoint import check_checkpoint
from penstock.engines.spark.clock import Waiting
from penstock.engines.spark.failure import told
from penstock.engines.spark.manifest import keep_manifest, kept_at, manifest_of
from penstock.engines.spark.queue_rounds import QueueRounds
from penstock.engines.spark.serving import served
from penstock.engines.spark.streaming import CONTROL_FOLDER, Hosted
from penstock.engines.spark.watched import WatchedQuery, reached
from penstock.engines.spark.writing import KINDS, Target, Writer
from penstock.errors import CheckpointError, StreamError
from penstock.model.accounts import DeadLimit
from penstock.model.changelog import ResultForm
from penstock.model.letters import DEAD_SCHEMA, SUPERSEDED_SCHEMA
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.plan.catalog import Catalog
from penstock.plan.kept import Kept
from penstock.plan.nodes import Conflate, Node
from penstock.plan.planner import NOTHING
from penstock.storage.files import Place, place_of
from penstock.storage.folders import OutputFolder, Owner, describe
from penstock.storage.home import Home, checked_name, open_home
from penstock.storage.log import Record
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

    def hosted(
        self,
        home: Place | None = None,
        buckets: int | None = None,
        kept: Kept = NOTHING,
        *,
        clock: bool | None = None,
    ) -> Hosted:
        """The plan in stateful operators, planned by what a checkpoint has; for a query that lives in a home."""


@dataclass(frozen=True)
class Started:
    """A query that was set going: Spark's streaming query, the home that it holds, and where its outputs are."""

    streaming: Any
    home: Home
    folders: Mapping[str, str]
    """The URIs of the outputs that go to folders: `result`, `late`, `dead`."""


def start(
    query: Startable,
    sink: Any,
    trigger: Mapping[str, Any] | None,
    late: Any,
    dead: Any,
    buckets: int | None = None,
    retention: Retention | None = None,
    limit: DeadLimit | None = None,
    superseded: Any = None,
) -> Started:
    """Start a query, or go on with it where its checkpoint ends, with as many buckets as it has there."""
    retention = retention if retention is not None else Retention()
    limit = limit if limit is not None else DeadLimit()
    with reached(query.name):
        spark = query.hosted(buckets=buckets).spark
        retained = int(spark.conf.get(RETAINED, None) or 0)
    keep = max(retention.records, retained)
    home = open_home(place_of(str(query.path)) / checked_name(query.name), keep=keep)
    try:
        targets = (sink, late, dead, superseded)
        with reached(query.name):
            streaming, outputs = _streaming(query, home, targets, trigger, buckets, retention, limit)
    except BaseException:
        home.lease.release()
        raise
    home.lease.keep(in_use=lambda: _is_active(streaming))
    return Started(streaming, home, {o.kind: o.folder.place.uri for o in outputs if o.folder is not None})


def _streaming(
    query: Startable,
    home: Home,
    targets: tuple[Any, Any, Any, Any],
    trigger: Mapping[str, Any] | None,
    buckets: int | None,
    retention: Retention,
    limit: DeadLimit,
) -> tuple[Any, list[Target]]:
    """The streaming query, after every check, and where it writes."""
    found = kept_at(home.place)
    fresh = query.hosted(home.place, buckets, found)
    now = manifest_of(fresh.planned, query.catalog)
    kept = keep_manifest(
        home.place,
        now,
        buckets,
        buckets=fresh.buckets,
        named=fresh.named,
        clock=fresh.clock,
        needs_clock=bool(fresh.silences),
        sql=query.sql,
    )
    (home.place / CONTROL_FOLDER).make_folder()
    clock = fresh.clock and (fresh.named or kept.get("clock", False))
    hosted = query.hosted(home.place, int(kept["buckets"]), found, clock=clock)
    schemas = {"result": query.form.schema, "late": hosted.late_schema, "dead": DEAD_SCHEMA}
    places = {
        "result": targets[0],
        "late": targets[1] or home.place / "late",
        "dead": targets[2] or home.place / "dead",
    }
    if targets[3] is not None:
        schemas["superseded"], places["superseded"] = SUPERSEDED_SCHEMA, _folder_of_superseded(targets[3], query)
    outputs = [_output(k, schemas[k], places[k], query, home, retention) for k in schemas]
    _check_places(outputs)
    drains = _ends_by_itself(trigger)
    rounds = QueueRounds(home.place, hosted.planned, hosted.buckets, drains=drains, by_clock=hosted.clock)
    waiting = Waiting(query.plan, hosted.silences) if hosted.silences else None
    writer = Writer(home, outputs, hosted.buckets, limit, rounds, waiting)
    _check_checkpoint(home, writer)
    _check_open(home.place, writer.log.last())
    for output in outputs:
        if output.folder is not None:
            output.folder.claim()
    writer.log.repair()

    def write(frame: Any, batch: int) -> None:
        writer(frame, batch)

    folders = {o.kind: o.folder.staging for o in outputs if o.folder is not None}
    stream = hosted.tagged(folders).writeStream.outputMode("append").queryName(query.name).foreachBatch(write)
    stream = stream.option("checkpointLocation", (home.place / "checkpoint").uri)
    if trigger is not None:
        stream = stream.trigger(**trigger)
    with told(query.name), served(hosted.spark, hosted.settings):
        return WatchedQuery(stream.start(), query.name), outputs


def _ends_by_itself(trigger: Mapping[str, Any] | None) -> bool:
    """Whether a trigger takes what is there, and no more."""
    return any((trigger or {}).get(name) for name in ("availableNow", "once"))


def _folder_of_superseded(target: Any, query: Startable) -> Any:
    """Where rows go that queues pass over; they are made where queues are, and so are their files."""
    queues = [node for node in query.plan.walk() if isinstance(node, Conflate)]
    if isinstance(target, str | os.PathLike | Place) and queues and all(each.windows is None for each in queues):
        return target
    raise StreamError(
        "Rows that are superseded are kept in a folder, where a stream is conflated by rows.",
        where=query.name,
        got="a query without pk.conflate or flow.conflate"
        if not queues
        else "a stream that is conflated by windows"
        if any(each.windows is not None for each in queues)
        else type(target).__name__,
        hint="superseded='superseded/x', of a conflated stream",
    )


def _is_active(streaming: Any) -> bool:
    try:
        return bool(streaming.isActive)
    except Exception:  # whatever a connection to a JVM that is gone says
        return False


def _output(kind: str, schema: Schema, target: Any, query: Startable, home: Home, retention: Retention) -> Target:
    """Where an output goes."""
    if callable(target):
        function: Callable[[Any, int], None] = target
        return Target(kind, schema, function=function)
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
    return Target(kind, schema, folder)


def _check_places(outputs: list[Target]) -> None:
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
    check_checkpoint(home.place / "checkpoint")
    offsets = home.place / "checkpoint" / "offsets"
    if last is not None and not (offsets / str(last.batch)).exists():
        got = f"the log ends with micro-batch {last.batch}, which is not in {offsets}"
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
