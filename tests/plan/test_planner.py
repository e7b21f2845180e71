"""The physical plan: what is decided of each node, that explain prints it and that engines run it."""

from __future__ import annotations

import pickle

import pytest

import penstock as pk
from penstock.errors import PlanError
from penstock.model.progress import Bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.operators.aggregates.columnar import ColumnarAggregate
from penstock.operators.aggregates.paned import PanedAggregate
from penstock.operators.aggregates.wid import WidAggregate
from penstock.operators.progress.ingest import BatchIngest, RowIngest
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.distribution import ANY, SINGLE
from penstock.plan.explain import explain
from penstock.plan.identity import identities
from penstock.plan.nodes import Node, Source, WindowAggregate
from penstock.plan.physical import Physical, Runs
from penstock.plan.planner import BY_BATCH, BY_ROW, in_process, spark_batch, spark_streaming
from penstock.runtime.builder import Builder
from penstock.runtime.graph import QueryGraph
from penstock.sql.binder import bind

SCHEMA = schema_of([("t", "bigint"), ("g", "string"), ("h", "string"), ("v", "bigint"), ("d", "decimal(30,2)")], "t")
WINDOW = "[RANGE 6, SLIDE 2, WA t]"
SUMS = f"SELECT g, sum(v) AS v {WINDOW} FROM s WHERE v > 0 GROUP BY g"


def catalog() -> Catalog:
    """Two streams of one schema."""
    made = Catalog()
    for name in ("s", "z"):
        made.add_stream(StreamInfo(name, SCHEMA, Bounded(5), StreamProperties()))
    return made


def plan(sql: str) -> Node:
    """The logical plan of a text."""
    return bind(sql, catalog())


def only(planned: Physical, kind: type[Node]) -> Physical:
    """The one node of a kind."""
    (found,) = [p for p in planned.walk() if isinstance(p.node, kind)]
    return found


@pytest.mark.parametrize("lowering", [in_process, spark_batch, spark_streaming])
def test_the_tree_has_every_logical_node_in_its_place_with_its_identity(lowering) -> None:  # type: ignore[no-untyped-def]
    logical = plan(f"SELECT * FROM ({SUMS}) a UNION ALL SELECT * FROM ({SUMS.replace('FROM s', 'FROM z')}) b")
    planned = lowering(logical, catalog())
    assert [p.node for p in planned.walk()] == list(logical.walk())
    assert [p.identity for p in planned.walk()] == [k.identity for k in identities(logical)]
    assert all(tuple(i.node for i in p.inputs) == p.node.inputs for p in planned.walk())


def test_each_lowering_says_who_runs_a_node() -> None:
    logical = plan(SUMS)
    assert {p.runs for p in in_process(logical, catalog()).walk()} == {Runs.IN_PROCESS}
    assert {p.runs for p in spark_streaming(logical, catalog()).walk()} == {Runs.HOSTED}
    assert {p.runs for p in spark_batch(logical, catalog()).walk()} == {Runs.NATIVE, Runs.SLIDING}
    assert {p.runs for p in spark_batch(plan("SELECT t, v FROM s"), catalog()).walk()} == {Runs.NATIVE}


def test_a_batch_is_hosted_where_sparks_own_operators_cannot_or_mean_another_thing() -> None:
    assert not spark_batch(plan(SUMS), catalog()).is_hosted
    assert spark_batch(plan(SUMS), catalog(), setting="spark.sql.ansi.enabled=false").is_hosted
    assert spark_batch(plan(f"SELECT sum(d) AS d {WINDOW} FROM s"), catalog()).is_hosted
    assert not spark_batch(plan(f"SELECT max(d) AS d {WINDOW} FROM s"), catalog()).is_hosted


@pytest.mark.parametrize(
    ("lowering", "operator", "algorithm"), [(in_process, RowIngest, BY_ROW), (spark_streaming, BatchIngest, BY_BATCH)]
)
def test_rows_are_judged_as_the_plan_says(lowering, operator: type, algorithm: str) -> None:  # type: ignore[no-untyped-def]
    planned = lowering(plan(SUMS), catalog())
    assert only(planned, Source).algorithm == algorithm
    graph = QueryGraph(planned, Builder(catalog()))
    assert type(graph.sources["s"][0].operator) is operator


@pytest.mark.parametrize(
    ("algorithm", "operator"), [("wid", WidAggregate), ("paned", PanedAggregate), ("columnar", ColumnarAggregate)]
)
def test_the_graph_runs_the_algorithm_of_the_plan(algorithm: str, operator: type) -> None:
    planned = in_process(plan(SUMS), catalog(), aggregate=algorithm)
    assert only(planned, WindowAggregate).algorithm == algorithm
    graph = QueryGraph(planned, Builder(catalog()))
    (made,) = [n.operator for n in graph.nodes if isinstance(n.plan, WindowAggregate)]
    assert type(made) is operator


def test_the_cheapest_algorithm_is_taken_and_the_others_are_told() -> None:
    found = only(in_process(plan(SUMS), catalog()), WindowAggregate)
    assert found.choice is not None
    assert found.algorithm == found.choice.name == min(found.choice.costs, key=lambda name: found.choice.costs[name])  # type: ignore[union-attr]
    assert set(found.choice.costs) == {"wid", "paned", "paned differential", "columnar"}


