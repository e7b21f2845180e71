"""A checkpoint that an earlier release left on disk is gone on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden import spark_home
from tests.spark import scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


def test_the_home_of_an_earlier_release_leads_to_the_right_answer(spark: Any, tmp_path: Path) -> None:
    assert spark_home.ARCHIVE.stat().st_size < 200_000
    spark_home.unpack(tmp_path)
    run = scenario.start(spark, tmp_path)
    run.finish()
    assert scenario.output(tmp_path) == scenario.expected()
    assert run.progress.items() >= scenario.expected_counts().items()
