"""Streams of which several attributes progress, as a user declares and runs them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.cli.checking import check_query
from penstock.cli.inputs import streams
from penstock.errors import QueryError, StreamError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.progress import parse_progress

APART = {"ts": pk.bounded(5), "seq": pk.ordered()}
COLUMNS = "ts bigint, seq bigint, k string"


def flow(source: Any = (), progress: Any = None, **options: Any) -> pk.Flow:
    made = list(source) if isinstance(source, tuple) else source
    return pk.Flow().stream("s", made, time="ts", progress=progress or APART, **{"schema": COLUMNS} | options)


def test_a_mapping_of_the_time_alone_is_its_progress() -> None:
    assert flow(progress={"ts": pk.bounded(5)}).streams["s"].progress == pk.bounded(5)


def test_names_do_not_mind_case_and_explain_shows_all() -> None:
    made = flow(progress={"TS": pk.bounded(5), "Seq": pk.ordered()})
    assert "{'ts': bounded(5), 'seq': ordered()}" in made.query("SELECT * FROM s").explain()


def test_null_and_far_attributes_are_dead_letters() -> None:
    rows = [
        {"ts": 1, "seq": None, "k": "a"},
        {"ts": None, "seq": 1, "k": "b"},
        {"ts": 1, "seq": 2**62 + 1, "k": "c"},
        {"ts": 1, "seq": 1, "k": "d"},
    ]
    reasons = ["seq is null", "ts is null", f"seq is not between {-(2**62)} and {2**62}: {2**62 + 1}"]
    for source in (rows, pa.Table.from_pylist(rows), iter(rows)):
        query = flow(source).query("SELECT k FROM s")
        assert query.collect()["k"].to_pylist() == ["d"]
        assert sorted(query.dead_letters["reason"].to_pylist()) == sorted(reasons)


def test_a_late_row_names_its_promise_in_the_units_of_each_attribute() -> None:
    at = dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)
    rows = [
        {"ts": at + dt.timedelta(minutes=1), "seq": 9, "kind": "p"},
        {"ts": at, "seq": 8, "kind": "data"},
    ]
    progress = {("ts", "seq"): pk.punctuated("kind = 'p'")}
    query = pk.Flow().stream("s", rows, time="ts", progress=progress).query("SELECT * FROM s")
    query.collect()
    assert query.late["bound"].to_pylist() == ["seq >= 9 or ts >= 2026-01-01 10:01:00"]


def test_a_stream_of_one_attribute_beside_one_of_several_has_its_bound_in_words_too() -> None:
    rows = [{"ts": 5, "seq": 5, "k": "a"}, {"ts": 1, "seq": 9, "k": "b"}]
    made = flow(rows, {"ts": pk.ordered(), "seq": pk.ordered()})
    made.stream("z", rows, time="ts", schema=COLUMNS)
    query = made.query("SELECT k FROM z UNION ALL SELECT k FROM s")
    query.collect()
    assert sorted(query.late["bound"].to_pylist()) == ["ts >= 5", "ts >= 5"]


def test_a_row_of_which_it_cannot_be_told_what_it_is_is_dead() -> None:
    progress = {"ts": pk.ordered(), "seq": pk.punctuated("CAST(k AS INT) = 1", whole_stream=True)}
    query = flow(({"ts": 1, "seq": 1, "k": "x"}, {"ts": 2, "seq": 1, "k": "0"}), progress).query("SELECT ts FROM s")
    assert query.collect()["ts"].to_pylist() == [2]
    (reason,) = query.dead_letters["reason"].to_pylist()
    assert "'x'" in reason


def test_elements_bring_promises_of_any_shape_and_unknown_ones_are_dead_letters() -> None:
    elements = [
        pk.Insert((1, 30, "a"), 1, 2),
        pk.joint(ts=10, seq=20),
        pk.Insert((4, 19, "late"), 4, 5),
        pk.linear("v", 5),
        pk.Insert((4, 25, "b"), 4, 5),
    ]
    query = flow(elements, {"ts": pk.bounded(100), "seq": pk.bounded(100)}).query("SELECT k FROM s")
    assert query.collect()["k"].to_pylist() == ["a", "b"]
    assert query.late["bound"].to_pylist() == ["seq >= 20 or ts >= 10"]
    assert query.dead_letters["reason"].to_pylist() == ["punctuation bounds what does not progress: v"]


def test_what_is_fed_bounds_what_progresses() -> None:
    query: Any = flow().query("SELECT * FROM s")
    execution = query.execution()
    assert execution.feed("s", pk.joint(ts=5, seq=5)) == [pk.joint(ts=5, seq=5)]
    with pytest.raises(StreamError, match="A punctuation bounds what does not progress") as caught:
        execution.feed("s", pk.linear("k", 5))
    assert caught.value.hint == "what progresses is ts, seq"


def test_a_window_on_what_does_not_progress_is_told_what_does() -> None:
    made = flow(schema=f"{COLUMNS}, v int")
    with pytest.raises(QueryError, match="does not progress") as caught:
        made.query("SELECT count(*) AS n [RANGE 5, SLIDE 5, WA v] FROM s")
    assert "use the stream's time, ts, or seq" in caught.value.message
    made.merge("m", ["s"])
    with pytest.raises(QueryError, match="does not progress"):
        made.query("SELECT count(*) AS n [RANGE 5, SLIDE 5, WA seq] FROM m")


def test_the_units_of_a_window_are_those_of_its_attribute() -> None:
    progress = {"ts": pk.bounded("5 seconds"), "seq": pk.ordered()}
    made = flow(schema="ts timestamp, seq bigint, k string", progress=progress)
    with pytest.raises(QueryError, match="does not fit a number attribute"):
        made.query("SELECT count(*) AS n [RANGE 5 seconds, SLIDE 5 seconds, WA seq] FROM s")
    found = made.query("SELECT count(*) AS n [RANGE 5, SLIDE 5, WA seq] FROM s").schema
    assert found["window_end"].type.name == "bigint"


def test_feedback_on_one_attribute_skips_no_rows_by_another() -> None:
    query: Any = flow().query("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA seq] FROM s")
    execution = query.execution()
    execution.feedback(1000)
    push = execution.pusher("s")
    push((1, 1005, "a"))
    found = [row for item in execution.close() if isinstance(item, Batch) for row in item.rows]
    assert [row[3] for row in found] == [1]
    assert execution.counts.skipped == 0


def test_a_merge_of_such_streams_promises_its_time_alone() -> None:
    rows = [{"ts": t, "seq": t, "k": "a"} for t in range(5)]
    made = flow(rows).stream("z", rows, time="ts", progress=APART, schema=COLUMNS).merge("m", ["s", "z"])
    query: Any = made.query("SELECT ts, seq FROM m")
    elements = list(query.elements())
    assert {name for e in elements if isinstance(e, Punctuation) for name, _ in e.bounds} == {"ts"}
    assert sum(not isinstance(e, Punctuation) for e in elements) == 5


def test_a_progress_of_several_attributes_is_read_as_it_is_written() -> None:
    written = "{'ts': bounded(5), ('ts', 'seq'): punctuated(\"k = 'p'\")}"
    assert str(parse_progress(written)) == written
    for wrong in ("{'ts': 5}", "{**x}", "{'ts': ordered}"):
        with pytest.raises(StreamError, match="Not a progress"):
            parse_progress(wrong)


def test_check_agrees_over_files(tmp_path: Path) -> None:
    rows = [{"ts": i + i * 7 % 9, "seq": i + i * 5 % 7, "k": "ab"[i % 2]} for i in range(60)]
    rows[7]["seq"] = None  # type: ignore[assignment]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "s.parquet")
    given = streams([f"s={tmp_path}/s.parquet"], ["ts"], ["{'ts': bounded(3), 'seq': bounded(2)}"], [])
    sql = "SELECT k, count(*) AS n [RANGE 6, SLIDE 3, WA seq] FROM s GROUP BY k"
    report = check_query(sql, given, 4, 100, ["reference", "local"], "local[1]", quiet=True)
    assert report.agrees, report.agreement.render()
    verdict = report.agreement["local"]
    assert verdict.got is not None
    assert verdict.got.late.size > 5
    assert verdict.got.dead == 1


@pytest.mark.parametrize(("first", "second"), [("ts", "seq"), ("seq", "ts")])
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "LEFT ANTI JOIN"])
def test_of_two_bands_of_a_join_the_one_written_first_settles_rows(kind: str, first: str, second: str) -> None:
    made = pk.Flow()
    for name in "ab":
        progress = {"ts": pk.bounded(1000), "seq": pk.bounded(1000)}
        made.stream(name, [], time="ts", schema="ts bigint, seq bigint", progress=progress)
    bands = [f"b.{name} BETWEEN a.{name} AND a.{name} + 3" for name in (first, second)]
    query: Any = made.query(f"SELECT a.ts FROM a {kind} b ON {bands[0]} AND {bands[1]}")
    execution = query.execution()
    (join,) = [node.operator for node in execution.graph.nodes if hasattr(node.operator, "rows_held")]

    def came(given: list[Any]) -> list[Any]:
        return [row for each in given if isinstance(each, Batch) for row in each.rows]

    keeps = [] if kind == "JOIN" else [1]
    for row in ((1, 1), (500, 500)):
        execution.feed("a", Batch(made.streams["a"].schema, [row]))
    assert came(execution.feed("b", pk.linear(second, 100))) == []
    assert join.rows_held() == 2
    assert [row[0] for row in came(execution.feed("b", pk.linear(first, 100)))] == keeps
    assert join.rows_held() == 1
    assert [row[0] for row in came(execution.close())] == ([500] if keeps else [])
