"""Executors and Python workers are killed in every stage of a query; Spark does their work again; nothing differs.

Each query takes some micro-batches, one after the other. In each a process is killed: first an executor at each point
of the query in turn, held there by a trap (`tests.spark.traps`) until a moment drawn at random; then, after a moment
drawn at random, whatever executor or Python worker there is. `PENSTOCK_SEED` says which moments.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.standalone import StandaloneCluster, standalone_cluster, until
from tests.processes import kill
from tests.spark.modes import cluster_session
from tests.spark.staged_queries import CASES, output, staged_files, start
from tests.spark.staged_rows import SPLIT, write_file
from tests.spark.traps import STAGED, Traps

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
SETTINGS = {**SPLIT, "spark.shuffle.io.retryWait": "500ms"}
"""What an executor had that is gone is soon found to be."""
AT_RANDOM = ("executor", "Python worker")
CALLS = {"reading": 2000, "in_first": 5, "in_last": 1, STAGED: 1}
"""Up to the so many-th call of a task."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[StandaloneCluster]:
    with standalone_cluster(workers=2) as made:
        yield made


@pytest.fixture(scope="module")
def spark(cluster: StandaloneCluster) -> Iterator[Any]:
    session = cluster_session(cluster.url, SETTINGS)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_query_is_left(spark: Any) -> Iterator[None]:
    """A test that has failed leaves its query at work, and another of that name would be refused."""
    yield
    for query in spark.streams.active:
        query.stop()


class Struck:
    """A query that takes a file after the other, while something is killed in each micro-batch."""

    def __init__(self, spark: Any, cluster: StandaloneCluster, home: Path, name: str) -> None:
        self.cluster, self.home, self.case = cluster, home, CASES[name]
        self.rng = random.Random(f"{name} {SEED}")
        self.traps, self.files = Traps(home / "traps"), 0
        self.give()
        self.run = start(spark, home, self.case, self.traps)
        self.run.process_available()

    def give(self) -> None:
        for seed, stream in enumerate(self.case.replicas):
            write_file(self.home / "in" / stream, self.files, seed)
        self.files += 1

    def strike_at(self, point: str) -> None:
        """Kill the executor that has come to a point."""
        self.ready()
        self.traps.arm(point, self.rng.randint(1, CALLS[point]))
        self.give()
        caught = self._caught(point)
        while (executor := self.cluster.executor_of(caught)) is None:  # it ran on after an earlier kill
            kill([caught])
            self.traps.clear()
            self.traps.arm(point)
            caught = self._caught(point)
        time.sleep(self.rng.uniform(0, 0.3))
        kill([executor])
        self.run.process_available()
        print(f"killed at {point}: executor", flush=True)
        self.traps.clear()

    def _caught(self, point: str) -> int:
        """The process that has come to a point."""
        until(lambda: self.traps.caught(point) is not None or not self.run.is_active, f"a task has come to {point}")
        caught = self.traps.caught(point)
        assert caught is not None, self.run.exception
        return caught

    def strike_at_random(self, kind: str) -> None:
        """Kill whatever is there, in a micro-batch."""
        self.ready()
        offsets = self.home / "flow/q/checkpoint/offsets" / str(self.batches())
        self.give()
        until(offsets.exists, "a micro-batch has begun")
        time.sleep(self.rng.expovariate(4))
        found = self.cluster.executors() if kind == "executor" else self.cluster.python_workers()
        kill([self.rng.choice(found)])
        in_batch = not (self.home / "flow/q/checkpoint/commits" / offsets.name).exists()
        self.run.process_available()
        print(f"killed at random: {kind}, {'in' if in_batch else 'after'} the micro-batch", flush=True)

    def batches(self) -> int:
        return int(self.run.progress["batches"])

    def ready(self) -> None:
        until(lambda: len(self.cluster.executors()) == 2, "there are two executors")

    def judge(self) -> None:
        self.run.finish()
        found, expected = output(self.home), self.case.expected(self.files)
        assert all(expected.values())  # there is something to find
        for kind, rows in expected.items():
            assert found[kind] == rows, kind
        assert self.run.progress.items() >= self.case.counts(self.files).items()


@pytest.mark.parametrize("name", CASES)
def test_killed_at_every_point_and_at_random(name: str, spark: Any, cluster: StandaloneCluster, tmp_path: Path) -> None:
    struck = Struck(spark, cluster, tmp_path, name)
    for point in CASES[name].points:
        struck.strike_at(point)
    for kind in AT_RANDOM:
        struck.strike_at_random(kind)
    struck.judge()


def test_files_that_no_record_names_are_no_results_and_are_removed(
    spark: Any, cluster: StandaloneCluster, tmp_path: Path
) -> None:
    struck = Struck(spark, cluster, tmp_path, "grouped")
    struck.give()
    struck.run.process_available()
    assert staged_files(tmp_path) == set()
    struck.strike_at(STAGED)
    assert len(staged_files(tmp_path)) == 1
    struck.run.stop()
    struck.run = start(spark, tmp_path, struck.case, struck.traps)
    assert staged_files(tmp_path) == set()
    struck.judge()


def test_a_relative_path_is_the_drivers(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors work in folders of their own, and read the log of the run and stage files where the driver says."""
    monkeypatch.chdir(tmp_path)
    case = CASES["grouped"]
    for number in range(2):
        write_file(tmp_path / "in/main", number)
    run = start(spark, Path(), case, Traps(tmp_path / "traps"))
    run.finish()
    assert output(tmp_path) == case.expected(2)
