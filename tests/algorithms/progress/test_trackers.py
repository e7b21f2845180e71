"""Trackers: row by row and batch by batch say the same, however a batch is put together from parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.algorithms.progress.trackers import PunctuationTracker, Tracker, tracker_for
from penstock.model.progress import Progress, bounded, ordered, per_source, punctuated
from penstock.model.time import MIN_TICK, Domain

PROGRESS = [
    ordered(),
    bounded(0),
    bounded(7),
    bounded(rows=0),
    bounded(rows=1),
    bounded(rows=4),
    punctuated("p"),
    per_source("k"),
    per_source("k", disorder=4),
    per_source("k", idle=10, sources=["a", "b"]),
    per_source("k", idle=3, disorder=2, sources=["a"]),
]
arrivals = st.lists(st.tuples(st.integers(-30, 60), st.sampled_from(["a", "b", None])), max_size=14)


def split(tracker: Tracker, rows: list[tuple[int, Any]]) -> tuple[np.ndarray, list[Any]]:
    times = np.array([t for t, _ in rows], np.int64)
    is_mark = isinstance(tracker, PunctuationTracker)
    return times, [m == "a" if is_mark else m for _, m in rows]


@pytest.mark.parametrize("progress", PROGRESS, ids=str)
@given(before=arrivals, rows=arrivals)
def test_by_row_is_one_row_at_a_time(
    progress: Progress, before: list[tuple[int, Any]], rows: list[tuple[int, Any]]
) -> None:
    tracker = tracker_for(progress, Domain.INTEGER)
    state: Any = None
    for row in before:
        state = tracker.advance(state, tracker.summarise(*split(tracker, [row])))
    bounds, after = tracker.by_row(state, *split(tracker, rows))
    for row, bound in zip(rows, bounds.tolist(), strict=True):
        assert bound == tracker.bound(state)
        state = tracker.advance(state, tracker.summarise(*split(tracker, [row])))
    assert tracker.bound(after) == tracker.bound(state)


@pytest.mark.parametrize("progress", PROGRESS, ids=str)
@given(before=arrivals, rows=arrivals, data=st.data())
def test_a_batch_is_the_join_of_its_parts_in_any_order(
    progress: Progress, before: list[tuple[int, Any]], rows: list[tuple[int, Any]], data: st.DataObject
) -> None:
    tracker = tracker_for(progress, Domain.INTEGER)
    state = tracker.advance(None, tracker.summarise(*split(tracker, before)))
    whole = tracker.bound(tracker.advance(state, tracker.summarise(*split(tracker, rows))))
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
