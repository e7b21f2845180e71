"""Queues of windows beside the oracle, over every key order, window mode and memory manager."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.time import END_OF_TIME
from penstock.operators.queues.blocks import GIVEN
from penstock.operators.queues.key_orders import Fifo, InPlace
from penstock.operators.queues.key_states import EDGES
from penstock.operators.queues.lazy_eager import EagerWindows, LazyWindows
from penstock.operators.queues.linecutting import Linecutting
from penstock.operators.queues.naive_memory import NaiveMemory
from penstock.operators.queues.paging import OnDemandPaging
from penstock.operators.queues.window_cells import Promise
from penstock.reference import update_windows as oracle
from tests.operators.queues.window_lives import Life, blocks, held_rows, plans, scripts
from tests.profiles import examples

CROSS = list(product([LazyWindows, EagerWindows], [Fifo, InPlace, Linecutting], [OnDemandPaging, NaiveMemory]))


def _make(mode: Any, order: Any, memory: Any) -> Any:
    return lambda *args, **named: mode(*args, order(), memory(), **named)


@pytest.mark.parametrize(("mode", "order", "memory"), CROSS, ids=lambda part: part.__name__)
@given(plan=plans, script=scripts, cost=st.integers(1, 4), promise=st.sampled_from(Promise))
@examples(12)
def test_whole_windows_in_order_and_the_last_of_every_key(
    mode: Any, order: Any, memory: Any, plan: Any, script: Any, cost: int, promise: Promise
) -> None:
    life = Life(_make(mode, order, memory), plan, cost, promise)
    life.play(script, _check_accounts)
    _check_staleness(life, eager=mode is EagerWindows)
    life.end()
    _check_accounts(life)
    assert list(oracle.faults(life.log, life.levels)) == []
    _check_rows(life)
    _check_promises(life)
    _check_most_recent(life, eager=mode is EagerWindows)
    _check_staleness(life, eager=mode is EagerWindows)
    used = life.queue.memory(life.now)
    assert (used.used, len(life.queue), life.queue.ready(life.now)) == (0, 0, 0)


def _check_accounts(life: Life) -> None:
    """Every row is in one count, every block is one location, and on demand nothing else is set aside."""
    held = held_rows(life.queue)
    assert len(life.queue) == sum(not each.flags & GIVEN for each in held)
    used = life.queue.memory(life.now)
    assert used.used == blocks(life.queue)
    if isinstance(life.queue.tuples, OnDemandPaging):
        assert used.locations == used.used


def _check_rows(life: Life) -> None:
    """For each window exactly its rows were given."""
    for done in life.service.results:
        (key,) = done.key
        mine = [row for row in life.log.rows(key) if oracle.holds(life.levels, done.window, row.time)]
        assert sorted(row.value for row in mine) == sorted(row[2] for row in done.rows)


def _check_promises(life: Life) -> None:
    """What was promised of the ends of windows to come was true, and in the end it is that none comes."""
    ends = [life.plan[-1].end(done.window) for done in life.service.results]
    for closed, promised in life.promised:
        assert all(end >= promised for end in ends[closed:])
    assert life.promised[-1] == (len(ends), END_OF_TIME)


def _check_most_recent(life: Life, *, eager: bool) -> None:
    """What was committed to was the most recent window of its key."""
    for commit in life.log.commits:
        assert commit.wid == oracle.most_recent(life.log, life.levels, commit.key, commit.at, eager=eager)


def _check_staleness(life: Life, *, eager: bool) -> None:
    for key in (None, *life.log.keys):
        asked = None if key is None else (key,)
        found = life.queue.staleness(life.now, asked)
        said = [
            found.queue, found.application, found.unapplied,
            found.average_queue, found.average_application, found.average_unapplied,
        ]  # fmt: skip
        if life.log.keys:
            assert said == pytest.approx([float(v) for v in life.staleness(key, eager=eager)])


@pytest.mark.parametrize("mode", [LazyWindows, EagerWindows])
@given(plan=plans, script=scripts, cost=st.integers(1, 4))
@examples(20)
def test_keys_take_the_edges_of_the_graph_and_no_others(mode: Any, plan: Any, script: Any, cost: int) -> None:
    life = Life(mode, plan, cost)
    taken = []
    life.queue.states.watch = lambda key, before, after: taken.append((before, after))
    life.play([step for step in script if step[0] != "again"])
    life.end()
    assert set(taken) <= EDGES
