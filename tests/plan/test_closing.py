"""The closing bound puts out all that is open, and leaves what comes after it to windows of its own.

```
rows       1   7           |bound          later rows
windows   [----10----)     |
               [----10----)|
                           [----10----)
```
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog
from penstock.plan.closing import Closing, closing_bound
from penstock.plan.nodes import Merge, Node
from penstock.plan.planner import spark_streaming
from penstock.plan.rules.smooth import smoothed
from penstock.runtime.builder import Builder
from penstock.runtime.graph import QueryGraph
from penstock.sql.binder import bind
from penstock.testing.strategies import sliding_windows

SCHEMA = schema_of([("t", "bigint"), ("k", "string")], "t")


def catalog() -> Catalog:
    flow = pk.Flow()
    for name in ("a", "b"):
        # So much disorder that no bound comes from the rows themselves.
        flow.stream(name, SCHEMA.arrow.empty_table(), time="t", progress=pk.bounded(10**9))
    return flow.merge("m", ["a", "b"], key=["k"], lag=7).catalog


@st.composite
def queries(draw: st.DrawFn) -> str:
    source = draw(st.sampled_from(["a", "a UNION b", "m"]))
    where = draw(st.sampled_from(["", " WHERE k <> 'x'"]))
    clauses = [f"[RANGE {w.range}, SLIDE {w.slide}, WA {{}}, ORIGIN {w.origin}]" for w in draw(windows())]
    sql = f"SELECT {draw(st.sampled_from(['', 'DISTINCT ']))}t, k FROM {source}{where}"
    if clauses:
        sql = f"SELECT k, count(*) AS n {clauses[0].format('t')} FROM {source}{where} GROUP BY k"
    for clause in clauses[1:]:
        sql = f"SELECT count(*) AS n {clause.format('window_end')} FROM ({sql}) i"
    return sql


def windows() -> st.SearchStrategy[list[object]]:
    return st.lists(sliding_windows(attribute="t"), max_size=3)


class Fed:
    """A plan that is fed in-process."""

    def __init__(self, plan: Node, made: Catalog) -> None:
        self.graph = QueryGraph(spark_streaming(plan, made), Builder(made))
        self.rejected: list[object] = []
        self.graph.side = lambda *rejected: self.rejected.append(rejected)
        self.results: Counter[tuple[object, ...]] = Counter()

    def push(self, rows: list[tuple[str, int, str]]) -> None:
        """Replicas get the same rows, other streams those of their name."""
        same = any(isinstance(node, Merge) for node in self.graph.plan.walk())
        for stream in self.graph.sources:
            own = dict.fromkeys((t, k) for s, t, k in rows if same or s == stream)
            self.graph.push(stream, Batch(SCHEMA, list(own)))

    def bound(self, value: int) -> None:
        for stream in self.graph.sources:
            self.graph.push(stream, linear("t", value))

    def taken(self) -> Counter[tuple[object, ...]]:
        for output in self.graph.drain():
            if isinstance(output, Batch):
                self.results.update(output.rows)
        return self.results


rows = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(-40, 60), st.sampled_from("xyz")), min_size=1, max_size=12, unique=True
)


@given(queries(), rows, rows)
def test_everything_is_out_and_later_rows_are_whole(
    sql: str, first: list[tuple[str, int, str]], second: list[tuple[str, int, str]]
) -> None:
    _check(sql, first, second)


@st.composite
def joins(draw: st.DrawFn) -> str:
    low = draw(st.integers(-12, 12))
    band = f"b.t BETWEEN a.t + {low} AND a.t + {low + draw(st.integers(0, 9))}"
    near = draw(st.sampled_from([band, "floor(b.t / 7) = floor(a.t / 7)"]))
    kind = draw(st.sampled_from(["", "LEFT ", "RIGHT ", "FULL "]))
    one = f"a {kind}JOIN b ON a.k = b.k AND {near}"
    both = draw(st.sampled_from([one, "a ASOF JOIN b ON a.k = b.k AND b.t <= a.t", one]))
    has = draw(st.sampled_from(["EXISTS", "NOT EXISTS"]))
    semi = f"SELECT t, k FROM a WHERE {has} (SELECT 1 FROM b WHERE a.k = b.k AND {near})"
    counted = f"SELECT count(*) AS n [RANGE 9, SLIDE 3, WA t] FROM ({semi}) i"
    return draw(st.sampled_from([f"SELECT a.t, a.k, b.t AS u FROM {both}", semi, counted]))


@st.composite
def computed(draw: st.DrawFn) -> str:
    """Windows on times that are computed, of streams, unions and joins."""
    by = draw(st.integers(1, 9))
    times = [f"{{}} + {by}", f"{{}} - {by}", f"floor({{}} / {by})", f"{{}} div {by}", f"{{}} * {by}"]
    times += [f"{{}} - {{}} % {by}", f"({{}} + {by}) div {by + 1}"]
    u = draw(st.sampled_from(times))
    join = f"a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - {draw(st.integers(-9, 9))} AND a.t + {9 + by}"
    source = draw(
        st.sampled_from(
            [
                f"SELECT t, {u.replace('{}', 't')} AS u FROM a",
                f"SELECT t, {u.replace('{}', 't')} AS u FROM (SELECT t FROM a UNION ALL SELECT t FROM b) i",
                f"SELECT t, {u.replace('{}', 't')} AS u FROM (SELECT a.t FROM {join}) i",
                f"SELECT a.t AS at, b.t AS bt, {u.replace('{}', 'greatest(a.t, b.t)')} AS u FROM {join}",
                f"SELECT a.t AS at, b.t AS bt, {u.replace('{}', 'least(a.t, b.t)')} AS u FROM {join}",
                f"SELECT b.t AS u FROM {join}",
            ]
        )
    )
    clauses = [f"[RANGE {w.range}, SLIDE {w.slide}, WA {{}}, ORIGIN {w.origin}]" for w in draw(windows())]
    sql = f"SELECT count(*) AS n FROM ({source}) i GROUP BY u"
    if clauses:
        sql = f"SELECT count(*) AS n {clauses[0].format('u')} FROM ({source}) i"
    for clause in clauses[1:]:
        sql = f"SELECT count(*) AS n {clause.format('window_end')} FROM ({sql}) i"
    return sql


@given(computed(), rows, rows)
def test_windows_on_computed_times_are_out(
    sql: str, first: list[tuple[str, int, str]], second: list[tuple[str, int, str]]
) -> None:
    _check(sql, first, second)


@st.composite
def patterns(draw: st.DrawFn) -> str:
    steps = draw(st.sampled_from(["a x, b y", "a x, NOT b z", "a x, NOT b z, a y", "a x, b y, NOT a z"]))
    over = f"OVER [{draw(st.integers(1, 12))} FOLLOWING x]"
    mode = draw(st.sampled_from(["RECENT", "CHRONICLE", "CONTINUOUS"]))
    return f"SELECT x.t, x.k FROM SEQ({steps}) {over} MODE {mode}"


@given(patterns(), rows, rows)
def test_sequences_are_out(sql: str, first: list[tuple[str, int, str]], second: list[tuple[str, int, str]]) -> None:
    _check(sql, first, second)


@given(joins(), rows, rows)
def test_rows_of_joins_are_settled_and_meet_none_that_come_later(
    sql: str, first: list[tuple[str, int, str]], second: list[tuple[str, int, str]]
) -> None:
    _check(sql, first, second)


def _check(sql: str, first: list[tuple[str, int, str]], second: list[tuple[str, int, str]]) -> None:
    made = catalog()
    plan = bind(sql, made)
    closing = closing_bound(plan, max(t for _, t, _ in first))
    assert closing is not None
    later = [(s, t + 40 + closing, k) for s, t, k in second]

    reopened = Fed(plan, made)
    reopened.push(first)
    reopened.bound(closing)
    ended = Fed(plan, made)
    ended.push(first)
    ended.graph.close()
    assert reopened.taken() == ended.taken()

    reopened.push(later)
    reopened.graph.close()
    whole = Fed(plan, made)
    whole.push([*first, *later])
    whole.graph.close()
    assert not reopened.rejected
    assert reopened.taken() == whole.taken()


@pytest.mark.parametrize(
    ("sql", "greatest", "bound"),
    [
        ("SELECT t, k FROM a", 7, 8),
        ("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM a", 7, 10),
        ("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM a", 10, 20),
        ("SELECT count(*) AS n [RANGE 10, SLIDE 2, WA t] FROM a", 7, 16),
        ("SELECT count(*) AS n [RANGE 2, SLIDE 10, WA t] FROM a", 5, 6),
        ("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM m", 7, 17),
        ("SELECT a.t FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - 5 AND a.t + 10", 7, 18),
        ("SELECT a.t FROM a LEFT JOIN b ON a.k = b.k AND b.t BETWEEN a.t - 15 AND a.t + 10", 7, 23),
        ("SELECT a.t FROM a LEFT JOIN b ON a.k = b.k AND floor(a.t / 10) = floor(b.t / 10)", 7, 10),
        ("SELECT a.t FROM a ASOF JOIN b ON a.k = b.k AND b.t <= a.t", 7, 8),
        (
            "SELECT max(n) AS m [RANGE 20, SLIDE 20, WA window_end] FROM "
            "(SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM a) i",
            12,
            30,  # then the inner windows that are still open end at 40
        ),
        ("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM (SELECT t + 7 AS u FROM a) i", 7, 13),
        ("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM (SELECT t - 7 AS u FROM a) i", 7, 17),
        ("SELECT count(*) AS n FROM a GROUP BY floor(t / 60)", 70, 120),
        ("SELECT count(*) AS n FROM a GROUP BY t div 60", -70, -59),
        ("SELECT count(*) AS n [RANGE 2, SLIDE 1, WA u] FROM (SELECT t div 60 AS u FROM a) i", 70, 180),
        (
            "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM (SELECT greatest(a.t, b.t) AS u FROM a JOIN b "
            "ON a.k = b.k AND b.t BETWEEN a.t AND a.t + 1) i",
            7,
            10,
        ),
        (
            "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM (SELECT least(a.t, b.t) AS u FROM a JOIN b "
            "ON a.k = b.k AND b.t BETWEEN a.t AND a.t + 1) i",
            7,
            11,  # a row of the left at 9 may still meet one of the right at 10
        ),
    ],
)
def test_the_bound_is_the_least(sql: str, greatest: int, bound: int) -> None:
    assert closing_bound(bind(sql, catalog()), greatest) == bound


def test_streams_that_meet_under_one_time_have_bounds_of_their_own() -> None:
    window = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM (SELECT t FROM moved UNION ALL SELECT t FROM b) u"
    flow = pk.Flow()
    for name in ("a", "b"):
        flow.stream(name, SCHEMA.arrow.empty_table(), time="t")
    plan = bind(window, flow.alter("moved", "a", shift=7).catalog)
    assert Closing(plan).bounds({"a": 1}) == {"a": 3, "b": 10}
    assert Closing(plan).bounds({"b": 1}) == {"a": 3, "b": 10}
    assert Closing(plan).bounds({"a": 4, "b": 1}) == {"a": 13, "b": 20}


def test_a_pattern_waits_for_what_must_not_come_as_long_as_that_is_open() -> None:
    def bounds(steps: str, **newest: int) -> dict[str, int] | None:
        return Closing(bind(f"SELECT x.t FROM SEQ({steps}) OVER [10 FOLLOWING x]", catalog())).bounds(newest)

    assert bounds("a x, NOT b z", a=5) == {"a": 16, "b": 16}, "the time until which nothing came is 15"
    assert bounds("a x, NOT b z", a=5, b=40) == {"a": 16, "b": 41}, "what must not come is no sequence"
    assert bounds("a x, NOT b z", b=40) == {"b": 41}
    assert bounds("a x, NOT b z, a y", a=5, b=40) == {"a": 6, "b": 41}


def test_there_is_none_where_rows_matter_for_ever() -> None:
    made = catalog()
    assert closing_bound(bind("SELECT count(*) AS n [RANGE ALL, SLIDE 10, WA t] FROM a", made), 7) is None
    assert closing_bound(bind("SELECT t, k FROM a", made), 2**63 - 2) is None
    joined = bind("SELECT a.t FROM a LEFT JOIN b ON a.k = b.k AND b.t BETWEEN a.t AND a.t + 5", made)
    assert closing_bound(joined, 7) is not None
    assert closing_bound(smoothed(joined, 2), 7) is None, "two rows with each bound: only the end brings all"
