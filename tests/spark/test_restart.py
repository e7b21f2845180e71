"""A query that is stopped and started again goes on from its checkpoint. Holds in every mode of running Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark import scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


def test_goes_on_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    half = scenario.FILES // 2
    scenario.write_files(tmp_path / "in", range(half))
    first = scenario.start(spark, tmp_path)
    first.process_available()
    first.stop()
    assert first.progress["batches"] == half

    scenario.write_files(tmp_path / "in", range(half, scenario.FILES))
    second = scenario.start(spark, tmp_path)
    second.finish()

    assert scenario.output(tmp_path) == scenario.expected()
    assert second.progress.items() >= scenario.expected_counts().items()
