"""Spark runs a task a second time beside the first one, which is slow: two attempts double nothing.

Both attempts of a task stage files and write the same version of the state; one of them counts. Spark starts a second
attempt only on another machine, so the workers have addresses of their own.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.bench.event_log import event_log_settings, spread_of
from tests.cluster.standalone import standalone_cluster, until
from tests.spark.modes import cluster_session
from tests.spark.staged_queries import CASES, output, start
from tests.spark.staged_rows import SPLIT, write_file
from tests.spark.traps import HELD, STAGED, Traps

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
SPECULATING = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.interval": "50ms",
    "spark.speculation.efficiency.enabled": "false",
    "spark.speculation.task.duration.threshold": "500ms",
}


@pytest.mark.parametrize("name", ["two groupings", "grouped"])
def test_two_attempts_of_a_task_count_once(name: str, tmp_path: Path) -> None:
    case, traps, events = CASES[name], Traps(tmp_path / "traps"), tmp_path / "events"
    events.mkdir()
    write_file(tmp_path / "in/main", 0)
    with standalone_cluster(apart=True) as cluster:
        spark = cluster_session(cluster.url, {**SPLIT, **SPECULATING, **event_log_settings(events)})
        try:
            run = start(spark, tmp_path, case, traps)
            run.process_available()
            for number, point in enumerate(case.points, 1):
                traps.arm(point)
                write_file(tmp_path / "in/main", number)
                until(lambda point=point: traps.caught(point) is not None, f"a task is held at {point}")
                caught = time.monotonic()
                run.process_available()
                assert time.monotonic() - caught < HELD  # the attempt that was held, the first or second, has lost
            run.finish()
            query = str(run.streaming.id)
        finally:
            spark.stop()
    spread = spread_of(events, query, 1 + len(case.points))
    second = [task for task in spread.tasks if task.speculative]
    won = sorted({task.batch for task in second if task.succeeded})
    print(f"speculative: {len(second)} of {len(spread.tasks)}, won in {won}")
    assert {task.batch for task in second} >= set(range(1, 1 + len(case.points)))
    assert (STAGED in case.points) == (name == "grouped")
    assert output(tmp_path) == case.expected(1 + len(case.points))
    assert run.progress.items() >= case.counts(1 + len(case.points)).items()
