"""Which rows lie in which window: `windows()` and `extent()` of each kind (Li, ch. 5.1; floors, explicit origin).

- Sliding: `extent(w)` is the times `t` with `origin + (w+1)*slide - range <= t < origin + (w+1)*slide`, for any
  integer `w`.
- Landmark: `extent(w)` is all `t < origin + (w+1)*slide`, for the windows from the one that the earliest row is first
  in to the one that the latest row is first in. `window_start` is the origin, also where rows lie before it.
- Partitioned: the rows of each partition are ranked from 0 by the windowing attribute (ties by arrival), and the
  ranks have sliding windows with origin 0. Start and end are ranks too.
- Slide-by-tuple: with rows counted from 0, by arrival at the system (their number, which a WHERE does not change) or
  by rank of the range attribute among the rows at the window (ties by arrival), the rows numbered `slide-1, 2*slide-1,
  …` each end a window, if they get to it: "the n-th, 2n-th, … tuple". Its id `w` is
  that row's value of the range attribute, `extent(w)` is `w - range < t <= w`, written as `window_start = w - range +
  1` (the first tick inside) and `window_end = w`. Rows that tie each bring a result of their own, and each sees all
  of them: the id is then no key.

A window without rows gives nothing. Only windows that some row is near are tried, so gaps in time cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.model.batch import Row
from penstock.model.schema import Schema
from penstock.plan.windows import AnyWindow, LandmarkWindow, PartitionedWindow, SlideByTupleWindow, SlidingWindow
from penstock.reference.scalars import same_row


@dataclass(frozen=True)
class Extent:
    """A window and the rows in it, in order of arrival."""

    wid: int
    start: int
    end: int
    rows: tuple[Row, ...]


def extents(window: AnyWindow, rows: Sequence[Row], schema: Schema) -> list[Extent]:
    """Every window that has rows, by its end; `rows` are in order of arrival."""
    attribute = schema.index(window.attribute)
    times = [_tick(row[attribute]) for row in rows]
    timed = list(zip(times, rows, strict=True))
    if isinstance(window, SlidingWindow):
        found = list(_sliding(window.range, window.slide, window.origin, timed))
    elif isinstance(window, LandmarkWindow):
        found = list(_landmark(window, timed))
    elif isinstance(window, PartitionedWindow):
        found = list(_partitioned(window, timed, schema))
    else:
        found = list(_slide_by_tuple(window, timed, schema))
    return sorted(found, key=lambda e: (e.end, e.wid))


Timed = tuple[int, Row]


def sliding_bounds(range_: int, slide: int, origin: int, wid: int) -> tuple[int, int]:
    """Start (inside) and end (outside) of a sliding window: Eq. 5.2."""
    end = origin + (wid + 1) * slide
    return end - range_, end


def _sliding(range_: int, slide: int, origin: int, timed: Sequence[Timed]) -> Iterator[Extent]:
    near: dict[int, list[Timed]] = {}
    for item in timed:
        # One more on either side than can be: the test on the bounds below decides, not this.
        for wid in range((item[0] - origin) // slide - 1, (item[0] - origin + range_) // slide + 2):
            near.setdefault(wid, []).append(item)
    for wid, candidates in near.items():
        start, end = sliding_bounds(range_, slide, origin, wid)
        inside = tuple(row for t, row in candidates if start <= t < end)
        if inside:
            yield Extent(wid, start, end, inside)


def _landmark(window: LandmarkWindow, timed: Sequence[Timed]) -> Iterator[Extent]:
    if not timed:
        return
    first = (min(t for t, _ in timed) - window.origin) // window.slide
    last = (max(t for t, _ in timed) - window.origin) // window.slide
    for wid in range(first, last + 1):
        end = window.origin + (wid + 1) * window.slide
        yield Extent(wid, window.origin, end, tuple(row for t, row in timed if t < end))


def _partitioned(window: PartitionedWindow, timed: Sequence[Timed], schema: Schema) -> Iterator[Extent]:
    places = [schema.index(name) for name in window.partition]
    partitions: dict[tuple[object, ...], list[Timed]] = {}
    for t, row in timed:
        partitions.setdefault(same_row(tuple(row[i] for i in places)), []).append((t, row))
    for members in partitions.values():
        ranked = [row for _, row in sorted(members, key=lambda item: item[0])]  # stable: ties stay in order of arrival
        yield from _sliding(window.range, window.slide, 0, list(enumerate(ranked)))


def _slide_by_tuple(window: SlideByTupleWindow, timed: Sequence[Timed], schema: Schema) -> Iterator[Extent]:
    if window.number is None:
        counted = list(enumerate(sorted(timed, key=lambda item: item[0])))
    else:
        place = schema.index(window.number)
        counted = [(_tick(row[place]), (t, row)) for t, row in timed]
    for wid in [t for number, (t, _) in counted if (number + 1) % window.slide == 0]:
        yield Extent(wid, wid - window.range + 1, wid, tuple(row for t, row in timed if wid - window.range < t <= wid))


def _tick(value: object) -> int:
    assert isinstance(value, int), f"a windowing attribute must be a tick, got {value!r}"
    return value
