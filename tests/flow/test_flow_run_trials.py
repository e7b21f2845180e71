"""Several queries as one, where they were found to break: sinks that are busy, runs that end, sources that fail."""

from __future__ import annotations

import asyncio
import collections
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.errors import PenstockError, SourceError, StreamError
from penstock.flow.run import FAILED, FINISHED, RUNNING, STOPPED
from penstock.model.batch import Batch
from penstock.runtime.pulling import Pulling

S = "t bigint, k bigint, size bigint"
W = "[RANGE 10, SLIDE 10, WA t] FROM s GROUP BY k"


class Tap:
    def __init__(self, items: Any = ()) -> None:
        self.items: collections.deque[Any] = collections.deque(items)

    def poll(self) -> Any:
        return self.items.popleft() if self.items else pk.IDLE


def rows(start: int, end: int) -> list[dict[str, int]]:
    return [{"t": t, "k": t % 2, "size": t} for t in range(start, end)]


def test_a_query_leaves_while_its_file_is_written(tmp_path: Path) -> None:
    parts = []
    for attempt in range(8):
        source = ({"t": a * 1000, "k": 0} for a in range(60))
        flow = pk.Flow().stream("s", source, time="t", schema="t bigint, k bigint")
        wide = flow.query("SELECT k, count(*) AS n [RANGE 5000, SLIDE 1, WA t] FROM s GROUP BY k", name="q")
        run = flow.start({wide: tmp_path / f"{attempt}.parquet", flow.query("SELECT t FROM s", name="p"): None})
        threading.Event().wait(random.Random(attempt).random() * 0.1)
        run.remove("q", publish=True)
        run.stop()
        assert run.runs["q"].status in (STOPPED, FINISHED)  # it may have come to its end before
        written = pq.read_table(tmp_path / f"{attempt}.parquet")
        ends = written["window_end"].to_pylist()
        assert ends == sorted(set(ends))  # one group: every window once, in order, none torn
        parts.append(len(ends))
    assert any(parts)


def test_a_run_never_writes_to_what_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("t,k\n1,1\n")
    flow = pk.Flow().stream("s", path, time="t")
    query = flow.query("SELECT t FROM s")
    for options in ({"queries": {query: path}}, {"queries": {query: []}, "late": path}):
        with pytest.raises(PenstockError, match="what the query reads"):
            flow.start(**options)  # type: ignore[arg-type]
    assert path.read_text() == "t,k\n1,1\n"


def test_a_query_that_joins_at_the_end_is_run_or_refused(tmp_path: Path) -> None:
    refusals = []
    for attempt in range(30):
        flow = pk.Flow().stream("s", rows(0, 40), time="t").stream("u", rows(0, 40), time="t")
        run = flow.start({flow.query("SELECT t FROM s", name="a"): tmp_path / "a.parquet"})
        out: list[Any] = []
        threading.Event().wait(0.0003 * attempt)
        try:
            joined = run.add(flow.query("SELECT t FROM u", name="b"), out)
        except StreamError as refused:
            refusals.append(str(refused))
            run.wait()
            continue
        run.wait()
        assert joined.wait(5)
        assert (joined.status, len(out)) == (FINISHED, 40)
    assert refusals  # the last ones came too late
    assert all("run is over" in told or "streams have ended" in told for told in refusals)


def test_results_of_a_query_that_has_left_go_to_its_own_sink() -> None:
    tap = Tap()
    flow = pk.Flow().stream("s", tap, time="t", schema=S)
    go, inside = threading.Event(), threading.Event()
    old: list[Any] = []
    new: list[Any] = []

    def slow(table: Any) -> None:
        inside.set()
        go.wait(30)

    text = f"SELECT k, count(*) AS n {W}"
    run = flow.start({flow.query(text, name="a"): slow, flow.query(text, name="b"): old})
    tap.items.extend(rows(0, 15))
    assert inside.wait(30)
    run.remove("b")
    assert [row["n"] for row in old] == [5, 5]
    joined = run.add(flow.query("SELECT max(size) AS top [RANGE 10, SLIDE 10, WA t] FROM s", name="b"), new)
    go.set()
    tap.items.extend([*rows(15, 40), pk.END])
    assert run.wait(30)
    assert joined.complete_from == "21"
    assert [row["top"] for row in new] == [29, 39]


