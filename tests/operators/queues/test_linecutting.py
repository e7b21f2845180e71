"""LINECUTTING: who cuts in, who does not, and that nobody waits for ever."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.operators.queues.key_orders import InPlace
from penstock.operators.queues.linecutting import Linecutting
from penstock.operators.queues.update_queue import UpdateQueue
from penstock.papers.upstream.simulation import KEY, SCHEMA, poisson, simulate

FAST, SLOW = [0, 1, 2, 3], 4
COST = 10


def warm(order: Linecutting) -> int:
    """Fast keys update every 20, a slow one every 1000, and each is served at once at a cost of 10; the time then."""
    now = 0
    for now in range(20, 5001, 20):
        for key in FAST:
            order.arrive_one(key, now)
        if now % 1000 == 0:
            order.arrive_one(SLOW, now)
        while len(order):
            order.take(1, now)
            order.served(1, COST)
    return now


@pytest.mark.parametrize(("guarded", "expected"), [(True, [SLOW, *FAST]), (False, [0, 1, SLOW, 2, 3])])
@pytest.mark.parametrize("together", [False, True])
def test_a_slow_key_goes_before_fast_ones(guarded: bool, expected: list[int], together: bool) -> None:
    """Unguarded, fast keys cut in too while few wait: they come every 20, and two can be served in that time."""
    order = Linecutting(guarded=guarded)
    now = warm(order) + 20
    if together:
        order.arrive(np.array([*FAST, SLOW]), now)
    else:
        for key in [*FAST, SLOW]:
            order.arrive_one(key, now)
    assert len(order) == 5
    assert order.waits(SLOW)
    assert order.take(5, now).tolist() == expected


def test_a_key_is_slow_only_while_all_who_wait_can_be_served_before_it_comes_again() -> None:
    """The test of the paper, u_k < 1 / (c n): a key that comes every 1000 cuts before fewer than 100 who wait."""
    for waiting, cuts in ((99, True), (101, False)):
        order = Linecutting(guarded=False)
        now = warm(order) + 1000
        order.arrive(np.arange(100, 100 + waiting), now)
        order.arrive_one(SLOW, now)
        assert (order.take(1, now).tolist() == [SLOW]) is cuts


@pytest.mark.parametrize("together", [False, True])
def test_the_guard_serves_who_has_waited_long_before_who_cuts_in(together: bool) -> None:
    """Who just came every 1000 is worth 10^2 / 2 + 1000 * 10, as much as a fast key of an age of about 110."""
    for waited, first in ((90, SLOW), (180, FAST[0])):
        order = Linecutting()
        now = warm(order) + 1000
        for key, at in ((FAST[0], now - waited), (SLOW, now)):
            if together:
                order.arrive(np.array([key]), at)
            else:
                order.arrive_one(key, at)
        assert order.take(1, now).tolist() == [first]
    unguarded = Linecutting(guarded=False)
    now = warm(unguarded) + 1000
    for key in FAST:
        unguarded.arrive_one(key, now - 900)
    unguarded.arrive_one(SLOW, now)
    assert unguarded.take(5, now).tolist() == [0, 1, 2, SLOW, 3], "though the last has waited for 900"


def test_nobody_cuts_in_before_cost_and_rates_are_known() -> None:
    order = Linecutting()
    for key in (3, 1, 2):
        order.arrive_one(key, 10)
    order.arrive(np.array([1, 5, 5, 4]), 20)
    assert order.waiting().tolist() == [3, 1, 2, 5, 4]
    assert order.take(9, 30).tolist() == [3, 1, 2, 5, 4]


@pytest.mark.parametrize(("slow", "rate"), [(0, 1), (6, 10), (8, 100)])
def test_it_is_never_much_worse_than_in_place_and_starves_nobody(slow: int, rate: int) -> None:
    """Ten keys at load 5: all alike, where the unguarded algorithm starves fast ones, and where it gains most."""
    arrivals = poisson(5, np.array([1.0] * slow + [float(rate)] * (10 - slow)), 1200)
    in_place, guarded, unguarded = (
        simulate(UpdateQueue(SCHEMA, KEY, order), arrivals)
        for order in (InPlace(), Linecutting(), Linecutting(guarded=False))
    )
    assert guarded.queue <= 1.05 * in_place.queue
    assert guarded.longest <= 3 * in_place.longest
    if rate == 100:
        assert in_place.queue / guarded.queue > 1.1
    if rate == 10:
        assert unguarded.queue > 1.05 * in_place.queue
