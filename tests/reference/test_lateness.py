"""Which rows are late, for each way of knowing progress. Rows are (time, source); '!' marks a late one."""

from __future__ import annotations

from typing import Literal

import pytest

from penstock.errors import StreamError
from penstock.model.batch import Row
from penstock.model.progress import Progress, Punctuated, bounded, estimated, ordered, per_source, punctuated
from penstock.model.time import END_OF_TIME, MIN_TICK, SECOND, Domain
from penstock.reference.lateness import Judged, Promise, judge


def play(progress: Progress, *batches: list[Row], by: Literal["row", "batch"] = "row") -> Judged:
    return judge(
        progress,
        0,
        batches,
        granularity=by,
        is_punctuation=lambda row: row[1] == "p",
        source_index=1,
        per=[2, 3] if isinstance(progress, Punctuated) and progress.per else (),
        domain=Domain.INTEGER,
    )


def at(*times: int) -> list[Row]:
    return [(t, "a") for t in times]


def late(judged: Judged) -> list[tuple[object, int]]:
    """Time and bound of each late row."""
    return [(row[0], bound) for row, bound in judged.late]


def test_ordered_a_row_behind_the_one_before_is_late() -> None:
    # row    10  12  11!  12  13
    # bound   -  10  12   12  12
    judged = play(ordered(), at(10, 12, 11, 12, 13))
    assert late(judged) == [(11, 12)]
    assert judged.on_time == tuple(at(10, 12, 12, 13))
    assert judged.bounds == (13,)


def test_by_batch_nothing_moves_inside_a_batch() -> None:
    # row    10  12  11 | 11!  20  12
    # bound   -   -   - | 12   12  12 | 20
    judged = play(ordered(), at(10, 12, 11), at(11, 20, 12), by="batch")
    assert late(judged) == [(11, 12)]
    assert judged.bounds == (12, 20)


def test_an_empty_batch_and_no_rows_leave_the_bound_alone() -> None:
    assert play(ordered(), [], by="batch").bounds == (MIN_TICK,)
    assert play(ordered(), [], at(5), [], by="row").bounds == (MIN_TICK, 5, 5)
    assert play(bounded(3), []).bounds == (MIN_TICK,)


def test_bounded_by_time_the_bound_itself_is_allowed() -> None:
    # row    100  95  94!  101  95!
    # bound    -  95  95    95  96
    judged = play(bounded(5), at(100, 95, 94, 101, 95))
    assert late(judged) == [(94, 95), (95, 96)]
    assert judged.bounds == (96,)


def test_bounded_by_a_length_in_words() -> None:
    rows: list[Row] = [(10 * SECOND, "a"), (4 * SECOND, "a"), (5 * SECOND, "a")]
    judged = judge(bounded("5 seconds"), 0, [rows], granularity="row", domain=Domain.TIMESTAMP)
    assert judged.late == ((rows[1], 5 * SECOND),)


def test_bounded_by_rows_looks_at_all_but_the_last() -> None:
    # rows=2
    # row    10  5  7   8!  10  3!
    # before  -  -  -  10   10  10      10 is among all but the last two from the fourth row on
    judged = play(bounded(rows=2), at(10, 5, 7, 8, 10, 3))
    assert late(judged) == [(8, 10), (3, 10)]


def test_bounded_by_rows_counts_late_rows_as_arrivals() -> None:
    # rows=1
    # row    10  20  5!  15!     all but the last one: -, -, 10, 20
    judged = play(bounded(rows=1), at(10, 20, 5, 15))
    assert late(judged) == [(5, 10), (15, 20)]


def test_bounded_by_no_rows_is_ordered() -> None:
    assert late(play(bounded(rows=0), at(3, 2, 3))) == [(2, 3)]


def test_estimated_all_rows_but_a_share_are_behind_by_no_more_than_the_delay() -> None:
    # rows=4, a quarter late: each row is a lot, and of four rows one may be behind by more than the delay
    # row     10   8!  20  17!  30   5!  31  20!  40
    # before   -  10   10  18   18  28   28  28   28
    # behind   0   2    0   3    0  25    0  11    0
    # delay    0   2    2   2    2   3    3  11   11     of four rows the second greatest, of fewer the greatest
    judged = play(estimated("25%", rows=4), at(10, 8, 20, 17, 30, 5, 31, 20, 40))
    assert late(judged) == [(8, 10), (17, 18), (5, 28), (20, 28)]
    assert judged.bounds == (29,)


