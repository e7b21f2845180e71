"""Plans that are cut into stages, without Spark: any micro-batches, parts, buckets; judged by the oracle."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.spark.buckets import bucket_ids
from penstock.engines.spark.judging import JudgingMapper
from penstock.engines.spark.statistics import summed
from penstock.engines.spark.wire import load, unpack
from penstock.model.batch import Row, table_of
from penstock.model.changelog import ResultForm
from penstock.model.progress import Progress
from penstock.model.schema import schema_of
from penstock.model.tdb import TDB
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates import partial_forms
from penstock.operators.relational import distinct
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import Call
from penstock.plan.lookup_nodes import TableInfo
from penstock.plan.nodes import WindowAggregate
from penstock.reference.arrivals import Arrivals
from penstock.storage.files import place_of
from penstock.storage.folders import Staging, describe
from penstock.verify.evaluators import Trial, observable, tdb_of_table
from tests.engines.hosted import HostedPlan, Said, bodies, packets_of, tables
from tests.profiles import examples

pytestmark = pytest.mark.spark  # the host is pyspark's; no session is started
SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("i", "int"), ("d", "double"), ("p", "boolean")], "ts")
PER_KEY = "SELECT k, count(*) AS n, sum(i) AS s [RANGE 6, SLIDE 3, WA ts] FROM s GROUP BY k"
CASES: dict[str, tuple[str, int]] = {
    "grouped": (PER_KEY, 1),
    "measures": ("SELECT k, avg(i) AS a, min(d) AS m, stddev(i) AS x [RANGE 8, SLIDE 4, WA ts] FROM s GROUP BY k", 1),
    "distinct counts": ("SELECT k, count(DISTINCT i) AS n [RANGE 6, SLIDE 2, WA ts] FROM s GROUP BY k", 1),
    "tumbling": ("SELECT i, k, max(ts) AS m [RANGE 5, SLIDE 5, WA ts] FROM s GROUP BY i, k HAVING count(*) > 1", 1),
    "global": ("SELECT count(*) AS n, max(i) AS m [RANGE 6, SLIDE 2, WA ts] FROM s WHERE i <> 3", 1),
    "of an expression": ("SELECT i % 2 AS h, count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM s GROUP BY i % 2", 1),
    "looked up": (
        "SELECT ts, k, w, 12 div s.i AS q FROM s LEFT JOIN t ON t.i = s.i AND 6 / w > s.i WHERE s.i % 2 = 0",
        1,
    ),
    "grouped by what is looked up": (
        "SELECT w, count(*) AS n [RANGE 6, SLIDE 3, WA ts] FROM s JOIN t USING (i) WHERE i % 3 < 2 GROUP BY w",
        1,
    ),
    "as of": ("SELECT s.ts, s.k, w, since FROM s JOIN v FOR SYSTEM_TIME AS OF s.ts ON v.i = s.i", 1),
    "looked up after an aggregate": (f"SELECT n, w, k FROM ({PER_KEY}) x JOIN t ON t.i = x.n", 1),
    "looked up in one branch": ("SELECT ts, i % 2 AS h FROM s UNION ALL SELECT ts, w FROM s JOIN t USING (i)", 1),
    "stateless": ("SELECT ts, k, 12 div i AS q FROM s WHERE k <> 'b'", 1),
    "distinct rows": ("SELECT DISTINCT ts, i FROM s", 1),
    "first of each group": (
        "SELECT k, i, d, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k "
        "ORDER BY i DESC, d) AS place FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), 6))) WHERE place <= 2",
        1,
    ),
    "first of all": (
        "SELECT k, n, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY ends ORDER BY n, k) AS place FROM "
        f"(SELECT k, n, window_end AS ends FROM ({PER_KEY}) x) y) WHERE place <= 1",
        2,
    ),
    "two groupings": (
        f"SELECT max(n) AS m, count(*) AS c [RANGE 6, SLIDE 6, WA window_end] FROM ({PER_KEY}) x",
        2,
    ),
    "coarser": (
        "SELECT k, max(n) AS m [RANGE 6, SLIDE 6, WA window_end] FROM "
        "(SELECT k, i, count(*) AS n [RANGE 3, SLIDE 3, WA ts] FROM s GROUP BY k, i) x GROUP BY k",
        1,
    ),
    "other keys": (
        "SELECT n, count(*) AS c [RANGE 6, SLIDE 6, WA window_end] FROM "
        "(SELECT k, count(*) AS n [RANGE 3, SLIDE 3, WA ts] FROM s GROUP BY k) x GROUP BY n",
        2,
    ),
    "three groupings": (
        "SELECT max(c) AS m [RANGE 12, SLIDE 12, WA window_end] FROM (SELECT n, count(*) AS c "
        "[RANGE 6, SLIDE 6, WA window_end] FROM (SELECT k, count(*) AS n [RANGE 3, SLIDE 3, WA ts] FROM s GROUP BY k) "
        "x GROUP BY n) y",
        3,
    ),
    "union of aggregates": (
        "SELECT i AS g, count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM s GROUP BY i UNION ALL "
        "SELECT length(k) AS g, count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM z GROUP BY length(k)",
        1,
    ),
    "union of depths": (
        "SELECT max(n) AS m [RANGE 6, SLIDE 6, WA window_end] FROM (SELECT k, count(*) AS n "
        "[RANGE 3, SLIDE 3, WA ts] FROM s GROUP BY k) x UNION ALL SELECT sum(i) AS m [RANGE 6, SLIDE 6, WA ts] FROM z",
        2,
    ),
    "union with what has no state": (
        "SELECT max(n) AS m [RANGE 2, SLIDE 1, WA window_end] FROM (SELECT k, count(*) AS n "
        "[RANGE 1, SLIDE 1, WA ts] FROM s GROUP BY k) x UNION ALL SELECT i, 0, ts, 0 FROM z",
        2,
    ),
    "union of streams": ("SELECT k, count(*) AS n [RANGE 4, SLIDE 2, WA ts] FROM s UNION z GROUP BY k", 1),
    "over a union": (
        "SELECT count(*) AS c [RANGE 6, SLIDE 6, WA window_end] FROM ("
        "SELECT i AS g, count(*) AS n [RANGE 3, SLIDE 3, WA ts] FROM s GROUP BY i UNION ALL "
        "SELECT length(k) AS g, count(*) AS n [RANGE 3, SLIDE 3, WA ts] FROM s GROUP BY length(k)) u",
        2,
    ),
}
PROGRESS: dict[str, Progress] = {
    "bounded": pk.bounded(3),
    "ordered": pk.ordered(),
    "rows": pk.bounded(rows=4),
    "estimated": pk.estimated("20%", rows=5),
    "punctuated": pk.punctuated("p", whole_stream=True),
    "per source": pk.per_source("k", idle=4),
}
ROWS = st.tuples(
    st.one_of(st.integers(0, 30), st.integers(0, 30), st.none()),
    st.sampled_from(["a", "bb", "ccc", None]),
    st.one_of(st.integers(0, 4), st.none()),
    st.sampled_from([0.5, -2.0, 3.25, None]),
    st.sampled_from([None, None, None, True]),
)


def tables_to_look_into() -> Catalog:
    """A table with a key that is there twice and one that is null, and one with versions."""
    plain = schema_of([("i", "bigint"), ("w", "int")])
    versions = schema_of([("i", "int"), ("since", "bigint"), ("w", "int")], "since")
    catalog = Catalog()
    rows: list[Row] = [(0, 1), (1, 2), (1, 0), (2, 3), (None, 5)]
    catalog.add_table(TableInfo("t", plain, content=table_of(plain, rows)))
    made: list[Row] = [(i, since, 10 * i + since) for i in range(3) for since in (0, 4, 7)]
    catalog.add_table(TableInfo("v", versions, ("i",), "since", content=table_of(versions, made)))
    return catalog


@st.composite
def streams(draw: st.DrawFn, name: str, progress: Progress) -> Arrivals:
    """Time goes on from batch to batch; some rows come late."""
    made = []
    for at in range(draw(st.integers(1, 4))):
        rows = draw(st.lists(ROWS, max_size=24))
        made.append(tuple((None if t is None else t + 12 * at, *rest) for t, *rest in rows))
    return Arrivals(name, SCHEMA, progress, tuple(made))


def counted(said: list[Said]) -> Counter[str]:
    total: Counter[str] = Counter()
    for body in bodies(said, "counts"):
        total.update(load(body))
    return total


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
@examples(8)
def test_stages_come_to_what_the_oracle_says(case: str, data: st.DataObject) -> None:
    sql, stages = CASES[case]
    assert come_to_what_the_oracle_says(sql, drawn(data, "sz"), data) == stages


def drawn(data: st.DataObject, names: str) -> list[Arrivals]:
    """Streams that progress alike."""
    progress = PROGRESS[data.draw(st.sampled_from(sorted(PROGRESS)), "progress")]
    return [data.draw(streams(name, progress)) for name in names]


def come_to_what_the_oracle_says(sql: str, arrivals: list[Arrivals], data: st.DataObject) -> int:
    """A query in any micro-batches, parts and buckets; in how many stages it was."""
    trial = Trial.of(sql, arrivals, tables_to_look_into())
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans(), "partials however few rows there are"):
            for module in (partial_forms, distinct):
                patch.setattr(module, "FEW", 1)
                patch.setattr(module, "WORTH", 2)
        is_native = data.draw(st.booleans(), "expressions are computed beside the rows")
        hosted = HostedPlan(
            trial.plan,
            trial.catalog,
            data.draw(st.integers(1, 3), "buckets"),
            staged=True,
            native=lambda expression: is_native and isinstance(expression, Call),
        )
        said: list[Said] = []
        for step in range(max(len(s.batches) for s in trial.streams)):
            parts = {s.name: cut(s, step, data) for s in trial.streams if step < len(s.batches)}
            said += hosted.run_all(parts)
        said += hosted.run_all({}, {s.name: END_OF_TIME for s in trial.streams})
    judged = {s.name: s.judge("batch", trial.catalog) for s in trial.streams}
    expected = trial.oracle({name: own.data for name, own in judged.items()})
    schema = trial.plan.schema
    form = ResultForm(schema, trial.plan.properties.insert_only)
    found = tables(said, "result")
    got = tdb_of_table(pa.concat_tables(found), form) if found else TDB()
    assert not observable(expected.result, schema).difference(got)
    total = counted(said)
    assert total["on_time"] == sum(len(own.on_time) for own in judged.values())
    assert total["late"] == sum(len(own.late) for own in judged.values()) == rows_in(said, "late")
    assert total["failed"] == expected.dead.total()
    untimed = sum(s.untimed for s in trial.streams)
    refused = sum(len(own.backwards) + len(own.ambiguous) for own in judged.values())
    assert total["dead"] == untimed + refused
    assert rows_in(said, "dead") == total["dead"] + total["failed"]
    assert total["read"] == sum(len(batch) for s in trial.streams for batch in s.batches)
    return hosted.planned.stages


def cut(stream: Arrivals, step: int, data: st.DataObject) -> list[pa.Table]:
    """The rows of a micro-batch in two parts, in any order."""
    shuffled = data.draw(st.permutations(stream.batches[step]))
    at = data.draw(st.integers(0, len(shuffled)))
    return [table_of(stream.schema, part) for part in (shuffled[:at], shuffled[at:])]


def rows_in(said: list[Said], kind: str) -> int:
    return sum(table.num_rows for table in tables(said, kind))


def planned(sql: str, **stream: Any) -> Any:
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, **stream)
    query: Any = flow.query(sql)
    return HostedPlan(query.plan, query.catalog, 4, staged=True).planned


@pytest.mark.parametrize(
    "stream",
    [
        {"progress": pk.punctuated("p", per=["k"])},
        {"progress": pk.bounded(3), "max_ahead": 100},
    ],
)
def test_what_records_do_not_tell_is_judged_behind_the_exchange(stream: dict[str, Any]) -> None:
    assert planned(PER_KEY, **stream).stages == 0


def test_a_group_that_has_most_rows_sends_a_few_numbers() -> None:
    rows = [(t % 7, "a" if t % 10 else "b", t % 5, 0.5, None) for t in range(5000)]
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=pk.bounded(100))
    query: Any = flow.query(PER_KEY)
    hosted = HostedPlan(query.plan, query.catalog, 2, staged=True)
    (mapper,) = hosted.mappers.values()
    sent = [p for b in mapper.judged(table_of(SCHEMA, rows).to_batches(), {}, 0) for p in b.to_pylist()]  # type: ignore[union-attr]
    assert {p["kind"] for p in sent if p["stage"] == 1} == {"partials", "note"}
    assert sum(len(p["body"]) for p in sent) < 10_000
    told = summed(None, map(load, bodies(hosted.run(table_of(SCHEMA, rows)), "operators")))
    (aggregate,) = (p for p in hosted.planned.walk() if isinstance(p.node, WindowAggregate))
    assert told[aggregate.identity]["rows_in"] == 5000


def test_a_function_of_a_group_says_nothing_of_where_the_group_is() -> None:
    """0.0 and -0.0 are one group, whatever a user's function makes of them."""
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=pk.bounded(3))
    flow.function("sign", lambda d: math.copysign(1.0, d), "double")
    query: Any = flow.query(
        "SELECT sign(d) AS g, max(n) AS m [RANGE 6, SLIDE 6, WA window_end] FROM "
        "(SELECT d, count(*) AS n [RANGE 3, SLIDE 3, WA ts] FROM s GROUP BY d) x GROUP BY sign(d)"
    )
    hosted = HostedPlan(query.plan, query.catalog, 4, staged=True)
    assert hosted.planned.stages == 2
    said = hosted.run(table_of(SCHEMA, [(1, "a", 1, 0.0 if i % 2 else -0.0, None) for i in range(8)]))
    said += hosted.run(bound=END_OF_TIME)
    assert [row["m"] for table in tables(said, "result") for row in table.to_pylist()] == [8]


