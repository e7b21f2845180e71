"""Several queries of a flow at work as one: they join, leave and fail without touching each other."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import penstock as pk
from penstock.errors import PenstockError, StreamError, UnsupportedError
from penstock.flow.run import FAILED, FINISHED, RUNNING, STOPPED

COUNT = "SELECT k, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s GROUP BY k"
TOTAL = "SELECT k, sum(v) AS total [RANGE 10, SLIDE 10, WA t] FROM s GROUP BY k"
ROWS = [{"t": t, "k": t % 2, "v": t} for t in range(40)]


class Tap:
    """A source that gives what it is told to; None ends it."""

    def __init__(self) -> None:
        self.items: deque[Any] = deque()
        self.given = 0

    def poll(self) -> Any:
        if not self.items:
            return pk.IDLE
        self.given += 1
        item = self.items.popleft()
        return pk.END if item is None else item

    def give(self, *items: Any) -> None:
        self.items.extend(items)


@pytest.fixture
def tap() -> Tap:
    return Tap()


@pytest.fixture
def flow(tap: Tap) -> pk.Flow:
    return pk.Flow().stream("s", tap, time="t", schema="t bigint, k bigint, v bigint", progress=pk.bounded(2))


def by_window(rows: list[dict[str, Any]], column: str) -> dict[tuple[int, int], Any]:
    return {(row["window_end"], row["k"]): row[column] for row in rows}


def counted(first: int, last: int) -> dict[tuple[int, int], int]:
    """Five rows of each key in every window of ten."""
    return {(end, k): 5 for end in range(first, last + 1, 10) for k in (0, 1)}


def test_a_stream_is_read_once_for_all_queries(flow: pk.Flow, tap: Tap) -> None:
    n, total = flow.query(COUNT, name="n"), flow.query(TOTAL, name="total")
    counts: list[Any] = []
    totals: list[Any] = []
    tap.give(*ROWS, None)
    run = flow.start({n: counts, total: totals})
    assert run.wait(60)
    assert tap.given == len(ROWS) + 1
    assert by_window(counts, "n") == counted(10, 40)
    assert by_window(totals, "total")[(10, 0)] == 0 + 2 + 4 + 6 + 8
    assert run.status == run.runs["n"].status == FINISHED
    assert run.progress.counts.read == len(ROWS) == run.runs["n"].progress["on_time"]
    assert {o.label.split()[0] for o in run.runs["n"].progress.operators} == {"Project", "Aggregate", "Source"}


def test_explain_shows_what_is_shared_with_whom(flow: pk.Flow, tap: Tap) -> None:
    mean = "SELECT k, avg(v + 1) AS m [RANGE 10, SLIDE 10, WA t] FROM s GROUP BY k HAVING count(*) > 1"
    run = flow.start({flow.query(COUNT, name="n"): [], flow.query(TOTAL, name="total"): []})
    run.add(flow.query(mean, name="mean"), [])
    pipelined = "in-process: pipelined, rows or Arrow"
    face = "in-process: a face of the family below, made of its numbers"
    assert re.sub(r", cost .*", "", run.explain()).splitlines() == [
        "query n",
        "+- Project wid, window_start, window_end, k, count(*) AS n",
        f"   |     {pipelined}",
        "   +- Aggregate count(*) [RANGE 10, SLIDE 10, WA t] by k",
        f"      |     {face}",
        "      +- [1] Aggregate family count(*), sum(v), count(v) [RANGE 10, SLIDE 10, WA t] by k",
        "         |     shared by n, total; in-process: columnar",
        "         +- [2] Source s (time t, bounded(2))",
        "                  shared by n, total, mean; in-process: late rows judged one by one as they arrive",
        "query total",
        "+- Project wid, window_start, window_end, k, sum(v) AS total",
        f"   |     {pipelined}",
        "   +- Aggregate sum(v) [RANGE 10, SLIDE 10, WA t] by k",
        f"      |     {face}",
        "      +- [1] as above",
        "query mean",
        "+- Project wid, window_start, window_end, k, avg((v + 1)) AS m",
        f"   |     {pipelined}",
        "   +- Select (count(*) > 1)",
        f"      |     {pipelined}",
        "      +- Aggregate avg((v + 1)), count(*) [RANGE 10, SLIDE 10, WA t] by k",
        f"         |     {face}",
        "         +- Aggregate family count(*), sum((v + 1)), count((v + 1)) [RANGE 10, SLIDE 10, WA t] by k",
        "            |     in-process: columnar",
        "            +- Project k, (v + 1)",
        f"               |     {pipelined}",
        "               +- [2] as above",
    ]
    family = "Aggregate family count(*), sum(v), count(v) [RANGE 10, SLIDE 10, WA t] by k"
    assert family in {operator.label for operator in run.progress.operators}
    for name in ("n", "total", "mean"):
        run.remove(name)
    assert run.explain() == "no query: Source s (time t, bounded(2))"
    run.stop()


def test_a_query_that_joins_says_from_when_on_it_is_complete_and_gives_nothing_before(flow: pk.Flow, tap: Tap) -> None:
    counts: list[Any] = []
    totals: list[Any] = []
    run = flow.start({flow.query(COUNT, name="n"): counts})
    tap.give(*ROWS[:15])
    run.process_available()
    joined = run.add(flow.query(TOTAL, name="total"), totals)
    assert joined.complete_from == "21"  # rows up to 14 were missed: they count in the window that ends at 20
    assert run.runs["n"].complete_from is None
    tap.give(*ROWS[15:], None)
    assert run.wait(60)
    assert by_window(counts, "n") == counted(10, 40)
    assert by_window(totals, "total") == {
        (30, 0): 20 + 22 + 24 + 26 + 28, (30, 1): 21 + 23 + 25 + 27 + 29,
        (40, 0): 30 + 32 + 34 + 36 + 38, (40, 1): 31 + 33 + 35 + 37 + 39,
    }  # fmt: skip


def test_a_query_leaves_and_the_others_go_on(flow: pk.Flow, tap: Tap, tmp_path: Path) -> None:
    counts: list[Any] = []
    out = tmp_path / "total.parquet"
    run = flow.start({flow.query(COUNT, name="n"): counts, flow.query(TOTAL, name="total"): out})
    tap.give(*ROWS[:25])
    run.process_available()
    run.remove("total", publish=True)
    assert run.runs["total"].status == STOPPED
    assert run.status == run.runs["n"].status == RUNNING
    assert pyarrow.parquet.read_table(out).num_rows == 4
    again = run.add(flow.query(TOTAL, name="total"), [])
    assert again.complete_from is not None
    tap.give(*ROWS[25:], None)
    assert run.wait(60)
    assert by_window(counts, "n") == counted(10, 40)


def test_a_sink_that_fails_costs_its_own_query_alone(flow: pk.Flow, tap: Tap) -> None:
    def broken(table: Any) -> None:
        raise OSError("no room left")

    counts: list[Any] = []
    run = flow.start({flow.query(TOTAL, name="total"): broken, flow.query(COUNT, name="n"): counts})
    tap.give(*ROWS, None)
    assert run.wait(60)
    assert run.status == FINISHED
    assert by_window(counts, "n") == counted(10, 40)
    failed = run.runs["total"]
    assert failed.status == FAILED
    with pytest.raises(PenstockError, match="sink of the results failed"):
        failed.wait()


def test_late_rows_and_dead_letters_are_those_of_the_streams_since_a_query_joined(flow: pk.Flow, tap: Tap) -> None:
    lates: list[Any] = []
    letters: list[Any] = []
    run = flow.start({flow.query(COUNT, name="n"): []}, late=lates, dead_letters=letters)
    tap.give({"t": 20, "k": 0, "v": 0}, {"t": 1, "k": 0, "v": 0}, {"t": None, "k": 0, "v": 0})
    run.process_available()
    joined = run.add(flow.query("SELECT t, 10 div v AS d FROM s", name="d"), [])
    tap.give({"t": 2, "k": 0, "v": 0}, {"t": 40, "k": 0, "v": 0}, None)
    assert run.wait(60)
    assert (run.late.num_rows, joined.late.num_rows) == (2, 1)
    assert [row["row"] for row in lates] == run.late["row"].to_pylist()
    assert len(letters) == 2
    assert (run.runs["n"].dead_letters.num_rows, joined.dead_letters.num_rows) == (1, 1)
    assert run.progress.counts.unaccounted == 0


def test_a_query_may_bring_a_stream_that_nobody_has_read(flow: pk.Flow, tap: Tap) -> None:
    flow.stream("z", [{"t": 5, "k": 1, "v": 1}, {"t": 15, "k": 1, "v": 1}], time="t")
    found: list[Any] = []
    run = flow.start({flow.query(COUNT, name="n"): []})
    tap.give(*ROWS[:5])
    run.process_available()
    joined = run.add(flow.query(COUNT.replace("FROM s", "FROM z"), name="z"), found)
    assert joined.complete_from is None
    tap.give(None)
    assert run.wait(60)
    assert by_window(found, "n") == {(10, 1): 1, (20, 1): 1}


def test_a_run_goes_on_from_its_snapshot(flow: pk.Flow, tap: Tap) -> None:
    first: list[Any] = []
    run = flow.start({flow.query(COUNT, name="n"): first, flow.query(TOTAL, name="total"): []})
    tap.give(*ROWS[:25])
    run.process_available()
    run.stop()
    saved = run.snapshot()
    tap.give(*ROWS[25:], None)
    rest: list[Any] = []
    again = flow.start({flow.query(TOTAL, name="total"): [], flow.query(COUNT, name="n"): rest}, snapshot=saved)
    assert again.wait(60)
    assert by_window(first, "n") == counted(10, 20)
    assert by_window(rest, "n") == counted(30, 40)


def test_what_cannot_be_is_told(flow: pk.Flow, tap: Tap) -> None:
    n = flow.query(COUNT, name="n")
    other = pk.Flow().stream("s", [], time="t", schema="t bigint, k bigint, v bigint").query(COUNT, name="x")
    with pytest.raises(StreamError, match="given with their sinks"):
        flow.start({})
    with pytest.raises(StreamError, match="Not a query of this flow"):
        flow.start({other: []})
    run = flow.start({n: []})
    with pytest.raises(StreamError, match="A query of that name is running"):
        run.add(flow.query(TOTAL, name="n"), [])
    with pytest.raises(StreamError, match="There is no such query"):
        run.remove("q")
    with pytest.raises(UnsupportedError, match="cannot close them"):
        run.runs["n"].finish()
    with pytest.raises(UnsupportedError, match="no state of its own"):
        run.runs["n"].snapshot()
    tap.give(None)
    run.wait(60)
    with pytest.raises(StreamError, match="run is over"):
        run.add(flow.query(TOTAL, name="total"), [])
