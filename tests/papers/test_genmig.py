"""The experiments on migration, over a few values: what is looked at holds however busy the machine is."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InternalError, StreamError
from penstock.papers import genmig
from penstock.papers.genmig import figure_2, figure_4, figure_5, figure_6, join_runs
from penstock.papers.genmig.figure_4 import Seen, row_of
from penstock.papers.genmig.join_runs import COALESCE, CONTENDERS, POINT, TRACK, Results, Setting, equal_at

SMALL = Setting(200)


def whole_run(name: str, setting: Setting = SMALL) -> tuple[Results, int, int]:
    """What a strategy comes to, how long its migration takes in ticks, and how much it held at the end."""
    running, results = CONTENDERS[name](setting, equal_at), Results()
    begun = ended = None
    for now, happens in setting.moments(running.schema):
        if begun is None and now >= setting.beginning:
            begun = now
            results.take(running.replace())
        results.take(running.given(happens))
        if begun is not None and ended is None and not running.operator.is_migrating:
            ended = now
    assert begun is not None
    assert ended is not None, "the migration does not end"
    return results, ended - begun, running.values_held()


def test_every_strategy_comes_to_the_same_in_the_time_that_the_paper_gives() -> None:
    first, took, held = whole_run(TRACK)
    assert sum(first.events.values()) > 100
    assert 1.9 * SMALL.window < took <= 2 * SMALL.window + join_runs.STEP
    for name in CONTENDERS:
        results, its, its_held = whole_run(name)
        first.check(results, name)
        if name != TRACK:
            assert its <= SMALL.window + 2 * join_runs.STEP
            assert its_held <= held


def test_the_papers_numbers_are_those_of_the_full_run() -> None:
    full = Setting()
    assert (full.length, full.window, full.beginning) == (50_000, 10_000, 20_000)
    assert [int(values.max()) for values in full.drawn] == [499, 499, 999, 999]


def test_figure_2_says_what_parallel_track_repeats() -> None:
    report = figure_2.run(None, lambda line: None)
    assert [row["wrong snapshots"] for row in report.rows] == [51, 0]
    assert all(claim.holds for claim in report.claims)


def test_memory_during_a_migration() -> None:
    """What is held is no matter of the clock: values are the paper's measure."""
    rows = {row["strategy"]: row for row in figure_5.run(200, lambda line: None).rows}
    assert rows[TRACK]["bytes during"] > rows[COALESCE]["bytes during"]
    assert rows[TRACK]["values during"] > rows[POINT]["values during"]
    assert rows[POINT]["bytes before"] == pytest.approx(rows[COALESCE]["bytes before"], rel=0.2)


def test_results_in_real_time_are_counted_by_the_clock() -> None:
    setting = Setting(50)
    seen = figure_4.in_real_time(CONTENDERS[COALESCE](setting, equal_at), setting)
    assert sum(seen.counts) == sum(seen.results.events.values())
    assert seen.took > 0.9


def test_what_is_told_of_a_run() -> None:
    counts = [10] * 20 + [8] * 10 + [0] * 9 + [100] + [20] * 10
    row = row_of("it", Seen(counts, took=2.0))
    assert row["results a bin before"] == 10
    assert (row["least during"], row["in the second window"], row["most in a bin"]) == (0, 0, 100)
    assert row["results a bin after"] == 20


@pytest.mark.parametrize("figure", ["2", "4", "5", "6"])
def test_a_figure_runs_and_is_drawn(figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_6, "ROUNDS", 1)
    (report,) = genmig.run(50, figure, lambda line: None)
    assert report.name == f"genmig-{figure}"
    assert report.rows
    assert report.claims
    pytest.importorskip("matplotlib", reason="plots are made where matplotlib is installed")
    genmig.plot(report.name, report.rows, tmp_path)
    assert figure == "2" or "<svg" in (tmp_path / f"{report.name}.svg").read_text()


def test_every_experiment_is_looked_at() -> None:
    assert list(genmig.figures()) == ["2", "4", "5", "6"]
    with pytest.raises(StreamError, match=r"(?s)no such figure.*3.*one of 2, 4, 5, 6"):
        genmig.run(10, "3", lambda line: None)


def test_results_that_differ_are_told() -> None:
    first, other = Results(), Results()
    first.events[(1, 1, 1, 1), 0, 5] += 1
    with pytest.raises(InternalError, match=r"(?s)other results.*it.*1 that differ"):
        first.check(other, "it")