def test_dead_letters_are_those_of_the_querys_own_operators() -> None:
    flow = pk.Flow().stream("s", rows(0, 20), time="t").stream("z", [{"t": t, "k": 0} for t in range(5)], time="t")
    texts = {
        "q1": "SELECT t, 1 div k AS b FROM s", "q2": "SELECT t, 1 div k AS b FROM s WHERE t > 15",
        "q3": "SELECT t FROM s", "q4": "SELECT t, 1 div k AS b FROM z",
    }  # fmt: skip
    run = flow.start({flow.query(sql, name=name): [] for name, sql in texts.items()})
    run.wait(60)
    found = {name: (one.dead_letters.num_rows, one.progress.counts.failed) for name, one in run.runs.items()}
    assert found == {"q1": (10, 10), "q2": (2, 2), "q3": (0, 0), "q4": (5, 5)}


@pytest.mark.parametrize("fails_when", ["leaving", "about to leave"])
def test_a_sink_that_fails_while_its_query_leaves_is_told(fails_when: str) -> None:
    tap = Tap()
    flow = pk.Flow().stream("s", tap, time="t", schema=S)
    go, inside = threading.Event(), threading.Event()

    def failing(table: Any) -> None:
        if inside.is_set():
            raise OSError("full")
        inside.set()
        go.wait(30)

    wide = flow.query("SELECT count(*) AS n [RANGE 300000, SLIDE 1, WA t] FROM s", name="q")
    run = flow.start({wide: failing, flow.query("SELECT t FROM s", name="p"): []})
    tap.items.extend([{"t": 0, "k": 0, "size": 0}, {"t": 200000, "k": 0, "size": 0}])
    assert inside.wait(30)

    def leave() -> None:
        with pytest.raises(PenstockError):
            run.remove("q")

    left = run.runs["q"]
    leaving = threading.Thread(target=leave)
    leaving.start()
    while fails_when == "leaving" and (left.status == RUNNING or not left._pending):
        pass  # until there is more for the sink, which the thread that is in it takes
    go.set()
    leaving.join(30)
    with pytest.raises(PenstockError, match="sink of the results failed"):
        left.wait(30)
    assert left.status == FAILED
    run.stop()


