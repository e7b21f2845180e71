"""Queries driven in a process of their own, which traps kill at steps that the driver does in a micro-batch."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from penstock.storage.home import Home
from penstock.storage.run_log import RunLog
from tests.processes import ROOT, kill, members
from tests.spark.traps import Traps

STEPS: dict[str, tuple[Any, str]] = {
    "evaluated": (Home, "put"),
    "recorded": (Home, "put"),
    "published": (RunLog, "publish"),
}
"""Points of the driver, and the step that each is after; `evaluated` is before its step."""


def lay(point: str, traps: Traps, step: tuple[Any, str]) -> None:
    """A trap in the driver, which kills all of its processes."""
    owner, name = step
    done = getattr(owner, name)
    spring = traps.function(point, kills=os.getpgrp())

    def stepped(self: Any, record: Any) -> None:
        if point == "evaluated":
            spring(None)
        done(self, record)
        if point != "evaluated":
            spring(None)

    setattr(owner, name, stepped)


def drive(module: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a driver as the leader of a session, of which nothing is left afterwards."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "driver.log").open("a") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", module, str(home), *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: kill(members(child.pid)))
            stdout, _ = child.communicate(timeout=900)
    return subprocess.CompletedProcess(child.args, child.returncode, stdout, (home / "driver.log").read_text())
