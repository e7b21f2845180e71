"""`penstock papers upstream --clock wall`: the figures of the paper in the running graph, on the clock on the wall.

The report of figure N is `upstream-N-wall`. Points are few, and each is a run of a few seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock.bench.claims import Report
from penstock.papers.upstream import wall_memory, wall_tuples, wall_windows

Say = Callable[[str], None]
FIGURES: dict[str, Callable[[int | None, Say], Report]] = {
    "5": wall_tuples.figure_5, "7": wall_tuples.figure_7, "9": wall_tuples.figure_9,
    "13": wall_windows.figure_13, "14": wall_windows.figure_14,
    "16": wall_memory.figure_16, "17": wall_memory.figure_17,
}  # fmt: skip
PLOTS: dict[str, Callable[[Sequence[dict[str, Any]], Path], None]] = {
    "5": wall_tuples.plot_5, "7": wall_tuples.plot_7, "9": wall_tuples.plot_9,
    "13": wall_windows.plot_13, "14": wall_windows.plot_14,
    "16": wall_memory.plot_16, "17": wall_memory.plot_17,
}  # fmt: skip
