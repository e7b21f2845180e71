"""A conflated query whose driver, JVM and workers are killed loses no key's latest value, and gives no row twice.

Kills are exact: they are done by the code that has reached the point, while rows wait.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.spark import modes
from tests.spark.driven import drive
from tests.spark.queue_checks import CHECKS
from tests.spark.queue_driver import DRIVERS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(modes.chosen() != "local", reason="the processes that are killed run Spark in local mode"),
]
DRIVER = "tests.spark.queue_driver"
CALLS = {"rows": (3, 2), "linecutting": (3, 2), "windows": (1, 1)}
"""At which row of a task that is handed on it is killed; of windows there are few."""


def killed_at(home: Path, form: str, point: str, calls: int) -> None:
    killed = drive(DRIVER, home, form, point, str(calls))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (caught,) = (home / "traps").glob(f"{point}.*.hit")
    caught.unlink()


def check(home: Path, form: str, files: int) -> None:
    ended = drive(DRIVER, home, form)
    assert ended.returncode == 0, ended.stderr
    CHECKS[form](home, files, json.loads(ended.stdout))


@pytest.mark.parametrize("form", CHECKS)
def test_killed_while_rows_wait_and_are_handed_on(form: str, tmp_path: Path) -> None:
    killed_at(tmp_path, form, "handing", CALLS[form][0])
    check(tmp_path, form, 1)


@pytest.mark.parametrize("form", CHECKS)
def test_killed_at_every_point(form: str, tmp_path: Path) -> None:
    first, last = CALLS[form]
    points = [("handing", first), *((point, calls) for point in DRIVERS for calls in (1, 2)), ("handing", last)]
    for point, calls in points:
        killed_at(tmp_path, form, point, calls)
    check(tmp_path, form, len(points))
