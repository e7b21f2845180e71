"""The pictures of the papers' experiments, from the rows of their reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[dict[str, Any]]


def plot_lmerge(rows: Rows, folder: Path) -> None:
    """Memory against inputs, adjusts by policy, and rates under bursts and congestion, one file each."""
    _prepare()
    _memory(rows, folder / "lmerge-memory.svg")
    _chattiness(rows, folder / "lmerge-chattiness.svg")
    _rates(rows, folder / "lmerge-rates.svg")


def plot_joins(rows: Rows, path: Path) -> None:
    """Memory, latency and time of joins against the width of the band, side by side."""
    _prepare()
    from matplotlib import pyplot as plt

    shown = [
        measure for measure in ("memory, bytes", "median latency, ms", "time, s") if all(measure in row for row in rows)
    ]
    figure, all_axes = plt.subplots(1, len(shown), figsize=(3.6 * len(shown), 3.2), squeeze=False)
    for axes, measure in zip(all_axes[0], shown, strict=True):
        for join in dict.fromkeys(row["join"] for row in rows):
            points = [(row["n, s"], row[measure]) for row in rows if row["join"] == join]
            axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", label=join)
        axes.set(xlabel="n, s", title=measure, ylim=(0, None))
        axes.grid(visible=True, alpha=0.3)
    all_axes[0][0].legend(frameon=False)
    _save(figure, path)


def line_chart(
    charts: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    across: str,
    up: str,
    path: Path,
    *,
    is_log: bool = False,
    is_log_across: bool = False,
) -> None:
    """Charts side by side by title, each with a line through points for every name."""
    _prepare()
    from matplotlib import pyplot as plt

    figure, all_axes = plt.subplots(1, len(charts), figsize=(max(4.2 * len(charts), 5), 3.4), squeeze=False)
    for axes, (title, lines) in zip(all_axes[0], charts.items(), strict=True):
        for name, points in lines.items():
            axes.plot([x for x, _ in points], [y for _, y in points], marker="o", markersize=4, label=name)
        axes.set(xlabel=across, title=title)
        axes.grid(visible=True, alpha=0.3)
        if is_log:
            axes.set_yscale("log")
        if is_log_across:
            axes.set_xscale("log")
    all_axes[0][0].set_ylabel(up)
    all_axes[0][0].legend(frameon=False, fontsize=8)
    _save(figure, path)


def _prepare() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "penstock"


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _memory(rows: Rows, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.6))
    revised = [r for r in rows if r["figure"].startswith("6:")]
    for name in dict.fromkeys(r["algorithm"] for r in revised):
        points = [(r["inputs"], r["bytes"] / 1e6) for r in revised if r["algorithm"] == name]
        axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", label=name)
    axes.set(xlabel="inputs", ylabel="memory, MB", title="disorder and adjusts (Fig. 6)")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False)
    _save(figure, path)


def _chattiness(rows: Rows, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.6))
    told = [r for r in rows if r["figure"].startswith("4:")]
    for policy in dict.fromkeys(r["policy"] for r in told):
        points = [(r["revised"], r["adjusts_out"]) for r in told if r["policy"] == policy]
        axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", label=policy)
    points = [(r["revised"], r["adjusts_in"]) for r in told if r["policy"] == "first seen"]
    axes.plot([p[0] for p in points], [p[1] for p in points], linestyle="--", color="gray", label="adjusts in")
    axes.set(xlabel="share of events that are revised", ylabel="adjusts", title="chattiness by policy (Fig. 4)")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False)
    _save(figure, path)


def _rates(rows: Rows, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for axes, row in zip(both, [r for r in rows if "series" in r], strict=True):
        *inputs, output = row["series"]
        for series in inputs:
            axes.plot(series, color="gray", linewidth=0.7)
        axes.plot(output, color="tab:blue", linewidth=2, label="merged")
        axes.set(xlabel="tenths of a second", ylabel="events", title=row["figure"], ylim=(0, 2000))
        axes.legend(frameon=False)
    _save(figure, path)
