"""A queue that is one of all rows, or of the newest, by load: nothing is lost or changes places, staleness is exact."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch
from penstock.operators.queues.adaptive import AdaptiveQueue
from penstock.reference.updates import owed
from tests.operators.queues.scripts import KEY, SCHEMA, Life, scripts


@given(scripts, st.sampled_from([1, 3, 100]))
def test_the_last_of_each_key_comes_out_in_order_and_as_stale_as_it_is(script: list[Any], limit: int) -> None:
    life = Life(lambda: AdaptiveQueue(SCHEMA, KEY, limit=limit))
    life.play(script)
    life.check_staleness()
    counts = life.queue.counts
    assert counts.enqueued == counts.dequeued + counts.superseded + counts.older + len(life.queue)
    assert life.queue.earliest() == min((row[0] for row in waiting(life)), default=None)
    life.finish()
    life.check_staleness()
    taken = [life.rows[n] for part in life.taken for n in part]
    assert owed(life.rows, taken, SCHEMA, KEY) is None
    assert life.queue.memory(life.now).used == 0
    if limit == 100:
        assert taken == no_older(life.rows)
        assert counts.older == len(life.rows) - len(taken)


def no_older(rows: list[Any]) -> list[Any]:
    """Those before which no later one of their key came."""
    return [row for n, row in enumerate(rows) if row[0] >= max(r[0] for r in rows[: n + 1] if r[1] == row[1])]


def waiting(life: Life) -> list[Any]:
    """What waits, as a queue with the same state gives it out."""
    twin = life.make()
    twin.from_plain(life.queue.to_plain(), twin.version)
    return list(twin.dequeue(life.now, 1000).rows)


def test_a_line_that_is_too_long_is_collapsed_in_place_and_not_again_until_it_has_doubled() -> None:
    #  A1 B1 A2 | C1 -> too long:  A2 B1 C1;  then four more until it is collapsed again
    queue = AdaptiveQueue(SCHEMA, KEY, limit=3)
    for n, symbol in enumerate("ABAC"):
        queue.enqueue(Batch(SCHEMA, [(n, symbol, n, "")]), n)
    assert (queue.collapses, len(queue), queue.counts.superseded) == (1, 3, 1)
    assert queue.read(("A",)) == (2, "A", 2, "")
    for n in range(4, 7):
        queue.enqueue(Batch(SCHEMA, [(n, "A", n, "")]), n)
    assert (queue.collapses, len(queue)) == (1, 6)
    queue.enqueue(Batch(SCHEMA, [(7, "B", 7, "")]), 7)
    assert [row[1:3] for row in queue.dequeue(8, 9).rows] == [("A", 6), ("B", 7), ("C", 3)]


def test_how_many_may_wait_follows_from_what_a_row_costs() -> None:
    queue = AdaptiveQueue(SCHEMA, KEY, max_staleness=1000)
    assert queue.limit == 1000
    queue.enqueue(Batch(SCHEMA, [(1, "A", 1, "")]), 0)
    queue.dequeue(10, 1)
    queue.delivered(30)
    assert queue.limit == 25  # half of 1000 ticks, at 20 each
