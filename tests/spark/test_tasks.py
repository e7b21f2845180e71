"""Queries that once ran in one place use all tasks, as Spark's own metrics say: work per row is done where it is read.

In a process of its own, since a session keeps a log of its events or does not from its start.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from penstock.bench.event_log import Spread, spread_of
from tests.processes import ROOT
from tests.spark import modes
from tests.spark.tasks_driver import BATCHES, FILES, NAMES, ROWS, UNCUT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(modes.chosen() != "local", reason="the process starts a session of its own"),
]


@pytest.fixture(scope="module")
def spreads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Spread]:
    home = tmp_path_factory.mktemp("tasks")
    command = [sys.executable, "-m", "tests.spark.tasks_driver", str(home)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    ids = json.loads((home / "queries.json").read_text())
    return {name: spread_of(home / "events", ids[name], BATCHES) for name in ids}


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_its_part(name: str, spreads: dict[str, Spread]) -> None:
    spread = spreads[name]
    tell(name, spread)
    assert spread.rows >= BATCHES * FILES * ROWS  # a union of two aggregates reads its stream once, or twice
    assert spread.readers >= FILES
    assert spread.busiest <= 1 / FILES
    assert all(task.milliseconds > 0 and task.bytes_out > 0 for task in spread.reading)
    ran = Counter[int]()
    for task in spread.reading:
        ran[task.index] += task.milliseconds
    assert max(ran.values()) < 0.6 * ran.total()


@pytest.mark.parametrize("name", NAMES)
def test_few_numbers_go_on_from_there(name: str, spreads: dict[str, Spread]) -> None:
    spread, rows_as_they_are = spreads[name], spreads[UNCUT]
    assert spread.behind_exchanges
    assert spread.sent < rows_as_they_are.sent / 4
    assert spread.gathered < rows_as_they_are.gathered / 2  # though all of it may go to one task
    assert rows_as_they_are.gathered > 0.2 * rows_as_they_are.sent  # with four buckets, each is given a part


def tell(name: str, spread: Spread) -> None:
    print(
        f"{name}: {spread.readers} tasks read, the busiest {spread.busiest:.0%} of the rows; {spread.sent:.2f} bytes a "
        f"row are sent, {spread.gathered:.2f} to one task; the longest behind an exchange has "
        f"{spread.longest_behind:.0%} of the time"
    )
