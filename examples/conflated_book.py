"""An order book replayed faster than its consumer can follow: conflated it stays fresh, queued it falls behind."""

import gzip
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import penstock as pk

SPEED, COST = 20, 0.0004  # how much faster than the market the replay is; seconds that a row costs the consumer
KEY = ["symbol", "side", "price"]
market: list[dict[str, Any]] = []
SCHEMA = "at DOUBLE, n BIGINT, symbol STRING, side STRING, price STRING, size STRING"

if len(sys.argv) > 1:  # a capture: lines of JSON with kind, recv, symbol, side, price and size
    lines = gzip.decompress(Path(sys.argv[1]).read_bytes()).splitlines()
    captured = [row for row in map(json.loads, lines) if row["kind"] == "update"]
    market = [{"at": row["recv"] - captured[0]["recv"], **{n: row[n] for n in (*KEY, "size")}} for row in captured]
else:
    lot = random.Random(1)
    for n in range(4000):
        level = round(lot.gauss(0, 25))
        row = {"symbol": "XBT", "side": "bid" if level < 0 else "ask", "price": str(1000 + level)}
        market.append({"at": n / 200, **row, "size": str(lot.randint(0, 9))})


def replay(policy: str) -> None:
    """Feed the market to a consumer that is too slow for it, and show how old rows were when it had dealt with them."""
    given, ages = list[float](), list[float]()
    book: dict[tuple[str, ...], str] = {}

    def feed() -> Iterator[dict[str, Any]]:
        start = time.monotonic()
        for n, row in enumerate(market):
            time.sleep(max(start + row["at"] / SPEED - time.monotonic(), 0))
            given.append(time.monotonic())
            yield {"n": n, **row}

    def slow_consumer(table: Any) -> None:
        for row in table.to_pylist():
            time.sleep(COST)
            book[tuple(row[name] for name in KEY)] = row["size"]
            ages.append(1000 * (time.monotonic() - given[row["n"]]))

    run = pk.conflate(feed(), time="n", key=KEY, schema=SCHEMA, policy=policy).start(slow_consumer)
    run.wait()
    is_true = book == {tuple(row[name] for name in KEY): row["size"] for row in market}
    print(f"{policy:9} {run.progress.queues[0].superseded:5} superseded, the true book at the end: {is_true}")
    tenths = [max(ages[i * len(ages) // 10 : (i + 1) * len(ages) // 10]) for i in range(10)]
    print("          oldest row of each tenth of the run, in ms:", *[f"{age:5.0f}" for age in tenths])


replay("in_place")
replay("append")
