"""A query's home and output as a release left them on disk, stopped halfway: made once, opened by every later release.

The input is left out: the second half of it is put where the query is started again. Spark writes
whole paths into its checkpoint, of files that it has read and of its state's schema, so they are moved with the home.
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
        (home / ROOT).write_text(str(home))
        ARCHIVE.parent.mkdir(exist_ok=True)
        with tarfile.open(ARCHIVE, "w:gz") as archive:
            for part in sorted(home.iterdir()):
                archive.add(part, part.name)


def unpack(home: Path) -> None:
    """What the release left, with the second half of the input."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(home, filter="data")
    old, new = (home / ROOT).read_bytes(), str(home).encode()
    for file in [f for f in (home / "flow" / "talkers" / "checkpoint").rglob("*") if f.is_file()]:
        content = file.read_bytes()
        if old in content:
            file.write_bytes(content.replace(old, new))
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    scenario.write_files(home / "in", range(HALF, scenario.FILES))
