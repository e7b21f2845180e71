"""Ordinary code over Penstock, and every example, pass mypy --strict as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT

PAGE = Path(__file__).with_name("ordinary.py")


def checked(*paths: Path) -> str:
    """What mypy says, with a user's settings: none of this project's."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    command += ["--no-error-summary", f"--cache-dir={ROOT / '.mypy_cache' / 'users'}", *map(str, paths)]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False).stdout


def test_ordinary_code_passes_a_strict_check() -> None:
    assert checked(PAGE, *sorted((ROOT / "examples").glob("*.py"))) == ""


def test_a_wrong_name_does_not_pass(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import penstock as pk\nq = pk.Flow().query('x')\nq.toPandas()\nq.start([]).progres\n")
    said = checked(wrong)
    assert '"Query" has no attribute "toPandas"' in said
    assert '"Run" has no attribute "progres"' in said
