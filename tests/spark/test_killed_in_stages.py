"""The driver of a query in stages, JVM and workers with it, is killed at every point of a micro-batch; nothing differs.

Each kill is done by the code that has reached the point, at a call that is drawn at random: so it is certain where it
was. A point is reached in a micro-batch that is new, and, for those of the stages, once more while a micro-batch is
replayed that was interrupted before, at whatever point. `PENSTOCK_SEED` says in which order.
"""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pytest

from tests.spark import modes
from tests.spark.driven import STEPS, drive
from tests.spark.staged_queries import CASES, output, staged_files
from tests.spark.staged_rows import write_file
from tests.spark.traps import STAGED, Traps

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(modes.chosen() != "local", reason="the processes that are killed run Spark in local mode"),
]
DRIVER = "tests.spark.stage_driver"
SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
CALLS = {"reading": 2000, "in_first": 3}


def logged(home: Path, log: str) -> int:
    """The last micro-batch in one of the checkpoint's logs, or in ours."""
    folder = home / "flow/q" / log
    found = [int(f.stem) for f in folder.iterdir() if f.stem.isdigit()] if folder.exists() else []
    return max(found, default=-1)


def kill_at(home: Path, name: str, point: str, calls: int, *, replayed: bool) -> None:
    traps, interrupted = Traps(home / "traps"), logged(home, "checkpoint/offsets")
    if replayed:
        (home / "replay").touch()
    killed = drive(DRIVER, home, name, point, str(calls))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert traps.caught(point) is not None
    begun, committed = logged(home, "checkpoint/offsets"), logged(home, "checkpoint/commits")
    assert begun == committed + 1  # it was in the middle of a micro-batch
    assert (begun == interrupted) == replayed
    if not replayed:
        assert (logged(home, "log") == begun) == (point in ("recorded", "published"))
    assert point != STAGED or staged_files(home)
    print(f"killed at {point}, in micro-batch {begun}{', replayed' if replayed else ''}", flush=True)
    traps.clear()
    (home / "replay").unlink(missing_ok=True)


@pytest.mark.parametrize("name", ["two groupings", "grouped", "joined"])
def test_killed_at_every_point(name: str, tmp_path: Path) -> None:
    case, rng = CASES[name], random.Random(f"{name} {SEED}")
    write_file(tmp_path / "in/main", 0)
    new = [*case.points, *STEPS]
    again = [*case.points]
    rng.shuffle(new)
    rng.shuffle(again)
    for point in new:
        kill_at(tmp_path, name, point, rng.randint(1, CALLS.get(point, 1)), replayed=False)
        if again:
            other = again.pop()
            kill_at(tmp_path, name, other, rng.randint(1, CALLS.get(other, 1)), replayed=True)
    ended = drive(DRIVER, tmp_path, name)
    assert ended.returncode == 0, ended.stderr
    files = len(list((tmp_path / "in/main").iterdir()))
    assert files == 1 + len(new)
    expected = case.expected(files)
    assert all(expected.values())  # there is something to find
    for kind, rows in output(tmp_path).items():
        assert rows == expected[kind], kind
    assert json.loads(ended.stdout).items() >= case.counts(files).items()
    assert staged_files(tmp_path) == set()
