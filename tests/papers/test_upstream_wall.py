"""What is seen of runs on the wall clock is what the definitions say; the experiments themselves are run and drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InternalError, StreamError
from penstock.operators.windows.sliding import Sliding
from penstock.papers import upstream
from penstock.papers.upstream import running, wall, wall_memory, wall_tuples, wall_windows
from penstock.papers.upstream.simulation import steady
from penstock.reference.staleness import StalenessLog, average_over_keys, staleness_integral

EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8)


@given(EVENTS)
def test_staleness_that_is_seen_is_that_of_the_definition(events: list[tuple[int, int, int]]) -> None:
    """Rows come at times, and some of them (those of even waits) are answered after a wait."""
    log, keys, came, answers, now = StalenessLog(), [], [], [], 0
    for key, gap, wait in events:
        now += gap
        number = log.arrive(key, now, now)
        keys.append(key)
        came.append(float(now))
        if wait % 2 == 0:
            answers.append((number, now + wait))
    start, end = log.arrivals[0].at, now + 5
    expected = average_over_keys([staleness_integral(log, key, answers, start, end) for key in log.keys], start, end)
    seen = running.averaged(np.array(keys), came, [(n, float(at)) for n, at in answers], float(end))
    assert seen == pytest.approx(float(expected))


def test_windows_are_whole_when_a_row_behind_them_has_come() -> None:
    #  rows      0   1   2   3   4   5    one a second, of one key; windows of two
    #  whole             a       b        a = [0, 2) when 2 comes, b = [2, 4) when 4 comes
    #  shown                 a       b
    came = [float(n) for n in range(6)]
    shown = [(0, 2, 3.0), (0, 4, 5.0)]
    seen = wall_windows.seen_of_windows(np.zeros(6, np.int64), came, shown, Sliding(2, 2), 5.0)
    assert seen == pytest.approx((0.5 + 0.5) / 5)


def test_a_run_is_made_again_when_something_disturbed_it() -> None:
    found = iter([None, None, 7])
    assert running.undisturbed(lambda: next(found)) == 7
    with pytest.raises(InternalError, match=r"(?s)too busy to measure.*30 runs.*try:.*again"):
        running.undisturbed(lambda: None)


def test_a_clock_that_there_is_not() -> None:
    with pytest.raises(StreamError, match=r"(?s)no such clock.*sun.*simulated, wall"):
        upstream.run(10, "5", lambda line: None, "sun")
    with pytest.raises(StreamError, match=r"(?s)no such figure.*8.*one of 5"):
        upstream.run(10, "8", lambda line: None, "wall")


@pytest.mark.slow
@pytest.mark.parametrize("figure", list(wall.FIGURES))
def test_a_figure_runs_and_is_drawn(figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it comes to depends on the machine, so that is not looked at."""
    monkeypatch.setattr(wall_tuples, "LOADS", (2, 10))
    monkeypatch.setattr(wall_tuples, "SLOW", (0, 9))
    monkeypatch.setattr(wall_windows, "RANGES", {"tumbling": (2, 4), "overlapping": (2,)})
    monkeypatch.setattr(wall_windows, "MANY_RANGES", (20,))
    monkeypatch.setattr(wall_memory, "THETAS", (0.0, 0.9))
    monkeypatch.setattr(wall_memory, "LOADS", (2, 5))
    (report,) = upstream.run(60, figure, lambda line: None, "wall")
    assert report.name == f"upstream-{figure}-wall"
    assert report.claims
    pytest.importorskip("matplotlib", reason="plots are made where matplotlib is installed")
    upstream.plot(report.name, report.rows, tmp_path)
    assert "<svg" in (tmp_path / f"{report.name}.svg").read_text()


def test_a_run_delivers_what_the_clock_gives_it_time_for() -> None:
    """Twenty costs at a load of two, of two keys: no more than there is time for, and some of it."""
    found = running.seen(steady(2, 2, 20), "in_place", seconds=0.005)["in_place"]
    assert 1 <= found.served <= 21
    assert 0 < found.queue < found.application
