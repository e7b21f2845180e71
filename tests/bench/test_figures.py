"""The figures in the pages are those of the saved results, and the results carry their claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench.figures import PAGES, RESULTS, refreshed, rows_table, saved

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_has_the_figures_of_the_saved_results(page: Path) -> None:
    text = (ROOT / page).read_text()
    assert "<!-- figures: " in text
    assert refreshed(text, saved(ROOT / RESULTS)) == text, "run: make figures"


def test_every_saved_claim_tells_its_value_its_bar_and_whether_it_holds() -> None:
    for name, report in saved(ROOT / RESULTS).items():
        assert report["claims"], name
        for claim in report["claims"]:
            assert set(claim) == {"name", "value", "bar", "better", "holds"}
            reached = claim["value"] >= claim["bar"] if claim["better"] == "higher" else claim["value"] <= claim["bar"]
            assert claim["holds"] is reached


def test_a_table_is_written_between_its_marks_and_nowhere_else() -> None:
    claim = {"name": "x", "value": 12.345, "bar": 10.0, "better": "higher", "holds": True}
    reports = {"windows": {"claims": [claim], "rows": []}}
    page = "before\n<!-- figures: claims -->\nold\n<!-- end -->\nafter\n"
    assert refreshed(page, reports) == (
        "before\n<!-- figures: claims -->\n| | measured | bar | |\n|---|---|---|---|\n"
        "| x | 12.3 | at least 10 | holds |\n<!-- end -->\nafter\n"
    )


def test_what_is_for_plots_is_in_no_table() -> None:
    assert rows_table([{"way": "a", "n": 1, "series": [1, 2]}]).splitlines()[0] == "| way | n |"
