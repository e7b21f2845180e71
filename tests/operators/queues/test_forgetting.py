"""Keys that come no more are forgotten, and nobody can tell by what comes out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.schema import schema_of
from penstock.operators.queues import update_queue
from penstock.operators.queues.choosing import MEMORIES, ORDERS, memory_of, order_of
from penstock.operators.queues.paced import PacedQueue
from penstock.operators.queues.update_queue import UpdateQueue
from tests.profiles import examples

SCHEMA = schema_of([("ts", "bigint"), ("key", "string"), ("value", "bigint")], "ts")
KEY = ("key",)
SILENT = 3
ROWS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 6)), min_size=1, max_size=20)
STEPS = st.lists(
    st.one_of(ROWS, st.tuples(st.just("promise"), st.integers(0, 6)), st.tuples(st.just("take"), st.integers(1, 5)),
              st.sampled_from(["deliver", "wait", "snapshot"])),
    max_size=30,
)  # fmt: skip


def made(policy: str, memory: str, forget_after: int | None) -> UpdateQueue:
    if policy == "paced":
        queue: UpdateQueue = PacedQueue(SCHEMA, KEY, order_of("in-place"), 4, {("a",): 7}, memory_of(memory))
        queue.forget_after = forget_after
        return queue
    return UpdateQueue(SCHEMA, KEY, order_of(policy), memory_of(memory), forget_after)


class Twins:
    """Two queues that live the same life, one of which forgets."""

    def __init__(self, policy: str, memory: str) -> None:
        self.made = [lambda: made(policy, memory, SILENT), lambda: made(policy, memory, None)]
        self.queues = [each() for each in self.made]
        self.now = self.bound = self.number = 0

    def step(self, step: Any) -> None:
        self.now += 1
        if isinstance(step, list):
            rows = []
            for key, ahead in step:
                self.number += 1
                rows.append((self.bound + ahead, key, self.number))
            for queue in self.queues:
                queue.enqueue(Batch(SCHEMA, rows), self.now)
        elif step == "snapshot":
            kept = [queue.to_plain() for queue in self.queues]
            self.queues = [each() for each in self.made]
            for queue, plain in zip(self.queues, kept, strict=True):
                queue.from_plain(plain, queue.version)
        elif step == "wait":
            self.now += SILENT
        elif step == "deliver":
            for queue in self.queues:
                queue.delivered(self.now)
        elif step[0] == "promise":
            self.bound += step[1]
            for queue in self.queues:
                queue.punctuate(linear("ts", self.bound), self.now)
        else:
            one, other = (queue.dequeue(self.now, step[1]).rows for queue in self.queues)
            assert one == other

    def check(self) -> None:
        one, other = self.queues
        assert one.counts == other.counts
        assert len(one) == len(other)
        assert one.ready(self.now) == other.ready(self.now)
        assert one._meter.queue.of_all(self.now) == other._meter.queue.of_all(self.now)
        assert one._meter.application.of_all(self.now) == other._meter.application.of_all(self.now)
        assert one._meter.unapplied.of_all(self.now) == other._meter.unapplied.of_all(self.now)
        for key in "abcdefgh":
            assert one.read((key,)) == other.read((key,))
            mine, theirs = (queue.staleness(self.now, (key,)) for queue in self.queues)
            assert (mine.queue, mine.application, mine.unapplied) == (
                theirs.queue,
                theirs.application,
                theirs.unapplied,
            )


@pytest.mark.parametrize("policy", ["in-place", "fifo", "paced"])
@pytest.mark.parametrize("memory", MEMORIES)
@examples(40)
@given(steps=STEPS)
def test_nobody_can_tell_that_keys_were_forgotten(policy: str, memory: str, steps: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update_queue, "LEAST_KEYS", 2)
        twins = Twins(policy, memory)
        for step in steps:
            twins.step(step)
            twins.check()


@pytest.mark.parametrize("policy", [*ORDERS, "paced"])
@pytest.mark.parametrize("memory", MEMORIES)
def test_keys_that_come_once_cost_nothing_in_the_end(policy: str, memory: str) -> None:
    """A key every tick that never comes again: about as many are known as came since the last that was silent."""
    queue, most = made(policy, memory, 100), 0
    for now in range(20_000):
        queue.enqueue(Batch(SCHEMA, [(now, f"k{now}", now)]), now)
        assert queue.dequeue(now, 1).rows == [(now, f"k{now}", now)]
        queue.delivered(now)
        queue.punctuate(linear("ts", now), now)
        most = max(most, len(queue._keys))
    assert most <= update_queue.LEAST_KEYS + 1
    assert len(queue._cells._columns[0].array) <= 2 * update_queue.LEAST_KEYS + 2
    assert queue.memory(20_000).bytes <= 2 * (1 << 16)
    assert queue.staleness(20_000).average_unapplied == 0


def test_a_key_is_kept_while_something_older_could_come() -> None:
    queue = made("in-place", "on-demand", SILENT)
    for number in range(update_queue.LEAST_KEYS):
        queue.enqueue(Batch(SCHEMA, [(10, f"k{number}", 1)]), 0)
    queue.dequeue(0, 5000)
    queue.delivered(0)
    for promise in (linear("ts", 10), Punctuation((("ts", 50),), (("key", "k1"),))):
        queue.punctuate(promise, 100)
        assert len(queue._keys) == update_queue.LEAST_KEYS
    queue.enqueue(Batch(SCHEMA, [(9, "k5", 2)]), 100)
    assert queue.counts.older == 1
    queue._forgets_at = 0
    queue.punctuate(linear("ts", 11), 100)
    assert len(queue._keys) == 0
