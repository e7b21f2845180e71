"""The oracle of staleness, by hand."""

from __future__ import annotations

from fractions import Fraction

from penstock.reference.staleness import (
    StalenessLog,
    average_over_keys,
    staleness_at,
    staleness_integral,
    unapplied_integral,
)


def test_staleness_is_the_age_of_the_oldest_pending_update() -> None:
    """One update every 2 units at a cost of 3, all of them processed (the append queue of Fig. 2).

    arrives    a   b   c   d   e
    time       0 1 2 3 4 5 6 7 8 9
    delivered        a'    b'    c'
    staleness  0 1 2 1 2 3 2 3 4 3
    """
    log = StalenessLog()
    for at in range(0, 10, 2):
        log.arrive("x", at, at)
    log.deliveries = [(0, 3), (1, 6), (2, 9)]
    assert [staleness_at(log, "x", log.deliveries, t) for t in range(10)] == [0, 1, 2, 1, 2, 3, 2, 3, 4, 3]
    assert [len(log.pending("x", log.deliveries, t)) for t in range(10)] == [1, 1, 2, 1, 2, 2, 2, 2, 3, 2]
    # Triangles: 0 to 3, then 1 to 4, then 2 to 5.
    assert staleness_integral(log, "x", log.deliveries, 0, 9) == Fraction(9 + 15 + 21, 2)
    assert unapplied_integral(log, "x", log.deliveries, 0, 9) == 1 + 1 + 2 + 1 + 2 + 2 + 2 + 2 + 3


def test_a_shed_update_keeps_its_key_stale_until_a_newer_one_is_answered() -> None:
    log = StalenessLog()
    shed, kept = log.arrive("x", 1, 10), log.arrive("x", 2, 20)
    log.deliveries = [(kept, 25)]
    assert [staleness_at(log, "x", log.deliveries, t) for t in (9, 10, 24, 25)] == [0, 0, 14, 0]
    assert shed not in [n for n, _ in log.deliveries]


def test_rows_older_than_what_came_before_are_no_updates() -> None:
    log = StalenessLog()
    log.arrive("x", 5, 0)
    log.arrive("x", 4, 1)
    log.arrive("x", 5, 2)
    log.arrive("y", 4, 3)
    assert log.updates("x") == [0, 2]
    log.deliveries = [(0, 3), (1, 4)]
    assert staleness_at(log, "x", log.deliveries, 10) == 8, "the later of equal times is newer, and pending"
    log.deliveries.append((2, 11))
    assert staleness_at(log, "x", log.deliveries, 12) == 0


def test_averages_are_over_keys_and_time() -> None:
    assert average_over_keys([Fraction(10), Fraction(20)], 0, 5) == 3
    assert average_over_keys([], 0, 5) == 0
    assert average_over_keys([Fraction(1)], 5, 5) == 0
