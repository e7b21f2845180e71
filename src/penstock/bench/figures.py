"""The figures in the README and in the docs, made from the saved results of a run.

A page has the lines between `<!-- figures: NAME -->` and `<!-- end -->` written for it; a test tells when they are not
those of the saved results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from penstock.bench import scale_tables
from penstock.bench.nexmark import queries_table

RESULTS = Path("benchmarks/results")
PAGES = tuple(
    Path(page)
    for page in (
        "README.md", "docs/performance.md", "docs/nexmark.md", "docs/scale.md", "docs/papers/lmerge.md",
        "docs/papers/window-queries.md", "docs/papers/upstream.md", "docs/papers/stream-mill.md",
        "docs/papers/genmig.md",
    )
)  # fmt: skip
BENCHES = ("windows", "latency", "memory", "queries")
"""Those whose claims the README makes; others have their claims beside their tables."""
BY_NAME = ("upstream-", "stream-mill-", "genmig-")
"""How the reports of these papers begin: each has a table of its rows, and one of its claims."""
_BLOCK = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def saved(folder: Path = RESULTS) -> dict[str, Any]:
    """The reports in a folder by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def claims_table(reports: Mapping[str, Any], names: Sequence[str] = BENCHES) -> str:
    """Every claim of some reports with its value and its bar."""
    lines = ["| | measured | bar | |", "|---|---|---|---|"]
    for name in names:
        for claim in reports[name]["claims"] if name in reports else ():
            sign = "at least" if claim["better"] == "higher" else "at most"
            mark = "holds" if claim["holds"] else "**missed**"
            lines.append(f"| {claim['name']} | {_short(claim['value'])} | {sign} {claim['bar']:g} | {mark} |")
    return "\n".join(lines)


def rates_table(reports: Mapping[str, Any]) -> str:
    """Rows a second of every contestant at every ratio, uniform keys; the names of ours in bold."""
    rows = [r for r in reports["windows"]["rows"] if r["keys"] == "uniform"]
    ratios = sorted({r["ratio"] for r in rows})
    lines = [
        "| rows a second at RANGE/SLIDE of | " + " | ".join(map(str, ratios)) + " |",
        "|---" * (1 + len(ratios)) + "|",
    ]
    for name in dict.fromkeys(r["contestant"] for r in rows):
        by_ratio = {r["ratio"]: r["rows_per_second"] for r in rows if r["contestant"] == name}
        lines.append(f"| {_title(name)} | " + " | ".join(_rate(by_ratio.get(r)) for r in ratios) + " |")
    return "\n".join(lines)


def rows_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of a report as they are, without what is for plots alone: lists."""
    columns = list(dict.fromkeys(key for row in rows for key, value in row.items() if not isinstance(value, list)))
    lines = ["| " + " | ".join(c.replace("_", " ") for c in columns) + " |", "|---" * len(columns) + "|"]
    lines += ["| " + " | ".join(_plain(row.get(c)) for c in columns) + " |" for row in rows]
    return "\n".join(lines)


def _if_measured(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of a part that an earlier report may lack."""
    return rows_table(rows) if rows else "Not measured yet."


