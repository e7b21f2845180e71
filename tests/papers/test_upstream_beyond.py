"""What goes beyond the paper on update queues, made small: the claims of each figure hold."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from penstock.papers import upstream
from penstock.papers.upstream import figure_access, figure_sharing, figure_switching, figure_wider


@pytest.mark.parametrize(
    ("module", "events"), [(figure_sharing, 100), (figure_access, 1000), (figure_wider, 120), (figure_switching, 600)]
)
def test_what_a_figure_claims_holds(
    module: ModuleType, events: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure_sharing, "QUERIES", (1, 3))
    monkeypatch.setattr(figure_wider, "VENUES", (1, 3))
    (report,) = upstream.run(events, module.FIGURE, lambda line: None)
    assert [claim.name for claim in report.claims if not claim.holds] == []
    assert report.claims
    pytest.importorskip("matplotlib", reason="plots are made where matplotlib is installed")
    upstream.plot(report.name, report.rows, tmp_path)
    assert "<svg" in (tmp_path / f"{report.name}.svg").read_text()
