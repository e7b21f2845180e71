"""A query running on Spark: a streaming query, its home, and the log that says how far it has come."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from penstock.engines.base import FEATURES
from penstock.engines.spark.failure import failure_of, told
from penstock.engines.spark.queue_rounds import queues_in
from penstock.engines.spark.run import ENDED, Started
from penstock.engines.spark.state_reading import newest_row
from penstock.engines.spark.statistics import sums_of
from penstock.engines.spark.support import STREAMING
from penstock.engines.spark.trackers import streams_reached, tracked
from penstock.errors import PenstockError, RunError, StreamError, UnsupportedError
from penstock.flow.current_values import CurrentValues
from penstock.flow.estimate_progress import EstimateProgress, estimate_of
from penstock.flow.pyspark_names import PySparkNames
from penstock.flow.run import FAILED, FINISHED, LOGGER, RUNNING, STOPPED, ReplaceableRun
from penstock.flow.run_progress import OperatorProgress, RunProgress, lag, shown
from penstock.flow.spark_path import spark_path
from penstock.flow.spark_queues import QueueReader, last_queue, spark_queues
from penstock.model.accounts import Counts
from penstock.model.batch import Batch, Row
from penstock.model.conform import conformed
from penstock.model.nested import shown_as
from penstock.model.recent_promises import RecentPromises, Shown
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.plan.closing import closing_bound
from penstock.plan.identity import Known
from penstock.plan.nodes import Conflate, Source
from penstock.plan.progressing import follows_time
from penstock.storage.log import Record, RecordLog

if TYPE_CHECKING:
    from penstock.flow.spark import SparkQuery


class SparkRun(PySparkNames, ReplaceableRun):
    """A query running on Spark."""

    def __init__(self, query: SparkQuery, started: Started) -> None:
        """Made by `SparkQuery.start`."""
        self.query, self.name = query, query.name
        self._nodes = query.nodes_at_work()
        self.streaming, self.home = started.streaming, started.home.place
        self._started, self._lease = started, started.home.lease
        self._log = RecordLog(self.home / "log")
        self._finished = self._told = False
        LOGGER.info("run %s: started on Spark, in %s", self.name, self.home)

    @property
    def is_active(self) -> bool:
        """Whether the run goes on."""
        return bool(self.streaming.isActive)

    def _not_replaceable(self) -> PenstockError:
        return UnsupportedError(
            f"The Spark, streaming engine does not support this: {FEATURES['replace']}.",
            where=f"run {self.name}",
            hint=STREAMING["replace"].how,
        )

    @property
    def status(self) -> str:
        """`running`, `finished`, `stopped` or `failed`; a trigger that takes what is there and ends has stopped."""
        if self.is_active:
            return RUNNING
        return FAILED if self.exception is not None else FINISHED if self._finished else STOPPED

    @property
    def exception(self) -> RunError | None:
        """Why the run has failed, the reason first; None if it has not. Its `stack` is all that Spark says."""
        return failure_of(self.streaming, self.name)

    @property
    def progress(self) -> RunProgress:
        """Where the rows went so far, and how far the streams and the result have come.

        It costs the reading of one record. What went through an operator is summed over all buckets and all starts of
        the query, since the release that began to keep it; each bucket counts the punctuation that it is given.
        """
        last = self._log.last()
        totals = last.totals if last is not None else {}
        bound = last.frontier if last is not None else None
        failed = None if self.is_active else self.exception
        status = FAILED if failed is not None else self.status
        sources = {n.name: n for n in self.query.plan.walk() if isinstance(n, Source)}
        reached = {} if last is None else streams_reached(last, sources.values())
        newest = {name: None if last is None else last.greatest.get(name) for name in sources}
        known = [tick for tick in newest.values() if tick is not None]
        domain = self.query.schema.domain
        return RunProgress(
            name=self.name,
            status=status,
            reason=None if failed is None else failed.what,
            counts=Counts(**{name: totals.get(name, 0) for name in asdict(Counts())}),
            batches=0 if last is None else last.number + 1,
            frontier={name: shown(reached.get(name), node.schema.domain) for name, node in sources.items()},
            group_frontier={name: self._promised(last, name, node.schema) for name, node in sources.items()},
            newest={name: shown(newest[name], node.schema.domain) for name, node in sources.items()},
            bound=shown(bound, domain),
            bound_ticks=bound,
            group_bounds=self._promised(last, "", self.query.schema),
            lag=lag(max(known, default=None), bound, domain) if follows_time(self.query.plan) else None,
            ended=bound == END_OF_TIME,
            operators=_operators(self._nodes, sums_of(last), last),
            queues=spark_queues(self._nodes, last),
            estimates=self._estimates(last, sources),
        )

    def _estimates(self, last: Record | None, sources: Mapping[str, Source]) -> dict[str, EstimateProgress]:
        """Rows are judged by micro-batch, and what becomes of them is counted by the entrances."""
        sums, found = sums_of(last), {}
        passed = {k.node.name: sums.get(k.identity, {}) for k in self._nodes if isinstance(k.node, Source)}
        for name, source in sources.items():
            state = None if last is None else tracked(last, name).get("progress")
            estimate = estimate_of(source, state, passed.get(name, {}))
            if estimate is not None:
                found[name] = estimate
        return found

    def _promised(self, last: Record | None, name: str, schema: Schema) -> tuple[Shown, ...]:
        text = None if last is None else last.promises.get(name)
        return RecentPromises.from_text(text, f"record of {self.home}").shown(schema)

    @property
    def late(self) -> Any:
        """The late rows so far as a DataFrame, of all starts of the query, where they go to a folder."""
        return self._kept("late", "late rows")

    @property
    def dead_letters(self) -> Any:
        """The dead letters so far as a DataFrame, likewise."""
        return self._kept("dead", "dead letters")

    def _kept(self, kind: str, name: str) -> Any:
        folder = self._started.folders.get(kind)
        if folder is None:
            raise UnsupportedError(
                f"The {name} of this run go to a function.", where=self.name, hint="it has them; or give a folder"
            )
        return self.query.spark.read.parquet(folder)

    def read(self, key: Any = ()) -> dict[str, object] | None:
        """What is current of a key: what becomes of the newest row of it that has come to the queue.

        As of the last micro-batch, by a job of Spark over the state, and by another over the results if no row waits.
        Where more than selections and projections stand above the queue, it is what was delivered last.
        """
        current = CurrentValues(self.query.plan, f"run {self.name}")
        own, path = current.key_of(key), spark_path(self.query.at_work(), self.query.catalog)
        if path is None:
            return self._delivered(current, own, None)
        known = next(each for each in self._nodes if isinstance(each.node, Conflate))
        reader = QueueReader(self.query.spark, self.home, known, self._log.last())
        waiting, newest = reader.newest(path.key_of(own, current.names))
        if waiting is not None:
            return current.shown(path.followed(waiting))
        return None if newest is None else self._delivered(current, own, newest)

    def _delivered(self, current: CurrentValues, key: Row, newest: int | None) -> dict[str, object] | None:
        """The newest row of a key in the folder of results; if its time is known and no row has it, it was left out."""
        folder, schema = self._started.folders.get("result"), self.query.schema
        columns = [f.name for f in schema.visible]
        is_nested = any(schema[name].type.is_nested for name in current.names)
        if folder is None or schema.time not in columns or not set(current.names) <= set(columns) or is_nested:
            raise UnsupportedError(
                "What was delivered of a key cannot be told.",
                where=f"run {self.name}",
                got="a function as a sink" if folder is None else "a result without its time or key, or a nested key",
                hint="write to a folder, and select the time and an update key of plain values",
            )
        own = {name: shown_as(value, schema[name].type) for name, value in zip(current.names, key, strict=True)}
        at = None if newest is None else shown_as(newest, schema[schema.time].type)
        found = newest_row(self.query.spark, folder, own, schema.time, at)
        rows = Batch(schema, table=conformed(replace(schema, time_format=None), found).table).rows
        return current.shown(rows[0]) if rows else None

    def staleness(self, key: Any = ()) -> Mapping[str, float]:
        """How stale what was delivered of a key is, as of the last micro-batch; by a job of Spark over the state."""
        current = CurrentValues(self.query.plan, f"run {self.name}")
        own, queue = current.key_of(key), last_queue(self._nodes)
        if queue is None:
            raise StreamError(
                "Nothing waits on the way to this result, so nothing is stale.", where="staleness",
                hint="see pk.conflate",
            )  # fmt: skip
        return QueueReader(self.query.spark, self.home, queue, self._log.last()).staleness(own)

    def punctuate(self, stream: str, bound: int) -> None:
        """Tell a stream from outside that nothing below `bound` (in ticks) comes any more."""
        record = {"stream": self._stream_told(stream, bound, self.query.stream_names), "bound": bound}
        (self.home / "control" / f"{uuid.uuid4().hex}.json").write_json(record)

    def reached(self, batches: int) -> bool:
        """Whether so many micro-batches are done, or the run has ended; an error in it is raised here."""
        if not self.is_active:
            self.wait()
            return True
        return self.progress.batches >= batches

    def process_available(self) -> None:
        """Until everything that has come is processed; if the run fails, its error is raised."""
        with told(self.name):
            self.streaming.processAllAvailable()

    def snapshot(self) -> bytes:
        """On Spark the checkpoint has the state."""
        raise UnsupportedError(
            "A run on Spark has no snapshot.",
            where=self.name,
            hint=f"its state is in {self.home}; query.start(…) goes on from there",
        )

    def _wait(self, timeout: float | None) -> bool:
        try:
            with told(self.name):
                waited = () if timeout is None else (timeout,)
                ended = self.streaming.awaitTermination(*waited)
        finally:
            if not self.is_active:
                self._lease.release()
        return bool(ended is None or ended)

    def _stop(self, publish: bool) -> None:
        """After the micro-batch at hand; the checkpoint stays, and `start` goes on from it."""
        self.streaming.stop()
        self._lease.release()

    def _finish(self, for_good: bool) -> None:
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
        self._stop(publish=True)
        self._finished = True

    def _over(self) -> None:
        failure: PenstockError | None = self.exception
        if not self._told:
            self._told = True
            if failure is None:
                LOGGER.info("run %s: %s", self.name, self.status)
            else:
                LOGGER.error("run %s: failed: %s", self.name, failure.what)
        super()._over()


def _operators(
    nodes: Sequence[Known], sums: Mapping[str, Mapping[str, int]], last: Record | None
) -> tuple[OperatorProgress, ...]:
    """The operators of a query with what has gone through each, the last one first."""
    older = {identity: {"older": state.counts.older} for identity, state in queues_in(last).items()}
    return tuple(
        OperatorProgress(k.identity, k.node.label, **sums.get(k.identity, {}), **older.get(k.identity, {}))
        for k in nodes
    )
