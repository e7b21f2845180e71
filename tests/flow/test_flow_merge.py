"""`flow.merge`: replicas declared as one stream, in-process, against the oracle."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import MergeError, StreamError
from penstock.flow.flow import Flow
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Element, Insert, Punctuation
from penstock.model.lives import Lives
from penstock.model.schema import Schema
from penstock.model.tdb import TDB
from penstock.reference import evaluate
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.replicas import histories, replicas
from tests.profiles import examples

SCHEMA = "ts bigint, k string, v int"
STRICT = pk.StreamProperties(ordered=True, strictly_ordered=True)
COUNTS = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 6, SLIDE 3, WA ts] FROM clean GROUP BY k"


def flow(progress: object = None, **options: object) -> Flow:
    made = Flow()
    for name in ("a", "b"):
        made.stream(name, iter(()), time="ts", schema=SCHEMA, progress=progress or pk.bounded(20))  # type: ignore[arg-type]
    return made.merge("clean", ["a", "b"], **options)  # type: ignore[arg-type]


@functools.cache
def merged_query(sql: str, key: str | None, policy: str, driver: str) -> LocalQuery:
    """Bound once; every run of it begins anew."""
    query = flow(key=None if key is None else [key], policy=policy, driver=driver).query(sql)
    assert isinstance(query, LocalQuery)
    return query


@pytest.mark.parametrize("streams", [["a", "b"], ["b", "a"]])
@pytest.mark.parametrize("key", [None, ["k"]])
@pytest.mark.parametrize("progress", [None, pk.ordered(), pk.bounded(3)])
def test_an_empty_replica_empties_nothing_in_whatever_order_it_is_declared(
    streams: list[str], key: list[str] | None, progress: pk.Progress | None
) -> None:
    made = Flow().stream("a", [{"ts": t, "k": "xy"[t % 2]} for t in range(35)], time="ts", progress=progress)
    made.stream("b", [], time="ts", schema="ts bigint, k string", progress=progress)
    query = made.merge("clean", streams, key=key).query("SELECT count(*) AS n [RANGE 50, SLIDE 50, WA ts] FROM clean")
    assert query.collect()["n"].to_pylist() == [35]
    assert query.dead_letters.num_rows == 35  # b has nothing where the output has a row


def test_a_majority_agrees_that_there_is_a_row_whatever_its_values() -> None:
    made = Flow()
    for name, by in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        made.stream(name, [{"ts": t, "k": "x", "v": by * t} for t in range(200)], time="ts")
    made.merge("clean", ["a", "b", "c"], key=["k"], driver="majority")
    rows = made.query("SELECT ts, v FROM clean").collect().to_pylist()
    assert [(r["ts"], r["v"]) for r in rows] == [(t, 1.0 * t) for t in range(200)]


ELEMENTS = "vs bigint, p string"


def elements_flow(**options: object) -> Flow:
    made = Flow()
    for name in ("a", "b"):
        made.stream(name, iter(()), time="vs", schema=ELEMENTS, progress=pk.bounded(10**9), lives=True)
    return made.merge("clean", ["a", "b"], key=["p"], elements=True, **options)  # type: ignore[arg-type]


@functools.cache
def elements_query(sql: str, policy: str) -> LocalQuery:
    query = elements_flow(policy=policy).query(sql)
    assert isinstance(query, LocalQuery)
    return query


@st.composite
def rows(draw: st.DrawFn) -> list[tuple[int, str, int]]:
    times = st.tuples(st.integers(0, 20), st.sampled_from("xy"), st.integers(0, 3))
    return draw(st.lists(times, max_size=12, unique_by=lambda r: (r[0], r[1])))


@pytest.mark.parametrize("sql", ["SELECT * FROM clean", COUNTS])
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize(
    ("policy", "driver"), [("half frozen", "leading"), ("conservative", "b"), ("half frozen", "majority")]
)
@given(given_rows=rows(), data=st.data())
def test_queries_over_replicas_count_every_row_once(
    sql: str,
    key: str | None,
    policy: str,
    driver: str,
    given_rows: list[tuple[int, str, int]],
    data: st.DataObject,
) -> None:
    query = merged_query(sql, key, policy, driver)
    run = query.execution()
    queues = {n: data.draw(st.permutations(given_rows)) for n in "ab"}
    outputs: list[Batch | Punctuation] = []
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        size = data.draw(st.integers(1, 4))
        outputs += run.feed(name, Batch(run.graph.sources[name][0].operator.schema, queues[name][:size]))
        queues[name] = queues[name][size:]
        if data.draw(st.integers(0, 3)) == 0:
            snapshot = run.snapshot()
            run = query.execution()
            run.restore(snapshot)
    outputs += run.close()
    expected = evaluate(run.plan, [(n, row) for n in "ab" for row in given_rows])
    assert_same(expected, tdb_of(outputs))
    assert_sound(outputs)
    if sql != COUNTS:
        assert expected.size == len(given_rows)


def test_replicas_that_are_ordered_need_no_waiting() -> None:
    made = flow(pk.ordered(), key=["k"])
    query = made.query("SELECT * FROM clean")
    assert "LMerge R2" in query.explain()


def timed(element: Element) -> Insert | Adjust:
    """The element with its start in its payload, as rows have it."""
    assert isinstance(element, Insert | Adjust)
    return replace(element, payload=(element.vs, *element.payload))


def as_batch(schema: Schema, element: Element) -> Batch:
    made = timed(element)
    return Batch(schema, [made.payload], lives=Lives.of([made]))


@pytest.mark.parametrize("policy", ["first seen", "reflect all", "half frozen", "quorum", "conservative"])
@given(data=st.data())
def test_elements_with_adjusts_are_merged_in_slices(policy: str, data: st.DataObject) -> None:
    """The operator's slices of time say together what one merge says."""
    events = data.draw(histories())
    run = elements_query("SELECT * FROM clean", policy).execution()
    merge = next(n.operator for n in run.graph.nodes if hasattr(n.operator, "span"))
    merge.span = 3  # type: ignore[attr-defined]
    queues = {n: data.draw(replicas(events)) for n in "ab"}
    outputs: list[Batch | Punctuation] = []
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        element = queues[name].pop(0)
        item: Batch | Punctuation
        if isinstance(element, Punctuation):
            item = element
        else:
            item = as_batch(run.graph.sources[name][0].operator.schema, element)
        outputs += run.feed(name, item)
    outputs += run.close()
    assert_same(TDB([((vs, *p), vs, ve) for p, vs, ve in events]), tdb_of(outputs))
    assert_sound(outputs)
    assert run.dead_letters().num_rows == 0


