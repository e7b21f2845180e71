"""What a run over windows that wait tells of its queue."""

from __future__ import annotations

import pytest

import penstock as pk


@pytest.mark.parametrize("windows", ["lazy", "eager"])
def test_progress_and_staleness_are_told_in_windows(windows: str) -> None:
    trades = [{"ts": t, "symbol": symbol, "price": t} for t in range(20) for symbol in "ab"]
    flow = pk.Flow().stream("trades", trades, time="ts")
    flow.conflate("calm", "trades", key="symbol", windows=windows, max_staleness="1 minute")
    sums = "SELECT symbol, sum(price) AS total [RANGE 6, SLIDE 3, WA ts] FROM calm GROUP BY symbol"
    run = flow.query(sums).start(None)
    run.wait()
    (queue,) = run.progress.queues
    assert (queue.enqueued, queue.waiting, queue.unapplied, queue.application_staleness) == (40, 0, 0.0, 0.0)
    assert queue.dequeued + queue.superseded + queue.older == 40
    assert run.staleness("a")["unapplied"] == 0
