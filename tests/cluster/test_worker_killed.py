"""A worker of a cluster is killed in the middle of a streaming query, and the answer is still the oracle's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.standalone import standalone_cluster, until
from tests.spark import scenario
from tests.spark.modes import cluster_session

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


def test_worker_killed_within_a_micro_batch(tmp_path: Path) -> None:
    offsets = tmp_path / "flow/talkers/checkpoint/offsets"
    scenario.write_files(tmp_path / "in", range(2))
    with standalone_cluster(workers=2) as cluster:
        spark = cluster_session(cluster.url)
        try:
            run = scenario.start(spark, tmp_path)
            run.process_available()
            scenario.write_files(tmp_path / "in", range(2, scenario.FILES))
            until((offsets / "2").exists, "the third micro-batch has begun")
            cluster.kill_worker(0)
            run.finish()
        finally:
            spark.stop()

    assert scenario.output(tmp_path) == scenario.expected()
    assert run.progress.items() >= scenario.expected_counts().items()
