"""The experiments of update queues over few rows: each is told, drawn and claims what it should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.errors import StreamError
from penstock.operators.queues.choosing import queue_for
from penstock.papers import upstream
from penstock.papers.upstream import figure_05, figure_07, figure_08, figure_09, figure_16, figure_17, memory_grid
from penstock.papers.upstream.simulation import COST, KEY, SCHEMA, Arrivals, poisson, simulate, steady, zipf


def silent(line: str) -> None:
    """Say nothing."""


def test_figures_are_found_by_their_files() -> None:
    assert {"5", "7", "8", "9", "16", "17"} <= set(upstream.figures())
    with pytest.raises(StreamError, match=r"(?s)no such figure.*15.*one of .*16"):
        upstream.run(10, "15", silent)


def test_a_row_is_served_whenever_the_consumer_is_free() -> None:
    """Rows at 0, 0.5 and 5 costs: the second waits for half a cost, the third for none."""
    arrivals = Arrivals(np.array([0, COST // 2, 5 * COST]), np.array([0, 1, 0]))
    outcome = simulate(queue_for(SCHEMA, KEY), arrivals, drains=True)
    assert (outcome.served, outcome.longest) == (3, 0.5)
    assert outcome.wait == pytest.approx(0.5 / 3)
    # Two keys over six costs: queue 0.5^2 / 2; application 1/2, 1.5^2 / 2 and 1/2.
    assert outcome.queue == pytest.approx(0.125 / 12)
    assert outcome.application == pytest.approx((0.5 + 1.125 + 0.5) / 12)


def test_arrivals_have_the_load_and_the_shares_that_are_asked_for() -> None:
    assert np.diff(steady(4, 10, 100).times).tolist() == [COST // 4] * 399
    mixed = poisson(5, np.array([1.0, 9.0]), 4000)
    assert len(mixed) * COST / mixed.times[-1] == pytest.approx(5, rel=0.05)
    assert (mixed.keys == 1).mean() == pytest.approx(0.9, abs=0.02)
    assert zipf(4, 0).tolist() == [1] * 4
    assert zipf(4, 1).tolist() == [1, 1 / 2, 1 / 3, 1 / 4]


def test_trading_days_have_the_extremes_of_the_paper() -> None:
    days = figure_08.trading_days(5)
    counts = np.bincount(days.keys) // figure_08.DAYS
    assert (len(counts) > 3000, counts.max(), counts.min()) == (True, 4305, 1)
    assert (np.diff(days.times) >= 0).all()


@pytest.mark.parametrize("figure", ["5", "7", "9", "16", "17"])
def test_a_figure_is_told_and_drawn(figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_05, "LOADS", (2, 10))
    monkeypatch.setattr(figure_07, "LOADS", (2, 5, 10))
    monkeypatch.setattr(figure_09, "LOADS", (5,))
    monkeypatch.setattr(figure_07, "HEADROOMS", (0.9,))
    monkeypatch.setattr(figure_09, "RATES", (100,))
    monkeypatch.setattr(figure_09, "SEEDS", 2)
    for module in (memory_grid, figure_16, figure_17):
        monkeypatch.setattr(module, "RATES", (20, 100))
    (report,) = upstream.run(20, figure, silent)
    assert report.name == f"upstream-{figure}"
    assert report.rows
    assert report.claims
    if figure != "17":  # drawn as 16 is
        pytest.importorskip("matplotlib", reason="plots are made where matplotlib is installed")
        upstream.plot(report.name, report.rows, tmp_path)
        assert "<svg" in (tmp_path / f"upstream-{figure}.svg").read_text()


def test_bars_against_random_shedding_are_those_that_were_set() -> None:
    assert figure_07.BARS == {2: 1.5, 5: 2.0, 10: 2.0}
