"""Trackers: row by row and batch by batch say the same, however a batch is put together from parts."""

from __future__ import annotations

from copy import deepcopy
from itertools import accumulate
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.estimated import estimated
from penstock.model.progress import PerSource, Progress, bounded, ordered, per_source, punctuated
from penstock.model.time import MIN_TICK, Domain
from penstock.model.timer import timer
from penstock.operators.progress import running, sources, sources_by_blocks, trackers
from penstock.operators.progress.marks import coded
from penstock.operators.progress.running import running_greatest
from penstock.operators.progress.sources import SourcesTracker
from penstock.operators.progress.sources_by_blocks import bounds_by_blocks
from penstock.operators.progress.trackers import DelayTracker, PunctuationTracker, Tracker, tracker_for

PROGRESS = [
    ordered(),
    bounded(0),
    bounded(7),
    bounded(rows=0),
    bounded(rows=1),
    bounded(rows=4),
    timer("1 second"),
    estimated(0, rows=1),
    estimated("40%", rows=5),
    estimated("25%", rows=40),
    punctuated("p"),
    per_source("k"),
    per_source("k", disorder=4),
    per_source("k", idle=10, sources=["a", "b"]),
    per_source("k", idle=3, disorder=2, sources=["a"]),
]
edge = st.sampled_from([0, 2**62, -(2**62)]).flatmap(lambda n: st.integers(n - 3, n + 3))
times = st.integers(-30, 60) | edge
arrivals = st.lists(st.tuples(times, st.sampled_from(["a", "b", "c", None])), max_size=14)


def split(tracker: Tracker, rows: list[tuple[int, Any]]) -> tuple[np.ndarray, list[Any]]:
    times = np.array([t for t, _ in rows], np.int64)
    is_mark = isinstance(tracker, PunctuationTracker)
    return times, [m == "a" if is_mark else m for _, m in rows]


@pytest.mark.parametrize("progress", PROGRESS, ids=str)
@pytest.mark.parametrize("columnar", [1, 64])
@given(before=arrivals, rows=arrivals)
def test_by_row_is_one_row_at_a_time(
    columnar: int, progress: Progress, before: list[tuple[int, Any]], rows: list[tuple[int, Any]]
) -> None:
    with mock.patch.object(sources, "MIN_COLUMNAR", columnar), mock.patch.object(trackers, "MIN_COLUMNAR", columnar):
        check_by_row(tracker_for(progress, Domain.INTEGER), before, rows)


@pytest.mark.parametrize("progress", [p for p in PROGRESS if isinstance(p, PerSource)], ids=str)
@given(before=arrivals, rows=arrivals)
def test_by_row_of_many_sources_is_one_row_at_a_time(
    progress: PerSource, before: list[tuple[int, Any]], rows: list[tuple[int, Any]]
) -> None:
    with mock.patch.multiple(sources, MIN_COLUMNAR=1, FEW=0):
        check_by_row(tracker_for(progress, Domain.INTEGER), before, rows)


@pytest.mark.parametrize("progress", [p for p in PROGRESS if isinstance(p, PerSource)], ids=str)
@given(before=arrivals, rows=arrivals, block=st.integers(1, 5), share=st.sampled_from([0.0, 0.5, 1.0]))
def test_by_blocks_of_rows_the_same_rows_are_late(
    progress: PerSource, before: list[tuple[int, Any]], rows: list[tuple[int, Any]], block: int, share: float
) -> None:
    with (
        mock.patch.multiple(sources, MIN_COLUMNAR=1),
        mock.patch.multiple(sources_by_blocks, MIN_BLOCK=block, ROWS_PER_SOURCE=0, MAX_DOUBTFUL=share),
    ):
        check_by_row(tracker_for(progress, Domain.INTEGER), before, rows, loosely=True)


