"""What is timed for latency is equal work."""

from __future__ import annotations

from penstock.bench.latency import GROUPS, bare_loop, punctuation_to_result, push_all, tuples


def test_tuples_pushed_one_by_one_are_counted_as_by_a_bare_loop() -> None:
    given = tuples(10 * GROUPS)
    counts = push_all(given)[1]
    assert counts == bare_loop(given)[1]
    assert sum(counts.values()) == sum(v % 2 == 0 for _, _, v in given)


def test_results_follow_their_punctuation() -> None:
    assert len(list(punctuation_to_result(3))) == 3  # it compares the rows itself