def test_estimated_there_is_no_bound_before_the_first_lot_is_complete() -> None:
    # rows=30: lots of 3. Behind in the first: 0, 9, 0; nothing may be behind by more
    # row    10  1  12  2!  3
    # bound   -  -   3   3  3
    assert late(play(estimated(0, rows=30), at(10, 1, 12, 2, 3))) == [(2, 3)]


def test_estimated_by_batch_rows_are_behind_what_came_before_the_batch() -> None:
    # rows=2
    #  10 5 | 20 6 12 | 9! 10
    # behind:  0 0 | 0 4 0 | … : a delay of 4 below 20
    judged = play(estimated(0, rows=2), at(10, 5), at(20, 6, 12), at(9, 16), by="batch")
    assert late(judged) == [(6, 10), (9, 16)]
    assert judged.bounds == (10, 16, 16)


def test_punctuated_only_punctuation_moves_the_bound() -> None:
    # row    100  50  p60  59!  60  p60  p55(back)  59!
    # bound    -   -   -   60   60   60   60        60
    rows: list[Row] = [(100, "a"), (50, "a"), (60, "p"), (59, "a"), (60, "a"), (60, "p"), (55, "p"), (59, "b")]
    judged = play(punctuated("kind = 'p'"), rows)
    assert judged.late == (((59, "a"), 60), ((59, "b"), 60))
    assert judged.punctuation == ((60, "p"), (60, "p"), (55, "p"))
    assert judged.backwards == (((55, "p"), 60),)
    assert judged.on_time == ((100, "a"), (50, "a"), (60, "a"))
    assert judged.bounds == (60,)


def test_punctuation_of_one_batch_has_no_order() -> None:
    # p60 p50 59 | 59! p55(back)
    judged = play(punctuated("…"), [(60, "p"), (50, "p"), (59, "a")], [(59, "a"), (55, "p")], by="batch")
    assert judged.on_time == ((59, "a"),)
    assert judged.late == (((59, "a"), 60),)
    assert judged.backwards == (((55, "p"), 60),)
    assert judged.bounds == (60, 60)


def test_per_source_the_slowest_holds_the_others_back() -> None:
    # a     10          30                 bound: 10, then min(10, 8) does not lower it, then min(30, 20) = 20
    # b         8!  20      19! 20
    judged = play(per_source("s"), [(10, "a"), (8, "b"), (20, "b"), (30, "a"), (19, "b"), (20, "b")])
    assert judged.late == (((8, "b"), 10), ((19, "b"), 20))
    assert judged.bounds == (20,)


def test_per_source_by_batch_takes_the_sources_of_a_whole_batch_together() -> None:
    # a 100, b 50 in one batch: the bound after it is 50, never 100
    judged = play(per_source("s"), [(100, "a"), (50, "b")], [(60, "b"), (49, "b")], by="batch")
    assert judged.late == (((49, "b"), 50),)
    assert judged.bounds == (50, 60)


def test_per_source_disorder_is_within_each_source() -> None:
    # disorder 5: bound of a is 15 after 20, and that of b 7 after 12, which is late by then
    judged = play(per_source("s", disorder=5), [(20, "a"), (15, "a"), (12, "b"), (16, "b")])
    assert judged.late == (((12, "b"), 15),)
    assert judged.bounds == (15,)  # min(20, 16) - 5 = 11 does not lower it


def test_per_source_one_named_beforehand_holds_the_stream_back() -> None:
    # sources a, b    a 10, a 20 | b 5, a 1 | a 30
    # bound           none       | 5, 5     | 5
    judged = play(per_source("s", sources=["a", "b"]), [(10, "a"), (20, "a")], [(5, "b"), (1, "a")], [(30, "a")])
    assert judged.late == (((1, "a"), 5),)
    assert judged.bounds == (MIN_TICK, 5, 5)


def test_per_source_an_idle_one_no_longer_holds_back() -> None:
    # idle 10, both named    a 0, b 0 | a 10          | a 11
    # bound                  0        | 0: 10 is not  | 11: b is 11 behind
    #                                 | more than 10  |
    progress = per_source("s", idle=10, sources=["a", "b"])
    judged = play(progress, [(0, "a"), (0, "b")], [(10, "a")], [(11, "a")], [(5, "b"), (11, "b")])
    assert judged.bounds == (0, 0, 11, 11)
    assert judged.late == (((5, "b"), 11),)


