"""Queries' homes and outputs as a release left them on disk, stopped halfway: made once, opened by every later release.

The input is left out: the second half of it is put where the query is started again. Spark writes
whole paths into its checkpoint, of files that it has read and of its state's schema, so they are moved with the home.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.spark import queue_driver, scenario

FOLDER = Path(__file__).parent / "spark"
HALF = scenario.FILES // 2
ROOT = "root.txt"
"""Where the home was when it was made."""


@dataclass(frozen=True)
class GoldenHome:
    """A query that was stopped halfway."""

    name: str
    first: Callable[[Any, Path], None]
    """Run the query on the first half of its input, with the session, in a folder."""
    second: Callable[[Path], None]
    """Put the second half of its input."""

    @property
    def archive(self) -> Path:
        return FOLDER / f"{self.name}.tar.gz"

    def make(self, spark: Any) -> None:
        """Run the first half and keep what it leaves."""
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder).resolve()
            self.first(spark, home)
            shutil.rmtree(home / "in")
            (home / ROOT).write_text(str(home))
            FOLDER.mkdir(exist_ok=True)
            with tarfile.open(self.archive, "w:gz") as archive:
                for part in sorted(home.iterdir()):
                    archive.add(part, part.name)

    def unpack(self, home: Path) -> None:
        """What the release left, with the second half of the input."""
        with tarfile.open(self.archive) as archive:
            archive.extractall(home, filter="data")
        old, new = (home / ROOT).read_bytes(), str(home).encode()
        for file in [f for f in (home / "flow").glob("*/checkpoint/**/*") if f.is_file()]:
            content = file.read_bytes()
            if old in content:
                file.write_bytes(content.replace(old, new))
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        self.second(home)


def first_talkers(spark: Any, home: Path) -> None:
    scenario.write_files(home / "in", range(HALF))
    run = scenario.start(spark, home)
    run.process_available()
    run.stop()


def first_conflated(spark: Any, home: Path) -> None:
    """One micro-batch: the next would come in an hour, and nearly all of its rows wait."""
    queue_driver.write_file(home, 0)
    run = queue_driver.start(spark, home, "rows", int, trigger={"processingTime": "1 hour"})
    while not (home / "flow/q/checkpoint/commits/0").exists():
        assert not run.wait(0.1)
    run.stop()


TALKERS = GoldenHome(
    "talkers", first_talkers, lambda home: scenario.write_files(home / "in", range(HALF, scenario.FILES))
)
CONFLATED = GoldenHome("conflated", first_conflated, lambda home: queue_driver.write_file(home, 1))
CLOCKED = GoldenHome("conflated_by_clock", first_conflated, lambda home: queue_driver.write_file(home, 1))
"""Where the clock makes the next micro-batch; in the one before that did files."""
HOMES = (TALKERS, CONFLATED, CLOCKED)
