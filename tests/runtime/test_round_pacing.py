"""How many rows go on with a micro-batch: shares add up, nobody is left out, and the bound that is told is kept."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.round_pacing import FIRST, SURE, RoundPacing, shares

LINES = st.lists(st.integers(0, 50), min_size=1, max_size=9)


@given(st.integers(1, 60), LINES, st.integers(0, 99))
def test_shares_add_up_and_nobody_who_can_be_served_is_left_out(most: int, lines: list[int], turn: int) -> None:
    given_ = shares(most, lines, turn)
    assert sum(given_) == most
    assert min(given_) >= (1 if most >= len(lines) else 0)


@given(st.integers(1, 8), LINES)
def test_places_that_cannot_all_be_served_are_served_in_turn(most: int, lines: list[int]) -> None:
    served = [0] * len(lines)
    for turn in range(2 * len(lines)):
        served = [a + b for a, b in zip(served, shares(most, lines, turn), strict=True)]
    assert all(count for count, line in zip(served, lines, strict=True) if line)


@given(st.integers(20, 60), LINES)
def test_who_has_a_longer_line_has_no_smaller_share(most: int, lines: list[int]) -> None:
    given_ = shares(most, lines, 0)
    assert all(given_[a] >= given_[b] for a, one in enumerate(lines) for b, two in enumerate(lines) if one > two)


def measured(keys: int, cost: int, overhead: int, budget: int | None = None, **asked: int) -> RoundPacing:
    pacing = RoundPacing(budget=budget, **asked)
    for _ in range(SURE):
        rows = min(pacing.most, keys)
        pacing.measured(rows, rows * cost, keys, overhead + rows * cost)
    return pacing


@pytest.mark.parametrize("keys", [1, 10, 300, 5000])
@pytest.mark.parametrize("cost", [50, 5000])
@pytest.mark.parametrize("overhead", [100_000, 2_000_000])
def test_no_other_number_of_rows_gives_a_smaller_bound(keys: int, cost: int, overhead: int) -> None:
    """But for bursts: as many rows as double a micro-batch are handed on, which costs at most so much more."""
    pacing = measured(keys, cost, overhead)
    best = min((keys / rows + 2) * (overhead + rows * cost) for rows in range(1, keys + 1))
    assert pacing.least_bound is not None
    assert best <= pacing.least_bound + 1
    if pacing.most > overhead / cost + 1:
        assert pacing.least_bound <= 1.01 * best
    assert pacing.least_bound <= 2 * best


@pytest.mark.parametrize("budget", [None, 7, 400])
@pytest.mark.parametrize("keys", [3, 250])
def test_what_is_told_is_kept_where_keys_update_all_the_time(budget: int | None, keys: int) -> None:
    """Micro-batches of a line of keys served in place, each of which updates at every instant."""
    cost, overhead = 4000, 600_000
    pacing = measured(keys, cost, overhead, budget)
    line, stale, now, worst = deque(range(keys)), dict.fromkeys(range(keys), 0), 0, 0
    for _ in range(60):
        served = [line.popleft() for _ in range(min(pacing.most, len(line)))]
        began, now = now, now + overhead + cost * len(served)
        worst = max(worst, *(now - stale[key] for key in served))
        stale |= dict.fromkeys(served, began)  # what came since is not in it
        line += served
    assert pacing.least_bound is not None
    rounding = (overhead + cost * min(pacing.most, keys)) if keys % pacing.most and keys > pacing.most else 0
    assert 0.5 * pacing.least_bound <= worst <= pacing.least_bound + rounding


def test_a_bound_that_cannot_be_met_is_out_of_reach_after_some_micro_batches() -> None:
    pacing = RoundPacing(max_staleness=1_000_000)
    assert (pacing.most, pacing.is_met, pacing.least_bound) == (FIRST, True, None)
    for at in range(SURE):
        assert not pacing.is_out_of_reach
        pacing.measured(100, 500_000, 1000, None if at == 0 else 900_000)
    pacing.measured(100, 500_000, 1000, 900_000)
    assert pacing.is_out_of_reach
    assert pacing.least_bound is not None
    assert pacing.least_bound > 1000 * 5000  # what all who wait cost
    later = RoundPacing.after(pacing.to_plain(), pacing.least_bound, None)
    assert later.is_met
    assert later.most == pacing.most