def test_a_constant_is_no_key_to_spread_by() -> None:
    sql = "SELECT h, count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM (SELECT DISTINCT ts, k, 1 AS h FROM s) x GROUP BY h"
    assert planned(sql, progress=pk.bounded(3)).stages == 2


@pytest.mark.parametrize("partials", [False, True])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_results_go_where_they_went_whoever_comes_first(
    order: tuple[int, ...], partials: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum of 0.1, 0.2 and 0.3 depends on the order in which they are added, and is what rows meet by next."""
    if partials:
        monkeypatch.setattr(partial_forms, "FEW", 1)
        monkeypatch.setattr(partial_forms, "WORTH", 2)
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=pk.bounded(3))
    query: Any = flow.query(
        "SELECT x, count(*) AS n [RANGE 6, SLIDE 6, WA window_end] FROM "
        "(SELECT k, sum(d) AS x [RANGE 3, SLIDE 3, WA ts] FROM s GROUP BY k) q GROUP BY x"
    )
    hosted = HostedPlan(query.plan, query.catalog, 4, staged=True)
    parts = [table_of(SCHEMA, [(1, "a", 1, d, None)]) for d in (0.1, 0.2, 0.3)]
    said = hosted.run(*(parts[at] for at in order)) + hosted.run(bound=END_OF_TIME)
    found = [row["x"] for table in tables(said, "result") for row in table.to_pylist()]
    hosted = HostedPlan(query.plan, query.catalog, 4, staged=True)
    said = hosted.run(*parts) + hosted.run(bound=END_OF_TIME)
    assert found == [row["x"] for table in tables(said, "result") for row in table.to_pylist()]


def test_a_function_is_not_asked_twice_for_the_place_of_a_row_and_for_its_group() -> None:
    """One that gives another answer each time still makes groups that come out once."""
    flow = pk.Flow()
    for name in "sz":
        flow.stream(name, [], time="ts", schema=SCHEMA.ddl, progress=pk.bounded(3))
    answers = itertools.count()
    flow.function("shard", lambda k: next(answers) % 4, "int")
    query: Any = flow.query(
        "SELECT shard(k) AS g, count(*) AS n [RANGE 6, SLIDE 6, WA ts] FROM s UNION z GROUP BY shard(k)"
    )
    hosted = HostedPlan(query.plan, query.catalog, 4, staged=True)
    rows = table_of(SCHEMA, [(1, "a", i, 0.5, None) for i in range(40)])
    said = hosted.run_all({"s": [rows], "z": [rows]})
    said += hosted.run_all({}, {"s": END_OF_TIME, "z": END_OF_TIME})
    found = [(row["g"], row["n"]) for table in tables(said, "result") for row in table.to_pylist()]
    assert sorted(found) == [(g, 20) for g in range(4)]


def letters(sql: str, rows: list[Row], *, native: bool) -> tuple[list[Any], ...]:
    """What comes of rows, as results, late rows and dead letters."""
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=pk.bounded(3))
    query: Any = flow.query(sql)
    hosted = HostedPlan(query.plan, query.catalog, 2, staged=True, native=lambda e: native and isinstance(e, Call))
    assert bool(hosted.planned.made_of("s")) is native
    half = len(rows) // 2
    said = [*hosted.run(table_of(SCHEMA, rows[:half])), *hosted.run(table_of(SCHEMA, rows[half:]), bound=END_OF_TIME)]
    return tuple(
        sorted((tuple(row.values()) for table in tables(said, kind) for row in table.to_pylist()), key=repr)
        for kind in ("result", "late", "dead")
    )


@given(st.lists(ROWS, max_size=40))
def test_what_is_computed_beside_rows_is_no_part_of_them(rows: list[Row]) -> None:
    sql = "SELECT ts, 12 div i AS q, concat(k, 'x') AS w FROM s WHERE 4 % i < 3 OR d > 0"
    assert letters(sql, rows, native=True) == letters(sql, rows, native=False)


def test_expressions_over_what_a_projection_made_are_not_computed_before() -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl)
    query: Any = flow.query(
        "SELECT ts, q % 2 AS r FROM (SELECT ts, i % 5 AS q FROM s WHERE i % 3 = 1) x WHERE q % 2 = 1"
    )
    hosted = HostedPlan(query.plan, query.catalog, 2, staged=True, native=lambda e: isinstance(e, Call))
    assert sorted(map(str, hosted.planned.made_of("s"))) == ["((i % 3) = 1)", "(i % 5)"]
    assert hosted.planned.made_of("other") == ()


def test_rows_that_are_equal_travel_once_and_are_counted_all() -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=pk.bounded(3))
    query: Any = flow.query("SELECT DISTINCT ts, d FROM s")
    rows = [(at % 7, "abc"[at % 3], at, [0.0, -0.0, math.nan, None][at % 4], None) for at in range(1000)]
    hosted = HostedPlan(query.plan, query.catalog, 2, staged=True)
    packets = packets_of(hosted.mappers["s"].judged(table_of(SCHEMA, rows).to_batches(), {}, 0))
    sent = sum(unpack(packet.body).num_rows for packet in packets if packet.kind == "rows")
    assert sent <= 7 * 4
    said = hosted.run(table_of(SCHEMA, rows))
    assert rows_in(said, "result") == 7 * 3  # both zeros are one value
    taken = summed(None, map(load, bodies(said, "operators")))[hosted.planned.identity]
    assert taken["rows_in"] == 1000
    assert taken["rows_out"] == 21


def test_what_tasks_send_out_leaves_through_different_buckets() -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=pk.bounded(3))
    query: Any = flow.query(PER_KEY)
    hosted = HostedPlan(query.plan, query.catalog, 3, staged=True)
    rows = table_of(SCHEMA, [(None, "a", 1, 0.5, None)])  # a dead letter
    said = hosted.run(*[rows] * 3)
    assert sorted(bucket for bucket, kind, _ in said if kind == "dead") == sorted(bucket_ids(3))


def test_results_without_state_are_written_by_the_tasks_that_read(tmp_path: Path) -> None:
    """Nothing of them travels; a few go to the driver as they are."""
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=pk.bounded(3))
    query: Any = flow.query("SELECT ts, k, i FROM s WHERE i % 2 = 0")
    hosted = HostedPlan(query.plan, query.catalog, 2, staged=True)
    (mapper,) = hosted.mappers.values()
    assert isinstance(mapper, JudgingMapper)
    mapper = replace(mapper, folders={"result": Staging(place_of(tmp_path), describe(query.schema))})
    for size, kind in ((50_000, "file of result"), (50, "result")):
        rows = table_of(SCHEMA, [(at, "a", at, 0.5, None) for at in range(size)])
        packets = packets_of(mapper.judged(rows.to_batches(), {}, 0))
        assert {p.kind for p in packets} == {kind, "note", "counts", "greatest", "operators"}
    (file,) = tmp_path.iterdir()
    assert pq.read_table(file)["i"].to_pylist() == list(range(0, 50_000, 2))
