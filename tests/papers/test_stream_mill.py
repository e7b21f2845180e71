"""The experiments run flows that were started, over a few rows: what is looked at holds however busy the machine is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import InternalError, StreamError
from penstock.papers import stream_mill
from penstock.papers.stream_mill import burst_runs, figure_15, figure_16, union_runs
from penstock.papers.stream_mill.burst_runs import Bursts, decisions_a_row, seen_of
from penstock.papers.stream_mill.union_runs import NOTHING, ON_DEMAND, Arrivals, Playing, Promising

TINY = {"14a": 40, "14b": 5, "15": 20, "16": 60, "batches": 20}
"""How many rows a run of each has."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaps of the slow stream that are a twentieth of a second on average, and few cases."""
    monkeypatch.setattr(union_runs, "FAST", 400.0)
    monkeypatch.setattr(union_runs, "SLOW", 20.0)
    monkeypatch.setattr(figure_15, "PASSED", (0, 2))
    monkeypatch.setattr(figure_15, "ROUNDS", 1)
    monkeypatch.setattr(figure_16, "SLIDES", (10,))
    monkeypatch.setattr(figure_16, "BEGIN", 0.05)


@pytest.mark.parametrize("figure", list(TINY))
@pytest.mark.usefixtures("quick")
def test_a_figure_runs_and_is_drawn(figure: str, tmp_path: Path) -> None:
    (report,) = stream_mill.run(TINY[figure], figure, lambda line: None)
    assert report.name == f"stream-mill-{figure}"
    assert report.rows
    assert report.claims
    pytest.importorskip("matplotlib", reason="plots are made where matplotlib is installed")
    stream_mill.plot(report.name, report.rows, tmp_path)
    assert "<svg" in (tmp_path / f"{report.name}.svg").read_text()


def test_every_experiment_is_looked_at() -> None:
    assert list(stream_mill.figures()) == list(TINY)
    with pytest.raises(StreamError, match=r"(?s)no such figure.*17.*one of 14a, 14b, 15, 16, batches"):
        stream_mill.run(10, "17", lambda line: None)


@pytest.mark.usefixtures("quick")
def test_what_a_union_in_order_holds_and_is_promised() -> None:
    arrivals = Arrivals.by_poisson(120)
    silent, asked = (union_runs.seen_of(arrivals, way) for way in (NOTHING, ON_DEMAND))
    assert [len(seen.latencies) for seen in (silent, asked)] == [len(arrivals.passing)] * 2
    assert silent.promises == 0
    assert silent.held > 1, "a gap of the slow stream has many rows of the fast one"
    assert asked.promises > 0
    by_run = union_runs.seen_of(arrivals, union_runs.Way("internal", stamped_by_run=True))
    assert by_run.promises > 0
    ours = union_runs.seen_of(arrivals, NOTHING, ordered=False)
    assert len(ours.latencies) == len(arrivals.passing)
    assert (ours.held, ours.promises) == (0, 0)
    beats = union_runs.seen_of(arrivals, union_runs.Way("beats", heartbeat=0.01))
    assert 0 < beats.promises <= arrivals.slow[-1] / 0.01


def test_arrivals_are_bounded_by_rows_of_the_slow_stream() -> None:
    arrivals = Arrivals.by_poisson(6000)
    assert arrivals.slow[0] == 0.0
    assert arrivals.fast.max() < arrivals.slow[-1]
    assert len(arrivals.slow) == 1 + 3
    assert 0.9 * 1000 < len(arrivals.fast) / arrivals.slow[-1] < 1.1 * 1000
    assert 0.94 < len(arrivals.passing) / len(arrivals.values) < 0.96
    assert set(range(len(arrivals.fast), len(arrivals.values))) <= set(arrivals.passing.tolist())


def test_a_source_that_promises_stamps_no_row_earlier() -> None:
    """The engine's clock may be ahead of the source's."""
    playing = Playing(Arrivals(np.array([]), np.array([0.0]), np.array([0])))
    source = Promising(playing)
    assert source.poll() is pk.IDLE
    playing.begin()
    playing.start -= 1
    promised = source.promise(1 << 62)
    row = source.poll()
    assert (row["ts"] - union_runs.EPOCH) // union_runs.timedelta(microseconds=1) >= promised
    assert source.poll() is pk.END


@pytest.mark.usefixtures("quick")
def test_rows_that_are_lost_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = Arrivals.by_poisson(20)
    monkeypatch.setattr(Arrivals, "passing", np.arange(3))
    with pytest.raises(InternalError, match=r"(?s)lost rows.*nothing.*of 3"):
        union_runs.seen_of(arrivals, NOTHING)


def test_rows_that_are_late_are_told() -> None:
    flow = pk.Flow().stream("s", [{"t": 5}, {"t": 4}], time="t")
    run = flow.start({flow.query("SELECT t FROM s", name="late"): []})
    run.wait()
    with pytest.raises(InternalError, match=r"(?s)stamped before a promise.*late=1"):
        union_runs.check_whole(run)


class Noted(Bursts):
    """Bursts of which it is noted how many steps there were before each result."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows, 1, 0.0)
        self.steps, self.before = 0, list[int]()

    def work(self, kind: int) -> int:
        self.steps += kind == burst_runs.BURST
        return super().work(kind)

    def take(self, table: pa.Table) -> None:
        self.before += [self.steps] * table.num_rows
        super().take(table)


def test_a_burst_is_on_hand_as_a_whole() -> None:
    # a step is σ or Σ of a row; results come after so many, which is the paper's latency in steps:
    #   dfs: σ Σ σ Σ σ Σ ...   2, 4, 6 ...             on average n + 1
    #   bfs: σ σ σ ... Σ Σ Σ   n + 1, n + 2, ... 2n    on average 1.5 n + 0.5
    for strategy, due in (("dfs", [2, 4, 6, 8]), ("bfs", [5, 6, 7, 8])):
        noted = Noted(4)
        (seen,) = seen_of(noted, strategy)
        assert noted.before == due
        assert seen.step == pytest.approx(seen.seconds / 8)
    many = Noted(700)
    seen_of(many, "bfs")
    assert many.before == list(range(701, 1401)), "more than a source is read ahead by default"


def test_batches_save_decisions() -> None:
    one, ten, whole = (decisions_a_row(50, pk.dfs(batch=batch)) for batch in (1, 10, 50))
    assert one > ten > whole


def test_a_burst_that_does_not_go_on_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burst_runs, "PATIENCE", 0.01)
    with pytest.raises(InternalError, match=r"(?s)burst does not go on.*0.01 seconds"):
        next(Bursts(3, 1, 0.0).items())


def test_burstiness_is_the_papers() -> None:
    assert figure_16.burstiness(np.array([0, 4, 2])) == 2.0
    assert figure_16.burstiness(np.array([3, 3])) == figure_16.burstiness(np.array([0, 0])) == 0.0


def test_what_is_passed_by_arcs() -> None:
    sources = {name: [{"ts": union_runs.EPOCH, "n": 0, "v": 0}] for name in ("fast", "slow")}
    flow = pk.Flow()
    for name, rows in sources.items():
        flow.stream(name, rows, time="ts")
    for passed in (0, 2, 4):
        run = flow.start({flow.query(figure_15.sql_with(passed), name=f"past {passed}"): []})
        run.wait()
        arcs = run.ets_arcs()
        assert arcs.count("Select") + arcs.count("Project") == passed
