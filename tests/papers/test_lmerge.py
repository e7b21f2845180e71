"""The merge experiments over a few events: streams are replicas, every claim is made, virtual time is what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench.claims import Report
from penstock.model.tdb import tdb
from penstock.papers.lmerge import Experiments, best_of, lagging
from penstock.papers.lmerge_scenarios import plan_switching
from penstock.papers.lmerge_streams import Parameters, increasing, replica


@pytest.mark.parametrize("p", [Parameters(events=300, text=16), Parameters(events=300, revised=0.4, text=16)])
def test_replicas_are_physically_different_and_mean_the_same(p: Parameters) -> None:
    one, other = (list(increasing(replica(p, told))) for told in (1, 2))
    assert one != other
    assert tdb(one) == tdb(other)
    assert tdb(one).size == 300


@pytest.fixture(scope="module")
def report() -> Report:
    """All experiments, of few events."""
    return Experiments(200, lambda line: None).run()


def test_the_merged_rate_is_smoother_than_its_inputs_under_bursts_and_congestion(report: Report) -> None:
    for figure in ("7: bursts", "8: congestion"):
        (series,) = (row["series"] for row in report.rows if row["figure"] == figure)
        *inputs, output = series
        assert min(output[:-5]) > 0
        assert all(min(rates[:-5]) < min(output[:-5]) for rates in inputs)


def test_feedback_lets_the_plan_that_is_behind_catch_up() -> None:
    merged, with_feedback, alone = plan_switching(1000)
    assert merged == alone  # without feedback each plan does all of its work
    assert with_feedback < merged / 4


def test_lagging_streams_keep_their_own_order() -> None:
    p = Parameters(events=20, text=16)
    streams = [list(increasing(replica(p, i))) for i in range(2)]
    arrivals = lagging(streams, 7)
    assert [e for n, e in arrivals if n == "in1"] == streams[1]
    assert [n for n, _ in arrivals[:7]] == ["in0"] * 7


def test_rounds_take_the_best_of_each() -> None:
    times = iter([3.0, 5.0, 2.0, 6.0, 4.0, 1.0])
    assert best_of([lambda: next(times), lambda: next(times)]) == [2.0, 1.0]


def test_all_experiments_run_and_every_figure_has_rows(report: Report) -> None:
    figures = {r["figure"] for r in report.rows}
    assert {f.split(":")[0] for f in figures} == {
        "2, 3", "4", "5", "6", "7", "8", "9", "VI-C3", "VI-D3", "Table IV", "per element",
    }  # fmt: skip
    assert len(report.claims) == 12


def test_every_figure_is_plotted(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots are made where matplotlib is installed")
    from penstock.papers.plots import plot_lmerge

    plot_lmerge(report.rows, tmp_path)
    assert len(list(tmp_path.glob("lmerge-*.svg"))) == 3
