"""Two streams joined by key within a band of time, by Bytewax's own join in event time, `join_window`.

    .bench/bytewax/bin/python benchmarks/peers/bytewax_windowed_joins.py left.parquet right.parquet band_ms

Bytewax joins what is in one window, so windows are twice as long as the band and start once a band: whatever meets is
in one of them together. Every combination of a key's rows in a window comes out when the window closes (`product`);
those within the band are kept, each from the window in whose first half its left row is. One worker, values in order
of arrival (`ordered=False`) and a system time that stands still, for the reasons in `bytewax_windows.py`; the clock
waits for the disorder of the rows and for what a batch of one side is ahead of the other's.

In the time: the dataflow from a list of Python tuples to a list of pairs. Not in it: reading the files and making the
tuples.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, SlidingWindower, join_window
from bytewax.testing import TestingSink, TestingSource, run_main

START = 1_767_225_600
BATCH = 2000
"""Rows of both sides in a batch, a second of each: with larger ones the clock would have to wait for longer."""
WAIT = timedelta(seconds=6)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = tuple[datetime, int, int]
"""A time, the same in milliseconds, and a value."""
Item = tuple[str, tuple[int, Row]]
Pair = tuple[Row, Row]


def read(path: str, side: int) -> list[Item]:
    table = pq.read_table(path, columns=["ts", "k", "v"])
    moments = [EPOCH + timedelta(microseconds=us) for us in table["ts"].cast(pa.int64()).to_pylist()]
    ms = (table["ts"].cast(pa.int64()).to_numpy() // 1000).tolist()
    rows = zip(moments, ms, table["v"].to_pylist(), strict=True)
    return [(str(key), (side, row)) for key, row in zip(table["k"].to_pylist(), rows, strict=True)]


def main(left: str, right: str, band: int) -> None:
    items = [item for both in zip(read(left, 0), read(right, 1), strict=True) for item in both]
    first = START * 1000

    def chosen(item: tuple[str, tuple[int, tuple[Row | None, Row | None]]]) -> Pair | None:
        _, (window, (one, other)) = item
        if one is None or other is None:
            return None
        is_near = 0 <= other[1] - one[1] <= band
        return (one, other) if is_near and one[1] < first + (window + 1) * band else None

    out: list[Pair] = []
    flow = Dataflow("joins")
    sides = op.branch("sides", op.input("rows", flow, TestingSource(items, BATCH)), lambda item: item[1][0] == 0)
    lefts = op.map_value("left", sides.trues, lambda value: value[1])
    rights = op.map_value("right", sides.falses, lambda value: value[1])
    length = timedelta(milliseconds=band)
    joined = join_window(
        "join",
        EventClock(lambda row: row[0], WAIT, now_getter=lambda: NOW, to_system_utc=lambda _: None),
        SlidingWindower(length=2 * length, offset=length, align_to=EPOCH + timedelta(seconds=START)),
        lefts,
        rights,
        insert_mode="product",
        ordered=False,
    )
    op.output("out", op.filter_map("near", joined.down, chosen), TestingSink(out))
    late: list[object] = []
    op.output("late", joined.late, TestingSink(late))
    started = time.perf_counter()
    run_main(flow)
    seconds = time.perf_counter() - started
    assert not late, f"{len(late)} rows were late"
    lefts_, rights_ = (np.array([pair[side][1:] for pair in out], np.int64).reshape(-1, 2) for side in (0, 1))
    times = [(rows[:, 0] - first) % 1_000_003 for rows in (lefts_, rights_)]
    found = [len(out), int(lefts_[:, 1].sum()), int(rights_[:, 1].sum()), int((times[0] * 31 + times[1] * 7).sum())]
    print(json.dumps({"seconds": seconds, "fingerprint": found}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
