"""The model of clusters: its units, where it grows and where it does not, and what it says limits."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.scale_model import (
    LENGTHS,
    MOST_BUCKETS,
    Cluster,
    Constants,
    Load,
    distinct,
    estimate,
    sent_by,
    shortest,
)
from penstock.bench.scale_tables import WORDS

NOTHING = Constants(**{f.name: 0.0 for f in fields(Constants)})
SOME = replace(NOTHING, fixed=0.5, task=0.01, bucket=0.1, read_row=1e-7, take_row=1e-7, take_entry=1e-7)
ONE = Cluster(1, 1, 1, 1)
LOADS = st.builds(
    Load, st.sampled_from([1e3, 1e6, 1e9]), st.sampled_from([1e4, 1e6, 1e7]), st.sampled_from([1.0, 30.0])
)
NAMES = [f.name for f in fields(Constants)]


def test_distinct_keys_are_those_of_random_rows() -> None:
    rng = np.random.default_rng(3)
    for rows, keys in [(1000, 10), (1000, 1000), (1000, 10**6)]:
        found = len(np.unique(rng.integers(0, keys, rows)))
        assert distinct(rows, keys) == pytest.approx(found, rel=0.05)


@pytest.mark.parametrize(
    ("constant", "part", "seconds"),
    [
        ("read_row", "reading and judging", 1000.0),
        ("task", "reading and judging", 1.0),
        ("bucket", "taking in", 1.0),
        ("fixed", "driver", 1.0),
        ("driver_bucket", "driver", 1.0),
        ("result_row", "results", distinct(6000, 1000)),
    ],
)
def test_a_constant_counts_what_it_is_of(constant: str, part: str, seconds: float) -> None:
    found = estimate(replace(NOTHING, **{constant: 1.0}), ONE, Load(keys=1000, rate=100))
    assert found.parts == {**dict.fromkeys(found.parts, 0.0), part: pytest.approx(seconds)}


def test_state_is_of_groups_in_panes_and_in_windows() -> None:
    load = Load(keys=100, rate=1e6)
    found = estimate(replace(NOTHING, pane_bytes=1.0, group_bytes=1000.0), ONE, load)
    assert found.state == pytest.approx(100 * 1000 + 100 * 7)  # six panes in the window, and one that fills
    assert found.written == pytest.approx(100 * 1000 + 100)


@pytest.mark.parametrize(("keys", "reduced"), [(10, True), (20_000, True), (40_000, False), (1e9, False)])
def test_rows_are_brought_down_where_a_sample_says_so(keys: float, reduced: bool) -> None:
    sent = sent_by(Load(keys, rate=10_000), ONE)
    assert sent.reduced is reduced
    assert sent.entries == pytest.approx(keys if reduced else 100_000, rel=0.01)


@pytest.mark.parametrize("constant", NAMES)
@given(load=LOADS, executors=st.sampled_from([1, 10, 1000]))
def test_what_costs_more_takes_no_less(constant: str, load: Load, executors: int) -> None:
    cluster = Cluster(executors)
    dearer = replace(SOME, **{constant: getattr(SOME, constant) + 1e-3})
    assert estimate(dearer, cluster, load).seconds >= estimate(SOME, cluster, load).seconds * (1 - 1e-9)


@given(load=LOADS, executors=st.sampled_from([1, 3, 10, 100]))
def test_more_rows_take_longer_and_more_executors_do_not_where_buckets_stay(load: Load, executors: int) -> None:
    cluster = Cluster(executors, buckets=400, tasks=400)
    took = estimate(SOME, cluster, load).seconds
    assert estimate(SOME, cluster, replace(load, rate=2 * load.rate)).seconds >= took * (1 - 1e-9)
    assert estimate(SOME, replace(cluster, executors=2 * executors), load).seconds <= took * (1 + 1e-9)


def test_executors_that_share_cores_are_no_quicker() -> None:
    #  tasks a b c d    on two cores: two at a time, or four at a time at half the speed
    load = Load(1000, 10_000)
    two, four = (Cluster(n, 1, buckets=4, tasks=4, hardware=2) for n in (2, 4))
    assert estimate(SOME, two, load).seconds == pytest.approx(estimate(SOME, four, load).seconds)
    alone = replace(four, hardware=None)
    assert estimate(SOME, alone, load).seconds < estimate(SOME, four, load).seconds


def test_packets_of_all_tasks_to_all_buckets_come_to_limit() -> None:
    constants = replace(SOME, fixed=0.01, bucket=0.0, carry_packet=1e-5, take_packet=1e-5, make_packet=1e-5)
    load = Load(1e9, 1e6)
    assert estimate(constants, Cluster(10), load).limit == "reading and judging"
    far = estimate(constants, Cluster(100_000, buckets=MOST_BUCKETS), load)
    assert far.limit == "taking in"


def test_the_shortest_micro_batch_keeps_up_and_none_may() -> None:
    load = Load(1000, 1e5)
    length = shortest(SOME, Cluster(10), load)
    assert length is not None
    assert estimate(SOME, Cluster(10), replace(load, length=length)).seconds <= length
    shorter = [each for each in LENGTHS if each < length]
    assert all(estimate(SOME, Cluster(10), replace(load, length=each)).seconds > each for each in shorter)
    assert shortest(replace(SOME, read_row=1.0), Cluster(10), load) is None


def test_buckets_follow_cores_as_far_as_they_may() -> None:
    assert Cluster(10).spread == 40
    assert Cluster(10, buckets=7).spread == 7
    assert Cluster(5000).spread == MOST_BUCKETS


def test_every_constant_has_words() -> None:
    assert list(WORDS) == NAMES