def test_what_replicas_of_elements_differ_in_is_told() -> None:
    made = Flow()
    rows = [{"vs": 4, "ve": 5, "v_old": None, "p": "x"}]
    for name in ("a", "b"):
        made.stream(name, rows if name == "a" else [], time="vs", schema="vs bigint, ve bigint, v_old bigint, p string",
                    lives=("vs", "ve", "v_old"))  # fmt: skip
    query = made.merge("clean", ["a", "b"], key=["p"], driver="a").query("SELECT * FROM clean")
    assert query.collect().to_pylist() == [{"vs": 4, "p": "x", "ve": 5}]
    (letter,) = query.dead_letters.to_pylist()
    assert letter["reason"] == "diverged: b has nothing where the output has [4, 5): (4, 'x')"
    assert letter["row"] == '{"vs": 4, "p": "x", "ve": 5}'


@pytest.mark.parametrize(
    "columns", [["k", "vs", "ve", "v_old"], ["vs", "ve", "v_old", "k"], ["ve", "k", "v_old", "vs"]]
)
def test_start_and_ends_are_found_by_name_wherever_they_are(columns: list[str]) -> None:
    said = [("x", 1, 5, None), ("y", 2, 9, None), ("x", 1, 7, 5)]
    given = [dict(zip(("k", "vs", "ve", "v_old"), row, strict=True)) for row in said]
    made = Flow()
    for name in ("a", "b"):
        schema = ", ".join(f"{c} string" if c == "k" else f"{c} bigint" for c in columns)
        rows = [{c: row[c] for c in columns} for row in given]
        made.stream(name, rows, time="vs", schema=schema, lives=("vs", "ve", "v_old"), progress=pk.bounded(20))
    query = made.merge("clean", ["a", "b"], key=["k"], elements=True).query("SELECT k, vs FROM clean")
    assert pk.tdb(query.elements()) == TDB([(("x", 1), 1, 7), (("y", 2), 2, 9)])
    assert not query.dead_letters.num_rows


@pytest.mark.parametrize(
    ("schema", "lives", "message"),
    [
        ("vs bigint, k string", ("vs", "ve", "v_old"), "lives names an unknown column"),
        ("vs bigint, ve bigint, k string", ("vs", "ve", "v_old"), "lives names an unknown column"),
        ("at bigint, vs bigint, ve bigint, v_old bigint", ("at", "ve", "v_old"), "A row starts at its stream's time"),
    ],
)
def test_columns_that_are_not_there_are_told_when_they_are_declared(
    schema: str, lives: tuple[str, ...], message: str
) -> None:
    with pytest.raises(StreamError, match=message):
        Flow().stream("a", [], time="vs", schema=schema, lives=lives)


