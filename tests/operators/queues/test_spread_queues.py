"""Update queues whose keys are spread over places, and rows that were brought down on their way to them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch, Row
from penstock.model.schema import BIGINT, STRING, Field, Schema
from penstock.operators.queues.choosing import ORDERS, queue_for
from penstock.operators.queues.newest_of_each import newest_of_each
from penstock.operators.queues.queue import Staleness
from penstock.operators.queues.staleness_sum import StalenessSum, together
from penstock.operators.queues.update_queue import UpdateQueue
from penstock.reference.updates import last_values

SCHEMA = Schema((Field("ts", BIGINT), Field("k", STRING), Field("v", BIGINT)), time="ts")
ROWS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", "c", None]), st.integers(0, 99)), max_size=8)
MANY = [(at % 3, "abcdefgh"[at % 8], at) for at in range(40)]
"""More than are gone through one by one."""
STEPS = st.lists(st.one_of(ROWS, st.integers(0, 3), st.sampled_from(["later", "delivered", "many"])), max_size=12)


def queue(policy: str) -> UpdateQueue:
    made = queue_for(SCHEMA, ["k"], policy)
    assert isinstance(made, UpdateQueue)
    return made


def batch_of(rows: list[Row]) -> Batch:
    return Batch(SCHEMA, rows)


@given(ROWS.filter(bool))
def test_the_newest_of_each_key_stands_for_all_of_them(rows: list[Row]) -> None:
    places, stands_for = newest_of_each(batch_of(rows), ["k"])
    assert places.tolist() == sorted(places.tolist())
    found = [rows[place] for place in places.tolist()]
    assert {row[1]: row for row in found} == {k[0]: row for k, row in last_values(rows, SCHEMA, ["k"]).items()}
    assert dict(zip([row[1] for row in found], stands_for.tolist(), strict=True)) == Counter(row[1] for row in rows)


def brought_down(to: UpdateQueue, rows: list[Row], now: int) -> None:
    batch = batch_of(rows)
    places, stands_for = newest_of_each(batch, ["k"])
    to.enqueue_newest(batch.take(places), stands_for, now)


@given(st.sampled_from(sorted(ORDERS)), STEPS)
def test_rows_that_were_brought_down_leave_the_queue_as_all_of_them_would(policy: str, steps: list[Any]) -> None:
    """Some that the queue would have found older are superseded by the one that stands for them, and no others."""
    one, other, now = queue(policy), queue(policy), 0
    for step in steps:
        rows = MANY if step == "many" else step
        if isinstance(rows, list) and rows:
            one.enqueue(batch_of(rows), now)
            brought_down(other, rows, now)
        elif step == "later":
            now += 5
        elif step == "delivered":
            one.delivered(now)
            other.delivered(now)
        elif step == 3:  # all, since the order of keys that came in one batch is another
            assert sorted(map(str, one.dequeue(now, 99).rows)) == sorted(map(str, other.dequeue(now, 99).rows))
        assert other.counts.superseded - one.counts.superseded == one.counts.older - other.counts.older >= 0
        assert (one.counts.enqueued, len(one)) == (other.counts.enqueued, len(other))
        stale = [(found.queue, found.application) for found in (one.staleness(now), other.staleness(now))]
        assert stale[0] == stale[1]
        assert [one.read((key,)) for key in ("a", "b", None)] == [other.read((key,)) for key in ("a", "b", None)]


@given(st.sampled_from(sorted(ORDERS)), STEPS)
def test_whoever_asks_is_given_every_row_that_is_passed_over(policy: str, steps: list[Any]) -> None:
    kept, now = queue(policy), 0
    kept.passed = []
    came: list[Row] = []
    out: list[Row] = []
    for step in steps:
        rows = MANY if step == "many" else step
        if isinstance(rows, list):
            kept.enqueue(batch_of(rows), now)
            came += rows
        elif isinstance(step, int):
            out += kept.dequeue(now, step).rows
        else:
            now += 1
    passed = Counter(dict.fromkeys(("older", "superseded"), 0))
    for why, batch in kept.passed:
        passed[why] += len(batch)
    assert passed == {"older": kept.counts.older, "superseded": kept.counts.superseded}
    out += kept.dequeue(now, 99).rows
    assert Counter(came) == Counter(out) + Counter(row for _, batch in kept.passed for row in batch.rows)


@given(STEPS)
def test_queues_of_some_keys_each_come_to_one_of_all_keys(steps: list[Any]) -> None:
    """Everything is dequeued at a time, so that it is the same rows; the first update comes to both at once."""
    parts, whole, now = [queue("in-place"), queue("in-place")], queue("in-place"), 0
    first: list[Row] = [(0, "a", 0), (0, "c", 0)]
    for step in [first, *steps]:
        rows = MANY if step == "many" else step
        if isinstance(rows, list) and rows:
            whole.enqueue(batch_of(rows), now)
            for at, part in enumerate(parts):
                own = [row for row in rows if ((row[1] or "b") > "b") == bool(at)]
                if own:
                    part.enqueue(batch_of(own), now)
        elif step == "later":
            now += 5
        elif step in (1, "delivered"):
            for each in (whole, *parts):
                each.dequeue(now, 99) if step == 1 else each.delivered(now)
        summed = together(StalenessSum.from_plain(part.metered(now).to_plain()) for part in parts)
        for later in (now, now + 3):
            assert near(summed.staleness(later), whole.staleness(later))
    summed = together(part.metered(now) for part in parts).delivered(now + 2)
    whole.delivered(now + 2)
    assert near(summed.staleness(now + 4), whole.staleness(now + 4))


def near(one: Staleness, other: Staleness) -> bool:
    return bool(np.allclose(list(vars(one).values()), list(vars(other).values()), rtol=1e-12, atol=0))


def test_nothing_has_come() -> None:
    assert together([]).staleness(5) == Staleness()
    assert queue("fifo").metered(3).staleness(7) == Staleness()


@pytest.mark.parametrize("policy", sorted(ORDERS))
def test_a_row_that_stands_for_many_and_is_older_counts_for_all_of_them(policy: str) -> None:
    made = queue(policy)
    made.enqueue(batch_of([(5, "a", 1)]), 0)
    made.enqueue_newest(batch_of([(4, "a", 2), (6, "b", 3)]), np.array([3, 2]), 1)
    assert (made.counts.enqueued, made.counts.older, made.counts.superseded, len(made)) == (6, 3, 1, 2)


@pytest.mark.parametrize("policy", sorted(ORDERS))
def test_of_keys_that_always_come_together_none_is_served_behind_the_others_for_good(policy: str) -> None:
    """All keys come with every batch and in one order, and of each batch three are taken."""
    made, served = queue(policy), Counter[object]()
    for now in range(1, 41):
        rows = batch_of([(now, key, now) for key in "abcdefgh"])
        made.enqueue_newest(rows, np.ones(8, np.int64), now, is_at_once=True)
        served.update(row[1] for row in made.dequeue(now, 3).rows)
        made.delivered(now)
    assert min(served[key] for key in "abcdefgh") >= 10
    assert max(served.values()) <= 20
