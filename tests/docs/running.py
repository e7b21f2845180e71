"""A page run as a reader runs it: its blocks one after the other, in a process and a folder of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.docs.pages import ROOT, Block

END = "=== end of block ==="


def plain(text: str) -> list[str]:
    """The lines, without what cannot be seen."""
    return [line.rstrip() for line in text.strip().splitlines()]


def python(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """What a Python prints, with this project and the commands of its environment in reach."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # as in an activated environment
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT / "src"), "PATH": path},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


def run_page(found: Sequence[Block], folder: Path, environment: Mapping[str, str], then: str = "") -> str:
    """Run the blocks, compare what they print with what the page shows; what `then`, code to run last, prints.

    Spark's idea of the current folder is that of the process that started it: hence a process of their own.
    """
    script = "".join(f"{block.text}\nprint({END!r}, flush=True)\n" for block in found)
    *printed, last = python(["-c", script + then], folder, environment).split(END)
    for block, text in zip(found, printed, strict=True):
        if block.output is not None:
            assert plain(text) == plain(block.output), f"{block.page.relative_to(ROOT)}, line {block.line}"
    return last