def test_per_source_one_that_never_came_becomes_idle_too() -> None:
    # idle 10, b named: the stream starts at 100, so b counts as idle beyond 110
    progress = per_source("s", idle=10, sources=["a", "b"])
    assert play(progress, [(100, "a")], [(110, "a")], [(111, "a")]).bounds == (MIN_TICK, MIN_TICK, 111)


def test_per_source_a_late_row_does_not_make_its_source_known() -> None:
    # a 10, c 5!, a 20: c has no bound of its own yet, so a alone decides
    judged = play(per_source("s"), [(10, "a"), (5, "c"), (20, "a")])
    assert judged.late == (((5, "c"), 10),)
    assert judged.bounds == (20,)


def test_null_is_a_source() -> None:
    assert play(per_source("s", sources=["a"]), [(10, None), (7, "a"), (9, None)]).bounds == (7,)


def test_what_is_missing_is_asked_for() -> None:
    with pytest.raises(StreamError, match="is_punctuation"):
        judge(punctuated("x"), 0, [], granularity="row", domain=Domain.INTEGER)
    with pytest.raises(StreamError, match="source_index"):
        judge(per_source("s"), 0, [], granularity="row", domain=Domain.INTEGER)


PER = punctuated("kind = 'p'", per=["x", "y"])


def test_group_wise_a_promise_is_about_the_rows_with_its_values() -> None:
    # x 1     p60(x 1)  59!  60          a promise of x 1 says nothing of x 2, nor of rows without an x
    # x 2                         59
    # null                            59
    rows: list[Row] = [(60, "p", 1, None), (59, "a", 1, 7), (60, "a", 1, 7), (59, "a", 2, 7), (59, "a", None, 7)]
    judged = play(PER, rows)
    assert judged.late == ((rows[1], 60),)
    assert judged.on_time == tuple(rows[2:])
    assert judged.bounds == (MIN_TICK,)
    assert judged.promises == ((Promise(((2, 1),), 60),),)


def test_group_wise_nulls_stand_for_any_value() -> None:
    # p50(all)  p70(y 5)    49!  (1, 5) at 60!   (1, 6) at 60
    rows: list[Row] = [
        (50, "p", None, None),
        (70, "p", None, 5),
        (49, "a", 3, 3),
        (60, "a", 1, 5),
        (60, "a", 1, 6),
    ]
    judged = play(PER, rows)
    assert judged.late == ((rows[2], 50), (rows[3], 70))
    assert judged.bounds == (50,)


def test_group_wise_a_promise_below_what_holds_already_goes_backwards() -> None:
    # p60(x 1)   p55(x 1) back   p55(x 1, y 2) back   p55(y 2)   p50(all)   p45(x 9) back, below 50
    rows: list[Row] = [
        (60, "p", 1, None), (55, "p", 1, None), (55, "p", 1, 2), (55, "p", None, 2), (50, "p", None, None),
        (45, "p", 9, None), (60, "p", 1, None),
    ]  # fmt: skip
    judged = play(PER, rows)
    assert judged.backwards == ((rows[1], 60), (rows[2], 60), (rows[5], 50))
    assert judged.promises[0] == (Promise(((2, 1),), 60), Promise(((3, 2),), 55), Promise(((2, 1),), 60))


def test_group_wise_by_batch_nothing_moves_inside_a_batch() -> None:
    judged = play(PER, [(60, "p", 1, None), (59, "a", 1, 0)], [(59, "a", 1, 0), (59, "p", 1, None)], by="batch")
    assert judged.late == (((59, "a", 1, 0), 60),)
    assert judged.backwards == (((59, "p", 1, None), 60),)


def test_group_wise_a_final_promise_ends_its_rows_whatever_its_time() -> None:
    # p10(x 1)   x 1 at 99!   x 2 at 9   p20(all)   p15(x 2) back: 15 is below 20   p10(x 1) back   p30(x 1) again
    final = punctuated("kind = 'p'", per=["x", "y"], final=True)
    rows: list[Row] = [
        (10, "p", 1, None), (99, "a", 1, 0), (9, "a", 2, 0), (20, "p", None, None), (15, "p", 2, None),
        (10, "p", 1, None), (30, "p", 1, None),
    ]  # fmt: skip
    judged = play(final, rows)
    assert judged.late == ((rows[1], END_OF_TIME),)
    assert judged.backwards == ((rows[4], 20), (rows[5], 20))
    assert judged.bounds == (20,)