def test_an_algorithm_that_cannot_do_it_is_refused() -> None:
    with pytest.raises(PlanError) as error:
        in_process(plan(f"SELECT max(g) AS g {WINDOW} FROM s"), catalog(), aggregate="columnar")
    assert "cannot run the aggregate" in error.value.what
    assert error.value.got == "columnar"
    assert error.value.hint == "use one of wid, paned"
    assert "max(g)" in error.value.where


def test_bounds_that_a_window_can_use_are_told_down_to_its_source() -> None:
    planned = in_process(plan("SELECT count(*) AS n [RANGE 6, SLIDE 2, WA t, ORIGIN 1] FROM s WHERE v > 0"), catalog())
    assert planned.useful == (1, 0)
    assert only(planned, WindowAggregate).useful == (1, 0)
    assert only(planned, Source).useful == (2, 1)
    assert only(in_process(plan("SELECT t, v FROM s"), catalog()), Source).useful == (1, 0)
    assert only(
        in_process(plan(f"SELECT count(*) AS n {WINDOW} FROM (SELECT DISTINCT t, v FROM s) x"), catalog()), Source
    ).useful == (1, 0)


@pytest.mark.parametrize(
    ("sql", "spread"),
    [
        (SUMS, {"s": "by g"}),
        ("SELECT t, v FROM s", {"s": "by t"}),
        (f"SELECT count(*) AS n {WINDOW} FROM s", {"s": "single"}),
        (f"SELECT upper(g) AS g, count(*) AS n {WINDOW} FROM s GROUP BY upper(g)", {"s": "by upper(g)"}),
        (f"SELECT g, count(*) AS n {WINDOW} FROM s UNION z GROUP BY g", {"s": "by g", "z": "by g"}),
        # The outer groups by h alone, so rows of one h must meet, and they do where rows of one g and h do not.
        (
            f"SELECT h, max(n) AS n [RANGE 6, SLIDE 2, WA window_end] FROM "
            f"(SELECT g, h, count(*) AS n {WINDOW} FROM s GROUP BY g, h) i GROUP BY h",
            {"s": "by h"},
        ),
        (
            f"SELECT h, max(n) AS n [RANGE 6, SLIDE 2, WA window_end] FROM "
            f"(SELECT g, max(h) AS h, count(*) AS n {WINDOW} FROM s GROUP BY g) i GROUP BY h",
            {"s": "single"},
        ),
        ("SELECT g, count(*) AS n [RANGE 6 rows, SLIDE 2 rows, WA row-num] FROM s GROUP BY g", {"s": "single"}),
    ],
)  # fmt: skip
def test_sources_are_spread_by_what_every_operator_with_state_groups_by(sql: str, spread: dict[str, str]) -> None:
    planned = spark_streaming(plan(sql), catalog())
    entrances = {p.node.name: str(p.distribution) for p in planned.walk() if isinstance(p.node, Source)}
    assert entrances == spread


def test_operators_say_which_rows_must_meet() -> None:
    planned = spark_streaming(plan(SUMS), catalog())
    assert str(only(planned, WindowAggregate).distribution) == "by g"
    assert planned.distribution == ANY
    total = spark_streaming(plan(f"SELECT count(*) AS n {WINDOW} FROM s"), catalog())
    assert only(total, WindowAggregate).distribution == SINGLE


def test_explain_prints_what_was_decided() -> None:
    planned = in_process(plan(SUMS), catalog(), aggregate="paned")
    lines = [line.strip(" |+-") for line in explain(planned, properties=False).splitlines()]
    assert lines == [text for p in planned.walk() for text in (p.node.label, p.how)]
    assert only(planned, WindowAggregate).how.startswith("in-process: paned, cost ")


def test_a_plan_travels_whole() -> None:
    planned = spark_streaming(plan(SUMS), catalog())
    assert pickle.loads(pickle.dumps(planned)) == planned


def test_explain_speaks_in_the_words_of_the_query() -> None:
    sql = f"SELECT count(DISTINCT v + 1) AS n {WINDOW} FROM s GROUP BY upper(g) HAVING max(v) > 1"
    shown = explain(in_process(plan(sql), catalog()))
    assert "__" not in shown
    assert "key (upper(g), wid)" in shown
    assert "count(DISTINCT (v + 1)) may take more room the more values there are" in shown


def test_a_query_runs_what_it_explains() -> None:
    flow = pk.Flow().stream("s", [{"t": 1, "v": 2}], time="t")
    q = flow.query("SELECT sum(v) AS v [RANGE 6, SLIDE 2, WA t] FROM s")
    assert q.explain() == explain(q.physical)  # type: ignore[union-attr]
    graph = q.execution().graph  # type: ignore[union-attr]
    assert [n.identity for n in graph.nodes] == [p.identity for p in q.physical.walk()]  # type: ignore[union-attr]
    (operator,) = [n.operator for n in graph.nodes if isinstance(n.plan, WindowAggregate)]
    assert operator.kind == "columnar panes"
    assert "columnar, cost" in q.explain()