def test_replicas_of_elements_are_declared_with_lives() -> None:
    made = (
        Flow().stream("a", [], time="vs", schema="vs bigint, ve bigint").stream("b", [], time="vs", schema="vs bigint")
    )
    with pytest.raises(MergeError, match="how long rows live"):
        made.merge("clean", ["a"], elements=True)


@given(data=st.data())
def test_strictly_ordered_replicas_are_merged_by_whole_batches(data: st.DataObject) -> None:
    """R0 over Arrow gives what R0 gives row by row."""
    rows = [(t, "k", t % 3) for t in sorted(data.draw(st.sets(st.integers(0, 40), max_size=15)))]
    query = flow(pk.ordered(), properties=STRICT).query("SELECT * FROM clean")
    run = query.execution()  # type: ignore[union-attr]
    queues = {"a": list(rows), "b": list(rows)}
    outputs: list[Batch | Punctuation] = []
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        size = data.draw(st.integers(1, 5))
        batch = Batch(run.graph.sources[name][0].operator.schema, queues[name][:size])
        given_batch = Batch(batch.schema, table=batch.table) if data.draw(st.booleans()) else batch
        outputs += run.feed(name, given_batch)
        queues[name] = queues[name][size:]
    outputs += run.close()
    assert [row for item in outputs if isinstance(item, Batch) for row in item.rows] == rows


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"policy": "first seen"}, MergeError, "cannot be taken back"),
        ({"policy": "follow leader"}, MergeError, "compares whole inputs"),
        ({"key": ["q"]}, StreamError, "key names an unknown column"),
        ({"algorithm": "R0"}, MergeError, "R0 would not be right"),
        ({"algorithm": "R3-", "key": ["k"]}, MergeError, "Only R0 to R4"),
    ],
)
def test_what_cannot_be_is_an_error(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        flow(**options)


def test_replicas_must_have_the_same_columns() -> None:
    made = Flow().stream("a", iter(()), time="ts", schema=SCHEMA).stream("b", iter(()), time="ts", schema="ts bigint")
    with pytest.raises(MergeError, match="same columns"):
        made.merge("clean", ["a", "b"])
    with pytest.raises(StreamError, match="no such stream"):
        made.merge("clean", ["a", "c"])
    with pytest.raises(StreamError, match="of that name already"):
        made.merge("a", ["a", "b"])


# Nothing takes a revision for a row

PER_START = "SELECT p, count(*) AS n, max(ve) AS s [RANGE 6, SLIDE 3, WA vs] FROM clean GROUP BY p"


def test_an_aggregate_over_revisions_counts_each_event_once() -> None:
    query = elements_flow(policy="first seen").query(PER_START)
    assert "settled, since Ends takes no revisions" in query.explain()
    assert "conservative" in query.explain()
    run = query.execution()  # type: ignore[union-attr]
    push = run.pusher("a")
    x, y = (1, "x"), (2, "y")
    for element in [Insert(x, 1, 9), Adjust(x, 1, 9, 5), Insert(y, 2, 4), Adjust(y, 2, 4, 2)]:
        push(element)
    rows = [row for item in run.close() if isinstance(item, Batch) for row in item.rows]
    assert [row[3:] for row in rows] == [("x", 1, 5)] * 2
    passed_on = elements_flow(policy="first seen").query("SELECT * FROM clean")
    as_they_come, collected = passed_on.explain().split("collect()")
    assert "settled" not in as_they_come
    assert "settled, since the whole result takes no revisions" in collected


COUNTED = "SELECT count(*) AS n [RANGE 4, SLIDE 4, WA vs] FROM clean"


@pytest.mark.parametrize("sql", [PER_START, "SELECT DISTINCT p FROM clean", COUNTED])
@examples(20)
@given(data=st.data())
def test_queries_over_revisions_agree_with_the_oracle(sql: str, data: st.DataObject) -> None:
    events = data.draw(histories())
    run = elements_query(sql, "reflect all").execution()
    queues = {n: [e for e in data.draw(replicas(events)) if not isinstance(e, Punctuation)] for n in "ab"}
    arrivals = [(n, timed(e)) for n in "ab" for e in queues[n]]
    outputs: list[Batch | Punctuation] = []
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        outputs += run.feed(name, as_batch(run.graph.sources[name][0].operator.schema, queues[name].pop(0)))
    outputs += run.close()
    assert_same(evaluate(run.plan, arrivals), tdb_of(outputs))
    assert_sound(outputs)
