"""What the paper prints of queues of windows: Figs 10 and 12, Table 1, the bounds of 6.1.2 and 7.2."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.elements import groupwise, joint, linear
from penstock.model.schema import Schema, schema_of
from penstock.operators.queues.extents import extents_of
from penstock.operators.queues.key_states import EDGES, State
from penstock.operators.queues.lazy_eager import EagerWindows, LazyWindows
from penstock.operators.queues.marks import DISALLOW, INSIDE, OPEN
from penstock.operators.queues.window_cells import Promise
from penstock.operators.queues.window_choosing import window_queue_for
from penstock.operators.queues.window_cost import greatest_cost, least_cost, overlap, plan_cost
from penstock.operators.windows.sliding import Sliding
from penstock.papers.upstream.window_service import Service

SCHEMA = schema_of([("ts", "bigint"), ("k", "string")], "ts")
THREE_BY_ONE = extents_of([Sliding(3, 1)])


def _queue(mode: Any, extents: Any = THREE_BY_ONE, **named: Any) -> Any:
    return mode(SCHEMA, ("k",), extents, **{"promise": Promise.STRICTLY, "complete_from": 1, **named})


def _trace(queue: Any, until: int) -> tuple[Service, list[tuple[int, int, int]]]:
    """One row per tick, two ticks each; queue staleness, application staleness and windows behind, at every tick."""
    service, seen = Service(queue, 2), []
    for t in range(1, until + 1):
        service.run([(t, (t, "x"))], until=t)
        service.settle()
        found = queue.staleness(t)
        seen.append((int(found.queue), int(found.application), int(found.unapplied)))
    return service, seen


def _first_row(queue: Any, window: int) -> int:
    start: int = queue.extents.start(window)
    return start


# Figure 12: w = 3, d = 1, C_t = 2
#
# tick      1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
# windows   └──1──┘                 window 1 is the rows 1, 2, 3
#              └──2──┘
# LAZY               1, 2, 3 from 3 to 9        7, 8, 9 from 9 to 15
# EAGER     1, 2, 3 from 1 to 7     7, 8, 9 from 7 to 13


def test_figure_12a_lazy_commits_to_the_last_whole_window() -> None:
    queue = _queue(LazyWindows)
    service, seen = _trace(queue, 15)
    assert [(_first_row(queue, c.window), c.at) for c in service.commits] == [(1, 3), (7, 9), (13, 15)]
    assert [([row[0] for row in r.rows], r.at) for r in service.results] == [([1, 2, 3], 9), ([7, 8, 9], 15)]
    # The key waits from 4, when window 2 closes, to 9; the application is behind from 3 on, then since 4.
    assert [q for q, _, _ in seen] == [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 0]
    assert [a for _, a, _ in seen] == [0, 0, 0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 5]


def test_figure_12b_eager_commits_to_the_last_started_window() -> None:
    queue = _queue(EagerWindows)
    service, seen = _trace(queue, 15)
    assert [(_first_row(queue, c.window), c.at) for c in service.commits] == [(1, 1), (7, 7), (13, 13)]
    assert [([row[0] for row in r.rows], r.at) for r in service.results] == [([1, 2, 3], 7), ([7, 8, 9], 13)]
    # The key waits from 2, when window 2 starts; window 2, which closes at 4, makes the result of 7 stale.
    assert [q for q, _, _ in seen] == [0, 0, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 0, 0, 1]
    assert [a for _, a, _ in seen] == [0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 3, 4, 5]


# Table 1


def test_table_1_marks_open_one_window_and_disallow_those_that_start_inside_it() -> None:
    queue = _queue(LazyWindows, promise=Promise.NOTHING)
    queue.enqueue(Batch(SCHEMA, [(1, "x"), (2, "x"), (2, "x"), (3, "x"), (4, "x")]), 1)
    queue.punctuate(linear("ts", 4), 1)
    given = queue.dequeue(1, 9)
    assert [row[0] for row in given.rows] == [1, 2, 2, 3]
    assert list(given.marks) == [OPEN, DISALLOW, INSIDE, DISALLOW]  # the second row at 2 starts nothing
    assert given.win_spec(queue.extents) == [4, 0, -1, 0]
    assert [(c.place, c.window) for c in given.closed] == [(4, given.windows[0])]


def test_table_1_a_window_ends_without_a_row_where_a_promise_says_so() -> None:
    queue = _queue(EagerWindows, promise=Promise.NOTHING)
    queue.enqueue(Batch(SCHEMA, [(1, "x")]), 1)
    assert list(queue.dequeue(1, 9).marks) == [OPEN]
    assert (queue.ready(1), len(queue)) == (0, 0)
    queue.punctuate(linear("ts", 4), 5)
    assert queue.ready(5) == 1
    ended = queue.dequeue(5, 0)
    assert (len(ended), [c.place for c in ended.closed]) == (0, [0])


# Figure 10: every edge


def _watched(mode: Any, **named: Any) -> tuple[Any, list[tuple[State, State]]]:
    queue, taken = _queue(mode, **named), list[tuple[State, State]]()
    queue.states.watch = lambda key, before, after: taken.append((before, after))
    return queue, taken


def test_figure_10_every_edge_is_taken_where_the_paper_says() -> None:
    queue, taken = _watched(EagerWindows, promise=Promise.NOTHING)
    put = lambda t: queue.enqueue(Batch(SCHEMA, [(t, "x")]), t)  # noqa: E731
    put(1)
    assert taken == [(State.ENQ, State.WAIT)]
    put(2)
    assert taken[1:] == [(State.WAIT, State.WAIT)]  # window 2 takes the place of window 1
    put(2)
    assert taken[2:] == []  # starts nothing
    queue.dequeue(2, 1)
    assert taken[2:] == [(State.WAIT, State.READY), (State.READY, State.READY)]
    queue.dequeue(2, 1)
    assert taken[4:] == [(State.READY, State.IDLE)]
    put(3)
    assert taken[5:] == [(State.ENQ, State.WAIT), (State.IDLE, State.READY)]  # waits and is served at a time
    queue.dequeue(3, 1)
    queue.punctuate(linear("ts", 5), 4)
    assert taken[7:] == [(State.READY, State.IDLE)]
    queue.dequeue(4, 0)
    assert taken[8:] == [(State.IDLE, State.DONE)]
    queue.punctuate(linear("ts", 9), 5)
    queue.dequeue(5, 1)
    assert taken[9:] == [(State.WAIT, State.READY), (State.READY, State.DONE)]
    assert set(taken) == EDGES


def test_lazy_keys_never_idle() -> None:
    queue, taken = _watched(LazyWindows)
    _trace(queue, 40)
    assert State.IDLE not in {state for edge in taken for state in edge}


def test_a_key_keeps_its_turn_while_its_window_is_not_done() -> None:
    # a commits to its window 1 and idles; it is first in line again, then come b and c.
    queue = _queue(EagerWindows, promise=Promise.NOTHING)
    queue.enqueue(Batch(SCHEMA, [(1, "a")]), 1)
    queue.dequeue(1, 1)
    for t, key in ((2, "b"), (4, "a"), (4, "c")):
        queue.enqueue(Batch(SCHEMA, [(t, key)]), t)
    assert [row[1] for row in queue.dequeue(4, 9).rows] == ["b", "c"]
    queue.enqueue(Batch(SCHEMA, [(5, "d"), (5, "a")]), 5)
    queue.punctuate(linear("ts", 4), 5)
    assert list(queue.dequeue(5, 9).rows) == [(5, "a"), (5, "d")]


# 6.1.2 and 7.2


@given(st.integers(1, 30), st.integers(1, 30))
def test_the_cost_of_a_window_is_the_sum_that_the_paper_means(range_: int, slide: int) -> None:
    window = Sliding(range_, slide)
    total = sum(range_ - i * slide for i in range(overlap(window)))
    assert greatest_cost(window, 5) == 5 * total
    assert least_cost(window, 5) == 5 * range_ <= 5 * total


def test_the_bound_of_the_paper_is_too_low() -> None:
    window = Sliding(3, 2)
    assert (greatest_cost(window), (overlap(window) + 1) * (3 - overlap(window) * 2 / 2)) == (4, 3)


def test_the_cost_of_a_plan_counts_every_level() -> None:
    # Ten-row windows every 5, and over them windows of 20 every 10: four inner windows of ten rows each, four results.
    cost = plan_cost(extents_of([Sliding(10, 5), Sliding(20, 10)]))
    assert (cost.updates, cost.slide) == (44, 10)
    assert (cost.load(), cost.load(keys=5)) == (Fraction(22, 5), 22)
    assert (cost.budget(440), cost.least_staleness(10)) == (10, 440)
    assert plan_cost(extents_of([Sliding(3, 1)])).load(2) == 6  # Fig. 12


dense = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(20, 70))


@given(dense)
def test_what_is_held_of_a_key_is_bounded(case: tuple[int, int, int, int]) -> None:
    range_, slide, cost, ticks = case
    bound = (-(-range_ // slide) + 1) * slide - 1
    for mode in (EagerWindows, LazyWindows):
        queue = _queue(mode, extents_of([Sliding(range_, slide)]), complete_from=None)
        service = Service(queue, cost)
        for t in range(ticks):
            service.run([(t, (t, "x"))], until=t)
            buffer = queue.buffer_of(("x",))
            times = [each.time for each in buffer.chain]
            assert len(times) == len(set(times)), "a row lies once, however many windows hold it"
            assert buffer.accumulated <= range_ + slide - 1 <= bound
            assert buffer.unread <= range_
            if mode is EagerWindows:
                assert len(buffer) <= bound
            else:
                assert len(buffer) <= bound + range_ - 1


def test_a_lazy_window_under_way_comes_on_top_of_what_accumulates() -> None:
    queue = _queue(LazyWindows, extents_of([Sliding(10, 1)]))
    service, most = Service(queue, 20), 0
    for t in range(1, 120):
        service.run([(t, (t, "x"))], until=t)
        most = max(most, len(queue.buffer_of(("x",))))
    assert most > 10 + 1 - 1


# Configuration


@pytest.mark.parametrize("mode", ["lazy", "eager", "append", "shed"])
@pytest.mark.parametrize("memory", ["on-demand", "naive"])
@pytest.mark.parametrize("policy", ["fifo", "in-place", "linecutting"])
def test_every_combination_is_a_matter_of_configuration(mode: str, memory: str, policy: str) -> None:
    queue = window_queue_for(SCHEMA, ["k"], THREE_BY_ONE, mode, policy, memory, keep=1.0)
    queue.enqueue(Batch(SCHEMA, [(1, "x"), (2, "y"), (3, "x")]), 1)
    queue.punctuate(linear("ts", 100), 2)
    service = Service(queue, 1, now=2)
    service.run([])
    ends = {(r.key[0], queue.extents.end(r.window)) for r in service.results}
    assert {("x", 6), ("y", 5)} <= ends


def test_what_is_no_queue_of_windows_is_refused() -> None:
    with pytest.raises(StreamError, match=r"no such window mode.*\n.*got:   late\n.*try:   one of lazy, eager"):
        window_queue_for(SCHEMA, ["k"], THREE_BY_ONE, "late")
    with pytest.raises(StreamError, match="needs a stream with a time"):
        window_queue_for(Schema(SCHEMA.fields), ["k"], THREE_BY_ONE)
    with pytest.raises(StreamError, match="Some windows are kept"):
        window_queue_for(SCHEMA, ["k"], THREE_BY_ONE, "shed", keep=0.0)


def test_rows_with_lives_are_refused() -> None:
    from penstock.model.lives import Lives

    batch = Batch(SCHEMA, [(1, "x")])
    lived = Batch(SCHEMA, [(1, "x")], lives=Lives.of_inserts(batch.times() + 5))
    with pytest.raises(StreamError, match="takes rows, not revisions"):
        _queue(LazyWindows).enqueue(lived, 1)


# Out of order


def _eager_of(range_: int, slide: int) -> Any:
    return _queue(EagerWindows, extents_of([Sliding(range_, slide)]), promise=Promise.NOTHING, complete_from=None)


def test_a_row_behind_what_was_read_of_its_window_is_read_next() -> None:
    # [0, 10) is committed to with the row at 5; 3 comes behind it, 12 starts [10, 20).
    queue = _eager_of(10, 10)
    queue.enqueue(Batch(SCHEMA, [(5, "x")]), 1)
    assert list(queue.dequeue(1, 9).rows) == [(5, "x")]
    queue.enqueue(Batch(SCHEMA, [(7, "x"), (3, "x"), (12, "x"), (5, "x")]), 2)
    assert [row[0] for row in queue.dequeue(2, 9).rows] == [3, 5, 7]
    queue.enqueue(Batch(SCHEMA, [(4, "x"), (11, "x")]), 3)
    queue.punctuate(linear("ts", 10), 3)
    given_ = queue.dequeue(3, 9)
    assert [row[0] for row in given_.rows] == [4, 11, 12]
    assert [c.place for c in given_.closed] == [1]
    assert (queue.counts.older, queue.counts.given, queue.counts.dequeued) == (0, 7, 7)


def test_a_row_behind_what_was_read_is_kept_for_the_window_that_waits_as_well() -> None:
    # [0, 10) is committed to and read up to 9; [5, 15) waits. 7 is of both, 3 of the first alone.
    queue = _eager_of(10, 5)
    queue.enqueue(Batch(SCHEMA, [(1, "x")]), 1)
    queue.dequeue(1, 1)
    queue.enqueue(Batch(SCHEMA, [(6, "x"), (9, "x")]), 2)
    assert [row[0] for row in queue.dequeue(2, 9).rows] == [6, 9]
    queue.enqueue(Batch(SCHEMA, [(7, "x"), (3, "x")]), 3)
    assert len(queue) == 2
    assert [row[0] for row in queue.dequeue(3, 9).rows] == [3, 7]
    queue.punctuate(linear("ts", 15), 4)
    given_ = queue.dequeue(4, 9)
    assert [row[0] for row in given_.rows] == [6, 7, 9]
    assert [(c.place, queue.extents.end(c.window)) for c in given_.closed] == [(0, 10), (3, 15)]
    assert (queue.counts.dequeued, queue.counts.given, queue.memory(5).used) == (5, 8, 0)


def test_promises_of_a_key_close_its_windows_alone() -> None:
    queue = _queue(LazyWindows, promise=Promise.NOTHING)
    queue.enqueue(Batch(SCHEMA, [(2, "x"), (2, "y")]), 1)
    queue.punctuate(groupwise("ts", 5, k="x"), 2)
    assert [row[1] for row in queue.dequeue(2, 9).rows] == ["x"]
    queue.punctuate(groupwise("ts", 5, other="y"), 3)  # says nothing of a whole key
    queue.punctuate(joint(ts=9, other=9), 3)
    assert queue.ready(3) == 0
    queue.enqueue(Batch(SCHEMA, [(4, "x")]), 4)
    assert queue.counts.older == 1  # late
    assert queue.read(("y",)) == (2, "y")
    assert queue.earliest() == 2


def test_a_row_out_of_order_may_open_the_window_that_closes_first() -> None:
    queue = _queue(LazyWindows, extents_of([Sliding(4, 4)]), promise=Promise.NOTHING, complete_from=None)
    queue.enqueue(Batch(SCHEMA, [(10, "x"), (2, "x")]), 1)
    queue.punctuate(linear("ts", 5), 2)
    assert list(queue.dequeue(2, 9).rows) == [(2, "x")]


def test_nothing_is_kept_for_windows_that_need_nothing() -> None:
    # Of the inner windows, which end at even times, [7, 8) holds none: after [4, 5) comes [10, 11), from 5 on.
    extents = extents_of([Sliding(5, 2), Sliding(1, 3, -1)])
    queue = _queue(LazyWindows, extents, promise=Promise.NOTHING, complete_from=None)
    queue.enqueue(Batch(SCHEMA, [(3, "x")]), 1)
    queue.punctuate(linear("ts", 4), 2)
    assert list(queue.dequeue(2, 9).rows) == [(3, "x")]
    assert queue.memory(3).used == 0
