"""The benchmark of queues puts in what it says, and notices a queue that does not keep the newest."""

from __future__ import annotations

import pytest

from penstock.bench import queues as bench
from penstock.errors import InternalError
from penstock.operators.queues.update_queue import UpdateQueue


def test_every_case_is_told_and_held_to_its_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "BATCH", 200)
    report = bench.QueuesBench(400, lambda line: None, keys=(50, 300, 600)).run()
    ways = {(row["type"], row["keys"], row["enqueued"]) for row in report.rows if row["order"] == "in-place"}
    assert ways == {
        (type_, keys, way)
        for type_ in bench.TYPES
        for keys in (50, 300, 600)
        for way in (bench.IN_BATCHES, bench.ALONE, bench.ALL_DIFFERENT)
        if keys > 200 or way != bench.ALL_DIFFERENT
    }
    assert {row["order"] for row in report.rows} == {"in-place", "fifo", "linecutting"}
    assert [claim.bar for claim in report.claims[:2]] == [1_000_000, 200_000]
    assert len(report.claims) == 6


def test_different_keys_are_different() -> None:
    rows = bench.Rows("string", 300)
    assert len(set(rows.different(200).table["key"].to_pylist())) == 200
    times = [*rows.every().times(), *rows.batch(10).times(), *rows.batch(10).times()]
    assert times == sorted(set(times))


def test_a_queue_that_keeps_an_older_row_is_noticed() -> None:
    rows = bench.Rows("bigint", 5)
    early, late = rows.batch(20), rows.batch(20)
    queue = UpdateQueue(rows.schema, ("key",))
    queue.enqueue(early, 1)
    with pytest.raises(InternalError, match="newest row of every key"):
        bench.check(queue, [early, late])
