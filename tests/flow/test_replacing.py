"""`run.replace(sql)`: a running query becomes another one, and whoever takes its results sees no seam.

```
T = 40         old: every 10 ticks, slide 5            new: every 20 ticks, slide 10
window_end     5  10  15  20  25  30  35 |40  50  60
```
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import CheckpointError, PenstockError, StreamError, UnsupportedError
from penstock.flow.run import FINISHED
from penstock.flow.spark_run import SparkRun
from penstock.model.batch import Batch
from tests.flow.test_positions import Numbered

S = "ts bigint, k bigint, v bigint"
OLD = "SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k"
NEW = "SELECT k, sum(v) AS n [RANGE 20, SLIDE 10, WA ts] FROM s GROUP BY k"
THIRD = "SELECT k, max(v) AS n [RANGE 5, SLIDE 5, WA ts] FROM s WHERE v > 3 GROUP BY k"
WHOLE = {"old": OLD, "new": NEW, "third": THIRD}


class Tap:
    def __init__(self) -> None:
        self.items: collections.deque[Any] = collections.deque()

    def poll(self) -> Any:
        return self.items.popleft() if self.items else pk.IDLE


class Promising(Tap):
    """Says how far it has come when it is asked, and how often that was."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.asked = 0, 0

    def promise(self, now: int) -> int:
        self.asked += 1
        return self.reached


