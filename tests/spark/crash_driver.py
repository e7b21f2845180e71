"""Drives the scenario's query in a process of its own, and kills that process, its JVM with it, at a given point.

`python -m tests.spark.crash_driver HOME [POINT NUMBER]`, started as the leader of a process group. The point lies in
the micro-batch of file NUMBER:

- `processing`: in a worker, while rows go into state; the micro-batch is in the offset log and nowhere else.
- `processed`: state is written, the output is not.
- `written`: the results are written; late rows, dead letters and counts are not, and the micro-batch is not committed.

Without a point it runs to the end, closes the stream and prints the progress as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from penstock.engines.spark.run import FolderSink
from penstock.engines.spark.session import local_session
from tests.spark.scenario import Probe, start

POINTS = ("processing", "processed", "written")


def killing_probe(group: int, number: int) -> Probe:
    """Kills the group at the last row of a file, which is the only one with this length."""

    def probe(length: int) -> int:
        if length == number:
            os.killpg(group, signal.SIGKILL)
        return length

    return probe


def killing_sink(folder: Path, point: str, number: int) -> Any:
    """A folder sink that kills its process group before or after it has written one micro-batch."""
    write = FolderSink(str(folder))

    def sink(frame: Any, batch: int) -> None:
        if batch == number and point == "processed":
            os.killpg(0, signal.SIGKILL)
        write(frame, batch)
        if batch == number and point == "written":
            os.killpg(0, signal.SIGKILL)

    return sink


def main(home: Path, point: str | None = None, number: int = 0) -> None:
    """Run until the point, or to the end."""
    probe = killing_probe(os.getpgrp(), number) if point == "processing" else None
    sink = killing_sink(home / "out", point, number) if point in ("processed", "written") else None
    run = start(local_session(), home, sink=sink, probe=probe)
    run.finish()
    print(json.dumps(run.progress))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3], *map(int, sys.argv[3:4]))
