"""Every example runs as a user would run it, and prints something."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.running import python

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def case(path: Path) -> object:
    marks = [pytest.mark.spark] if "spark" in path.stem else []
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [case(p) for p in EXAMPLES])
def test_example_runs(path: Path, tmp_path: Path) -> None:
    assert python([str(path)], tmp_path, os.environ).strip()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60
