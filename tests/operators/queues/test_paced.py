"""Access rates: a key is served once a period, with its newest value, and costs no more than that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.time import END_OF_TIME
from penstock.operators.queues.key_orders import Fifo, InPlace
from penstock.operators.queues.linecutting import Linecutting
from penstock.operators.queues.paced import PacedQueue
from penstock.operators.queues.queue import KeyOrder
from penstock.reference.updates import owed
from tests.operators.queues.scripts import KEY, SCHEMA, Life, scripts

PACE = {("IBM",): 7, ("GOOG",): 3}


@pytest.mark.parametrize("order", [InPlace, Fifo, Linecutting])
@given(script=scripts)
def test_no_key_is_served_more_often_than_it_is_wanted(order: type[KeyOrder], script: list[Any]) -> None:
    life = Life(lambda: PacedQueue(SCHEMA, KEY, order(), pace=PACE))
    life.play(script)
    life.check_staleness()
    served: dict[str, int] = {}
    for number, at in life.log.dequeues:
        symbol = str(life.rows[number][1])
        assert at - served.get(symbol, -100) >= PACE.get((symbol,), 0)
        served[symbol] = at
    life.queue.punctuate(linear("ts", END_OF_TIME), life.now)
    assert life.queue.ready(life.now) == len(life.queue)
    life.finish()
    assert owed(life.rows, [life.rows[n] for part in life.taken for n in part], SCHEMA, KEY) is None


def test_a_key_is_served_as_soon_as_it_is_wanted_with_what_is_newest_then() -> None:
    #  time      0   1   2   3 ...        10
    #  IBM       1   2   3   4            wanted every 10
    #  served    1                        4     three updates cost one row
    queue = PacedQueue(SCHEMA, KEY, InPlace(), every=10)
    served = []
    for now in range(11):
        if now < 4:
            queue.enqueue(Batch(SCHEMA, [(now, "IBM", now + 1, "")]), now)
        served.append([row[2] for row in queue.dequeue(now, 5).rows])
        queue.delivered(now)
    assert [(now, got) for now, got in enumerate(served) if got] == [(0, [1]), (10, [4])]
    assert queue.counts.superseded == 2


def test_many_keys_at_once_are_woken_by_their_own_times() -> None:
    queue = PacedQueue(SCHEMA, KEY, InPlace(), every=10, pace={("a",): 3})
    rows = [(0, symbol, at, "") for at, symbol in enumerate("abc")]
    queue.enqueue(Batch(SCHEMA, rows), 0)
    queue.dequeue(0, 5)
    queue.enqueue(Batch(SCHEMA, [(1, row[1], 9, "") for row in rows]), 1)
    assert [queue.ready(now) for now in (1, 2, 3)] == [0, 0, 1]
    assert [row[1] for row in queue.dequeue(3, 5).rows] == ["a"]
    assert queue.ready(10) == 2