@pytest.mark.parametrize("disorder", [50, 70])
@pytest.mark.parametrize("number", [3, 200])
def test_blocks_tell_of_a_stream_of_many_rows_which_are_late(number: int, disorder: int) -> None:
    random = np.random.default_rng(number)
    times = np.arange(20_000) // 10 - random.integers(0, 50, 20_000)
    times[[9000, 9005, 15_000]] -= 500
    names = random.integers(0, number, len(times)).tolist()
    tracker = SourcesTracker(disorder, None, ())
    _, state = tracker.by_row(None, times[:4096], names[:4096])
    exact, after = tracker.by_row(deepcopy(state), times[4096:], names[4096:])
    loose = bounds_by_blocks(tracker.rule, state, times[4096:], coded(names[4096:]))
    assert loose is not None
    assert (loose <= exact).all()
    is_late = times[4096:] < exact
    assert is_late.any()
    assert ((times[4096:] < loose) == is_late).all()
    assert (loose[is_late] == exact[is_late]).all()
    assert state == after


@pytest.mark.parametrize("progress", [ordered(), bounded(3)], ids=str)
@given(before=arrivals, rows=arrivals, block=st.integers(1, 5))
def test_by_blocks_of_rows_of_one_delay_the_same_rows_are_late(
    progress: Progress, before: list[tuple[int, Any]], rows: list[tuple[int, Any]], block: int
) -> None:
    with mock.patch.multiple(running, MANY=1, BLOCK=block):
        check_by_row(tracker_for(progress, Domain.INTEGER), before, rows, loosely=True)


@pytest.mark.parametrize("disorder", [40, 50, 500])
@pytest.mark.parametrize("size", [4096, 20_000, 20_005])
def test_of_many_rows_the_late_ones_are_given_the_bound_that_condemns_them(size: int, disorder: int) -> None:
    random = np.random.default_rng(size)
    times = np.arange(size) // 10 - random.integers(0, 50, size)
    times[[100, 103, size - 2]] -= 500
    tracker = DelayTracker(disorder)
    exact, after = tracker.by_row(7, times, None)
    loose, also = tracker.by_row(7, times, None, loosely=True)
    is_late = times < exact
    assert is_late.any()
    assert ((times < loose) == is_late).all()
    assert (loose[is_late] == exact[is_late]).all()
    assert (loose <= exact).all()
    assert after == also


def test_times_further_apart_than_an_integer_holds_are_late() -> None:
    times = np.full(4096, 5)
    times[10], times[4000] = 2**63 - 1, -(2**63) + 1
    loose, _ = DelayTracker(3).by_row(None, times, None, loosely=True)
    assert np.flatnonzero(times < loose).tolist() == list(range(11, 4096))


def check_by_row(
    tracker: Tracker, before: list[tuple[int, Any]], rows: list[tuple[int, Any]], *, loosely: bool = False
) -> None:
    state: Any = None
    for row in before:
        state = tracker.advance(state, tracker.summarise(*split(tracker, [row])))
    bounds, after = tracker.by_row(deepcopy(state), *split(tracker, rows), loosely=loosely)
    observed = deepcopy(state)
    for (time, mark), bound in zip(rows, bounds.tolist(), strict=True):
        exact = tracker.bound(state)
        assert exact == tracker.bound(observed)
        assert bound == exact or (loosely and bound < exact <= time)
        state = tracker.advance(state, tracker.summarise(*split(tracker, [(time, mark)])))
        observed = tracker.observe(observed, time, split(tracker, [(time, mark)])[1][0])
    assert tracker.bound(after) == tracker.bound(state) == tracker.bound(observed)
    if isinstance(tracker, SourcesTracker) and rows:
        for known in ("greatest", "awaited", "first", "newest"):
            assert after[known] == observed[known]
        heard = {source: time for time, _, source in after["heap"]}
        assert heard.keys() == after["greatest"].keys()
        assert all(time <= after["greatest"][source] for source, time in heard.items())


@pytest.mark.parametrize("progress", PROGRESS, ids=str)
@given(before=arrivals, rows=arrivals, data=st.data())
def test_a_batch_is_the_join_of_its_parts_in_any_order(
    progress: Progress, before: list[tuple[int, Any]], rows: list[tuple[int, Any]], data: st.DataObject
) -> None:
    tracker = tracker_for(progress, Domain.INTEGER)
    state = tracker.advance(None, tracker.summarise(*split(tracker, before)))
    whole = tracker.bound(tracker.advance(deepcopy(state), tracker.summarise(*split(tracker, rows))))
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    left, right = (tracker.summarise(*split(tracker, part)) for part in (shuffled[:cut], shuffled[cut:]))
    assert tracker.bound(tracker.advance(state, tracker.join(left, right))) == whole


