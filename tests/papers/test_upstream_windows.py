"""The experiments on windows of the paper on update queues, made small: their claims hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.papers.upstream import figure_13, figure_14


def test_figure_13(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_13, "RANGES", {"tumbling": (5, 10), "overlapping": (2, 10)})
    report = figure_13.run(600, lambda line: None)
    assert [claim.name for claim in report.claims if not claim.holds] == []
    assert len(report.claims) == 6
    # One row left when a window is whole, of every five: 1/2 tick squared in five ticks.
    assert report.rows[0]["EAGER"] == pytest.approx(0.1)
    # Rises from 0 to the range, again and again.
    assert report.rows[1]["LAZY"] == pytest.approx(5, rel=0.05)
    pytest.importorskip("matplotlib", reason="plots are made where matplotlib is installed")
    figure_13.plot(report.rows, tmp_path)
    assert (tmp_path / "upstream-13.svg").stat().st_size > 1000


def test_figure_14(tmp_path: Path) -> None:
    report = figure_14.run(1000, lambda line: None, (20, 50))
    assert [claim.name for claim in report.claims if not claim.holds] == []
    assert len(report.claims) == 9
    pytest.importorskip("matplotlib", reason="plots are made where matplotlib is installed")
    figure_14.plot(report.rows, tmp_path)
    assert (tmp_path / "upstream-14.svg").stat().st_size > 1000
