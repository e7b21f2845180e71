"""A query whose driver is killed at any point and started again gives what an undisturbed one gives.

Every kill is exact: it is done by the code that has reached the point, to the whole process group, JVM included.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark import modes, scenario

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(modes.chosen() != "local", reason="the processes that are killed run Spark in local mode"),
]


def drive(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the driver in a process group of its own, of which nothing is left afterwards."""
    log = home / "driver.log"
    with log.open("a") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.crash_driver", str(home), *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            stdout, _ = child.communicate(timeout=300)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(child.args, child.returncode, stdout, log.read_text())


def logged(home: Path, log: str) -> int:
    """The last micro-batch in one of the checkpoint's logs."""
    return max(int(f.name) for f in (home / "flow/talkers/checkpoint" / log).iterdir() if f.name.isdigit())


def test_killed_and_restarted(spark: Any, tmp_path: Path) -> None:
    disturbed, undisturbed = tmp_path / "disturbed", tmp_path / "undisturbed"
    for home in (disturbed, undisturbed):
        scenario.write_files(home / "in")

    for point, number in (("processing", 1), ("staged", 2), ("recorded", 3), ("published", 4)):
        killed = drive(disturbed, point, str(number))
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert (logged(disturbed, "offsets"), logged(disturbed, "commits")) == (number, number - 1)
        record = disturbed / f"flow/talkers/log/{number:012d}.json"
        assert record.exists() == (point in ("recorded", "published"))
        assert any((disturbed / "out").glob(f"part-*-{number:012d}-*")) == (point == "published")
    ended = drive(disturbed)
    assert ended.returncode == 0, ended.stderr

    run = scenario.start(spark, undisturbed)
    run.finish()

    assert scenario.output(undisturbed) == scenario.expected()
    assert scenario.output(disturbed) == scenario.expected()
    progress = json.loads(ended.stdout)
    assert progress == run.progress
    assert progress.items() >= scenario.expected_counts().items()
