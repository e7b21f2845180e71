"""What is measured as memory is the state while windows are open."""

from __future__ import annotations

from pathlib import Path

from penstock.bench.data import make_rows
from penstock.bench.memory import snapshot_bytes


def test_state_grows_with_the_panes_in_a_window_and_not_with_rows_times_windows(tmp_path: Path) -> None:
    rows = make_rows(str(tmp_path), 20_000, keys=10)
    tumbling, sliding = snapshot_bytes(rows, 1), snapshot_bytes(rows, 60)
    assert tumbling < sliding < 100 * tumbling
