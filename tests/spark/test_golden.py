"""A checkpoint that an earlier release left on disk is gone on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden.spark_home import CLOCKED, CONFLATED, TALKERS, GoldenHome
from tests.spark import queue_driver, scenario
from tests.spark.queue_checks import check_rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


def test_the_home_of_an_earlier_release_leads_to_the_right_answer(spark: Any, tmp_path: Path) -> None:
    assert TALKERS.archive.stat().st_size < 200_000
    TALKERS.unpack(tmp_path)
    run = scenario.start(spark, tmp_path)
    run.finish()
    assert scenario.output(tmp_path) == scenario.expected()
    assert run.progress.items() >= scenario.expected_counts().items()


@pytest.mark.parametrize("home", [CONFLATED, CLOCKED], ids=lambda home: home.name)
def test_rows_that_wait_in_the_home_of_an_earlier_release_are_handed_on(
    home: GoldenHome, spark: Any, tmp_path: Path
) -> None:
    assert home.archive.stat().st_size < 200_000
    home.unpack(tmp_path)
    run = queue_driver.start(spark, tmp_path, "rows", int)
    run.finish()
    check_rows(tmp_path, 2, run.progress)