def rows(start: int, end: int, step: int = 1) -> list[dict[str, int]]:
    return [{"ts": t, "k": t // step % 2, "v": t} for t in range(start, end, step)]


def alone(sql: str, given: list[dict[str, int]]) -> list[dict[str, Any]]:
    made = pk.Flow().stream("s", given, time="ts", schema=S, progress=pk.bounded(6))
    return made.query(sql).collect().to_pylist()


def seamed(*parts: tuple[str, int | None, int | None], given: list[dict[str, int]]) -> list[Any]:
    """What queries say by themselves, each between two ends of windows."""
    found = []
    for sql, start, end in parts:
        for row in alone(sql, given):
            if (start is None or row["window_end"] >= start) and (end is None or row["window_end"] < end):
                found.append(tuple(row.values()))
    return sorted(found)


def as_rows(out: list[dict[str, Any]]) -> list[Any]:
    return sorted(tuple(row.values()) for row in out)


def begun(sink: Any, **options: Any) -> tuple[Any, Tap]:
    tap = Tap()
    flow = pk.Flow().stream("s", tap, time="ts", schema=S, progress=pk.bounded(6))
    run = flow.start({flow.query(OLD, name="q"): sink}, **options)
    tap.items.extend(rows(0, 17))
    run.process_available()
    return run, tap


def test_a_query_becomes_another_one_in_a_file(tmp_path: Path) -> None:
    run, tap = begun(tmp_path / "out.jsonl")
    made = run.runs["q"].replace(NEW)
    assert (made.status, made.split_ticks, made.split, made.at_once) == ("under way", 40, "40", False)
    tap.items.extend([*rows(17, 80), pk.END])
    assert run.wait(30)
    assert made.wait(1)
    assert made.status == "done"
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert as_rows(written) == seamed((OLD, None, 40), (NEW, 40, None), given=rows(0, 80))
    ends = [row["window_end"] for row in written]
    assert ends == sorted(ends)
    assert run.runs["q"].query.sql == NEW


def test_the_report_tells_what_was_fed_to_both_and_what_was_freed() -> None:
    out: list[Any] = []
    run, tap = begun(out)
    before = {node.label for node in run.execution.graph.nodes}
    made = run.runs["q"].replace(NEW)
    both = {node.label for node in run.execution.graph.nodes}
    assert before < both
    tap.items.extend(rows(17, 60))
    run.process_available()
    assert (made.began.arrivals, made.began.newest, made.began.frontier) == (17, {"s": "16"}, {"s": "10"})
    assert made.ended is not None
    # The old query has promised all up to 40 when its streams have reached 35: the window that ends there is out then.
    assert (made.ended.arrivals, made.ended.frontier, made.fed_to_both) == (42, {"s": "35"}, 25)
    assert made.freed_bytes > 0
    left = {node.label for node in run.execution.graph.nodes}
    assert left == {label for label in both - before if label != "Handover at 40"} | {
        label for label in before if label.startswith("Source")
    }
    assert set(made.freed_operators) == before - left
    assert "Handover" not in run.explain()
    run.stop()


@pytest.mark.parametrize("strategy", ["dfs", "bfs", "round_robin", pk.dfs(batch=3)])
def test_several_in_a_row_under_every_strategy(strategy: Any) -> None:
    out: list[Any] = []
    run, tap = begun(out, strategy=strategy)
    query = run.runs["q"]
    splits = []
    given = rows(0, 17)
    for sql, until in ((NEW, 70), (THIRD, 120), (OLD, 160)):
        made = query.replace(sql)
        splits.append(made.split_ticks)
        more = rows(len(given), until)
        given += more
        tap.items.extend(more)
        run.process_available()
        assert made.status == "done"
    tap.items.append(pk.END)
    run.wait(30)
    one, two, three = splits
    expected = seamed((OLD, None, one), (NEW, one, two), (THIRD, two, three), (OLD, three, None), given=given)
    assert as_rows(out) == expected
    assert query.status == FINISHED


@pytest.mark.parametrize("attempt", range(4))
def test_while_rows_flow_in_another_thread(attempt: int) -> None:
    given, out = rows(0, 4000), []
    flow = pk.Flow().stream("s", (row for row in given), time="ts", schema=S, progress=pk.bounded(6))
    run = flow.start({flow.query(OLD, name="q"): out, flow.query(THIRD, name="beside"): None})
    rng, speaking = random.Random(attempt), [(OLD, -100)]
    while run.is_active and len(speaking) < 12:
        sql = rng.choice([OLD, NEW, THIRD])
        try:
            made = run.replace("q", sql)
        except StreamError as refused:  # the run has come to its end meanwhile
            assert any(told in str(refused) for told in ("run is over", "have ended", "There is no such"))  # noqa: PT017
            break
        if rng.random() < 0.3:
            with contextlib.suppress(StreamError):  # it was too late for that
                made.abandon()
        assert made.wait(30)
        if made.status == "done":
            assert made.split_ticks is not None
            speaking.append((sql, made.split_ticks))
    run.wait(30)
    ends = [start for _, start in speaking[1:]] + [10**6]
    parts = [(sql, start, end) for (sql, start), end in zip(speaking, ends, strict=True)]
    assert as_rows(out) == seamed(*parts, given=given)


def test_the_others_do_not_notice() -> None:
    def played(replaces: bool) -> tuple[list[Any], Any]:
        tap, other, out = Tap(), [], []
        flow = pk.Flow().stream("s", tap, time="ts", schema=S, progress=pk.bounded(6))
        run = flow.start({flow.query(OLD, name="q"): out, flow.query(THIRD, name="other"): other})
        for at in range(0, 90, 10):
            tap.items.extend(rows(at, at + 10))
            run.process_available()
            if replaces and at == 20:
                run.replace("q", NEW)
            if replaces and at == 60:
                run.replace("q", OLD)
        tap.items.append(pk.END)
        run.wait(30)
        return other, run.late.num_rows

    assert played(replaces=True) == played(replaces=False)


def test_what_is_equal_is_shared_and_nothing_has_to_be_filled() -> None:
    out: list[Any] = []
    run, tap = begun(out)
    query, having = run.runs["q"], OLD + " HAVING count(*) > 4"
    told = query.can_replace(having)
    assert told
    assert told.split_ticks == 15  # the next window of the aggregate that both have
    assert any(label.startswith("Aggregate") for label in told.shared)
    made = query.replace(having)
    tap.items.extend([*rows(17, 60, 3), pk.END])
    run.wait(30)
    given = [*rows(0, 17), *rows(17, 60, 3)]
    assert as_rows(out) == seamed((OLD, None, 15), (having, 15, None), given=given)
    assert not any(label.startswith("Aggregate family") for label in made.freed_operators)


def test_without_state_it_is_at_once() -> None:
    tap, out = Tap(), []
    flow = pk.Flow().stream("s", tap, time="ts", schema=S, progress=pk.bounded(6))
    run = flow.start({flow.query("SELECT ts, v FROM s WHERE v > 3", name="q"): out})
    tap.items.extend(rows(0, 10))
    run.process_available()
    query = run.runs["q"]
    assert query.can_replace("SELECT ts, v + 100 AS v FROM s").at_once
    made = query.replace("SELECT ts, v + 100 AS v FROM s")
    assert (made.status, made.at_once, made.split) == ("done", True, None)
    tap.items.extend([{"ts": 5, "k": 0, "v": 5}, {"ts": 10, "k": 0, "v": 10}, pk.END])
    run.wait(30)
    assert [row["v"] for row in out] == [4, 5, 6, 7, 8, 9, 105, 110]


def test_it_can_be_abandoned_and_the_old_query_goes_on() -> None:
    out: list[Any] = []
    run, tap = begun(out)
    made = run.runs["q"].replace(NEW)
    before = len(run.execution.graph.nodes)
    tap.items.extend(rows(17, 30))
    run.process_available()
    made.abandon()
    assert made.status == "abandoned"
    assert len(run.execution.graph.nodes) < before
    with pytest.raises(StreamError, match="replacement is over"):
        made.abandon()
    again = run.runs["q"].replace(THIRD)
    assert again.status == "under way"
    again.abandon()
    tap.items.extend([*rows(30, 80), pk.END])
    run.wait(30)
    assert as_rows(out) == seamed((OLD, None, None), given=rows(0, 80))
    assert run.runs["q"].query.sql == OLD


def test_results_of_the_new_query_cannot_be_taken_back() -> None:
    tap, other, out = Tap(), Tap(), []
    flow = pk.Flow().stream("s", tap, time="ts", schema=S).stream("u", other, time="ts", schema=S)
    union = "SELECT ts, v FROM s UNION ALL SELECT ts, v FROM u"
    run = flow.start({flow.query(union + " WHERE v > 0", name="q"): out})
    tap.items.extend(rows(0, 10))
    run.process_available()
    joined = "SELECT DISTINCT ts, v FROM s UNION ALL SELECT ts, v FROM u"
    made = run.replace("q", joined)
    tap.items.extend(rows(10, 20))
    run.process_available()
    assert [row["ts"] for row in out if row["ts"] >= 10]  # u is silent, and holds up nothing
    assert made.status == "under way"
    with pytest.raises(StreamError, match="cannot be abandoned any more"):
        made.abandon()
    other.items.extend([{"ts": 4, "k": 0, "v": 4}, {"ts": 15, "k": 0, "v": 1}])
    run.process_available()
    assert made.status == "done"
    for each in (tap, other):
        each.items.append(pk.END)
    run.wait(30)
    assert len(out) == 10 + 1 + 10 + 1


def test_a_silent_input_that_promises_when_it_is_asked_ends_it() -> None:
    tap, silent, out = Tap(), Promising(), []
    flow = pk.Flow().stream("s", tap, time="ts", schema=S).stream("u", silent, time="ts", schema=S)
    counted = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM s UNION u"
    run = flow.start({flow.query(counted, name="q"): out})
    tap.items.extend(rows(0, 15))
    run.process_available()
    made = run.replace("q", counted.replace("RANGE 10", "RANGE 20"))
    assert made.split_ticks == 40
    tap.items.extend(rows(15, 45))
    run.process_available()
    assert made.status == "under way"
    silent.reached = 40
    tap.items.append({"ts": 45, "k": 0, "v": 0})
    run.process_available()
    assert made.wait(30)
    assert made.status == "done"
    assert [(row["window_end"], row["n"]) for row in out] == [(10, 10), (20, 10), (30, 10), (40, 20)]
    run.stop()


def test_a_stream_that_nobody_has_read_so_far() -> None:
    tap, out = Tap(), []
    flow = pk.Flow().stream("s", tap, time="ts", schema=S)
    flow.stream("u", [{"ts": t, "k": 9, "v": t} for t in range(60)], time="ts")
    run = flow.start({flow.query(OLD, name="q"): out})
    tap.items.extend(rows(0, 17))
    run.process_available()
    both = OLD.replace("FROM s", "FROM s UNION u")
    made = run.replace("q", both)
    assert made.split_ticks == 30
    tap.items.extend([*rows(17, 60), pk.END])
    run.wait(30)
    assert {row["window_end"] for row in out if row["k"] == 9} == set(range(30, 70, 5))
    assert {row["window_end"] for row in out if row["k"] == 0} == set(range(5, 70, 5))


REFUSED = [
    ("SELEC", "SELECT is expected"),
    ("SELECT k FROM nope", "Unknown stream"),
    (NEW.replace("AS n", "AS other"), "gives other columns"),
    (NEW.replace("sum(v)", "avg(v)"), "n is double instead of bigint"),
    ("SELECT k, count(*) AS n [RANGE ALL, SLIDE 10, WA ts] FROM s GROUP BY k", "RANGE ALL"),
    ("SELECT k, count(*) AS n [RANGE 5 ROWS, SLIDE 5 ROWS, WA row-num] FROM s GROUP BY k", "by row numbers"),
    (7, "A query is a text"),
]


@pytest.mark.parametrize(("sql", "told"), REFUSED)
def test_what_cannot_be_is_refused_and_the_old_query_goes_on(sql: Any, told: str) -> None:
    out: list[Any] = []
    run, tap = begun(out)
    found = run.runs["q"].can_replace(sql)
    assert not found
    assert told in str(found)
    with pytest.raises(PenstockError) as raised:
        run.runs["q"].replace(sql)
    assert str(raised.value) == str(found.error)
    tap.items.extend([*rows(17, 40), pk.END])
    run.wait(30)
    assert as_rows(out) == seamed((OLD, None, None), given=rows(0, 40))


def test_rows_that_matter_for_ever_are_told_with_what_to_do() -> None:
    tap = Tap()
    flow = pk.Flow().stream("s", tap, time="ts", schema=S).stream("u", Tap(), time="ts", schema=S)
    run = flow.start({flow.query("SELECT s.ts, u.v FROM s JOIN u ON s.k = u.k AND s.ts = u.ts", name="q"): []})
    tap.items.extend(rows(0, 5))
    run.process_available()
    told = run.can_replace("q", "SELECT s.ts, u.v FROM s ASOF JOIN u ON s.k = u.k AND u.ts <= s.ts")
    assert not told
    assert told.error is not None
    assert "latest of any age" in told.error.got
    assert "replay" in told.error.hint
    assert told.reach == {"s": None, "u": None}
    run.stop()


def test_only_one_replacement_at_a_time_and_none_of_a_run_that_is_over() -> None:
    run, tap = begun([])
    query = run.runs["q"]
    query.replace(NEW)
    with pytest.raises(StreamError, match="being replaced already"):
        query.replace(THIRD)
    tap.items.append(pk.END)
    run.wait(30)
    with pytest.raises(StreamError, match="run is over"):
        query.replace(THIRD)


def test_a_query_that_has_left_is_not_replaced() -> None:
    run, _ = begun([])
    query = run.runs["q"]
    made = query.replace(NEW)
    run.remove("q")
    assert made.wait(1)
    assert made.status == "stopped"
    with pytest.raises(StreamError, match="has left"):
        query.replace(NEW)
    assert [node.stream for node in run.execution.graph.nodes] == ["s"]
    run.stop()


def test_columns_that_are_called_otherwise_are_mapped() -> None:
    out: list[Any] = []
    run, tap = begun(out)
    other = "SELECT k AS host, sum(v) AS total [RANGE 20, SLIDE 10, WA ts] FROM s GROUP BY k"
    assert not run.runs["q"].can_replace(other, mapping={"total": "n"})
    with pytest.raises(StreamError, match="mapping is from names"):
        run.runs["q"].replace(other, mapping={"total": 3})
    made = run.runs["q"].replace(other, mapping={"total": "n", "host": "k"})
    tap.items.extend([*rows(17, 60), pk.END])
    run.wait(30)
    assert made.status == "done"
    assert {tuple(row) for row in out} == {("wid", "window_start", "window_end", "k", "n")}
    assert as_rows(out) == seamed((OLD, None, 40), (NEW, 40, None), given=rows(0, 60))


def test_the_check_names_the_row_that_postpones_the_split() -> None:
    run, tap = begun([])
    tap.items.append({"ts": 100_000, "k": 0, "v": 0})
    run.process_available()
    told = run.runs["q"].can_replace(NEW)
    assert told.postponed_by == "stream s, whose greatest row is at 100000"
    assert (told.split_ticks, told.warm_up, told.reach) == (100_030, "30", {"s": "20"})
    assert "can be replaced at 100030" in str(told)
    run.stop()


def test_before_the_first_row_the_check_names_no_time() -> None:
    flow = pk.Flow().stream("s", Tap(), time="ts", schema=S, progress=pk.bounded(6))
    run = flow.start({flow.query(OLD, name="q"): []})
    query: Any = run.runs["q"]
    assert str(query.can_replace(NEW)).startswith("query q can be replaced at once: no row has come yet\n")
    assert repr(query.replace(NEW)).startswith("<replacement of q at once: ")
    run.stop()


class Drifting:
    """Two replicas that say other things from some time on."""

    def __init__(self, name: str, differs_from: int) -> None:
        self.items: collections.deque[Any] = collections.deque()
        self.name, self.differs_from = name, differs_from

    def add(self, start: int, end: int) -> None:
        for t in range(start, end):
            v = t if self.name == "s" or t < self.differs_from else -t
            self.items.append({"ts": t, "k": 0, "v": v})

    def poll(self) -> Any:
        return self.items.popleft() if self.items else pk.IDLE


@pytest.mark.parametrize(("differs_from", "is_given_up"), [(30, True), (90, False)])
def test_a_new_query_that_fails_before_the_split_is_given_up(differs_from: int, is_given_up: bool) -> None:
    """A merge that is to stop when its replicas differ; the old query reads one of them."""
    one, other = Drifting("s", differs_from), Drifting("t", differs_from)
    flow = pk.Flow()
    for source in (one, other):
        flow.stream(source.name, source, time="ts", schema=S)
    flow.merge("m", ["s", "t"], key=["k"], on_divergence="stop")
    out: list[Any] = []
    run = flow.start({flow.query(OLD, name="q"): out})
    one.add(0, 17)
    run.process_available()
    made = run.replace("q", NEW.replace("FROM s", "FROM m"))
    for source in (one, other):
        source.add(17, 120)
        source.items.append(pk.END)
    if is_given_up:
        run.wait(30)
        assert made.status == "failed"
        assert "not replicas" in str(made.exception)
        assert "failed" in repr(made)
        assert [row["window_end"] for row in out] == list(range(5, 130, 5))
        assert run.runs["q"].query.sql == OLD
    else:  # it has taken over, so its failure is the run's
        with pytest.raises(PenstockError, match="not replicas"):
            run.wait(30)
        assert made.status == "done"


def test_a_failure_is_the_runs_if_another_query_has_come_to_share_it() -> None:
    one, other = Drifting("s", 30), Drifting("t", 30)
    flow = pk.Flow()
    for source in (one, other):
        flow.stream(source.name, source, time="ts", schema=S)
    flow.merge("m", ["s", "t"], key=["k"], on_divergence="stop")
    run = flow.start({flow.query(OLD, name="q"): []})
    one.add(0, 17)
    run.process_available()
    merged = NEW.replace("FROM s", "FROM m")
    made = run.replace("q", merged)
    run.add(flow.query(merged, name="same"), [])
    for source in (one, other):
        source.add(17, 120)
        source.items.append(pk.END)
    with pytest.raises(PenstockError, match="not replicas"):
        run.wait(30)
    assert made.status == "failed"


def test_functions_and_async_sinks_take_both() -> None:
    async def main() -> list[Any]:
        tap, got = Tap(), []

        async def sink(table: Any) -> None:
            await asyncio.sleep(0)
            got.extend(table.to_pylist())

        flow = pk.Flow().stream("s", tap, time="ts", schema=S, progress=pk.bounded(6))
        run = flow.start({flow.query(OLD, name="q"): sink})
        tap.items.extend(rows(0, 17))
        await asyncio.to_thread(run.process_available)
        made = await asyncio.to_thread(run.replace, "q", NEW)
        tap.items.extend([*rows(17, 80), pk.END])
        await run
        assert made.status == "done"
        return got

    assert as_rows(asyncio.run(main())) == seamed((OLD, None, 40), (NEW, 40, None), given=rows(0, 80))


def test_spark_says_that_it_cannot() -> None:
    run = SparkRun.__new__(SparkRun)  # one that was never started has a name, and that is all that is asked
    run.name = "q"
    for ask in (run.replace, run.can_replace):
        with pytest.raises(UnsupportedError, match=r"Spark, streaming engine does not support this: run\.replace"):
            ask(NEW)


def lone(given: Any, sql: str = OLD) -> Any:
    return pk.Flow().stream("s", given, time="ts", schema=S, progress=pk.bounded(6)).query(sql, name="q")


def test_a_query_by_itself_becomes_another_one(tmp_path: Path) -> None:
    tap = Tap()
    run = lone(tap).start(tmp_path / "out.jsonl")
    tap.items.extend(rows(0, 17))
    run.process_available()
    assert run.can_replace(NEW).split_ticks == 40
    given, splits = rows(0, 17), []
    for sql, until in ((NEW, 70), (THIRD, 120)):
        made = run.replace(sql)
        splits.append(made.split_ticks)
        with pytest.raises(StreamError, match="being replaced already"):
            run.replace(OLD)
        more = rows(len(given), until)
        given += more
        tap.items.extend(more)
        run.process_available()
        assert (made.status, run.query.sql) == ("done", sql)
        assert made.freed_operators
    gone = run.replace(OLD)
    gone.abandon()
    assert gone.status == "abandoned"
    tap.items.append(pk.END)
    run.wait(30)
    with pytest.raises(StreamError, match="run is over"):
        run.replace(OLD)
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    one, two = splits
    assert as_rows(written) == seamed((OLD, None, one), (NEW, one, two), (THIRD, two, None), given=given)


def test_elements_are_of_both_queries() -> None:
    tap, given = Tap(), rows(0, 80)
    tap.items.extend([*given, pk.END])
    elements = lone(tap).elements()
    got = [next(elements)]
    while not (isinstance(got[-1], pk.Insert) and got[-1].vs == 15):
        got.append(next(elements))
    made = elements.replace(NEW)
    got += list(elements)
    assert made.wait(1)
    assert made.status == "done"
    inserts = [each for each in got if isinstance(each, pk.Insert)]
    split = made.split_ticks
    assert sorted(each.payload for each in inserts) == seamed((OLD, None, split), (NEW, split, None), given=given)
    assert {each.ve - each.vs for each in inserts if each.vs < split} == {5}
    assert {each.ve - each.vs for each in inserts if each.vs >= split} == {10}


def test_a_query_by_itself_has_its_own_streams_and_columns(tmp_path: Path) -> None:
    tap = Tap()
    flow = pk.Flow().stream("s", tap, time="ts", schema=S).stream("u", Tap(), time="ts", schema=S)
    run = flow.query(OLD).start([])
    told = run.can_replace(OLD.replace("FROM s", "FROM u"))
    assert "reads its own streams alone" in str(told)
    run.stop()
    path = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_pylist(rows(0, 50)), path)
    elements = pk.Flow().stream("s", ds.dataset(path), time="ts").query(OLD).elements()
    next(elements)
    with pytest.raises(StreamError, match="leaves out columns"):
        elements.replace(NEW)
    elements.close()


def test_the_state_of_a_query_by_itself_is_that_of_the_new_one() -> None:
    tap, out = Tap(), []
    run = lone(tap).start(out)
    tap.items.extend(rows(0, 17))
    run.process_available()
    made = run.replace(NEW)
    with pytest.raises(CheckpointError, match="no room for two"):
        run.snapshot()
    tap.items.extend(rows(17, 60))
    run.process_available()
    assert made.status == "done"
    run.stop()
    going = lone([], NEW).execution()
    going.restore(run.snapshot())
    schema = going.graph.sources["s"][0].operator.schema
    given = rows(0, 80)
    more = list(going.feed("s", Batch(schema, [tuple(row.values()) for row in given[60:]])))
    more += going.close()
    got = as_rows(out) + [row for batch in more if isinstance(batch, Batch) for row in batch.rows]
    assert sorted(got) == seamed((OLD, None, 40), (NEW, 40, None), given=given)


# Snapshots


class Halting(Numbered):
    """Fails when it comes to an item, once it has been told to."""

    breaks: int | None = None

    def poll(self) -> Any:
        if self.breaks is not None and self.at >= self.breaks:
            raise OSError("the network is gone")
        return super().poll()


@pytest.mark.parametrize("text", ["old", "new"])
@pytest.mark.parametrize("killed_at", [18, 25, 36, 41, 42, 43, 60])
def test_killed_at_any_moment_it_goes_on_with_either_text(tmp_path: Path, killed_at: int, text: str) -> None:
    given = rows(0, 80)

    def start(sql: str, source: Any) -> Any:
        flow = pk.Flow().stream("s", source, time="ts", schema=S, progress=pk.bounded(6))
        query = flow.query(sql, name="q")
        return flow.start({query: tmp_path / "out.jsonl"}, snapshots=tmp_path / "kept", every=0)

    source = Halting(given, 17)
    run = start(OLD, source)
    run.process_available()
    made = run.replace("q", NEW)
    source.breaks, source.until = killed_at, len(given)
    with pytest.raises(PenstockError):
        run.wait(30)
    was_done = made.status == "done"
    if was_done and text == "old":
        with pytest.raises(CheckpointError, match="replaced by another") as raised:
            start(OLD, Numbered(given))
        assert NEW in str(raised.value)
        text = "new"
    run = start(WHOLE[text], Numbered(given))
    again = run.runs["q"].replacement
    assert (again is None) == was_done
    run.wait(30)
    if again is not None:
        assert again.status == "done"
        assert again.fed_to_both == 25
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert as_rows(written) == seamed((OLD, None, 40), (NEW, 40, None), given=given)


def test_another_query_of_that_name_is_refused_while_it_is_replaced() -> None:
    run, _ = begun([])
    run.replace("q", NEW)
    run.stop()
    saved = run.snapshot()
    flow = pk.Flow().stream("s", Tap(), time="ts", schema=S, progress=pk.bounded(6))
    with pytest.raises(CheckpointError, match="another query of that name"):
        flow.start({flow.query(THIRD, name="q"): []}, snapshot=saved)
    going = flow.start({flow.query(NEW, name="q"): []}, snapshot=saved)
    again = going.runs["q"].replacement
    assert again is not None
    again.abandon()
    assert going.runs["q"].query.sql == OLD
    going.stop()
