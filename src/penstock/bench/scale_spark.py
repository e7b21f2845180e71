"""What of a micro-batch is Spark's, and what whole micro-batches take, on executors that are processes of their own.

The master of a session is fixed when its process starts, so this runs as a script: it is given how many executors there
are and what to run on them, as JSON, and prints what came of it as its last line. An executor has one core in name; if
there are more executors than cores, they share these.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from penstock.bench.event_log import event_log_settings
from penstock.bench.scale_pieces import DISORDER, SCHEMA, SLIDE, SQL, make_rows, slope
from penstock.bench.spark_tasks import MicroBatch, micro_batches, quiet
from penstock.engines.spark.probe import Probe, empty_tasks, probe_stream
from penstock.engines.spark.session import local_session
from penstock.flow.flow import Flow
from penstock.model.progress import bounded

WARM, COUNTED = 7, 6
"""Micro-batches in which workers start and windows fill, and those that are counted."""
MEMORY = 1024
NO_EMPTY_TASKS = {"spark.sql.files.minPartitionNum": "1", "spark.sql.shuffle.partitions": "1"}
"""A file is read by one task however many cores there are, and a probe, which has one bucket, has one partition."""


@dataclass(frozen=True)
class Trial:
    """Micro-batches of one slide each."""

    rows: int
    keys: int
    tasks: int = 1
    buckets: int = 1


@dataclass(frozen=True)
class Work:
    """What a process is to do."""

    executors: int
    trials: tuple[Trial, ...] = ()
    probes: tuple[Probe, ...] = ()
    empty: int = 0
    """Tasks that do nothing."""


@dataclass(frozen=True)
class Took:
    """Seconds of a micro-batch, of one of its tasks that read, of one of its buckets, and without all of these.

    The last is of one executor, on which tasks run one after another.
    """

    whole: float
    task: float
    bucket: float
    rest: float


@dataclass(frozen=True)
class Done:
    """What it took, each in the order in which it was asked for."""

    trials: list[Took]
    probes: list[Took]
    empty: tuple[float, float]
    """What all tasks that do nothing took, and what the driver was busy with them."""


BASE = Trial(1000, 100, tasks=4, buckets=4)
BARE = Probe()
LARGE, MANY, STATE = Probe(128, 1 << 18), Probe(packets=200_000), Probe(pages=8, page_bytes=1 << 22)
EMPTY = 1000


def constants_work(rows: int) -> Work:
    """What the constants are taken from, on one executor."""
    return Work(1, (BASE, Trial(4 * rows, 100, tasks=1)), (BARE, LARGE, MANY, STATE), EMPTY)


def constants_of(work: Work, done: Done, reduce_row: float) -> dict[str, float]:
    """The constants that are Spark's; tasks of one micro-batch run one after another."""
    base, large = done.trials
    bare, packed, many, state = done.probes
    return {
        "task": base.task,
        "bucket": base.bucket,
        "fixed": base.rest,
        "read_row": max(0.0, slope(large.task, base.task, work.trials[1].rows - BASE.rows / BASE.tasks) - reduce_row),
        "carry_byte": slope(packed.bucket, bare.bucket, LARGE.carried - BARE.carried),
        "carry_packet": 2 * slope(many.bucket, bare.bucket, MANY.packets - BARE.packets),
        "store_byte": slope(state.bucket, bare.bucket, STATE.kept - BARE.kept),
        "driver_task": done.empty[1] / work.empty,
    }


