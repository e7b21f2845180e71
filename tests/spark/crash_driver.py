"""Drives the scenario's query in a process of its own, and kills that process, its JVM with it, at a given point.

`python -m tests.spark.crash_driver HOME [POINT NUMBER]`, started as the leader of a process group. The point lies in
the micro-batch of file NUMBER:

- `processing`: in a worker, while rows go into state; the micro-batch is in the offset log and nowhere else.
- `staged`: state and files are written, and no record names them.
- `recorded`: the record is put, its files have not got their names.
- `published`: everything of ours is done, and Spark has not committed the micro-batch.

Without a point it runs to the end, closes the stream and prints the progress as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from penstock.engines.spark.session import local_session
from penstock.storage.home import Home
from penstock.storage.log import Record
from penstock.storage.run_log import RunLog
from tests.spark.scenario import Probe, start


def killing_probe(group: int, number: int) -> Probe:
    """Kills the group at the last row of a file, which is the only one with this length."""

    def probe(length: int) -> int:
        if length == number:
            os.killpg(group, signal.SIGKILL)
        return length

    return probe


def kill_at(point: str, number: int) -> None:
    """Kill the process group before or after a step of one micro-batch."""
    owner: Any = RunLog if point == "published" else Home
    name = "publish" if point == "published" else "put"
    step = getattr(owner, name)

    def killing(self: Any, record: Record) -> None:
        if record.number == number and point == "staged":
            os.killpg(0, signal.SIGKILL)
        step(self, record)
        if record.number == number and point in ("recorded", "published"):
            os.killpg(0, signal.SIGKILL)

    setattr(owner, name, killing)


def main(home: Path, point: str | None = None, number: int = 0) -> None:
    """Run until the point, or to the end."""
    probe = killing_probe(os.getpgrp(), number) if point == "processing" else None
    if point is not None and probe is None:
        kill_at(point, number)
    run = start(local_session(), home, probe=probe)
    run.finish()
    print(json.dumps(run.progress))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3], *map(int, sys.argv[3:4]))
