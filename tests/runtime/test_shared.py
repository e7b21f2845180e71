"""Several queries on one graph: each is what it is alone, from the time on from which it is complete.

Queries join and leave at random while rows flow by batches, by Arrow and one by one. The oracle is given every row that
the stream had; what a query gives must be the oracle's answer without the results that start before `complete_from`,
and without those that were not decided yet when it left.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.engines.local.shared import SharedExecution
from penstock.errors import StreamError
from penstock.model.batch import Batch, table_of
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.tdb import TDB
from penstock.model.time import MIN_TICK, Domain
from penstock.reference.evaluation import evaluate
from penstock.reference.lateness import judge
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.profiles import examples

COLUMNS = "ts bigint, k bigint, v bigint, w double"
QUERIES = (
    "SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k",
    "SELECT k, sum(v) AS a, max(w) AS b [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k",
    "SELECT k, avg(v) AS a, min(v) AS b [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k HAVING count(*) > 1",
    "SELECT k, stddev(w) AS d [RANGE 10, SLIDE 5, WA ts] FROM s WHERE v > 1 GROUP BY k",
    "SELECT max(v) AS m [RANGE 7, SLIDE 7, WA ts] FROM s",
    "SELECT count(DISTINCT v) AS d [RANGE 10, SLIDE 5, WA ts] FROM s",
    "SELECT ts, k, v + 1 AS v FROM s WHERE k <> 1",
    "SELECT DISTINCT ts, k FROM s",
    "SELECT max(n) AS m [RANGE 20, SLIDE 10, WA window_end] FROM "
    "(SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k) x",
    "SELECT ts, k FROM s UNION ALL SELECT ts, v FROM s",
    "SELECT x.ts, y.v FROM SEQ(s x, NOT s n, s y) PARTITION BY k OVER [9 PRECEDING y] MODE CONTINUOUS WHERE n.v = 0",
    "SELECT x.v, y.v AS w FROM SEQ(s x, s y) OVER [9 PRECEDING y] WHERE x.k = y.k",
    "SELECT a.ts, b.v FROM s a JOIN s b ON a.k = b.k AND b.ts BETWEEN a.ts - 3 AND a.ts + 5",
    "SELECT a.ts, b.v FROM s a LEFT JOIN s b ON a.v = b.k AND floor(a.ts / 7) = floor(b.ts / 7)",
)
ROWS = st.lists(st.tuples(st.integers(-5, 60), st.integers(0, 2), st.integers(0, 4), st.floats(0, 1)), max_size=40)
STEPS = st.lists(
    st.tuples(st.sampled_from(["rows", "arrow", "single", "add", "remove", "again"]), st.integers(0, 13)),
    min_size=4,
    max_size=14,
)


def flow() -> pk.Flow:
    made = pk.Flow()
    return made.stream("s", [], time="ts", schema=COLUMNS, progress=pk.bounded(6))


class Played:
    """A graph that queries join and leave while rows flow."""

    def __init__(self) -> None:
        self.flow = flow()
        self.run = SharedExecution(self.flow.catalog)
        self.rows: list[Any] = []
        self.taken: dict[str, list[Batch | Punctuation]] = defaultdict(list)
        self.froms: dict[str, int] = {}
        self.sql: dict[str, str] = {}
        self.left: dict[str, int] = {}
        """Queries that have left, with the bound that they had been promised."""
        self.lates = 0
        """How many rows were late in runs before this one."""

    def keep(self, given: list[Any]) -> None:
        for name, element in given:
            self.taken[name].append(element)

    def add(self, sql: str) -> None:
        name = f"q{len(self.sql)}"
        found = self.run.add({name: self.flow.query(sql).plan})[name]
        self.sql[name], self.froms[name] = sql, MIN_TICK if found is None else found

    def remove(self, name: str) -> None:
        outlet = self.run.graph.outlets[name]
        self.taken[name] += self.run.remove(name)
        self.left[name] = outlet.register

    def begin_again(self) -> None:
        """Go on in another process, so to say: results that nobody has taken come there."""
        if not self.run.plans:
            return
        if self.rows:
            push = self.run.pusher("s")
            push(self.rows[-1])
            self.rows.append(self.rows[-1])
        self.lates += self.run.counts.late
        saved = self.run.snapshot()
        self.run = SharedExecution(self.flow.catalog, {n: self.flow.query(self.sql[n]).plan for n in self.run.plans})
        self.run.restore(saved)
        self.keep(self.run.take())

    def feed(self, rows: list[Any], form: str) -> None:
        self.rows += rows
        if "s" not in self.run.graph.sources:
            self.rows = self.rows[: -len(rows)] if rows else self.rows  # nobody reads the stream yet
            return
        schema = self.run.graph.sources["s"][0].operator.schema
        if form == "single":
            push = self.run.pusher("s")
            for row in rows:
                push(row)
            self.keep(self.run.take())
        elif rows:
            batch = Batch(schema, table=table_of(schema, rows)) if form == "arrow" else Batch(schema, rows)
            self.keep(self.run.feed("s", batch))

    def check(self) -> None:
        self.keep(self.run.close())
        judged = judge(pk.bounded(6), 0, [[row] for row in self.rows], granularity="row", domain=Domain.INTEGER)
        late = [place for place, (_, is_late) in enumerate(judged.data) if is_late]
        for name, sql in self.sql.items():
            whole = evaluate(self.flow.query(sql).plan, [("s", row) for row, _ in judged.data], late=late)
            first, end = self.froms[name], self.left.get(name)
            due = TDB({e: n for e, n in whole.items() if e[1] >= first and (end is None or e[1] < end)})
            may = TDB({e: n for e, n in whole.items() if e[1] >= first})
            got = tdb_of(self.taken[name])
            assert_sound(self.taken[name])
            assert not due.difference(got).missing, f"{sql}\n{due.difference(got).render()}"
            assert not may.difference(got).extra, f"{sql}\n{may.difference(got).render()}"
            if end is None:
                assert_same(may, got)
        assert self.run.counts.unaccounted == 0
        assert self.lates + self.run.counts.late == len(late)


@examples(40)
@given(ROWS, STEPS, st.randoms(use_true_random=False))
def test_queries_that_come_and_go_are_what_they_are_alone(
    rows: list[Any], steps: list[tuple[str, int]], rng: random.Random
) -> None:
    played = Played()
    rows = sorted(rows, key=lambda row: row[0] + rng.randint(0, 9))
    for step, number in steps:
        if step == "add":
            played.add(QUERIES[number % len(QUERIES)])
        elif step == "again":
            played.begin_again()
        elif step == "remove":
            if played.run.plans:
                played.remove(sorted(played.run.plans)[number % len(played.run.plans)])
        else:
            part, rows = rows[: number * 2], rows[number * 2 :]
            played.feed(part, step)
    played.feed(rows, "rows")
    played.check()


def test_streams_are_judged_once_and_equal_plans_run_once() -> None:
    made = flow()
    texts = [
        "SELECT k, sum(v) AS a [RANGE 10, SLIDE 5, WA ts] FROM s WHERE v > 1 GROUP BY k",
        "SELECT k, sum(v) AS b [RANGE 10, SLIDE 5, WA ts] FROM s WHERE v > 1 GROUP BY k",
        "SELECT k, max(w) AS a [RANGE 10, SLIDE 5, WA ts] FROM s WHERE v > 1 GROUP BY k",
    ]
    run = SharedExecution(made.catalog, {str(at): made.query(sql).plan for at, sql in enumerate(texts)})
    kinds = [type(node.operator).__name__ for node in run.graph.nodes]
    assert sorted(kinds) == sorted(
        ["RowIngest", "SelectOperator", "FamilyAggregate", "FaceOperator", "FaceOperator", *["ProjectOperator"] * 3]
    )


def test_who_leaves_takes_along_what_nobody_else_needs() -> None:
    made = flow()
    run = SharedExecution(made.catalog, {"a": made.query(QUERIES[0]).plan})
    schema = run.graph.sources["s"][0].operator.schema
    before = {node.identity for node in run.graph.nodes}
    run.add({"b": made.query(QUERIES[3]).plan, "c": made.query(QUERIES[7]).plan})
    run.feed("s", Batch(schema, [(1, 1, 2, 0.5), (20, 1, 2, 0.5)]))
    run.remove("b")
    run.remove("c")
    assert {node.identity for node in run.graph.nodes} == before
    assert [len(node.arcs) for node in run.graph.nodes if node.stream == "s"] == [1]
    assert all(len(node.buffer.elements) == 0 for node in run.graph.nodes)
    run.remove("a")
    assert [node.stream for node in run.graph.nodes] == ["s"]


def test_bounds_are_of_use_if_anybody_can_use_them() -> None:
    made = flow()
    run = SharedExecution(made.catalog, {"a": made.query(QUERIES[4]).plan})
    ingest: Any = run.graph.sources["s"][0].operator
    assert (ingest.step, ingest.origin) == (7, 0)
    run.add({"b": made.query("SELECT count(*) AS n [RANGE 21, SLIDE 21, WA ts] FROM s").plan})
    assert ingest.step == 7
    run.add({"c": made.query(QUERIES[0]).plan})
    assert ingest.step == 1
    run.remove("c")
    run.remove("a")
    assert ingest.step == 21


def test_a_sum_that_overflows_fails_in_the_query_that_asks_for_it_alone() -> None:
    made = flow()
    texts = {
        "sum": "SELECT sum(v) AS a [RANGE 5, SLIDE 5, WA ts] FROM s",
        "n": "SELECT count(v) AS n [RANGE 5, SLIDE 5, WA ts] FROM s",
    }
    run = SharedExecution(made.catalog, {name: made.query(sql).plan for name, sql in texts.items()})
    schema = run.graph.sources["s"][0].operator.schema
    given_rows = [(1, 1, 2**62, 0.5), (2, 1, 2**62, 0.5), (7, 1, 1, 0.5)]
    out = [*run.feed("s", Batch(schema, table=table_of(schema, given_rows * 20))), *run.close()]
    got = {name: [row for n, b in out if n == name and isinstance(b, Batch) for row in b.rows] for name in texts}
    assert [row[-1] for row in got["n"]] == [40, 20]
    assert [row[-1] for row in got["sum"]] == [20]
    assert run.counts.failed == 1


def test_a_query_that_would_never_be_complete_cannot_join_later() -> None:
    made = flow()
    run = SharedExecution(made.catalog, {"a": made.query(QUERIES[0]).plan})
    by_number = made.query("SELECT count(*) AS n [RANGE 3 ROWS, SLIDE 3 ROWS, WA row-num] FROM s").plan
    run.feed("s", Batch(run.graph.sources["s"][0].operator.schema, [(1, 1, 1, 0.5)]))
    with pytest.raises(StreamError, match="no time from which on it would be complete"):
        run.add({"b": by_number})
    assert list(run.plans) == ["a"]


def test_twenty_of_fifty_queries_come_and_go_and_the_others_do_not_notice() -> None:
    calls = [f"{f}({c})" for f in ("count", "sum", "avg", "min", "max", "stddev", "variance") for c in ("v", "w")]
    pairs = [(a, b) for at, a in enumerate(calls) for b in calls[at + 1 :]][:50]
    texts = [f"SELECT k, {a} AS a, {b} AS b [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k" for a, b in pairs]
    rng = random.Random(3)
    rows = [(t // 4 + rng.randint(-5, 0), rng.randint(0, 3), rng.randint(0, 9), rng.random()) for t in range(1200)]
    made = flow()
    plans = {str(at): made.query(sql).plan for at, sql in enumerate(texts)}

    def given(disturbed: bool) -> dict[str, list[Any]]:
        run = SharedExecution(made.catalog, plans)
        schema = run.graph.sources["s"][0].operator.schema
        found: dict[str, list[Any]] = defaultdict(list)
        for at in range(0, len(rows), 40):
            batch = Batch(schema, table=table_of(schema, rows[at : at + 40]))
            for name, element in run.feed("s", batch):
                found[name] += element.rows if isinstance(element, Batch) else [element]
            if disturbed and at % 80 == 0:
                name = str(30 + at // 40 % 20)
                if name in run.plans:
                    run.remove(name)
                else:
                    run.add({name: plans[name]})
        for name, element in run.close():
            found[name] += element.rows if isinstance(element, Batch) else [element]
        return {name: found[name] for name in map(str, range(30))}

    assert given(disturbed=True) == given(disturbed=False)


PER = "ts bigint, k bigint, v bigint, w double, p boolean"
SEVERAL: Any = {"ts": pk.bounded(6), "v": pk.bounded(2)}
KINDS_OF_STREAMS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "promises of groups": (
        pk.punctuated("p", per=["k"], final=True),
        (
            "SELECT k, sum(v) AS a, max(w) AS b [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k",
            "SELECT k, count(*) AS n, stddev(w) AS d [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k",
            "SELECT k, avg(v) AS a [RANGE 7, SLIDE 7, WA ts] FROM s WHERE v > 0 GROUP BY k",
            "SELECT k, count(*) AS n, max(v) AS m FROM s GROUP BY k",
            "SELECT k, max(v) AS m FROM s GROUP BY k HAVING count(*) > 1",
            "SELECT ts, k, v FROM s",
        ),
    ),
    "several attributes": (
        SEVERAL,
        (
            "SELECT k, sum(v) AS a [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k",
            "SELECT k, count(*) AS n [RANGE 4, SLIDE 2, WA v] FROM s GROUP BY k",
            "SELECT k, max(w) AS n [RANGE 4, SLIDE 2, WA v] FROM s GROUP BY k",
            "SELECT ts, v, k FROM s WHERE k > 0",
        ),
    ),
}


@pytest.mark.parametrize("kind", KINDS_OF_STREAMS)
@examples(30)
@given(data=st.data())
def test_other_streams_are_shared_too(kind: str, data: st.DataObject) -> None:
    progress, texts = KINDS_OF_STREAMS[kind]
    made = pk.Flow().stream("s", [], time="ts", schema=PER, progress=progress)
    plans = {str(at): made.query(sql).plan for at, sql in enumerate(texts)}
    together = SharedExecution(made.catalog, plans)
    alone = {name: LocalExecution(plan, made.catalog) for name, plan in plans.items()}
    schema = together.graph.sources["s"][0].operator.schema
    row = st.tuples(st.integers(0, 30), st.integers(0, 2), st.integers(0, 12), st.floats(0, 1), st.just(False))
    promise = st.tuples(st.integers(0, 30), st.none() | st.integers(0, 2), st.none(), st.none(), st.just(True))
    rows = data.draw(st.lists(row | promise if kind == "promises of groups" else row, max_size=30))
    given_by: dict[str, list[Any]] = defaultdict(list)
    expected: dict[str, list[Any]] = defaultdict(list)
    for at in range(0, len(rows), 6):
        part = rows[at : at + 6]
        batch = Batch(schema, table=table_of(schema, part)) if data.draw(st.booleans()) else Batch(schema, part)
        for name, element in together.feed("s", batch):
            given_by[name].append(element)
        for name, one in alone.items():
            expected[name] += one.feed("s", batch)
    for name, element in together.close():
        given_by[name].append(element)
    for name, one in alone.items():
        expected[name] += one.close()
        assert_sound(given_by[name])
        assert_same(tdb_of(expected[name]), tdb_of(given_by[name]))
        assert Frontier(e for e in given_by[name] if isinstance(e, Punctuation)) == Frontier(
            e for e in expected[name] if isinstance(e, Punctuation)
        )
        assert (together.counts.late, together.counts.dead) == (one.counts.late, one.counts.dead)
