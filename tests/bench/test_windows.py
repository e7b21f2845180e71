"""The window benchmark as a whole, over a few rows: everyone runs, results are equal, every claim is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from penstock.bench import contestants as by
from penstock.bench import windows
from penstock.bench.windows import RATIOS, Contestant, WindowBench


def in_process_only(spark: Any) -> list[Contestant]:
    """Everyone's part played by the engine at hand, so that no Spark is needed."""
    shares = dict.fromkeys(RATIOS, 1)
    names = ["in-process", "Spark batch", "Spark window()", "Spark streaming", "window() streaming"]
    return [Contestant(name, by.in_process, shares, repeat=1) for name in names]


def test_every_contestant_is_checked_and_every_claim_made(tmp_path: Path) -> None:
    lines: list[str] = []
    with mock.patch.object(windows, "everyone", in_process_only), mock.patch.object(windows, "PEERS", ()):
        report = WindowBench(str(tmp_path), None, 4000, say=lines.append).run()
    assert len(report.rows) == 5 * len(RATIOS) + 3  # and three of them over skewed keys
    assert {r["keys"] for r in report.rows} == {"uniform", "skewed"}
    assert len(report.claims) == 9
    assert len(lines) == len(report.rows)


def test_a_wrong_result_stops_the_run(tmp_path: Path) -> None:
    def wrong(rows: Any, ratio: int) -> by.Timing:
        return by.Timing(1.0, rows.count, (1, 2, 3, 4))

    bench = WindowBench(str(tmp_path), None, 1000, say=lambda line: None)
    with pytest.raises(AssertionError, match="wrong at 10 gives"):
        bench._best(Contestant("wrong", wrong, dict.fromkeys(RATIOS, 1), repeat=1), (10,))