def shapes_table(reports: Mapping[str, Any]) -> str:
    """How many times slower than DuckDB each shape is: keys down, aggregates and RANGE/SLIDE across."""
    rows = [row for row in reports["shapes"]["rows"] if "ratio" in row]
    across = list(dict.fromkeys((r["aggregates"], r["ratio"]) for r in rows))
    down = list(dict.fromkeys((r["keys"], r["type"]) for r in rows))
    slower = {(r["keys"], r["type"], r["aggregates"], r["ratio"]): r.get("times slower") for r in rows}
    lines = [
        "| keys | " + " | ".join(f"{aggregates}: {ratio}" for aggregates, ratio in across) + " |",
        "|---" * (1 + len(across)) + "|",
    ]
    for keys, type_ in down:
        cells = [_plain(slower.get((keys, type_, *place))) for place in across]
        lines.append(f"| {_plain(keys)}, {type_} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


LMERGE = {
    "lmerge-ordered": "2, 3: ordered",
    "lmerge-policies": "4: chattiness",
    "lmerge-bounds": "5: bounds",
    "lmerge-revised": "6: revised",
    "lmerge-lag": "VI-C3: lag",
    "lmerge-latency": "VI-D3: latency",
    "lmerge-growth": "Table IV: growth",
    "lmerge-plans": "9: plan switching",
}
"""Which rows of the merge experiments a table shows."""


def _figure_table(figure: str, reports: Mapping[str, Any]) -> str:
    rows = [r for r in reports["lmerge"]["rows"] if r["figure"] == figure]
    return rows_table([{k: v for k, v in r.items() if k != "figure"} for r in rows])


def _compared_table(figure: str, reports: Mapping[str, Any]) -> str:
    """What is measured, for each of the joins that a figure compares beside each other, a line per band."""
    rows = reports[f"window-queries-{figure}"]["rows"]
    joins = list(dict.fromkeys(row["join"] for row in rows))
    lines: dict[int, dict[str, Any]] = {}
    for measure in ("memory, bytes", "median latency, ms", "time, s"):
        for join in joins:
            for row in rows:
                if row["join"] == join and measure in row:
                    lines.setdefault(row["n, s"], {"n, s": row["n, s"]})[f"{measure}: {join}"] = row[measure]
    return rows_table(list(lines.values()))


TABLES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "claims": claims_table,
    "rates": rates_table,
    "latency": lambda reports: rows_table(reports["latency"]["rows"]),
    "memory": lambda reports: rows_table(reports["memory"]["rows"]),
    "queries": lambda reports: rows_table(reports["queries"]["rows"]),
    "shapes": shapes_table,
    "shapes-spark": lambda reports: rows_table([r for r in reports["shapes"]["rows"] if "ratio" not in r]),
    "shapes-claims": lambda reports: claims_table(reports, ("shapes",)),
    "joins": lambda reports: rows_table([r for r in reports["joins"]["rows"] if "pairs" in r]),
    "joins-spark": lambda reports: rows_table([r for r in reports["joins"]["rows"] if "pairs" not in r]),
    "joins-claims": lambda reports: claims_table(reports, ("joins",)),
    "nexmark": lambda reports: rows_table([r for r in reports["nexmark"]["rows"] if "results" in r]),
    "nexmark-spark": lambda reports: _if_measured([r for r in reports["nexmark"]["rows"] if "results" not in r]),
    "nexmark-claims": lambda reports: claims_table(reports, ("nexmark",)),
    "nexmark-queries": lambda reports: queries_table(),
    "stages": lambda reports: rows_table([r for r in reports["stages"]["rows"] if "milliseconds" in r]),
    "stages-tasks": lambda reports: rows_table([r for r in reports["stages"]["rows"] if "milliseconds" not in r]),
    "stages-claims": lambda reports: claims_table(reports, ("stages",)),
    "scale-claims": lambda reports: claims_table(reports, ("scale",)),
    "scale-constants": scale_tables.constants_table,
    "scale-checked": scale_tables.checked_table,
    "scale-limits": scale_tables.limits_table,
    "scale-lengths": scale_tables.lengths_table,
    "scale-moved": scale_tables.moved_table,
    "scale-pairs": scale_tables.pairs_table,
    "scale-buckets": scale_tables.buckets_table,
    "lmerge-claims": lambda reports: claims_table(reports, ("lmerge",)),
    "joins-7-6": partial(_compared_table, "7-6"),
    "joins-7-7": partial(_compared_table, "7-7"),
    "joins-papers-claims": lambda reports: claims_table(reports, ("window-queries-7-6", "window-queries-7-7")),
    "joins-9": lambda reports: rows_table(reports["window-queries-9"]["rows"]),
    "joins-many": lambda reports: rows_table(reports["window-queries-many"]["rows"]),
    "joins-many-claims": lambda reports: claims_table(reports, ("window-queries-many",)),
    "joins-9-claims": lambda reports: claims_table(reports, ("window-queries-9",)),
    "queues-table": lambda reports: rows_table(reports["queues"]["rows"]),
    "queues-claims": lambda reports: claims_table(reports, ("queues",)),
    **{name: partial(_figure_table, title) for name, title in LMERGE.items()},
}


def refreshed(page: str, reports: Mapping[str, Any]) -> str:
    """The page with its figures as they are now."""
    return _BLOCK.sub(lambda m: m.group(1) + _table(m.group("name"), reports) + "\n" + m.group(3), page)


def _table(name: str, reports: Mapping[str, Any]) -> str:
    """A table by name; of papers whose figures have reports, `upstream-N` are rows and `upstream-N-claims` claims."""
    if not name.startswith(BY_NAME):
        return TABLES[name](reports)
    report = name.removesuffix("-claims")
    if report not in reports:
        return "Not measured yet."
    return claims_table(reports, (report,)) if report != name else rows_table(reports[report]["rows"])


def refresh() -> None:
    """Write the figures into the pages that have some."""
    reports = saved()
    for path in PAGES:
        path.write_text(refreshed(path.read_text(), reports))


def _title(name: str) -> str:
    """Ours in bold, peers by their full names."""
    if name in ("in-process", "Spark batch", "Spark streaming"):
        return f"**{name}**"
    return {"flink": "Flink SQL", "bytewax": "Bytewax", "pathway": "Pathway"}.get(name, name)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _rate(value: int | None) -> str:
    if value is None:
        return "–"
    return (
        f"{value / 1e6:.1f} M" if value >= 1e6 else f"{value / 1e3:.0f} K" if value >= 1e4 else f"{value / 1e3:.1f} K"
    )


def _plain(value: object) -> str:
    return "" if value is None else f"{value:,}".replace(",", " ") if isinstance(value, int | float) else str(value)
