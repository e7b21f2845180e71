"""The extents of each kind of window, from their definitions and the thesis's worked examples."""

from __future__ import annotations

from hypothesis import given

from penstock.model.schema import schema_of
from penstock.model.time import MINUTE, SECOND, Domain
from penstock.plan.windows import AnyWindow, LandmarkWindow, PartitionedWindow, SlideByTupleWindow, SlidingWindow
from penstock.reference.windows import Extent, extents
from penstock.testing.strategies import disordered_times, sliding_windows

SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("n", "bigint")], "ts")
TEN_O_CLOCK = 10 * 60 * MINUTE


def found(window: AnyWindow, *times: int) -> list[tuple[int, int, int, list[int]]]:
    """Id, start, end and times of each window over rows with these times."""
    return [shown(e) for e in extents(window, [(t, "a", n) for n, t in enumerate(times)], SCHEMA)]


def shown(extent: Extent) -> tuple[int, int, int, list[int]]:
    return extent.wid, extent.start, extent.end, [row[0] for row in extent.rows]  # type: ignore[misc]


def sliding(range_: int, slide: int, origin: int = 0) -> SlidingWindow:
    return SlidingWindow("ts", Domain.INTEGER, range_, slide, origin)


def test_the_thesis_example_has_windows_0_to_9() -> None:
    # 09:51      10:00   10:01                      10:09   10:10
    #   |----------|--t----|----- … -------------------|-------|
    #   [==== window 0 ====)
    #              [================ window 9 =================)
    window = SlidingWindow("ts", Domain.TIMESTAMP, 10 * MINUTE, MINUTE, TEN_O_CLOCK)
    result = found(window, TEN_O_CLOCK + 5 * SECOND)
    assert [wid for wid, *_ in result] == list(range(10))
    assert result[0][1:3] == (TEN_O_CLOCK - 9 * MINUTE, TEN_O_CLOCK + MINUTE)
    assert result[9][1:3] == (TEN_O_CLOCK, TEN_O_CLOCK + 10 * MINUTE)


def test_a_row_on_the_boundary_belongs_to_the_window_that_starts_there() -> None:
    #   600        660        720
    #    [== 10 ====)[== 11 ===)
    #             659 660
    # A punctuation of 660 allows 660 and nothing below: it completes window 10 and not 11.
    assert found(sliding(60, 60), 660, 659) == [(10, 600, 660, [659]), (11, 660, 720, [660])]


def test_times_before_the_origin_have_negative_ids() -> None:
    #  -60        0         60
    #   [== -1 ===)[== 0 ===)
    #            -1 0
    assert found(sliding(60, 60), -1, 0) == [(-1, -60, 0, [-1]), (0, 0, 60, [0])]


def test_an_origin_shifts_the_windows() -> None:
    #   3         13        23
    #   [=== 0 ===)[=== 1 ===)
    #           12 13
    assert found(sliding(10, 10, 3), 12, 13) == [(0, 3, 13, [12]), (1, 13, 23, [13])]


def test_rows_in_the_gap_between_windows_are_in_none() -> None:
    #   0    7  10      17  20
    #   .    [0=)  .     [1=)       RANGE 3, SLIDE 10
    #     5   8      12     19
    assert found(sliding(3, 10), 5, 8, 12, 19) == [(0, 7, 10, [8]), (1, 17, 20, [19])]


def test_lengths_that_do_not_divide_each_other() -> None:
    #   RANGE 5, SLIDE 2: window w is [2w - 3, 2w + 2)
    #   t = 4: 2w - 3 <= 4 < 2w + 2, so w > 1 and w <= 3.5: windows 2 and 3
    #   t = 5: w > 1.5 and w <= 4: windows 2, 3 and 4
    assert found(sliding(5, 2), 5, 4) == [(2, 1, 6, [5, 4]), (3, 3, 8, [5, 4]), (4, 5, 10, [5])]


def test_no_rows_no_windows() -> None:
    windows: list[AnyWindow] = [
        sliding(10, 5),
        LandmarkWindow("ts", Domain.INTEGER, 60),
        PartitionedWindow("ts", Domain.INTEGER, 2, 1, ("k",)),
        SlideByTupleWindow("ts", Domain.INTEGER, 8, 1, "n"),
    ]
    assert [found(w) for w in windows] == [[], [], [], []]


