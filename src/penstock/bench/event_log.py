"""What the tasks of a streaming query did, as Spark itself tells it in its log of events.

A session writes the log if it was started with `event_log_settings`. Every job says which query it works for and in
which micro-batch; every task that has ended says how many rows it read from the source, what it read and wrote through
exchanges, and how long it ran. Spark writes the log some moments after the fact, so a reader waits for the last job.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import InternalError

ENABLED, FOLDER = "spark.eventLog.enabled", "spark.eventLog.dir"
PATIENCE = 30.0
"""Seconds until the log must tell of what has happened."""


def event_log_settings(folder: Path) -> dict[str, str]:
    """The settings of a session that tells in a folder what it does, as lines of JSON in one file."""
    plain = {"spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}
    return {ENABLED: "true", FOLDER: folder.as_uri(), **plain}


@dataclass(frozen=True)
class Task:
    """One attempt of a task that has ended."""

    batch: int
    stage: int
    index: int
    """Which of the stage's tasks."""
    speculative: bool
    succeeded: bool
    milliseconds: int
    rows: int
    """Read from the source."""
    records_in: int
    """Read through an exchange."""
    bytes_in: int
    """Likewise."""
    bytes_out: int
    """Written for one."""


@dataclass(frozen=True)
class Spread:
    """How the work of a query was spread over its tasks."""

    tasks: Sequence[Task]

    @property
    def reading(self) -> list[Task]:
        """Those that have read rows."""
        return [task for task in self.tasks if task.rows]

    @property
    def behind_exchanges(self) -> list[Task]:
        """Those that have read what others had sent."""
        return [task for task in self.tasks if task.records_in]

    @property
    def rows(self) -> int:
        """How many were read in all."""
        return sum(task.rows for task in self.reading)

    @property
    def readers(self) -> int:
        """How many tasks share the rows of a micro-batch, of the one that has fewest."""
        return min(len(tasks) for tasks in _by_batch(self.reading).values())

    @property
    def busiest(self) -> float:
        """The part of its micro-batch's rows that the task with most has, of the micro-batch where that is greatest."""
        return max(max(t.rows for t in own) / sum(t.rows for t in own) for own in _by_batch(self.reading).values())

    @property
    def gathered(self) -> float:
        """The bytes that one task behind an exchange is given, at most, for each row of its micro-batch."""
        rows = {batch: sum(t.rows for t in own) for batch, own in _by_batch(self.reading).items()}
        return max(t.bytes_in / rows[t.batch] for t in self.behind_exchanges if t.batch in rows)

    @property
    def records(self) -> float:
        """The records that all tasks behind exchanges are given for each row; each may be the rows of many groups."""
        return sum(task.records_in for task in self.behind_exchanges) / self.rows

    @property
    def longest_behind(self) -> float:
        """The part of the time of all tasks that the one which ran longest behind an exchange had, over micro-batches.

        Tasks behind one exchange have the same index as their bucket has, in every micro-batch.
        """
        took: dict[tuple[int, int], int] = defaultdict(int)
        for tasks in _by_batch(self.behind_exchanges).values():
            stages = sorted({task.stage for task in tasks})
            for task in tasks:
                took[stages.index(task.stage), task.index] += task.milliseconds
        return max(took.values()) / sum(task.milliseconds for task in self.tasks)

    @property
    def sent(self) -> float:
        """Bytes that go through exchanges for each row."""
        return sum(task.bytes_out for task in self.tasks) / self.rows


def spread_of(folder: Path, query: str, batches: int) -> Spread:
    """How the work of a query was spread, which has done so many micro-batches; `query` is Spark's id of it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        events = list(events_in(folder))
        jobs = [e for e in events if _is(e, "JobStart") and e["Properties"].get("sql.streaming.queryId") == query]
        ended = {e["Job ID"] for e in events if _is(e, "JobEnd")}
        of = {s: int(job["Properties"]["streaming.sql.batchId"]) for job in jobs for s in job["Stage IDs"]}
        if len(set(of.values())) >= batches and all(job["Job ID"] in ended for job in jobs):
            return Spread([_task(e, of[e["Stage ID"]]) for e in events if _is(e, "TaskEnd") and e["Stage ID"] in of])
        if time.monotonic() > deadline:
            raise InternalError("Spark's log of events does not tell of a query.", where=str(folder), got=query)
        time.sleep(0.1)


def events_in(folder: Path) -> Iterator[dict[str, Any]]:
    """All events so far; a line that is being written is one of the next look."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):  # check-sums
            continue
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)


def _is(event: dict[str, Any], name: str) -> bool:
    return bool(event["Event"] == f"SparkListener{name}")


def _task(event: dict[str, Any], batch: int) -> Task:
    info, metrics = event["Task Info"], event.get("Task Metrics") or {}
    read, written = metrics.get("Shuffle Read Metrics", {}), metrics.get("Shuffle Write Metrics", {})
    return Task(
        batch=batch,
        stage=event["Stage ID"],
        index=info["Index"],
        speculative=info["Speculative"],
        succeeded=event["Task End Reason"]["Reason"] == "Success",
        milliseconds=metrics.get("Executor Run Time", 0),
        rows=metrics.get("Input Metrics", {}).get("Records Read", 0),
        records_in=read.get("Total Records Read", 0),
        bytes_in=read.get("Remote Bytes Read", 0) + read.get("Local Bytes Read", 0),
        bytes_out=written.get("Shuffle Bytes Written", 0),
    )


def _by_batch(tasks: Iterable[Task]) -> dict[int, list[Task]]:
    found: dict[int, list[Task]] = defaultdict(list)
    for task in tasks:
        found[task.batch].append(task)
    return found