@pytest.mark.parametrize("progress", PROGRESS, ids=str)
@given(batches=st.lists(arrivals, max_size=4))
def test_the_bound_never_goes_down(progress: Progress, batches: list[list[tuple[int, Any]]]) -> None:
    tracker = tracker_for(progress, Domain.INTEGER)
    state, bound = None, MIN_TICK
    for rows in batches:
        state = tracker.advance(state, tracker.summarise(*split(tracker, rows)))
        assert tracker.bound(state) >= bound
        bound = tracker.bound(state)


def test_a_late_row_does_not_make_its_source_known() -> None:
    # a 10, c 5 (late), a 20: only a holds the bound
    tracker = tracker_for(per_source("k"), Domain.INTEGER)
    bounds, state = tracker.by_row(None, np.array([10, 5, 20], np.int64), ["a", "c", "a"])
    assert bounds.tolist() == [MIN_TICK, 10, 10]
    assert tracker.bound(state) == 20


def test_a_source_that_is_idle_is_forgotten() -> None:
    """Ten thousand sources that each speak once leave no more than those heard within `idle`."""
    tracker = tracker_for(per_source("k", idle=20, disorder=2), Domain.INTEGER)
    state: Any = None
    for time in range(10_000):
        state = tracker.observe(state, time, f"session {time}")
    assert len(state["greatest"]) == len(state["heap"]) == 21
    by_batch: Any = None
    for start in range(0, 10_000, 100):
        span = np.arange(start, start + 100, dtype=np.int64)
        by_batch = tracker.advance(by_batch, tracker.summarise(span, [f"session {t}" for t in span]))
    assert len(by_batch["greatest"]) == len(by_batch["heap"]) == 21
    assert tracker.bound(state) == tracker.bound(by_batch) == 9_999 - 20 - 2


def test_a_forgotten_source_that_was_named_is_not_waited_for_again() -> None:
    # b is named and heard at 95; the stream starts at 100. At 106 b is idle (11 behind) but the stream is only 6 old.
    tracker = tracker_for(per_source("k", idle=10, disorder=10, sources=["b"]), Domain.INTEGER)
    bounds, state = tracker.by_row(None, np.array([100, 95, 106, 107], np.int64), ["a", "b", "a", "a"])
    assert bounds.tolist() == [MIN_TICK, MIN_TICK, 85, 96]
    assert tracker.bound(state) == 97


def test_no_row_looks_at_all_sources() -> None:
    """The slowest of many sources sends row after row: each moves the bound, and none may cost a look at the rest."""
    tracker = tracker_for(per_source("k"), Domain.INTEGER)
    state: Any = None
    for source in range(50_000):
        state = tracker.observe(state, 1_000_000, source)
    looked = 0

    class Watched(dict[Any, int]):
        def __iter__(self) -> Any:
            nonlocal looked
            looked += len(self)
            return super().__iter__()

        def values(self) -> Any:
            nonlocal looked
            looked += len(self)
            return super().values()

        def items(self) -> Any:
            nonlocal looked
            looked += len(self)
            return super().items()

    state["greatest"] = Watched(state["greatest"])
    state["bound"] = 0
    for time in range(1, 1000):
        state = tracker.observe(state, time, "slow")
    assert tracker.bound(state) == 999
    assert looked == 0


@given(st.integers(-20, 20), st.lists(st.integers(-20, 20), max_size=99), st.sampled_from([4, 9, 4096]))
def test_the_greatest_so_far_is_the_same_however_long_the_run_is(start: int, times: list[int], long: int) -> None:
    with mock.patch.object(running, "LONG", long):
        found = running_greatest(start, np.array(times, np.int64))
    assert found.tolist() == list(accumulate(times, max, initial=start))
