"""Counts are those of the rows that were pushed, whenever somebody looks."""

from __future__ import annotations

from typing import Any

import penstock as pk
from penstock.model.batch import Batch


def test_counts_follow_what_was_pushed_and_fed() -> None:
    flow = pk.Flow().stream("s", [], time="t", schema="t bigint, v bigint")
    query: Any = flow.query("SELECT t, 10 div v AS x FROM s")
    run = query.execution()
    push = run.pusher("s")
    for row in [(1, 1), (5, 0), (2, 1), (None, 1), (6, 2)]:
        push(row)
    counts = run.counts
    assert (counts.read, counts.on_time, counts.late, counts.dead, counts.failed) == (5, 3, 1, 1, 1)
    assert (run.late().num_rows, run.dead_letters().num_rows) == (1, 2)
    run.feed("s", Batch(flow.catalog.streams["s"].schema, [(7, 1), (3, 1)]))
    push((8, 5))
    assert (run.counts.read, run.counts.on_time, run.counts.late) == (8, 5, 2)
    assert run.take()
    assert run.counts.unaccounted == 0
