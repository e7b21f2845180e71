"""Queues by example: Figs 2 and 6, keys and no keys, older rows, reading, deliveries in parts, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.errors import CheckpointError, StreamError
from penstock.model.batch import Batch, table_of
from penstock.model.lives import Lives
from penstock.model.schema import schema_of
from penstock.operators.queues.append_queue import AppendQueue
from penstock.operators.queues.choosing import POLICIES, memory_of, order_of, queue_for
from penstock.operators.queues.key_orders import Fifo
from penstock.operators.queues.naive_memory import NaiveMemory
from penstock.operators.queues.queue import Queue, Staleness
from penstock.operators.queues.shedding import RandomShedding
from penstock.operators.queues.update_queue import UpdateQueue

SCHEMA = schema_of([("ts", "bigint"), ("symbol", "string"), ("value", "bigint")], "ts")


def put(queue: Queue, now: int, *rows: tuple[int, str, int]) -> None:
    queue.enqueue(Batch(SCHEMA, list(rows)), now)


def names(batch: Batch) -> list[str]:
    return [f"{row[1]}{row[2]}" for row in batch.rows]


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("append", ["IBM1", "GOOG1", "MSFT1", "IBM2"]),
        ("fifo", ["GOOG1", "MSFT1", "IBM2"]),
        ("in-place", ["IBM2", "GOOG1", "MSFT1"]),
    ],
)
def test_figure_6(policy: str, expected: list[str], columnar: bool) -> None:
    """IBM2 comes last: behind all, behind all and IBM1 is gone, or in the place of IBM1."""
    queue = queue_for(SCHEMA, ["symbol"], policy)
    rows = [(1, "IBM", 1), (2, "GOOG", 1), (3, "MSFT", 1), (4, "IBM", 2)]
    queue.enqueue(Batch(SCHEMA, table=table_of(SCHEMA, rows)) if columnar else Batch(SCHEMA, rows), 4)
    assert names(queue.dequeue(5, 10)) == expected


def test_figure_2() -> None:
    """An update every 2 units at a cost of 3: what is delivered leaves the output as stale as the next update is.

    arrivals   a   b   c   d   e
    time       0 1 2 3 4 5 6 7 8 9
    taken      a     b     d     e
    delivered        a'    b'    d'
    staleness  0 1 2 1 2 3 2 3 4 1
    """
    queue = UpdateQueue(SCHEMA)
    seen = []
    for now in range(10):
        if now % 2 == 0:
            put(queue, now, (now, "x", now))
        if now % 3 == 0:
            queue.delivered(now)
            queue.dequeue(now, 1)
        seen.append(queue.staleness(now).application)
    assert seen == [0, 1, 2, 1, 2, 3, 2, 3, 4, 1]
    # Areas of the triangles until 9: (3^2 - 0) / 2, then 1 to 4, then 2 to 5.
    assert queue.staleness(9).average_application == pytest.approx((4.5 + 7.5 + 10.5) / 9)


@pytest.mark.parametrize("policy", POLICIES)
def test_without_a_key_each_row_updates_the_one_before(policy: str) -> None:
    queue = queue_for(SCHEMA, (), policy)
    put(queue, 1, (1, "a", 1), (2, "b", 2))
    put(queue, 2, (3, "c", 3))
    expected = ["a1", "b2", "c3"] if policy in ("append", "shed") else ["c3"]
    assert queue.read(()) == (3, "c", 3)
    assert names(queue.dequeue(3, 9)) == expected
    assert queue.read(()) is None


def test_an_older_row_overwrites_nothing_wherever_the_newer_one_is() -> None:
    queue = UpdateQueue(SCHEMA, ("symbol",))
    put(queue, 1, (10, "a", 1))
    put(queue, 2, (9, "a", 2))
    assert queue.read(("a",)) == (10, "a", 1)
    assert names(queue.dequeue(3, 1)) == ["a1"]
    put(queue, 4, (8, "a", 3))
    queue.delivered(5)
    put(queue, 6, (9, "a", 4))
    assert (len(queue), queue.counts.older) == (0, 3)
    assert queue.staleness(6, ("a",)).application == 0
    put(queue, 7, (10, "a", 5))
    assert names(queue.dequeue(8, 1)) == ["a5"], "of equal times the later wins"


def test_deliveries_in_parts_leave_the_next_update_that_is_under_way() -> None:
    """Two values of a key are under way; when the first has come, the output is as stale as the second."""
    for policy in ("in-place", "append"):
        queue = queue_for(SCHEMA, ["symbol"], policy)
        for now, value in ((0, 1), (10, 2), (20, 3)):
            put(queue, now, (now, "a", value))
            if value < 3:
                queue.dequeue(now + 1, 1)
        assert queue.staleness(30, ("a",)).application == 30
        assert queue.staleness(30, ("a",)).unapplied == 3
        queue.delivered(30, 1)
        assert queue.staleness(30, ("a",)).application == 20
        queue.delivered(30, 1)
        assert queue.staleness(30, ("a",)).application == 10
        assert queue.staleness(30, ("a",)).queue == 10
        queue.dequeue(31, 1)
        queue.delivered(32)
        assert queue.staleness(33, ("a",)).application == 0
        assert queue.counts.delivered == 3


def test_many_deliveries_in_parts_leave_the_same() -> None:
    queue = AppendQueue(SCHEMA, ("symbol",))
    for now in (0, 10):
        rows = [(now, f"k{i}", now) for i in range(40)]
        queue.enqueue(Batch(SCHEMA, table=table_of(SCHEMA, rows)), now)
    queue.dequeue(11, 50)
    queue.delivered(12, 40)
    assert [queue.staleness(12, (f"k{i}",)).application for i in (0, 9, 10, 39)] == [2, 2, 2, 2]
    queue.delivered(13)
    assert [queue.staleness(13, (f"k{i}",)).application for i in (0, 9, 10, 39)] == [0, 0, 3, 3]


def test_what_was_shed_keeps_its_key_stale_from_its_own_arrival() -> None:
    """Of a batch in which one row is kept and later ones are shed, those count from then, not from an earlier one."""

    class Scripted(RandomShedding):
        def kept(self, rows: int, now: int) -> np.ndarray:
            return np.array([next(plan) for _ in range(rows)])

    plan = iter([False, True, False, True])
    queue = AppendQueue(SCHEMA, ("symbol",), shedding=Scripted())
    put(queue, 0, (0, "a", 1))
    assert (len(queue), queue.staleness(5, ("a",)).application) == (0, 5)
    put(queue, 10, (10, "a", 2), (11, "a", 3))
    put(queue, 20, (20, "a", 4))
    assert queue.staleness(20, ("a",)).unapplied == 4
    queue.dequeue(20, 1)
    queue.delivered(21)
    assert (queue.staleness(21, ("a",)).application, queue.staleness(21, ("a",)).unapplied) == (11, 2)
    queue.dequeue(22, 1)
    queue.delivered(23)
    assert (queue.staleness(23, ("a",)).application, queue.staleness(23, ("a",)).unapplied) == (0, 0)
    assert queue.counts.shed == 2


@pytest.mark.parametrize("columnar", [False, True])
def test_what_was_shed_before_the_last_that_was_kept_is_forgotten(columnar: bool) -> None:
    """Rows 1 and 3 are shed. When 2 has come and 4 is under way, the output is as stale as 3, not as 1."""

    class Scripted(RandomShedding):
        def kept(self, rows: int, now: int) -> np.ndarray:
            return np.array([next(plan) for _ in range(rows)])

    plan = iter([False, True, False, True])
    queue = AppendQueue(SCHEMA, ("symbol",), shedding=Scripted())
    put(queue, 0, (0, "a", 1))
    both = [(10, "a", 2), (11, "a", 3)]
    queue.enqueue(Batch(SCHEMA, table=table_of(SCHEMA, both)) if columnar else Batch(SCHEMA, both), 10)
    put(queue, 20, (20, "a", 4))
    queue.dequeue(20, 2)
    queue.delivered(21, 1)
    assert queue.staleness(21, ("a",)).application == 11


def test_the_least_time_that_waits_is_told_in_time() -> None:
    """Where many wait it is looked for once as many have left as wait; until then what is told is sound."""
    for policy in ("in-place", "append"):
        queue = queue_for(SCHEMA, ["symbol"], policy)
        rows = [(at, f"k{at}", at) for at in range(1000)]
        queue.enqueue(Batch(SCHEMA, table=table_of(SCHEMA, rows)), 0)
        assert queue.earliest() == 0
        queue.dequeue(1, 400)
        assert queue.earliest() == 0
        queue.dequeue(1, 200)
        assert queue.earliest() == 600
        put(queue, 2, (500, "new", 1))
        assert queue.earliest() == 500
        queue.dequeue(3, 1000)
        assert queue.earliest() is None


def test_an_append_queue_that_was_long_gives_its_room_back() -> None:
    queue = AppendQueue(SCHEMA, ("symbol",))
    rows = [(i, f"k{i % 7}", i) for i in range(5000)]
    queue.enqueue(Batch(SCHEMA, table=table_of(SCHEMA, rows)), 0)
    out: list[int] = []
    while len(queue):
        out.extend(row[2] for row in queue.dequeue(1, 37).rows)  # type: ignore[misc]
        assert queue.memory(1).pages == -(-len(queue) // (65536 // 48)) or len(out) % 1365
    assert out == list(range(5000))
    assert queue.memory(2).bytes == 0
    assert len(queue._entries._rows) < 500


def test_random_shedding_keeps_what_can_be_served() -> None:
    """Rows every 10 ticks, each of which takes 40: a quarter is kept, less the headroom."""
    shedding = RandomShedding(headroom=0.8, seed=1)
    kept = 0
    for at in range(5000):
        kept += int(shedding.kept(1, at * 10).sum())
        shedding.served(1, 40)
    assert shedding.keep == pytest.approx(0.2, rel=0.01)
    assert kept / 5000 == pytest.approx(0.2, rel=0.1)


def test_a_key_that_was_never_seen_is_fresh() -> None:
    queue = UpdateQueue(SCHEMA, ("symbol",))
    assert queue.staleness(5) == Staleness()
    put(queue, 1, (1, "a", 1))
    assert queue.staleness(5, ("b",)) == Staleness()
    assert queue.read(("b",)) is None


def test_a_stream_without_a_time_is_as_new_as_it_comes() -> None:
    schema = schema_of([("symbol", "string"), ("value", "bigint")])
    for rows in ([("a", 1)], [("a", i) for i in range(20)]):
        queue = UpdateQueue(schema, ("symbol",))
        queue.enqueue(Batch(schema, rows), 1)
        queue.enqueue(Batch(schema, [("a", 99)]), 1)
        assert queue.dequeue(2, 5).rows == [("a", 99)]


def test_keys_of_several_columns_with_nulls_and_floats() -> None:
    schema = schema_of([("ts", "bigint"), ("a", "string"), ("b", "double")], "ts")
    rows = [(1, "x", 0.0), (2, "x", -0.0), (3, None, 1.0), (4, None, 1.0), (5, "x", None)]
    for columnar in (False, True):
        queue = UpdateQueue(schema, ("a", "b"))
        given = Batch(schema, table=table_of(schema, rows)) if columnar else Batch(schema, rows)
        queue.enqueue(given, 1)
        queue.enqueue(Batch(schema, [(6, "x", 0.0)]), 2)
        assert [row[0] for row in queue.dequeue(3, 9).rows] == [6, 4, 5]
        assert queue.counts.superseded == 3


def test_keys_have_the_same_numbers_alone_and_in_batches() -> None:
    queue = UpdateQueue(SCHEMA, ("symbol",))
    for start in range(0, 900, 300):
        for i in range(start, start + 150):
            put(queue, 1, (1, f"k{i}", i))
        rows = [(1, f"k{i}", i) for i in range(start, start + 300)]
        queue.enqueue(Batch(SCHEMA, table=table_of(SCHEMA, rows)), 1)
    assert len(queue) == 900
    assert [row[1] for row in queue.dequeue(2, 900).rows] == [f"k{i}" for i in range(900)]


def test_rows_with_lives_are_refused() -> None:
    batch = Batch(SCHEMA, [(1, "a", 1)], lives=Lives.of_inserts(np.array([5])))
    for policy in POLICIES:
        with pytest.raises(StreamError, match="A queue takes updates"):
            queue_for(SCHEMA, ["symbol"], policy).enqueue(batch, 1)


def test_names_that_are_not_known_are_refused() -> None:
    with pytest.raises(StreamError, match=r"(?s)no such queue.*lifo.*in-place"):
        queue_for(SCHEMA, (), "lifo")
    with pytest.raises(StreamError, match=r"(?s)no such key order.*append"):
        order_of("append")
    with pytest.raises(StreamError, match=r"(?s)no such memory manager.*paper"):
        memory_of("paper")
    with pytest.raises(StreamError, match=r"(?s)keep is a part of the whole.*keep=2"):
        RandomShedding(2.0)


def test_state_of_other_parts_is_refused() -> None:
    queue = UpdateQueue(SCHEMA, ("symbol",))
    with pytest.raises(CheckpointError, match=r"(?s)another algorithm.*'in-place' where 'fifo' runs"):
        UpdateQueue(SCHEMA, ("symbol",), Fifo()).from_plain(queue.to_plain(), 1)
    with pytest.raises(CheckpointError, match="'on-demand paging' where 'naive memory' runs"):
        UpdateQueue(SCHEMA, ("symbol",), None, NaiveMemory()).from_plain(queue.to_plain(), 1)
