"""Spark's event log: which task was for which micro-batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.bench.spark_tasks import micro_batches, quiet

EVENTS = [
    {"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"},
    {
        "Event": "SparkListenerJobStart",
        "Stage IDs": [7, 8],
        "Properties": {"sql.streaming.queryId": "q", "streaming.sql.batchId": "3"},
    },
    {"Event": "SparkListenerJobStart", "Stage IDs": [9], "Properties": {}},
    {"Event": "SparkListenerTaskEnd", "Stage ID": 8, "Task Info": {"Launch Time": 2000, "Finish Time": 2500}},
    {"Event": "SparkListenerTaskEnd", "Stage ID": 7, "Task Info": {"Launch Time": 1000, "Finish Time": 1100}},
    {"Event": "SparkListenerTaskEnd", "Stage ID": 7, "Task Info": {"Launch Time": 1100, "Finish Time": 1300}},
    {"Event": "SparkListenerTaskEnd", "Stage ID": 9, "Task Info": {"Launch Time": 0, "Finish Time": 9}},
]


def test_tasks_are_of_the_micro_batch_of_their_job(tmp_path: Path) -> None:
    (tmp_path / "app-1").write_text("\n".join(map(json.dumps, EVENTS)))
    (tmp_path / ".app-1.crc").write_bytes(b"\xff\x00")
    found = micro_batches(tmp_path)
    assert {query: list(batches) for query, batches in found.items()} == {"q": [3]}
    assert found["q"][3].stage(0) == [0.1, 0.2]
    assert found["q"][3].stage(-1) == [0.5]
    assert found["q"][3].seconds == pytest.approx(0.8)


@pytest.mark.parametrize(("seconds", "expected"), [([4.0], 4.0), ([1.0, 2.0, 3.0, 4.0, 90.0], 1.5), ([5.0, 5.0], 5.0)])
def test_the_lower_quartile_is_what_nobody_disturbs(seconds: list[float], expected: float) -> None:
    assert quiet(reversed(seconds)) == expected
