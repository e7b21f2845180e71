"""What Spark's event log says of the tasks of streaming queries: how long each was under way, by stage.

The log is Spark's own, lines of JSON, whole once its session has stopped. A job says for which query and micro-batch it
is, a task for which stage. The stages of a micro-batch come in the order of their numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from penstock.bench.event_log import events_in

QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass
class MicroBatch:
    """Seconds of each task, by the number of its stage."""

    tasks: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def stage(self, at: int) -> list[float]:
        """The tasks of the stage that is so many behind the first, or before the last."""
        return self.tasks[sorted(self.tasks)[at]]

    @property
    def seconds(self) -> float:
        """Of all tasks."""
        return sum(sum(each) for each in self.tasks.values())


def micro_batches(folder: Path) -> dict[str, dict[int, MicroBatch]]:
    """The tasks of the sessions whose events are in a folder: by query, and by the number of the micro-batch."""
    found: dict[str, dict[int, MicroBatch]] = defaultdict(lambda: defaultdict(MicroBatch))
    of_stage: dict[int, tuple[str, int]] = {}
    for event in events_in(folder):
        match event["Event"]:
            case "SparkListenerJobStart" if QUERY in event["Properties"] and BATCH in event["Properties"]:
                place = event["Properties"][QUERY], int(event["Properties"][BATCH])
                of_stage |= dict.fromkeys(event["Stage IDs"], place)
            case "SparkListenerTaskEnd" if event["Stage ID"] in of_stage:
                query, batch = of_stage[event["Stage ID"]]
                info = event["Task Info"]
                seconds = (info["Finish Time"] - info["Launch Time"]) / 1000
                found[query][batch].tasks[event["Stage ID"]].append(seconds)
    return found


def quiet(seconds: Iterable[float]) -> float:
    """The lower quartile: what is usual when nobody else is at work."""
    known = sorted(seconds)
    return known[0] if len(known) < 2 else max(known[0], quantiles(known, n=4)[0])
