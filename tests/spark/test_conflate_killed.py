"""A conflated query whose driver, JVM and workers are killed loses no key's latest value, and gives no row twice.

Kills are exact: they are done by the code that has reached the point, while rows wait. What is right is computed here
by hand, from the rows.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.spark import modes
from tests.spark.driven import drive
from tests.spark.queue_driver import DRIVERS, rows_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(modes.chosen() != "local", reason="the processes that are killed run Spark in local mode"),
]
DRIVER = "tests.spark.queue_driver"


def killed_at(home: Path, point: str, calls: int) -> None:
    killed = drive(DRIVER, home, point, str(calls))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (caught,) = (home / "traps").glob(f"{point}.*.hit")
    caught.unlink()


def check(home: Path, files: int) -> None:
    ended = drive(DRIVER, home)
    assert ended.returncode == 0, ended.stderr
    progress = json.loads(ended.stdout)
    (queue,) = progress["queues"]
    came = [row for number in range(files) for row in rows_of(number)]
    assert (progress["read"], progress["on_time"], progress["late"]) == (len(came), len(came), 0)
    delivered = pq.read_table(home / "out").to_pylist()
    last: dict[int, int] = {}
    for row in came:
        last[row["k"]] = max(row["ts"], last.get(row["k"], 0))
    found: dict[int, int] = {}
    for row in delivered:
        found[row["k"]] = max(row["ts"], found.get(row["k"], 0))
    assert found == last
    assert not Counter(row["v"] for row in delivered) - Counter(row["v"] for row in came)  # none twice
    passed = pq.read_table(home / "superseded").to_pylist()
    whole = Counter(row["v"] for row in delivered) + Counter(json.loads(row["row"])["v"] for row in passed)
    assert whole == Counter(row["v"] for row in came)
    assert queue["waiting"] == 0
    assert queue["enqueued"] == len(came)
    assert queue["delivered"] == queue["dequeued"] == len(delivered)
    assert queue["superseded"] + queue["older"] == len(passed)


def test_killed_while_rows_wait_and_are_handed_on(tmp_path: Path) -> None:
    killed_at(tmp_path, "handing", 2)
    check(tmp_path, 1)


def test_killed_at_every_point(tmp_path: Path) -> None:
    points = [("handing", 3), *((point, calls) for point in DRIVERS for calls in (1, 2)), ("handing", 2)]
    for point, calls in points:
        killed_at(tmp_path, point, calls)
    check(tmp_path, len(points))
