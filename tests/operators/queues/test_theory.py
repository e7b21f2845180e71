"""What the paper proves: by how much the two measures differ, and that IN-PLACE is best where keys update alike."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.queues.choosing import MEMORIES, ORDERS, queue_for
from penstock.papers.upstream.simulation import COST, KEY, SCHEMA, Arrivals, simulate, steady
from tests.profiles import examples


@pytest.mark.parametrize("policy", ORDERS)
@pytest.mark.parametrize("memory", MEMORIES)
@examples(20)
@given(
    gaps=st.lists(st.integers(0, 3 * COST), min_size=1, max_size=25),
    keys=st.lists(st.integers(0, 3), min_size=25, max_size=25),
)
def test_the_measures_differ_by_the_wait_and_half_a_cost_at_most(
    policy: str, memory: str, gaps: list[int], keys: list[int]
) -> None:
    """Per row served, in units of cost: wait <= difference <= wait + 1/2 (section 5.1)."""
    arrivals = Arrivals(np.cumsum(gaps), np.array(keys[: len(gaps)]))
    outcome = simulate(queue_for(SCHEMA, KEY, policy, memory), arrivals, drains=True)
    assert outcome.served > 0
    assert outcome.wait - 1e-9 <= outcome.difference <= outcome.wait + 0.5 + 1e-9


def test_ten_keys_wait_ten_times_as_long_as_one() -> None:
    one, ten = (simulate(queue_for(SCHEMA, KEY), steady(5, keys, 600), drains=True) for keys in (1, 10))
    assert ten.queue / one.queue == pytest.approx(10, rel=0.15)
    assert ten.application - ten.queue == pytest.approx(one.application - one.queue, rel=0.2)


@pytest.mark.parametrize(("keys", "period", "cost"), [(2, 4, 3), (3, 1, 1), (3, 3, 2), (3, 5, 2), (4, 2, 1)])
def test_no_schedule_beats_in_place_where_keys_update_together(keys: int, period: int, cost: int) -> None:
    """All keys update every `period`; all schedules that never idle are tried, which know what will come.

    The queue staleness of a schedule is summed until the last service begins; all serve at the same times.
    """
    came = sorted((at * period, key) for at in range(24) for key in range(keys))
    best, in_place = _best_and_in_place(came, services=7, cost=cost)
    assert in_place == best


def _played(came: list[tuple[int, int]], services: int, cost: int) -> tuple[int, ...]:
    """Which keys an IN-PLACE queue serves."""
    from penstock.model.batch import Batch

    queue = queue_for(SCHEMA, KEY, "in-place")
    now, seen, served = 0, 0, []
    while len(served) < services:
        while seen < len(came) and came[seen][0] <= now:
            queue.enqueue(Batch(SCHEMA, [came[seen]]), came[seen][0])
            seen += 1
        if not len(queue):
            now = came[seen][0]
            continue
        served.append(queue.dequeue(now, 1).rows[0][1])
        now += cost
        queue.delivered(now)
    return tuple(served)  # type: ignore[arg-type]


@pytest.mark.parametrize(("keys", "slots"), [(2, 6), (3, 5)])
def test_no_policy_beats_in_place_where_keys_update_at_random_alike(keys: int, slots: int) -> None:
    """In every slot each key updates with probability 1/2, then one that waits is served: all policies, by their ages.

    An age counts the slots since the first update that was not served; -1 is fresh. Unlike a schedule, a policy does
    not know what will come, which is what the paper's proof is about.
    """
    chance = Fraction(1, 2)

    @cache
    def expected(ages: tuple[int, ...], left: int, *, oldest_first: bool) -> Fraction:
        if not left:
            return Fraction(0)
        total = Fraction(0)
        for news in product((False, True), repeat=keys):
            now = tuple(0 if age < 0 and new else age for age, new in zip(ages, news, strict=True))
            waiting = [key for key in range(keys) if now[key] >= 0]
            if oldest_first and waiting:
                waiting = [max(waiting, key=lambda key: now[key])]
            results = []
            for key in waiting or [-1]:
                after = tuple(-1 if k == key or age < 0 else age + 1 for k, age in enumerate(now))
                cost = sum(Fraction(2 * age - 1, 2) for age in after if age >= 0)
                results.append(cost + expected(after, left - 1, oldest_first=oldest_first))
            total += min(results) * chance**keys
        return total

    fresh = (-1,) * keys
    assert expected(fresh, slots, oldest_first=True) == expected(fresh, slots, oldest_first=False)


@pytest.mark.parametrize(
    ("keys", "load", "services"), [(2, 1, 7), (2, 2, 5), (2, 3, 4), (3, 1, 6), (3, 2, 4), (4, 1, 5)]
)
def test_no_policy_beats_in_place_where_every_update_is_of_a_key_by_lot(keys: int, load: int, services: int) -> None:
    """The model of section 5.2: updates come one after the other, each of a key with probability 1/n; all policies.

    In the time that a service takes `load` updates come. A policy may choose by all that has come, which for what is
    still to come is no more than the ages: how many updates ago the first came that was not served; -1 is fresh. Ages
    that are the same in another order are worth the same, as keys are alike.
    """

    @cache
    def expected(ages: tuple[int, ...], left: int, *, oldest_first: bool) -> Fraction:
        if not left:
            return Fraction(0)
        total = Fraction(0)
        for updates in product(range(keys), repeat=load):
            now, area = list(ages), Fraction(0)
            for key in updates:
                now[key] = max(now[key], 0)
                area += sum(Fraction(2 * age + 1, 2) for age in now if age >= 0)
                now = [age + 1 if age >= 0 else age for age in now]
            waiting = [key for key in range(keys) if now[key] >= 0]
            if oldest_first:
                waiting = [max(waiting, key=lambda key: now[key])]
            after = [tuple(sorted(-1 if k == key else age for k, age in enumerate(now))) for key in waiting]
            total += area + min(expected(each, left - 1, oldest_first=oldest_first) for each in after)
        return total / keys**load

    fresh = (-1,) * keys
    assert expected(fresh, services, oldest_first=True) == expected(fresh, services, oldest_first=False)


def test_a_schedule_that_knows_what_will_come_may_beat_in_place() -> None:
    """Why the proof is of policies: keys that update in turn, and whoever serves knows which one is next.

    #  time   0   1   2   3   4 ...    a row takes 2
    #  keys   a   b   c   a   b        served as in place: a b c, as each is the oldest; another order is fresher
    """
    came = [(at, at % 3) for at in range(24)]
    best, in_place = _best_and_in_place(came, services=8, cost=2)
    assert best < in_place


def _best_and_in_place(came: list[tuple[int, int]], services: int, cost: int) -> tuple[int, int]:
    """Twice the least queue staleness of any schedule that never idles, and that of IN-PLACE."""
    found: dict[tuple[int, ...], int] = {}

    def go(now: int, since: dict[int, int], seen: int, served: tuple[int, ...], area: int) -> None:
        since = dict(since)
        while seen < len(came) and came[seen][0] <= now:
            since.setdefault(came[seen][1], came[seen][0])
            seen += 1
        if len(served) == services:
            found[served] = area + sum((now - at) ** 2 for at in since.values())
            return
        if not since:
            go(came[seen][0], since, seen, served, area)
            return
        for key in since:
            left = {k: at for k, at in since.items() if k != key}
            go(now + cost, left, seen, (*served, key), area + (now - since[key]) ** 2)

    go(0, {}, 0, (), 0)
    return min(found.values()), found[_played(came, services, cost)]
