"""Every queue, over random lives: order, last values, staleness as the oracle has it, accounts, state at any moment."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.queues.append_queue import AppendQueue
from penstock.operators.queues.choosing import MEMORIES, ORDERS, queue_for
from penstock.operators.queues.linecutting import Linecutting
from penstock.operators.queues.naive_memory import NaiveMemory
from penstock.operators.queues.page_pool import SLOT_BITS
from penstock.operators.queues.paging import OnDemandPaging, PagedMemory
from penstock.operators.queues.queue import Queue
from penstock.operators.queues.shedding import RandomShedding
from penstock.operators.queues.update_queue import UpdateQueue
from tests.operators.queues.scripts import KEY, SCHEMA, Life, few, scripts
from tests.profiles import examples

UPDATES = [(policy, memory) for policy in ORDERS for memory in MEMORIES]
FEWS = st.sampled_from([0, 16])


@pytest.mark.parametrize(("policy", "memory"), UPDATES)
@examples(12)
@given(script=scripts, most=FEWS)
def test_an_update_queue_keeps_the_newest_of_every_key(policy: str, memory: str, script: Any, most: int) -> None:
    with few(most):
        life = Life(lambda: queue_for(SCHEMA, KEY, policy, memory))
        life.play(script)
        life.check_staleness()
        _check_pages(life.queue)
        _check_averages(life)
        life.finish()
        life.check_staleness()
    _check_order_and_last_values(life)
    counts = life.queue.counts
    assert counts.enqueued == len(life.rows) == counts.dequeued + counts.superseded + counts.older
    older = len(life.rows) - sum(len(life.log.updates(key)) for key in life.log.keys)
    assert counts.older == older
    assert counts.delivered == counts.dequeued


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("keep", [None, 0.5])
@examples(12)
@given(script=scripts, most=FEWS)
def test_an_append_queue_keeps_everything_that_is_not_shed(
    memory: str, keep: float | None, script: Any, most: int
) -> None:
    def made() -> Queue:
        shedding = None if keep is None else RandomShedding(keep, seed=3)
        return AppendQueue(SCHEMA, KEY, MEMORIES[memory](None), shedding)

    with few(most):
        life = Life(made)
        life.play(script)
        life.check_staleness()
        _check_pages(life.queue)
        life.finish()
        life.check_staleness()
    out = [n for part in life.taken for n in part]
    assert out == sorted(out)
    counts = life.queue.counts
    assert counts.enqueued == len(life.rows) == counts.dequeued + counts.shed
    assert len(out) == counts.dequeued == counts.delivered
    if keep is None:
        assert out == list(range(len(life.rows)))


@pytest.mark.parametrize("policy", ["fifo", "in-place"])
@examples(12)
@given(script=scripts, most=FEWS)
def test_keys_are_served_as_in_a_plain_list(policy: str, script: Any, most: int) -> None:
    """Beside the queue, a list of numbers of rows in the order in which they must come out."""
    line: list[int] = []
    newest: dict[object, int] = {}
    with few(most):
        life = Life(lambda: queue_for(SCHEMA, KEY, policy))
        for step in script:
            seen = len(life.rows)
            life.play([step])
            for number in range(seen, len(life.rows)):
                time, symbol = life.rows[number][0], life.rows[number][1]
                if time < newest.get(symbol, time):
                    continue
                newest[symbol] = time
                before = [at for at, n in enumerate(line) if life.rows[n][1] == symbol]
                if not before:
                    line.append(number)
                elif policy == "in-place":
                    line[before[0]] = number
                else:
                    del line[before[0]]
                    line.append(number)
            if step[0] == "dequeue":
                assert life.taken[-1] == line[: step[1]]
                del line[: step[1]]
            assert len(life.queue) == len(line)
            waiting = {life.rows[n][1]: n for n in line}
            for symbol in newest:
                found = life.queue.read((symbol,))
                assert found == (life.rows[waiting[symbol]] if symbol in waiting else None)


def _check_order_and_last_values(life: Life) -> None:
    """Per key, values come out in the order of their times, each as new as can be; the last value comes last."""
    out = [n for part in life.taken for n in part]
    for key in life.log.keys:
        mine = [n for n in out if life.rows[n][1] == key]
        assert mine == sorted(mine)
        updates = life.log.updates(key)
        assert set(mine) <= set(updates)
        assert mine[-1] == updates[-1]
    assert all(
        len(set(part_keys)) == len(part_keys) for part_keys in ([life.rows[n][1] for n in p] for p in life.taken)
    )


def _check_pages(queue: Queue) -> None:
    """Accounts against the pages themselves."""
    assert isinstance(queue, UpdateQueue | AppendQueue)
    memory = queue.tuples
    assert isinstance(memory, PagedMemory)
    pages = [page for page in memory._pages if page is not None]
    usage = queue.memory(0)
    assert usage.pages == len(pages) == memory.pool.pages
    assert usage.bytes == sum(page.bytes for page in pages) == memory.pool.bytes
    assert usage.locations == sum(page.slots - len(page.free) for page in pages)
    assert all(len(set(page.free)) == len(page.free) for page in pages)
    assert usage.used == len(queue)
    with_room = {n for found in memory._with_room.values() for n in found}
    assert with_room == {page.number for page in pages if page.free}
    if isinstance(memory, OnDemandPaging):
        assert usage.locations == usage.used
        assert not any(page.is_empty for page in pages)
    if isinstance(queue, UpdateQueue):
        held = queue._locations.array[queue._locations.array >= 0]
        assert len(set(held.tolist())) == len(held) == len(queue)
        assert usage.used_bytes == sum(memory._page(int(at)).size for at in held)
        assert Counter((held >> SLOT_BITS).tolist()).total() == len(queue)


def _check_averages(life: Life) -> None:
    """Usage over time, summed up step by step."""
    began = [at for at, (_, locations, _) in enumerate(life.usage) if locations]
    if not began:
        return
    now = life.now + 3
    start = life.usage[began[0]][0]
    stretches = zip(life.usage, [*life.usage[1:], (now, 0, 0)], strict=True)
    areas = [0, 0]
    for (at, locations, used), (until, _, _) in stretches:
        low = max(at, start)
        areas[0] += locations * (until - low) if until > low else 0
        areas[1] += used * (until - low) if until > low else 0
    told = life.queue.memory(now)
    since = life.queue.tuples._since  # type: ignore[attr-defined]
    assert told.average_locations * (now - since) == pytest.approx(areas[0])
    assert told.average_used * (now - since) == pytest.approx(areas[1])


def test_memory_of_the_names_that_are_told() -> None:
    assert {name: type(made(None)) for name, made in MEMORIES.items()} == {
        "on-demand": OnDemandPaging,
        "naive": NaiveMemory,
    }
    assert type(ORDERS["linecutting"]()) is Linecutting
