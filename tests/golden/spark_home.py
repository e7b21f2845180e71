"""A query's home and output as a release left them on disk, stopped halfway: made once, opened by every later release.

The input is left out: the second half of it is put where the query is started again. Spark's file source remembers
whole paths and looks at the last of them when it starts, so they are moved with the home.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tests.spark import scenario

ARCHIVE = Path(__file__).parent / "spark" / "talkers.tar.gz"
HALF = scenario.FILES // 2
ROOT = "root.txt"
"""Where the home was when it was made."""


def make(spark: Any) -> None:
    """Run the first half of the scenario and keep what it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        scenario.write_files(home / "in", range(HALF))
        run = scenario.start(spark, home)
        run.process_available()
        run.stop()
        shutil.rmtree(home / "in")
        (home / ROOT).write_text(home.as_uri())
        ARCHIVE.parent.mkdir(exist_ok=True)
        with tarfile.open(ARCHIVE, "w:gz") as archive:
            for part in sorted(home.iterdir()):
                archive.add(part, part.name)


def unpack(home: Path) -> None:
    """What the release left, with the second half of the input."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(home, filter="data")
    old = (home / ROOT).read_text()
    for file in [f for f in (home / "flow" / "talkers" / "checkpoint" / "sources").rglob("*") if f.is_file()]:
        if file.suffix == ".crc":
            file.unlink()
        else:
            file.write_text(file.read_text().replace(old, home.as_uri()))
    scenario.write_files(home / "in", range(HALF, scenario.FILES))
