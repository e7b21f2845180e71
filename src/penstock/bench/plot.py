"""The picture of the window benchmark: rows a second against RANGE/SLIDE, a line for each contestant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

OURS = ("in-process", "Spark batch", "Spark streaming")
TITLE = "count and max by 1000 keys over sliding windows"


def plot_windows(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the rows of a report over uniform keys; ours are solid, the others dashed."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "penstock"  # the same numbers give the same file
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5))
    names = list(dict.fromkeys(r["contestant"] for r in rows))
    for name in names:
        points = sorted(
            (r["ratio"], r["rows_per_second"]) for r in rows if r["contestant"] == name and r["keys"] == "uniform"
        )
        line, width = ("-", 2.2) if name in OURS else ("--", 1.2)
        ratios, rates = [p[0] for p in points], [p[1] for p in points]
        axes.plot(ratios, rates, marker="o", markersize=4, label=name, linestyle=line, linewidth=width)
    axes.set(xscale="log", yscale="log", xlabel="RANGE / SLIDE", ylabel="rows a second", title=TITLE)
    axes.set_xticks([1, 10, 60, 600], ["1", "10", "60", "600"])
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
