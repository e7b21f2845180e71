"""Windows by lot beside the oracle: whole ones only, all of those that the lot keeps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.time import END_OF_TIME
from penstock.operators.queues.extents import extents_of
from penstock.operators.queues.window_cells import Promise
from penstock.operators.queues.window_shedding import SheddingWindows, lot
from penstock.operators.windows.sliding import Sliding
from penstock.reference import update_windows as oracle
from tests.operators.queues.window_lives import SCHEMA, Life, plans, scripts
from tests.profiles import examples


@pytest.mark.parametrize("keep", [1.0, 0.5])
@given(plan=plans, script=scripts, cost=st.integers(1, 2), promise=st.sampled_from(Promise))
@examples(15)
def test_windows_that_the_lot_keeps_come_out_whole(
    keep: float, plan: Any, script: Any, cost: int, promise: Promise
) -> None:
    life = Life(lambda *args, **named: SheddingWindows(*args, keep=keep, **named), plan, cost, promise)
    life.play(script)
    life.end()
    numbers = {key: number for number, (key,) in enumerate(map(life.queue.key_of, range(len(life.log.keys))))}
    expected = [
        (key, wid)
        for key in life.log.keys
        for wid in oracle.whole(life.log, life.levels, key)
        if life.queue.is_kept(numbers[key], wid)
    ]
    assert sorted((r.key, r.wid) for r in life.log.results) == sorted(expected)
    assert [fault for fault in oracle.faults(life.log, life.levels) if "its last" not in fault] == []
    counts = life.queue.counts
    assert (len(life.queue), life.queue.memory(life.now).used) == (0, 0)
    assert counts.enqueued == counts.dequeued + counts.older + counts.outside + counts.shed
    if keep == 1:
        assert list(oracle.faults(life.log, life.levels)) == []


def test_about_as_many_windows_are_kept_as_were_asked_for() -> None:
    kept = sum(lot(3, key, window) < 0.2 for key in range(20) for window in range(500))
    assert 1800 < kept < 2200


def test_a_row_costs_as_much_as_it_has_windows() -> None:
    queue = SheddingWindows(SCHEMA, ("k",), extents_of([Sliding(5, 1)]))
    queue.enqueue(Batch(SCHEMA, [(7, "a", 1, ""), (8, "a", 2, "")]), 1)
    assert queue.read(("a",)) == (8, "a", 2, "")
    given_ = queue.dequeue(1, 99)
    assert [row[0] for row in given_.rows] == [7] * 5 + [8] * 5
    assert (queue.counts.dequeued, queue.counts.given, queue.read(("a",))) == (2, 10, None)
    queue.punctuate(linear("ts", 9), 2)
    assert queue.promised() == 8  # the window of the row at 7 that ends first
    assert [queue.extents.end(c.window) for c in queue.dequeue(2, 0).closed] == [8, 9]
    assert queue.promised() == 10
    queue.punctuate(linear("ts", END_OF_TIME), 3)
    queue.dequeue(3, 0)
    assert queue.promised() == END_OF_TIME
