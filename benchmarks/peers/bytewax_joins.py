"""Two streams joined by key within a band of time, by a step written by hand on Bytewax's state per key.

    .bench/bytewax/bin/python benchmarks/peers/bytewax_joins.py left.parquet right.parquet band_ms

Bytewax's own join in event time is in `bytewax_windowed_joins.py`. This is what somebody would write who knows the
rows: a stateful step per key keeps those of both sides in order of time and looks them up by bisection; what can no
longer be met, by the newest time of the key less the disorder, is given up. There is no clock: no row is late, and a
key that is not seen again is kept for ever. One worker, batches of 100,000 rows, for the reasons in
`bytewax_windows.py`. In the time: the dataflow from a list of Python tuples
to a list of pairs. Not in it: reading the files and making the tuples.
"""

from __future__ import annotations

import json
import sys
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable

import bytewax.operators as op
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main

START = 1_767_225_600
BATCH = 100_000
DISORDER = 5000

Row = tuple[int, int]
"""A time in milliseconds and a value."""
Kept = tuple[list[Row], list[Row]]
Pair = tuple[Row, Row]


def read(path: str, side: int) -> list[tuple[str, tuple[int, Row]]]:
    table = pq.read_table(path, columns=["ts", "k", "v"])
    ms = (table["ts"].cast(pa.int64()).to_numpy() // 1000).tolist()
    keys = [str(k) for k in table["k"].to_pylist()]
    return [(key, (side, row)) for key, row in zip(keys, zip(ms, table["v"].to_pylist(), strict=True), strict=True)]


def stepped(band: int) -> Callable[[Kept | None, tuple[int, Row]], tuple[Kept, list[Pair]]]:
    def step(kept: Kept | None, item: tuple[int, Row]) -> tuple[Kept, list[Pair]]:
        lefts, rights = kept = kept if kept is not None else ([], [])
        side, row = item
        if side == 0:
            found = rights[bisect_left(rights, (row[0],)) : bisect_right(rights, (row[0] + band, 1 << 60))]
            pairs = [(row, other) for other in found]
        else:
            found = lefts[bisect_left(lefts, (row[0] - band,)) : bisect_right(lefts, (row[0], 1 << 60))]
            pairs = [(other, row) for other in found]
        insort(kept[side], row)
        passed = row[0] - DISORDER
        del lefts[: bisect_left(lefts, (passed - band - DISORDER,))]
        del rights[: bisect_left(rights, (passed - DISORDER,))]
        return kept, pairs

    return step


def main(left: str, right: str, band: int) -> None:
    sides = read(left, 0), read(right, 1)
    items = [item for both in zip(*sides, strict=True) for item in both]
    out: list[tuple[str, Pair]] = []
    flow = Dataflow("joins")
    rows = op.input("rows", flow, TestingSource(items, BATCH))
    pairs = op.stateful_flat_map("join", rows, stepped(band))
    op.output("out", pairs, TestingSink(out))
    started = time.perf_counter()
    run_main(flow)
    seconds = time.perf_counter() - started
    lefts, rights = (np.array([pair[side] for _, pair in out], np.int64) for side in (0, 1))
    times = [(rows[:, 0] - START * 1000) % 1_000_003 for rows in (lefts, rights)]
    found = [len(out), int(lefts[:, 1].sum()), int(rights[:, 1].sum()), int((times[0] * 31 + times[1] * 7).sum())]
    print(json.dumps({"seconds": seconds, "fingerprint": found}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