def test_a_source_that_fails_costs_the_queries_that_read_it() -> None:
    flow = pk.Flow().stream("s", rows(0, 40), time="t")
    flow.stream("bad", (1 // 0 for _ in range(3)), time="t", schema=S)
    out: list[Any] = []
    run = flow.start({flow.query("SELECT t FROM s", name="a"): out, flow.query("SELECT t FROM bad", name="b"): []})
    assert run.wait(60)
    assert (run.status, run.runs["a"].status, len(out)) == (FINISHED, FINISHED, 40)
    assert run.runs["b"].status == FAILED
    with pytest.raises(SourceError, match="source of a stream failed"):
        run.runs["b"].wait()
    alone = flow.start({flow.query("SELECT t FROM bad", name="b"): []})
    with pytest.raises(PenstockError):
        alone.wait(60)


def test_what_a_query_missed_is_known_after_a_snapshot_and_streams_that_nobody_reads_go_on() -> None:
    tap, other = Tap(), Tap()
    flow = pk.Flow().stream("s", tap, time="t", schema=S).stream("u", other, time="t", schema=S)
    window = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s"
    watch = flow.query("SELECT t FROM u", name="b")
    run = flow.start({flow.query(window, name="a"): [], watch: []})
    tap.items.extend(rows(0, 15))
    run.process_available()
    assert run.add(flow.query(window, name="late comer"), []).complete_from == "11"  # it shares what is there
    run.remove("a")
    run.stop()
    again = flow.start({watch: [], flow.query(window, name="late comer"): []}, snapshot=run.snapshot())
    assert again.runs["late comer"].complete_from == "11"
    again.remove("late comer")
    again.stop()
    counts: list[Any] = []
    third = flow.start({watch: []}, snapshot=again.snapshot())
    joined = third.add(flow.query(window, name="c"), counts)
    assert joined.complete_from == "21"
    tap.items.extend([*rows(3, 4), *rows(15, 17), *rows(25, 26), pk.END])
    third.process_available()
    assert joined.late.num_rows == 1
    assert [row["n"] for row in counts] == [1]
    third.stop()


def test_a_flow_goes_on_under_other_labels_and_with_a_having() -> None:
    flow = pk.Flow().stream("s", [], time="t", schema=S)
    run = flow.start({flow.query(f"SELECT k, count(*) AS n, max(size) AS m {W}", name="q"): []})
    run.stop()
    reworded = f"SELECT k, count(*) AS many, max(size) AS m {W} HAVING max(size) > 0"
    assert flow.start({flow.query(reworded, name="q"): []}, snapshot=run.snapshot()).wait(30)


def test_two_tasks_share_what_comes_and_a_closed_one_is_over() -> None:
    async def main() -> tuple[int, bool]:
        made = pk.Flow().stream("s", rows(0, 40), time="t").query("SELECT t FROM s").elements()

        async def worker() -> int:
            return len([e async for e in made if isinstance(e, pk.Insert)])

        found = sum(await asyncio.gather(worker(), worker()))
        other = pk.Flow().stream("s", rows(0, 40), time="t").query("SELECT t FROM s").elements()
        await other.__anext__()
        other.close()
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(other.__anext__(), 10)
        return found, True

    assert asyncio.run(main()) == (40, True)


def test_a_polled_source_has_one_reader_and_says_when_it_ends() -> None:
    tap = Tap(rows(0, 10))
    flow = pk.Flow().stream("s", tap, time="t", schema=S)
    run = flow.query("SELECT t FROM s").start([])
    run.process_available()
    for _ in range(2):  # it has that reader still, whoever else was refused
        with pytest.raises(SourceError, match="being read already"):
            flow.query("SELECT t FROM s").start([]).wait(30)
    run.stop()

    class Stops(Tap):
        def poll(self) -> Any:
            raise StopIteration

    with pytest.raises(SourceError, match=r"gives pk\.END"):
        pk.Flow().stream("s", Stops(), time="t", schema=S).query("SELECT t FROM s").collect()


def shared(flow: pk.Flow, *streams: str) -> tuple[SharedExecution, dict[str, Any]]:
    """A query of each of some streams, as one, and how all streams are opened."""
    plans = {name: flow.query(f"SELECT t FROM {name}").plan for name in streams}
    return SharedExecution(flow.catalog, plans), {name: source.open for name, source in flow._sources.items()}


def test_a_source_is_free_again_if_the_run_ends_while_a_query_joins_it() -> None:
    is_stopped, is_left = threading.Event(), threading.Event()

    def silent() -> Iterator[Any]:
        is_left.wait(30)
        yield from ()

    flow = pk.Flow().stream("s", silent(), time="t", schema=S).stream("r", Tap(), time="t", schema=S)
    run, openers = shared(flow, "s")
    read = threading.Thread(target=lambda: list(run.run(openers, stopped=is_stopped.is_set, live={"s": 8})))
    read.start()
    run.begun.wait(30)

    def opened_too_late() -> Any:
        items = openers["r"]()
        is_stopped.set()
        run.halt()
        read.join(30)
        return items

    with pytest.raises(StreamError, match="no other is read any more"):
        run.add({"r": flow.query("SELECT t FROM r").plan}, openers | {"r": opened_too_late})
    is_left.set()
    assert openers["r"]().is_open, "nobody else reads it"
    assert (list(run.plans), run.streams) == (["s"], ["s"]), "nothing of the query is left"


def test_a_run_that_fails_before_its_first_item_leaves_its_sources_free() -> None:
    flow = pk.Flow().stream("s", Tap(), time="t", schema=S)
    run, openers = shared(flow, "s")
    with pytest.raises(ZeroDivisionError):
        list(run.run(openers, between=lambda: 1 / 0))
    assert openers["s"]().is_open


def test_a_reader_is_read_only_once_its_first_batch_is_asked_for() -> None:
    tap = Tap(rows(0, 2))
    reader = pa.RecordBatchReader.from_batches(
        (table := pa.table({"t": [1], "k": [0], "size": [1]})).schema, table.to_batches()
    )
    flow = pk.Flow().stream("a", reader, time="t").stream("b", tap, time="t", schema=S)
    other = flow.query("SELECT t FROM b").start([])
    other.process_available()
    both = flow.query("SELECT t FROM a UNION ALL SELECT t FROM b")
    with pytest.raises(SourceError, match="being read already"):
        both.collect()
    other.stop()
    tap.items.append(pk.END)
    assert both.collect()["t"].to_pylist() == [1]


def test_a_query_that_joins_while_sources_are_opened_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = pk.Flow().stream("s", rows(0, 2), time="t", schema=S).stream("r", rows(5, 7), time="t", schema=S)
    run, openers = shared(flow, "s")
    joining = threading.Thread(target=lambda: run.add({"r": flow.query("SELECT t FROM r").plan}, openers))

    begin = Pulling.__init__

    def slow(self: Pulling[Any], turn: int) -> None:
        begin(self, turn)
        joining.start()
        joining.join(0.2)  # which waits until all is open

    monkeypatch.setattr(Pulling, "__init__", slow)
    found = collections.Counter[str]()
    for name, item in run.run(openers, between=lambda: joining.join(30)):
        found[name] += len(item) if isinstance(item, Batch) else 0
    assert found == {"s": 2, "r": 2}


def test_a_sink_cannot_wait_for_the_run_that_calls_it() -> None:
    told: list[BaseException] = []
    started = threading.Event()
    runs: list[Any] = []

    def sink(table: Any) -> None:
        started.wait(30)
        for name in ("stop", "finish", "wait", "process_available"):
            try:
                getattr(runs[0], name)()
            except StreamError as error:
                told.append(error)

    runs.append(pk.Flow().stream("s", rows(0, 4), time="t").query("SELECT t FROM s").start(sink))
    started.set()
    assert runs[0].wait(30)
    assert len(told) >= 4
    assert all("cannot wait for the run that calls it" in str(error) for error in told)


def test_late_rows_of_streams_with_different_kinds_of_time_have_one_form(tmp_path: Path) -> None:
    flow = pk.Flow().stream("a", [{"t": 5}, {"t": 1}], time="t")
    flow.stream("b", [{"ts": "2026-01-01 10:00:00"}, {"ts": "2026-01-01 09:00:00"}], time="ts", schema="ts timestamp")
    queries = [flow.query("SELECT t FROM a", name="a"), flow.query("SELECT ts FROM b", name="b")]
    run = flow.start({query: [] for query in queries}, late=tmp_path / "late.parquet")
    assert run.wait(60)
    assert sorted(run.late["bound"].to_pylist()) == ["t >= 5", "ts >= 2026-01-01 10:00:00"]


def test_a_row_after_the_end_of_its_group_is_late_and_can_be_read() -> None:
    bids = [
        {"t": "2026-01-01 10:00:00", "a": 7}, {"t": "2026-01-01 10:00:05", "a": 7, "kind": "x"},
        {"t": "2026-01-01 10:00:06", "a": 7}, {"t": "2026-01-01 10:00:06", "a": 8},
    ]  # fmt: skip
    ends = pk.punctuated("kind = 'x'", per=["a"], final=True)
    flow = pk.Flow().stream("b", bids, time="t", schema="t timestamp, a bigint, kind string", progress=ends)
    lates: list[Any] = []
    results: list[Any] = []
    assert flow.query("SELECT a, count(*) AS n FROM b GROUP BY a").start(results, late=lates).wait(60)
    assert [(row["stream"], row["bound"]) for row in lates] == [("b", None)]
    assert {(row["a"], row["n"]) for row in results} == {(7, 1), (8, 1)}


def test_promises_of_groups_that_were_not_declared_are_dead_letters() -> None:
    items = [{"t": 1, "j": 0}, pk.groupwise("t", 10, j=0), {"t": 2, "j": 0}]
    query = pk.Flow().stream("s", items, time="t", progress=pk.bounded(100)).query("SELECT * FROM s")
    assert query.collect().num_rows == 2
    assert "has not declared" in query.dead_letters["reason"][0].as_py()


def test_an_adjust_never_takes_another_event_for_its_own() -> None:
    lived: dict[str, Any] = {"time": "t", "lives": True, "progress": pk.bounded(100)}
    there, gone = pk.Insert((5, 1, 1), 5, 9), pk.Insert((5, 2, 1), 5, 9)  # the second one comes late
    elements = [there, pk.linear("t", 6), gone, pk.Adjust((5, 2, 1), 5, 9, 12)]
    flow = pk.Flow().stream("s", elements, schema="t bigint, k bigint, v bigint", **lived)
    query = flow.query("SELECT DISTINCT v FROM s")
    assert [row["ve"] for row in query.collect().to_pylist()] == [9]
    assert query.dead_letters.num_rows == 1
    one = [pk.linear("t", 6), pk.Insert((5, 1), 5, 9), pk.Adjust((5, 1), 5, 9, 12)]
    both = pk.Flow().stream("a", one, schema="t bigint, k bigint", **lived)
    both.stream("b", [pk.Insert((5, 1), 5, 9)], schema="t bigint, k bigint", **lived)
    assert [row["ve"] for row in both.query("SELECT DISTINCT k FROM a UNION b").collect().to_pylist()] == [9]


def test_a_having_may_come_whatever_aggregate_it_names() -> None:
    flow = pk.Flow().stream("s", [], time="t", schema=S, progress=pk.bounded(2))
    before: Any = flow.query(f"SELECT k, max(size) AS m, count(*) AS n {W}")
    run = before.execution()
    for row in ((1, 1, 7), (2, 1, 5), (3, 0, 2)):
        run.pusher("s")(row)
    run.take()  # what the one query gave is not the other's
    after: Any = flow.query(f"SELECT k, max(size) AS m, count(*) AS n {W} HAVING count(*) > 1")
    again = after.execution()
    again.restore(run.snapshot())
    assert [row[3:] for b in again.close() if isinstance(b, Batch) for row in b.rows] == [(1, 7, 2)]


def test_a_lag_is_told_where_times_can_be_compared() -> None:
    events = [{"ts": f"2026-01-01 10:00:{n:02}", "seq": n} for n in range(30)]
    progress: Any = {"ts": pk.bounded("5 seconds"), "seq": pk.ordered()}
    flow = pk.Flow().stream("s", events, time="ts", schema="ts timestamp, seq bigint", progress=progress)
    on_seq = flow.query("SELECT count(*) AS n [RANGE 4, SLIDE 2, WA seq] FROM s").start([])
    on_time = flow.query("SELECT count(*) AS n [RANGE 4 seconds, SLIDE 2 seconds, WA ts] FROM s").start([])
    on_seq.wait(60)
    on_time.wait(60)
    assert on_seq.progress.lag is None
    assert on_time.progress.lag is not None
