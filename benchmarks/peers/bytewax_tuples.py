"""A filter, a map and a count per key, one Python tuple at a time, by Bytewax.

    .bench/bytewax/bin/python benchmarks/peers/bytewax_tuples.py rows window|final batch

`window` counts per key and minute of event time, under a clock that waits a second (the query of the benchmark);
`final` is Bytewax's `count_final`, one count per key for the whole input, without event time. `batch` is how many
tuples the source hands over at once; 1 is one tuple at a time.

In the time: the dataflow from its start to its end, from a list of tuples to a list of counts. Not in it: making the
tuples.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, TumblingWindower, count_window
from bytewax.testing import TestingSink, TestingSource, run_main

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = datetime(2026, 1, 1, tzinfo=UTC)

Item = tuple[datetime, int, int]


def make(rows: int) -> list[Item]:
    """Tuples of time, key and value; the clock asks for datetimes."""
    return [(START + timedelta(microseconds=100 * i), i % 1000, i * 7919 % 1_000_003) for i in range(rows)]


def counts(items: list[Item], kind: str, batch: int, out: list[tuple[str, Any]]) -> Dataflow:
    flow = Dataflow("tuples")
    rows = op.input("rows", flow, TestingSource(items, batch))
    even = op.filter("even", rows, lambda row: row[2] % 2 == 0)
    twice = op.map("twice", even, lambda row: (row[0], str(row[1]), row[2] * 2))
    if kind == "final":
        op.output("out", op.count_final("count", twice, itemgetter(1)), TestingSink(out))
        return flow
    clock = EventClock(
        ts_getter=itemgetter(0),
        wait_for_system_duration=timedelta(seconds=1),
        now_getter=lambda: EPOCH,
        to_system_utc=lambda _: None,
    )
    windower = TumblingWindower(length=timedelta(seconds=60), align_to=EPOCH)
    counted = count_window("count", twice, clock, windower, itemgetter(1))
    op.output("out", counted.down, TestingSink(out))
    return flow


def main(rows: int, kind: str, batch: int) -> None:
    items = make(rows)
    out: list[tuple[str, Any]] = []
    flow = counts(items, kind, batch, out)
    started = time.perf_counter()
    run_main(flow)
    seconds = time.perf_counter() - started
    total = sum(n if kind == "final" else n[1] for _, n in out)
    print(json.dumps({"seconds": seconds, "rows": rows, "groups": len(out), "total": total}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