def in_process_of_its_own(work: Work) -> Done:
    """Run it in another process."""
    command = [sys.executable, "-m", "penstock.bench.scale_spark", json.dumps(asdict(work))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    if ran.returncode:
        raise RuntimeError(f"{work.executors} executors failed:\n{ran.stderr[-2000:]}")
    found = json.loads(ran.stdout.strip().splitlines()[-1])
    trials, probes = ([Took(**each) for each in found[kind]] for kind in ("trials", "probes"))
    return Done(trials, probes, tuple(found["empty"]))


def run(work: Work) -> Done:
    """Everything that is asked for, in one session."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        home, events = Path(folder), Path(folder, "events")
        events.mkdir()
        names = {
            key.replace(".", "__"): value for key, value in {**event_log_settings(events), **NO_EMPTY_TASKS}.items()
        }
        spark = local_session(f"local-cluster[{work.executors},1,{MEMORY}]", **names)
        try:
            for at in range(work.executors):  # each of them has code to compile
                run_trial(spark, home / f"first-{at}", BASE)
            trials = [run_trial(spark, home / f"trial-{at}", t) for at, t in enumerate(work.trials)]
            probes = [run_probe(spark, home / f"probe-{at}", p) for at, p in enumerate(work.probes)]
            # The last time counts: until then the driver's code is still being compiled.
            empty = [empty_tasks(spark, work.empty) for _ in range(3 if work.empty else 0)] or [(0.0, 0.0)]
        finally:
            spark.stop()
        tasks = micro_batches(events)
        return Done([t.took(tasks) for t in trials], [p.took(tasks) for p in probes], empty[-1])


@dataclass(frozen=True)
class Ran:
    """A query that has run."""

    query: str
    """Its identity."""
    counted: dict[int, float]
    """Seconds of each micro-batch that counts, by its number."""

    def took(self, tasks: Mapping[str, Mapping[int, MicroBatch]]) -> Took:
        """With what is known of its tasks."""
        own = {number: tasks[self.query][number] for number in self.counted}
        first, last = (quiet(t for each in own.values() for t in each.stage(at)) for at in (0, -1))
        rest = quiet(max(0.0, seconds - own[number].seconds) for number, seconds in self.counted.items())
        return Took(min(self.counted.values()), first, last, rest)


def run_trial(spark: Any, home: Path, trial: Trial) -> Ran:
    """Micro-batches of the query."""
    per_task = trial.rows // trial.tasks
    tables = (
        make_rows(per_task, trial.keys, at * SLIDE, seed=task)
        for at in range(WARM + COUNTED)
        for task in range(trial.tasks)
    )
    frame = stream_of(spark, home / "in", tables, trial.tasks)
    flow = Flow(spark, path=str(home / "flow"))
    flow.stream("main", frame, time="ts", progress=bounded(DISORDER))
    started: Any = flow.query(SQL, "q").start(str(home / "out"), buckets=trial.buckets)
    started.process_available()
    ran = ran_by(started.streaming)
    started.stop()
    return ran


def run_probe(spark: Any, home: Path, probe: Probe) -> Ran:
    """Micro-batches of a probe."""
    frame = stream_of(spark, home / "in", (make_rows(1, 1, at) for at in range(WARM + COUNTED)), 1)
    stream = probe_stream(frame, probe).writeStream.outputMode("append").format("noop")
    running = stream.option("checkpointLocation", str(home / "checkpoint")).trigger(availableNow=True).start()
    running.awaitTermination()
    return ran_by(running)


def stream_of(spark: Any, folder: Path, tables: Iterable[Any], at_once: int) -> Any:
    """Tables as files, of which a micro-batch has so many, each read by a task."""
    folder.mkdir(parents=True)
    for at, table in enumerate(tables):
        path = folder / f"{at:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000 + at, 1_000_000 + at))
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", at_once).parquet(str(folder))


def ran_by(running: Any) -> Ran:
    """A streaming query, after its first micro-batches."""
    with_rows = [p for p in running.recentProgress if p.numInputRows > 0]
    return Ran(str(running.id), {p.batchId: p.batchDuration / 1000 for p in with_rows[WARM:]})


def work_of(text: str) -> Work:
    """Work as JSON has it."""
    found = json.loads(text)
    trials = tuple(Trial(**t) for t in found["trials"])
    return Work(found["executors"], trials, tuple(Probe(**p) for p in found["probes"]), found["empty"])


if __name__ == "__main__":
    print(json.dumps(asdict(run(work_of(sys.argv[1])))))
