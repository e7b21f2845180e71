"""The oracle of windows as updates, by hand: one row per tick, windows of 3 that slide by 1, as in Fig. 12."""

from __future__ import annotations

from penstock.model.time import END_OF_TIME
from penstock.reference.staleness import staleness_at
from penstock.reference.update_windows import (
    Answer,
    Came,
    Level,
    Said,
    WindowLog,
    answer,
    application_updates,
    faults,
    most_recent,
    needed,
    queue_updates,
    started,
    whole,
    windows_of,
)

LEVELS = [Level(3, 1, 0, sum)]


def _log(*times: int, promised: int = 0) -> WindowLog:
    """Row t comes at t with value t, and promises that nothing before t + 1 comes."""
    log = WindowLog()
    for t in times:
        log.arrivals += [Came("x", t, t, t), Said(t + 1, t, "x")]
    if promised:
        log.arrivals.append(Said(promised, times[-1], None))
    return log


# window w is [w - 2, w + 1): the rows 1, 2, 3 are window 3


def test_windows_start_with_their_first_row_and_are_whole_when_nothing_more_of_them_comes() -> None:
    log = _log(1, 2, 3)
    assert windows_of(LEVELS, 3) == [3, 4, 5]
    assert started(log, LEVELS, "x", 2) == [1, 2, 3, 4]
    assert whole(log, LEVELS, "x", 2) == [1, 2]
    assert whole(log, LEVELS, "x") == [1, 2, 3]
    assert most_recent(log, LEVELS, "x", 3, eager=True) == 5
    assert most_recent(log, LEVELS, "x", 3, eager=False) == 3
    assert most_recent(log, LEVELS, "y", 3, eager=True) is None


def test_a_window_without_rows_is_none() -> None:
    log = _log(1, 9)
    assert whole(log, LEVELS, "x") == [1, 2, 3, 9]
    assert answer(LEVELS, 5, [(1, 1), (9, 9)]) is None


def test_a_promise_of_all_keys_closes_windows_of_every_key() -> None:
    log = WindowLog([Came("x", 1, 1, 1), Came("y", 2, 2, 1), Said(4, 2)])
    assert whole(log, LEVELS, "x") == [1, 2, 3]
    assert whole(log, LEVELS, "y") == [2, 3]


def test_windows_over_windows_need_what_those_need() -> None:
    # Windows of 4 rows that tumble, and over their ends (4, 8, 12, ...) windows of 8: window 1 is [8, 16), the ends
    # 8 and 12, which are the rows 4 to 11.
    levels = [Level(4, 4, 0, len), Level(8, 8, 0, sum)]
    assert [t for t in range(20) if 1 in windows_of(levels, t)] == list(range(4, 12))
    assert needed(levels, 1) == 12
    assert answer(levels, 1, [(t, None) for t in (4, 5, 9, 12)]) == 3
    none_ends = [Level(4, 4, 0, len), Level(1, 4, 2, sum)]  # at 5, 9, ...: no window of 4 ends there
    assert (needed(none_ends, 1), windows_of(none_ends, 5)) == (None, [])


def _answered(*results: tuple[int, int, int], ended: bool = False) -> list[str]:
    log = _log(1, 2, 3, 4, 5)
    if ended:
        log.arrivals.append(Said(END_OF_TIME, 6))
    log.results += [Answer("x", wid, at, value) for wid, at, value in results]
    return list(faults(log, LEVELS))


def test_faults_of_results() -> None:
    assert _answered((3, 3, 6), (5, 5, 12)) == []
    assert _answered((5, 5, 12), (3, 5, 6)) == ["window 3 of 'x' at 5 comes after window 5"]
    assert _answered((5, 4, 12)) == ["window 5 of 'x' at 4 is not whole"]
    assert _answered((5, 5, 9)) == ["window 5 of 'x' at 5 is 9, and should be 12"]
    assert _answered((5, 5, 12), ended=True) == ["window 7 of 'x', its last, has not come out"]
    assert _answered((7, 6, 5), ended=True) == []


def test_staleness_in_windows_is_that_of_figure_12() -> None:
    # Eager: window 3 is taken up at 1 and delivered at 7, window 9 at 7 and 13.
    log = _log(*range(1, 14))
    log.commits += [Answer("x", 3, 1), Answer("x", 9, 7)]
    log.results += [Answer("x", 3, 7, 6), Answer("x", 9, 13, 24)]
    seen = application_updates(log, LEVELS)
    assert [staleness_at(seen, "x", seen.deliveries, t) for t in (7, 12, 13)] == [3, 8, 3]
    queue = queue_updates(log, LEVELS, eager=True)
    assert [staleness_at(queue, "x", queue.dequeues, t) for t in (1, 2, 6, 7, 9)] == [0, 0, 4, 0, 1]
    lazy = queue_updates(log, LEVELS, eager=False)
    assert staleness_at(lazy, "x", lazy.dequeues, 6) == 2  # window 4 is whole since 4
