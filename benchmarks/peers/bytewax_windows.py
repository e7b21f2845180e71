"""Count and max per key over sliding event-time windows, by Bytewax: `fold_window` over an event clock.

    .bench/bytewax/bin/python benchmarks/peers/bytewax_windows.py rows.parquet range_s slide_s limit

One worker (two threads share one interpreter and are slower), values folded in order of arrival (`ordered=False`),
batches of 100,000 rows (smaller ones are slower: 10,000 by a third). The clock's system time stands still, so that the
watermark moves by the data alone, and nothing wakes up to close windows between batches.

In the time: the dataflow from its start to its end, from a list of Python tuples to a list of results. Not in it:
reading the file, making the tuples with their keys as text, and the fingerprint.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from operator import itemgetter

import bytewax.operators as op
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, SlidingWindower, fold_window
from bytewax.testing import TestingSink, TestingSource, run_main

START = 1_767_225_600
BATCH = 100_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Item = tuple[str, tuple[datetime, int]]
Result = tuple[str, tuple[int, list[int]]]


def read(path: str, limit: int) -> list[Item]:
    table = pq.read_table(path, columns=["ts", "k", "v"]).slice(0, limit)
    times = [EPOCH + timedelta(microseconds=us) for us in table["ts"].cast(pa.int64()).to_pylist()]
    keys = [str(k) for k in table["k"].to_pylist()]
    return list(zip(keys, zip(times, table["v"].to_pylist(), strict=True), strict=True))


def fold(state: list[int], value: tuple[datetime, int]) -> list[int]:
    state[0] += 1
    if value[1] > state[1]:  # noqa: PLR1730 - max() takes longer
        state[1] = value[1]
    return state


def merge(left: list[int], right: list[int]) -> list[int]:
    return [left[0] + right[0], max(left[1], right[1])]


def windows(items: list[Item], range_s: int, slide_s: int, out: list[Result]) -> Dataflow:
    clock = EventClock(
        ts_getter=itemgetter(0),
        wait_for_system_duration=timedelta(seconds=5),
        now_getter=lambda: EPOCH,
        to_system_utc=lambda _: None,
    )
    windower = SlidingWindower(length=timedelta(seconds=range_s), offset=timedelta(seconds=slide_s), align_to=EPOCH)
    flow = Dataflow("windows")
    rows = op.input("rows", flow, TestingSource(items, BATCH))
    folded = fold_window("fold", rows, clock, windower, lambda: [0, -(2**31)], fold, merge, ordered=False)
    op.output("out", folded.down, TestingSink(out))
    return flow


def fingerprint(out: list[Result], range_s: int, slide_s: int) -> list[int]:
    k = np.array([int(key) for key, _ in out], dtype=np.int64)
    # Bytewax numbers a window by its first pane
    wid = np.array([window for _, (window, _) in out], dtype=np.int64) + range_s // slide_s - 1
    n, m = np.array([state for _, (_, state) in out], dtype=np.int64).T
    mixed = ((wid - START // slide_s) * 1_000_003 + k * 7_919 + n * 31 + m) % 1_000_000_007
    return [len(out), int(n.sum()), int(m.sum()), int(mixed.sum())]


def main(path: str, range_s: int, slide_s: int, limit: int) -> None:
    items = read(path, limit)
    out: list[Result] = []
    flow = windows(items, range_s, slide_s, out)
    started = time.perf_counter()
    run_main(flow)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "rows": len(items), "fingerprint": fingerprint(out, range_s, slide_s)}))


if __name__ == "__main__":
    main(sys.argv[1], *(int(x) for x in sys.argv[2:5]))
