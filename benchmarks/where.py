"""Where the time goes in-process: shares of the steps of a run, by `cProfile`, at the shapes of the documentation.

`python benchmarks/where.py [rows]`. Each column is a shape of `penstock bench shapes`; a step is a function with all
that it calls. Profiling makes functions that are called often dearer than they are. What is less than one in a hundred
is left out.
"""

from __future__ import annotations

import cProfile
import pstats
import sys

from penstock.bench.shape_contestants import Shape, in_process, shape_rows

SHAPES = (
    Shape(1, "integer", "avg, stddev", 60),
    Shape(1000, "integer", "count, max", 60),
    Shape(1000, "text", "count distinct", 60),
    Shape(1_000_000, "integer", "count, max", 1),
)
PARTS = {1_000_000: 4}
"""Of the rows, where keys are many, one in so many."""
STEPS = (
    (0, "types checked (`conform_table`)", "conform.py", "conform_table"),
    (0, "late rows and bounds (`RowIngest.process`)", "ingest.py", "process"),
    (0, "rows brought down to panes (`ColumnarAggregate.process`)", "columnar.py", "process"),
    (1, "keys to codes (`GroupCodes.encode`)", "group_codes.py", "encode"),
    (1, "numbers of panes and groups (`Cells.of`)", "cells.py", "of"),
    (1, "merged into the pages of panes (`put_in_pane`)", "pane_numbers.py", "put_in_pane"),
    (1, "distinct values (`DistinctValues.take`)", "distinct_values.py", "take"),
    (0, "windows closed (`ColumnarAggregate.punctuate`)", "columnar.py", "punctuate"),
    (1, "totals slid over panes (`SlidingTotal.advance`)", "sliding_total.py", "advance"),
    (1, "many windows at once (`ManyWindows.block`)", "many_windows.py", "block"),
    (1, "results as an Arrow table (`WindowTables.of`)", "window_tables.py", "of"),
)


def shares(shape: Shape, rows: int) -> dict[tuple[str, str], float]:
    """The share of every step in a run over a shape, warmed up."""
    table = shape_rows(rows, shape.keys, shape.type, PARTS.get(shape.keys, 1))
    in_process(table, shape)
    profile = cProfile.Profile()
    profile.enable()
    in_process(table, shape)
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    spent = {(file.rsplit("/", 1)[-1], name): entry[3] for (file, _, name), entry in stats.items()}
    whole = spent["local.py", "items"]
    return {(file, name): spent.get((file, name), 0.0) / whole for _, _, file, name in STEPS}


def main(rows: int = 2_000_000) -> None:
    """Print the table."""
    found = [shares(shape, rows) for shape in SHAPES]
    titles = [f"{s.keys:_} {s.type}: {s.aggregates}: {s.ratio}".replace("_", " ") for s in SHAPES]
    print(f"| | {' | '.join(titles)} |")
    print(f"|---|{'---|' * len(SHAPES)}")
    for depth, what, file, name in STEPS:
        cells = [f"{own[file, name]:.0%}".replace("%", " %") if own[file, name] >= 0.01 else "" for own in found]
        print(f"| {'– of it: ' if depth else ''}{what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
