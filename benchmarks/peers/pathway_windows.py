"""Count and max per key over sliding event-time windows, by Pathway: `windowby` with `temporal.sliding`.

    .bench/pathway/bin/python benchmarks/peers/pathway_windows.py rows.parquet range_s slide_s limit [stream]

Two threads. The table is static: a stream without a watermark is about as fast. `stream` gives the rows in batches of
10,000 and every window once, when a watermark 5 seconds behind has passed it (`exactly_once_behavior`): the same result
at a third to a fifth of the rate.

In the time: `pw.run` from start to end, from a table of the rows as integers to the four sums of the fingerprint,
which the engine itself computes. Not in it: reading the file, making the table, and building the graph.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("PATHWAY_THREADS", "2")  # read at import

import numpy as np
import pandas as pd
import pathway as pw
import pyarrow as pa
import pyarrow.parquet as pq

START = 1_767_225_600
SECOND = 1_000_000
BATCH = 10_000


class Row(pw.Schema):
    t: int
    k: int
    v: int


def read(path: str, limit: int) -> pd.DataFrame:
    table = pq.read_table(path, columns=["ts", "k", "v"]).slice(0, limit)
    return pd.DataFrame({"t": table["ts"].cast(pa.int64()), "k": table["k"], "v": table["v"].cast(pa.int64())})


def windows(rows: pw.Table, range_s: int, slide_s: int, stream: bool) -> pw.Table:
    """The fingerprint of the windows."""
    found = rows.windowby(
        rows.t,
        window=pw.temporal.sliding(hop=slide_s * SECOND, duration=range_s * SECOND, origin=0),
        instance=rows.k,
        behavior=pw.temporal.exactly_once_behavior(shift=5 * SECOND) if stream else None,
    ).reduce(
        k=pw.this._pw_instance,
        wid=pw.this._pw_window_end // (slide_s * SECOND) - 1 - START // slide_s,
        n=pw.reducers.count(),
        m=pw.reducers.max(pw.this.v),
    )
    mixed = (found.wid * 1_000_003 + found.k * 7_919 + found.n * 31 + found.m) % 1_000_000_007
    return found.select(found.n, found.m, mixed=mixed).reduce(
        a=pw.reducers.count(),
        b=pw.reducers.sum(pw.this.n),
        c=pw.reducers.sum(pw.this.m),
        d=pw.reducers.sum(pw.this.mixed),
    )


def main(path: str, range_s: int, slide_s: int, limit: int, stream: bool = False) -> None:
    frame = read(path, limit)
    if stream:
        frame["__time__"] = np.arange(len(frame)) // BATCH * 2
    rows = pw.debug.table_from_pandas(frame, schema=None if stream else Row)
    seen: list[dict[str, Any]] = [{}]

    def take(key: pw.Pointer, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            seen[0] = row

    pw.io.subscribe(windows(rows, range_s, slide_s, stream), take)
    started = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "rows": len(frame), "fingerprint": [seen[0][c] for c in "abcd"]}))


if __name__ == "__main__":
    main(sys.argv[1], *(int(x) for x in sys.argv[2:5]), stream=sys.argv[5:] == ["stream"])
