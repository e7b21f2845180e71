"""Runs in-process: the suite of both engines, and what only this engine does."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import SourceError, StreamError, UnsupportedError
from penstock.model.elements import Insert
from tests.flow.run_suite import SQL, Suite

END = object()


class Fed:
    """A source that gives what a test puts in, and blocks in between; `given` is set when it waits for more."""

    def __init__(self) -> None:
        self.rows: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.waiting = threading.Semaphore(0)

    def __iter__(self) -> Iterator[Any]:
        while True:
            self.waiting.release()
            row = self.rows.get()
            if row is END:
                return
            yield row

    def bring(self, rows: list[Any]) -> None:
        """Hand over, and wait until the source has given them all."""
        for row in rows:
            assert self.waiting.acquire(timeout=60)
            self.rows.put(row)
        assert self.waiting.acquire(timeout=60)
        self.waiting.release()


class LocalHarness:
    writes_here = True

    def __init__(self, folder: Path) -> None:
        self.folder, self.source = folder, Fed()

    def query(self, sql: str = SQL, name: str = "q", *, text: bool = False) -> pk.Query:
        self.source = Fed()
        flow = pk.Flow().stream("s", self.source, time="t", schema=f"t {'timestamp' if text else 'bigint'}")
        return flow.query(sql, name)

    def bring(self, times: list[Any]) -> None:
        self.source.bring([{"t": t} for t in times])

    def target(self) -> str:
        return str(self.folder / "out.parquet")

    def written(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pq.read_table(self.folder / "out.parquet").to_pylist()
        return rows

    def rows(self, found: Any) -> list[dict[str, Any]]:
        assert isinstance(found, pa.Table)
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows

    def failing_sink(self) -> Any:
        def failing_sink(table: pa.Table) -> None:
            raise OSError("disk full")

        return failing_sink


class TestInProcess(Suite):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> LocalHarness:
        return LocalHarness(tmp_path)


def fast_and_slow() -> tuple[pk.Flow, Fed]:
    slow = Fed()
    flow = pk.Flow().stream("fast", ({"t": t} for t in count()), time="t", schema="t bigint")
    return flow.stream("slow", slow, time="t", schema="t bigint"), slow


def test_a_source_that_blocks_holds_nobody_up() -> None:
    # fast    0 1 2 3 …       endless
    # slow    25 (then silence)
    flow, slow = fast_and_slow()
    query = flow.query("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM fast UNION slow")
    with query.elements() as found:
        slow.rows.put({"t": 25})
        first = list(islice((e for e in found if isinstance(e, Insert)), 2))
    assert [e.payload for e in first] == [(0, 0, 10, 10), (1, 10, 20, 10)]


def test_a_query_that_does_not_wait_for_the_slow_one_goes_on() -> None:
    flow, _ = fast_and_slow()
    seen = threading.Event()
    ends: list[int] = []

    def take(table: pa.Table) -> None:
        ends.extend(table["t"].to_pylist())
        if len(ends) >= 1000:
            seen.set()

    with flow.query("SELECT t FROM fast UNION slow").start(take) as run:
        assert seen.wait(60)
    assert run.status == "stopped"
    assert ends == list(range(len(ends)))
    assert run.progress.counts.on_time == len(ends), "everything that was taken came out"


def test_bounded_inputs_are_read_in_turn() -> None:
    def flow(make: Callable[[list[dict[str, int]]], Any]) -> pk.Flow:
        rows = [{"t": t} for t in range(5)]
        both = pk.Flow().stream("a", make(rows), time="t", schema="t bigint")
        return both.stream("b", make(rows), time="t", schema="t bigint")

    for make in (list, iter):
        ours: Any = flow(make).query("SELECT t, 'a' AS s FROM a UNION ALL SELECT t, 'b' FROM b").collect()
        found = list(zip(ours["t"].to_pylist(), ours["s"].to_pylist(), strict=True))
        assert sorted(found) == [(t, s) for t in range(5) for s in "ab"]
        if make is iter:
            assert found == [(t, s) for t in range(5) for s in "ab"], "row by row, a row from each"


def test_late_rows_leave_as_they_come() -> None:
    source, late, dead = Fed(), [], []  # type: ignore[var-annotated]
    flow = pk.Flow().stream("s", source, time="t", schema="t bigint")
    query = flow.query(SQL)
    with query.start([], late=late, dead_letters=dead) as run:
        source.bring([{"t": 5}, {"t": 3}])
        run.process_available()
        assert [row["bound"] for row in late] == [5]
        assert run.late.num_rows == query.late.num_rows == 1
        source.bring([{"t": None}, {"t": 4}])
        run.process_available()
        assert (len(late), len(dead)) == (2, 1)
    assert (len(late), len(dead)) == (2, 1), "each once"


def test_a_run_that_was_finished_goes_on_from_its_snapshot() -> None:
    source = Fed()
    query: Any = pk.Flow().stream("s", source, time="t", schema="t bigint").query(SQL)
    run = query.start([])
    source.bring([{"t": t} for t in (1, 7, 12)])
    run.process_available()
    run.finish()
    again = query.execution()
    again.restore(run.snapshot())
    schema = again.graph.sources["s"][0].plan.schema
    from penstock.model.batch import Batch

    again.feed("s", Batch(schema, [(15,), (25,)]))
    assert (again.counts.late, again.counts.on_time) == (1, 1)


def test_a_source_that_fails_is_the_exception_of_the_run() -> None:
    def breaking() -> Iterator[dict[str, int]]:
        yield {"t": 1}
        raise OSError("the cable is out")

    run = pk.Flow().stream("s", breaking(), time="t", schema="t bigint").query(SQL).start([])
    with pytest.raises(SourceError, match="the cable is out"):
        run.wait()
    assert isinstance(run.exception, SourceError)
    assert run.progress.reason == "The source of a stream failed."


def test_operators_are_counted_by_their_identity() -> None:
    query: Any = pk.Flow().stream("s", [{"t": t} for t in range(25)], time="t").query(SQL)
    run = query.start([])
    run.wait()
    known = {node.identity: node.label for node in query.execution().graph.nodes}
    assert {o.identity: o.label for o in run.progress.operators} == known
    first, last = run.progress.operators[0], run.progress.operators[-1]
    assert (last.label.startswith("Source s"), last.rows_in, last.rows_out, first.rows_out) == (True, 25, 25, 3)


def test_results_for_async_for() -> None:
    async def take() -> tuple[list[Any], list[int]]:
        flow = pk.Flow().stream("s", [{"t": t} for t in range(25)], time="t")
        query = flow.query(SQL)
        return [e async for e in query.elements()], [n async for b in query.batches() for n in b["n"].to_pylist()]

    elements, counted = asyncio.run(take())
    flow = pk.Flow().stream("s", [{"t": t} for t in range(25)], time="t")
    assert elements == list(flow.query(SQL).elements())
    assert counted == [10, 10, 5]


def test_the_loop_goes_on_while_a_source_is_silent() -> None:
    source = Fed()
    flow = pk.Flow().stream("s", source, time="t", schema="t bigint")

    async def take() -> list[Any]:
        found = []
        async with flow.query("SELECT t FROM s").elements() as elements:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(elements), 0.05)
            source.rows.put({"t": 1})  # what comes after the timeout is not lost
            source.rows.put(END)
            async for element in elements:
                found.append(element)
        return found

    assert [e.payload for e in asyncio.run(take()) if isinstance(e, Insert)] == [(1,)]


def test_what_only_spark_has_is_refused() -> None:
    query = pk.Flow().stream("s", [{"t": 1}], time="t").query(SQL)
    with pytest.raises(UnsupportedError, match=r"no DataFrame.*(?s:.*)q\.collect\(\)"):
        _ = query.df
    with pytest.raises(StreamError, match="Only a run on Spark has trigger and buckets"):
        query.start([], trigger={"availableNow": True}, buckets=2)


def test_a_table_and_a_flow_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    flow = pk.Flow().stream("s", [{"t": t, "k": "x" * 50} for t in range(3)], time="t", progress=pk.bounded(5))
    flow.query("SELECT t, k FROM s").show(2, truncate=5)
    assert capsys.readouterr().out.splitlines() == [
        "+-+-----+", "|t|k    |", "+-+-----+", "|0|xxxx…|", "|1|xxxx…|", "+-+-----+", "only the first 2 of 3 rows",
    ]  # fmt: skip
    flow.function("twice", lambda x: 2 * x, "bigint")
    assert repr(flow).splitlines() == [
        "<flow, in-process>",
        "stream s: `t` bigint, `k` string; time t, bounded(5)",
        "function twice",
    ]
    assert "stream s" in flow._repr_html_()
    assert list(flow.streams) == ["s"]


def test_a_run_shows_what_was_promised_of_groups(tmp_path: Path) -> None:
    source = Fed()
    flow = pk.Flow().stream(
        "bids", source, time="t", schema="t bigint, a int, p boolean",
        progress=pk.punctuated("p", per=["a"], final=True),
    )  # fmt: skip
    run = flow.query("SELECT a, count(*) AS n FROM bids GROUP BY a").start(str(tmp_path / "out.jsonl"))
    source.bring([{"t": 1, "a": 0}, {"t": 5, "a": 1}, {"t": 2, "a": 0, "p": True}, {"t": 7, "p": True}])
    run.process_available()
    progress = run.progress
    assert progress.group_frontier == {"bids": ({"of": {"a": 0}, "up_to": {"t": "end"}},)}
    assert progress["group_bounds"] == [{"of": {"a": 0}, "up_to": {"__time": "end"}}]
    assert (progress.frontier, progress.bound) == ({"bids": "7"}, "5")
    assert json.loads(progress.json)["group_frontier"] == {"bids": list(progress.group_frontier["bids"])}
    assert dict(progress.rows())["stream bids, of groups"] == "a 0 up to end"
    source.rows.put(END)
    run.wait()
    assert (run.progress.ended, run.progress.group_bounds) == (True, ())