@given(sliding_windows(), disordered_times(max_size=8))
def test_sliding_windows_are_those_of_the_definition(window: SlidingWindow, times: list[int]) -> None:
    """Against every id that could matter, however far the times reach."""
    expected = []
    for wid in range(-300, 301):
        end = window.origin + (wid + 1) * window.slide
        inside = [t for t in times if end - window.range <= t < end]
        if inside:
            expected.append((wid, end - window.range, end, inside))
    assert found(window, *times) == expected


def test_landmark_windows_share_their_start() -> None:
    #   0         60        120       180
    #   [=== 0 ===)          |         |
    #   [======== 1 =========)         |
    #   [============= 2 ==============)
    #     10                   130        arrivals: 130, 10
    window = LandmarkWindow("ts", Domain.INTEGER, 60)
    assert found(window, 130, 10) == [(0, 0, 60, [10]), (1, 0, 120, [10]), (2, 0, 180, [130, 10])]


def test_landmark_windows_start_with_the_first_row_and_end_with_the_last() -> None:
    #   0    10   20   30   40   50
    #   |    |    | 25 | 35 |    |      windows 2 and 3, neither 0 nor 4
    window = LandmarkWindow("ts", Domain.INTEGER, 10)
    assert found(window, 25, 35) == [(2, 0, 30, [25]), (3, 0, 40, [25, 35])]


def test_partitions_number_their_own_rows() -> None:
    # arrival  0  1  2  3       RANGE 2 rows, SLIDE 1 row: window i holds ranks i-1 and i
    # k        a  b  a  a       ranks of a: 0 . 1 2, of b: 0
    rows = [(0, "a"), (1, "b"), (2, "a"), (3, "a")]
    window = PartitionedWindow("ts", Domain.INTEGER, 2, 1, ("k",))
    result = sorted((e.rows[0][1], *shown(e)) for e in extents(window, rows, SCHEMA))
    assert result == [
        ("a", 0, -1, 1, [0]),
        ("a", 1, 0, 2, [0, 2]),
        ("a", 2, 1, 3, [2, 3]),
        ("a", 3, 2, 4, [3]),
        ("b", 0, -1, 1, [1]),
        ("b", 1, 0, 2, [1]),
    ]


def test_null_is_a_partition() -> None:
    window = PartitionedWindow("ts", Domain.INTEGER, 2, 2, ("k",))
    result = extents(window, [(0, None, 0), (1, "a", 1), (2, None, 2)], SCHEMA)
    assert sorted(len(e.rows) for e in result) == [1, 2]


def by_tuple(range_: int, slide: int = 1, by_rank: bool = False) -> SlideByTupleWindow:
    return SlideByTupleWindow("ts", Domain.INTEGER, range_, slide, None if by_rank else "n")


def test_a_slide_by_tuple_window_reaches_back_and_leaves_its_far_end_out() -> None:
    #   23       31       39
    #   (== 31 ===]        |       31 itself is not in (31, 39]
    #            (== 39 ===]
    assert found(by_tuple(8), 31, 39) == [(31, 24, 31, [31]), (39, 32, 39, [39])]
    assert found(by_tuple(8), 31, 38) == [(31, 24, 31, [31]), (38, 31, 38, [31, 38])]


def test_a_row_that_comes_late_is_in_the_windows_it_belongs_to() -> None:
    assert found(by_tuple(8), 38, 31) == [(31, 24, 31, [31]), (38, 31, 38, [38, 31])]


def test_ties_each_bring_a_result_and_see_each_other() -> None:
    assert found(by_tuple(8), 31, 31) == [(31, 24, 31, [31, 31]), (31, 24, 31, [31, 31])]


def test_every_second_row_by_arrival() -> None:
    # number   0   1   2   3
    # time    10   5  20   7       rows 1 and 3 end windows: (-3, 5] and (-1, 7]
    assert found(by_tuple(8, slide=2), 10, 5, 20, 7) == [(5, -2, 5, [5]), (7, 0, 7, [5, 7])]


def test_every_second_row_by_rank() -> None:
    # rank     0   1   2   3
    # time     5   7  10  20       ranks 1 and 3 end windows: (-1, 7] and (12, 20]
    assert found(by_tuple(8, slide=2, by_rank=True), 10, 5, 20, 7) == [(7, 0, 7, [5, 7]), (20, 13, 20, [20])]


def test_too_few_rows_for_a_slide_give_no_window() -> None:
    assert found(by_tuple(8, slide=3), 1, 2) == []
