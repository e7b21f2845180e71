"""What is read from Spark's log of events, from lines as Spark writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.bench import event_log
from penstock.bench.event_log import event_log_settings, spread_of
from penstock.errors import InternalError


def job(number: int, query: str, batch: int, *stages: int) -> list[dict[str, Any]]:
    properties = {"sql.streaming.queryId": query, "streaming.sql.batchId": str(batch)}
    begun = {"Event": "SparkListenerJobStart", "Job ID": number, "Stage IDs": stages, "Properties": properties}
    return [begun, {"Event": "SparkListenerJobEnd", "Job ID": number}]


def task(stage: int, index: int, rows: int = 0, records: int = 0, sent: int = 0) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task Info": {"Index": index, "Speculative": False},
        "Task End Reason": {"Reason": "Success"},
        "Task Metrics": {
            "Executor Run Time": 5,
            "Input Metrics": {"Records Read": rows},
            "Shuffle Read Metrics": {"Total Records Read": records, "Remote Bytes Read": 1, "Local Bytes Read": 2},
            "Shuffle Write Metrics": {"Shuffle Bytes Written": sent},
        },
    }


def written(folder: Path, events: list[dict[str, Any]], more: str = "") -> Path:
    (folder / "app.inprogress").write_text("".join(json.dumps(event) + "\n" for event in events) + more)
    return folder


def test_the_work_of_a_query_is_told_by_micro_batch(tmp_path: Path) -> None:
    """Two micro-batches of 100 rows, read by two tasks and by three; stages 1 and 3 are behind exchanges."""
    tasks = [task(0, 0, 60, sent=300), task(0, 1, 40, sent=100), task(1, 0, records=5)]
    tasks += [task(2, i, rows, sent=200) for i, rows in enumerate((50, 30, 20))] + [task(3, 0, records=2)]
    others = [*job(7, "another", 0, 9), task(9, 0, 1000, sent=9999)]
    events = [*others, *job(0, "ours", 0, 0, 1), *job(1, "ours", 1, 2, 3), *tasks]
    spread = spread_of(written(tmp_path, events, '{"Event": "Spar'), "ours", 2)
    assert (spread.rows, spread.readers, len(spread.behind_exchanges)) == (200, 2, 2)
    assert (spread.busiest, spread.gathered, spread.sent) == (0.6, 0.03, 1000 / 200)
    assert spread.records == 7 / 200
    assert spread.longest_behind == 10 / 35  # the same bucket, five of the thirty-five milliseconds in each


@pytest.mark.parametrize("batches", [1, 2])
def test_what_is_not_told_in_time_is_an_error(batches: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that has not ended, and a micro-batch too few."""
    monkeypatch.setattr(event_log, "PATIENCE", 0.0)
    events = job(0, "ours", 0, 0)[:batches]
    with pytest.raises(InternalError, match="does not tell of a query"):
        spread_of(written(tmp_path, events), "ours", batches)


def test_settings_name_a_folder_as_a_uri(tmp_path: Path) -> None:
    assert event_log_settings(tmp_path)["spark.eventLog.dir"] == f"file://{tmp_path}"
