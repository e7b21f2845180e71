"""What a micro-batch leaves: files of results, late rows and dead letters, and one record that names them all.

One Spark job evaluates the micro-batch, and writes what there is much of (`staging`); the driver writes the rest. Then
it puts the record, and the micro-batch has happened; then files get their final names.

A micro-batch that Spark replays finds its record. It is evaluated again, since Spark's state needs it, and no record
names what is staged then. A function as a sink is called before the record is put, with the record's own number: if the
driver dies in between it is called again with the same number.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.engines.spark.at_work import note
from penstock.engines.spark.bucket_promises import BucketPromises
from penstock.engines.spark.bucket_queues import QUEUES
from penstock.engines.spark.clock import WAKES, Waiting
from penstock.engines.spark.queue_rounds import QueueRounds
from penstock.engines.spark.staging import staged_file
from penstock.engines.spark.statistics import OPERATORS, summed
from penstock.engines.spark.streaming import rows_of
from penstock.engines.spark.trackers import plain_tracker
from penstock.engines.spark.wire import load, unpack
from penstock.errors import CheckpointError
from penstock.model.accounts import Counts, DeadLimit
from penstock.model.recent_promises import RecentPromises
from penstock.model.schema import Schema
from penstock.storage.folders import OutputFolder
from penstock.storage.home import Home
from penstock.storage.log import DataFile, Record
from penstock.storage.run_log import RunLog, greater

LOGGER = logging.getLogger("penstock.run")

KINDS = {"result": "results", "late": "late", "dead": "dead", "superseded": "superseded"}
"""The tag of an output, and what a record calls it."""

FunctionSink = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class Target:
    """Where one kind of output goes."""

    kind: str
    schema: Schema
    folder: OutputFolder | None = None
    function: FunctionSink | None = None


class Writer:
    """Writes micro-batches; it travels to where Spark calls it."""

    def __init__(
        self,
        home: Home,
        outputs: Sequence[Target],
        buckets: int,
        limit: DeadLimit | None = None,
        rounds: QueueRounds | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        """The home's lease is held by whoever started the run; `limit` is how many dead letters are borne.

        `rounds` are of the update queues, if there are any; `waiting` is what the clock may speak of, if it may.
        """
        self.home, self.outputs, self.buckets, self.limit = home, outputs, buckets, limit or DeadLimit()
        self.rounds = rounds if rounds else None
        self.waiting = waiting
        self.log = RunLog(home, {KINDS[o.kind]: o.folder for o in outputs if o.folder is not None})

    def __call__(self, tagged: DataFrame, batch: int) -> None:
        """For `foreachBatch`."""
        if "connect" in type(tagged).__module__.split("."):
            note(self.home.place, batch)
        last = self.log.last()
        if last is not None and batch == last.batch:
            if self.rounds is not None:
                self.rounds.begin_again(last)
            tagged.write.format("noop").mode("overwrite").save()
            if self.rounds is not None:
                self.rounds.end(last)
            return
        expected = 0 if last is None else last.batch + 1
        if batch != expected:
            raise CheckpointError(
                "The checkpoint and the log of this query are not of the same moment.",
                where=str(self.home.place),
                got=f"Spark begins micro-batch {batch}, the log expects {expected}",
                hint="one of them was deleted or restored from a copy; restore the other as well, or start over with "
                "another flow path and another folder",
            )
        if self.rounds is not None:
            self.rounds.begin(batch, last)
        functions = [o for o in self.outputs if o.function is not None]
        if not functions:
            self._write(tagged, batch, [])
            return
        kept = tagged.persist()
        try:
            self._write(kept, batch, functions)
        finally:
            kept.unpersist()

    def _write(self, tagged: DataFrame, batch: int, functions: Sequence[Target]) -> None:
        notes, files = self._stage(tagged)
        staged = time.perf_counter()
        for output in functions:
            assert output.function is not None
            if not tagged.filter(F.col("kind") == output.kind).isEmpty():
                output.function(rows_of(tagged, output.kind, output.schema), self.log.next_number)
        sink = time.perf_counter() - staged
        counts: Counter[str] = Counter()
        for kind, value in notes:
            if kind == "counts":
                counts.update(value)
        where = f"micro-batch {self.log.next_number} of {self.home.place}"
        Counts(**counts).check(where)
        bounds = [value for kind, value in notes if kind == "punctuation"]
        known = [value for kind, value in notes if kind == "progress"]
        last = self.log.last()
        reached = reached_after(last) | {str(bucket): bound for bucket, bound in bounds}
        trackers = dict(last.trackers) if last is not None else {}
        for each in known[:1]:
            trackers |= {stream: plain_tracker(*state) for stream, state in each["trackers"].items()}
        said = {str(bucket): promises for kind, value in notes if kind == "promises" for bucket, promises in [value]}
        buckets = BucketPromises.after(last, self.buckets)
        promises = {} if last is None else dict(last.promises)
        promises |= {s: RecentPromises.from_plain(p).to_text() for k in known[:1] for s, p in k["promises"].items()}
        promises[""] = buckets.take(said, reached).to_text()
        queues = [value for kind, value in notes if kind == QUEUES]
        greatest = greater(
            *(each["greatest"] for each in known), *(value for kind, value in notes if kind == "greatest")
        )
        ever = greatest if last is None else greater(last.greatest, greatest)
        self.log.commit(
            batch,
            files,
            frontier=least_bound(reached, self.buckets),
            promises=promises,
            counts=counts,
            trackers=trackers,
            greatest=greatest,
            positions=self._positions(batch),
            state={
                "reached": reached,
                "promised": buckets.kept(),
                OPERATORS: summed(last, [value for kind, value in notes if kind == OPERATORS]),
                **({} if self.rounds is None else self.rounds.after(last, queues, sink)),
                **({} if self.waiting is None else {WAKES: self.waiting.wakes(trackers, ever)}),
            },
        )
        if self.rounds is not None:
            self.rounds.end(self.log.last())
        # After everything is kept: a run that is started again finds the record and goes on from there.
        kept = self.log.last()
        totals = {} if kept is None else kept.totals
        self._tell_first(counts, totals)
        self.limit.check(Counts(**{name: totals.get(name, 0) for name in asdict(Counts())}), where)

    def _tell_first(self, counts: Mapping[str, int], totals: Mapping[str, int]) -> None:
        """Log that a query has its first late row, and its first dead letter."""
        for told, kinds in (("late rows", ("late",)), ("dead letters", ("dead", "failed"))):
            now, ever = sum(counts.get(k, 0) for k in kinds), sum(totals.get(k, 0) for k in kinds)
            if now and now == ever:
                LOGGER.warning("run %s: the first %s: %d", self.home.place.path.rsplit("/", 1)[-1], told, now)

    def _stage(self, tagged: DataFrame) -> tuple[list[tuple[str, Any]], dict[str, list[DataFile]]]:
        """Evaluate the micro-batch: notes, and the files that were written."""
        folders = {o.kind: o.folder for o in self.outputs if o.folder is not None}
        to_functions = [o.kind for o in self.outputs if o.folder is None]
        table = (tagged.filter(~F.col("kind").isin(to_functions)) if to_functions else tagged).toArrow()
        notes: list[tuple[str, Any]] = []
        small: dict[str, list[pa.Table]] = defaultdict(list)
        files: dict[str, list[DataFile]] = defaultdict(list)
        for kind, body in zip(table.column("kind").to_pylist(), table.column("body").to_pylist(), strict=True):
            written = staged_file(kind, body)
            if written is not None:
                files[KINDS[written[0]]].append(written[1])
            elif kind in folders:
                small[kind].append(unpack(body))
            else:
                notes.append((kind, load(body)))
        for kind, tables in small.items():
            files[KINDS[kind]].append(folders[kind].staging.write(tables))
        return notes, files

    def _positions(self, batch: int) -> list[str] | None:
        """Where Spark will read on after this micro-batch, as its checkpoint has it."""
        try:
            return (self.home.place / "checkpoint" / "offsets" / str(batch)).read().decode().splitlines()
        except FileNotFoundError:
            return None


def reached_after(record: Record | None) -> dict[str, int]:
    """How far each bucket's output had come, by the bucket's id; a bucket that has nothing new to say says nothing."""
    found = record.state.get("reached") if record is not None and isinstance(record.state, dict) else None
    return dict(found or {})


def least_bound(reached: Mapping[str, int], buckets: int) -> int | None:
    """How far the output has come: as far as the bucket that is furthest behind, and nowhere before all have spoken.

    Buckets see the same progress, but what a merge promises depends on the events that a bucket holds.
    """
    return min(reached.values()) if len(reached) == buckets else None
