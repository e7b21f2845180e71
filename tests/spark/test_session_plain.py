"""The tutorial as a beginner runs it: a plain session with Spark's defaults, far from UTC, gives its answers.

In a process of its own, with an environment as an activated one has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
END = "=== end of block ==="
DEFAULTS = """
for key in ("session.timeZone", "shuffle.partitions", "streaming.stateStore.providerClass"):
    print(spark.conf.get(f"spark.sql.{key}"))
"""


def test_the_tutorial_in_new_york(tmp_path: Path) -> None:
    page = blocks(ROOT / "docs" / "tutorial.md", "python")
    assert any("SparkSession.builder.getOrCreate()" in block.text for block in page)
    script = "".join(f"{block.text}\nprint({END!r}, flush=True)\n" for block in page) + DEFAULTS
    spark = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PENSTOCK_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**spark, "PYTHONPATH": str(ROOT / "src"), "PATH": path, "TZ": "America/New_York"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    printed = done.stdout.split(END)
    for block, found in zip(page, printed, strict=False):
        if block.output is not None:
            assert plain(found) == plain(block.output), f"tutorial, line {block.line}"
    assert plain(printed[-1])[:2] == ["America/New_York", "200"]
    assert plain(printed[-1])[2].endswith(".HDFSBackedStateStoreProvider")


def plain(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
