"""What the clock says of streams that are silent: nobody waits for them longer than their times allow."""

from __future__ import annotations

import threading
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import StreamError
from penstock.model.time import MIN_TICK, SECOND
from penstock.model.timestamps import Silence

START = datetime(2026, 1, 1, tzinfo=UTC)
TICK = int(START.timestamp()) * SECOND
Q1_2 = """
    SELECT count(*) AS n [RANGE 60 seconds, SLIDE 60 seconds, WA ts]
    FROM (SELECT ts, k FROM main UNION ALL SELECT ts, k FROM control)
"""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is idle is asked again at once: the clock of these tests goes on by being asked."""
    monkeypatch.setattr("penstock.runtime.pulling.PAUSE", 0)


class Scripted:
    """A source that is asked; at each second of the clock it has what the script says."""

    def __init__(self, clock: Clock, rows: list[tuple[int, int]], *, end: int) -> None:
        """Rows by when they come and their time, both in seconds; it ends at a second."""
        self.clock, self.rows, self.end = clock, deque(sorted(rows)), end

    def poll(self) -> Any:
        if self.rows and self.rows[0][0] <= self.clock.second:
            return {"ts": START + timedelta(seconds=self.rows.popleft()[1]), "k": 1}
        return pk.END if self.clock.second >= self.end else pk.IDLE


class Clock:
    """Goes on by a second whenever somebody has asked for the time so often."""

    def __init__(self, asked: int) -> None:
        """How often that is."""
        self.second, self._asked, self._count = 0, asked, 0

    def __call__(self) -> int:
        self._count += 1
        if self._count % self._asked == 0:
            self.second += 1
        return TICK + self.second * SECOND


def came_at(clock: Clock, flow: pk.Flow, sql: str) -> list[tuple[int, int, int]]:
    """Results: the end of the window in seconds, the count, and the second at which it came out."""
    query: Any = flow.query(sql)
    execution = query.execution()
    execution.clock = clock
    found = []
    for item in execution.run({name.lower(): flow._sources[name.lower()].open for name in execution.streams}):
        if not isinstance(item, pk.Punctuation):
            for row in item.table.to_pylist():
                found.append((round((row["window_end"] - START).total_seconds()), row["n"], clock.second))
    return found


def test_a_control_stream_that_is_silent_for_an_hour_delays_no_minute() -> None:
    clock = Clock(asked=4)
    flow = pk.Flow()
    main = Scripted(clock, [(s, s) for s in range(0, 3600, 10)], end=3700)
    flow.stream("main", main, time="ts", schema="ts timestamp, k int")
    control = Scripted(clock, [(0, 0)], end=3700)
    flow.stream("control", control, time="ts", schema="ts timestamp, k int", lull="2 seconds")
    found = came_at(clock, flow, Q1_2)
    assert [n for _, n, _ in found] == [7, *[6] * 59]
    # The last minute has no row of main after it, so only its end closes it.
    assert all(at - end <= 4 for end, _, at in found[:-1]), "every minute comes when the clock has passed it"


def test_without_it_all_minutes_wait_for_the_end() -> None:
    clock = Clock(asked=4)
    flow = pk.Flow()
    main = Scripted(clock, [(s, s) for s in range(0, 600, 10)], end=700)
    flow.stream("main", main, time="ts", schema="ts timestamp, k int")
    flow.stream("control", Scripted(clock, [(0, 0)], end=700), time="ts", schema="ts timestamp, k int")
    assert all(at >= 700 for _, _, at in came_at(clock, flow, Q1_2))


def test_external_times_go_on_as_the_clock_does() -> None:
    clock = Clock(asked=4)
    flow = pk.Flow()
    # Its clock is an hour behind ours: the difference is that of the last row, and does not matter.
    rows = [(s, s - 3600) for s in range(0, 100, 10)]
    source = Scripted(clock, rows, end=1000)
    options: dict[str, Any] = {"time": "ts", "schema": "ts timestamp, k int"}
    flow.stream("s", source, timestamps=pk.external(skew="5 seconds"), **options)
    found = came_at(clock, flow, "SELECT count(*) AS n [RANGE 60 seconds, SLIDE 60 seconds, WA ts] FROM s")
    assert [(end + 3600, n) for end, n, _ in found] == [(60, 6), (120, 4)]
    # The last row, of second 90, came at 90; second 120 is certain 30 seconds and the skew later.
    assert 125 <= found[-1][2] <= 127


def test_a_live_source_that_blocks_is_spoken_for() -> None:
    flow, clock = pk.Flow(), Clock(asked=1)
    has_given, goes_on = threading.Event(), threading.Event()

    def rows() -> Any:
        yield {"ts": START, "k": 1}
        has_given.set()
        goes_on.wait()
        yield {"ts": START + timedelta(seconds=10_000_000), "k": 1}

    flow.stream("s", rows(), time="ts", schema="ts timestamp, k int", lull="2 seconds")
    query: Any = flow.query("SELECT count(*) AS n [RANGE 60 seconds, SLIDE 60 seconds, WA ts] FROM s")
    execution = query.execution()
    execution.clock = lambda: clock() if has_given.is_set() else TICK
    seen = []
    for item in execution.run({"s": flow._sources["s"].open}, live={"s": 16}):
        if not isinstance(item, pk.Punctuation):
            seen.append((item.table["n"].to_pylist(), goes_on.is_set()))
            goes_on.set()
    assert seen == [([1], False), ([1], True)], "the first came out while the source was waited for"


@pytest.mark.parametrize(("first", "late"), [(20, 1), (0, 0)])
def test_a_row_below_what_the_clock_said_is_late(first: int, late: int) -> None:
    clock = Clock(asked=4)
    flow = pk.Flow()
    # The clock is asked until the bound has passed the first row, since nothing waits for more: 21 or 1.
    source = Scripted(clock, [(0, first), (100, 10), (101, 101)], end=200)
    flow.stream("s", source, time="ts", schema="ts timestamp, k int", progress=pk.bounded("1 day"), lull="10 seconds")
    query: Any = flow.query("SELECT ts FROM s")
    execution = query.execution()
    execution.clock = clock
    list(execution.run({"s": flow._sources["s"].open}))
    assert execution.settled.late == late
    assert execution.settled.on_time == 3 - late


@given(
    reached=st.integers(-(2**62), 2**62), arrived=st.integers(0, 2**50), now=st.integers(0, 2**50),
    skew=st.none() | st.integers(0, 2**62), lull=st.none() | st.integers(0, 2**62),
)  # fmt: skip
def test_what_the_clock_allows(reached: int, arrived: int, now: int, skew: int | None, lull: int | None) -> None:
    allowed = [MIN_TICK]
    if skew is not None:
        allowed.append(reached + max(now - arrived, 0) - skew)
    if lull is not None:
        allowed.append(now - lull)
    assert Silence(skew, lull).bound(reached, arrived, now) == max(allowed)
    assert Silence(skew, None).bound(MIN_TICK, arrived, now) == MIN_TICK, "nothing ever came"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"lull": "2 seconds"}, "time is a number"),
        ({"timestamps": pk.external()}, "time is a number"),
        ({"timestamps": "external"}, "no timestamps"),
        ({"time": "ts", "lull": "yesterday"}, "length"),
        ({"time": "ts", "lull": 5}, "length"),
        (
            {"time": "ts", "lull": "2 seconds", "progress": {"ts": pk.ordered(), "t": pk.ordered()}},
            "several attributes",
        ),
    ],
)
def test_wrong_arguments(options: dict[str, Any], told: str) -> None:
    with pytest.raises(StreamError, match=told) as found:
        pk.Flow().stream("s", [{"t": 1, "ts": START}], **{"time": "t", **options})
    assert "stream s" in str(found.value)
