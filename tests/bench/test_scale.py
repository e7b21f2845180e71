"""The benchmark of scale: its pieces are those that run, and its claims are about the worst prediction."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from penstock.bench.claims import Report
from penstock.bench.scale import EXECUTORS, ScaleBench, predicted, trials_of
from penstock.bench.scale_pieces import HostedBucket, Pieces, make_rows
from penstock.bench.scale_spark import Done, Took, Work, constants_of, constants_work
from penstock.bench.scale_tables import constants_in
from penstock.engines.spark.probe import Probe

ROWS = 20_000


class Recorded:
    """In the place of processes: seconds that are made of known constants."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    @staticmethod
    def took(task: float, bucket: float, tasks: int = 1, buckets: int = 1) -> Took:
        return Took(0.5 + tasks * task + buckets * bucket, task, bucket, 0.5)

    def __call__(self, work: Work) -> Done:
        self.works.append(work)
        trials = [self.took(0.01 + 1e-6 * t.rows / t.tasks, 0.1, t.tasks, t.buckets) for t in work.trials]
        probes = [self.took(0.01, 0.1 + 1e-8 * p.carried + 1e-8 * p.kept + 1e-6 * p.packets) for p in work.probes]
        return Done(trials, probes, (1.0, 0.5))


@pytest.fixture(scope="module")
def ran() -> tuple[Report, list[Work]]:
    """A small run, its pieces in this process."""
    runner = Recorded()
    return ScaleBench(ROWS, lambda line: None, runner).run(), runner.works


def test_the_bucket_gives_what_the_rows_come_to() -> None:
    bucket, tables = HostedBucket(Pieces()), [make_rows(500, 7, at * 10) for at in range(3)]
    given = [bucket.take([table]) for table in tables]
    first = given[1].results
    assert first is not None
    assert sum(first["n"].to_pylist()) == 500
    assert set(first["k"].to_pylist()) == set(tables[0]["k"].to_pylist())
    assert given[2].moved > 0


def test_constants_of_spark_are_those_that_its_runs_were_made_of() -> None:
    work = constants_work(ROWS)
    found = constants_of(work, Recorded()(work), reduce_row=2e-7)
    expected = {"task": 0.01025, "bucket": 0.1, "read_row": 8e-7, "store_byte": 1e-8, "driver_task": 0.0005}
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["fixed"] == pytest.approx(0.5)
    assert found["carry_byte"] == pytest.approx(1e-8, rel=0.01)
    assert found["carry_packet"] == pytest.approx(2.16e-6, rel=0.01)  # of eight bytes each


def test_a_report_has_constants_predictions_and_two_claims(ran: tuple[Report, list[Work]]) -> None:
    report, works = ran
    assert [work.executors for work in works] == [1, *EXECUTORS]
    constants = constants_in(report.as_json())
    assert all(value >= 0 for value in asdict(constants).values())
    assert 15 < constants.row_bytes < 30  # a time, a key, a number
    rows = [row for row in report.rows if "load" in row]
    assert [(row["load"], row["executors"]) for row in rows] == [(n, e) for n in trials_of(ROWS) for e in EXECUTORS]
    relative, absolute = report.claims
    assert relative.bar < absolute.bar
    worst = max(max(a / b, b / a) for a, b in ((r["measured ms"], r["predicted ms"]) for r in rows))
    assert absolute.value == pytest.approx(worst)


def test_a_prediction_knows_the_cores_of_this_machine(
    ran: tuple[Report, list[Work]], monkeypatch: pytest.MonkeyPatch
) -> None:
    report, _ = ran
    constants = replace(constants_in(report.as_json()), fixed=0.0)
    trial = trials_of(ROWS)["few keys"]
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert predicted(constants, 4, trial) >= predicted(constants, 1, trial) * 0.99
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert predicted(constants, 4, trial) < predicted(constants, 1, trial)


def test_a_probe_counts_its_bytes() -> None:
    probe = Probe(packets=3, packet_bytes=5, pages=2, page_bytes=7)
    assert (probe.carried, probe.kept) == (15, 28)
