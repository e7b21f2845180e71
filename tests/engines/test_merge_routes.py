"""Where rows of a merge go on Spark, and when Spark may merge natively: decided from the plan, without Spark."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.plan.catalog import Catalog
from penstock.plan.distribution import routes
from penstock.plan.nodes import Node
from penstock.plan.planner import spark_batch
from penstock.sql.binder import bind

SCHEMA = "ts bigint, k string, g string, x double"


def plan(sql: str, progress: object = None, schema: str = SCHEMA, **options: object) -> Node:
    flow = pk.Flow()
    for name in ("a", "b"):
        flow.stream(name, iter(()), time="ts", schema=schema, progress=progress or pk.bounded(5))  # type: ignore[arg-type]
    flow.merge("clean", ["a", "b"], **options)  # type: ignore[arg-type]
    return bind(sql, flow.catalog)


def spread(node: Node) -> set[str] | None:
    found = routes(node)
    return None if found is None else {str(e) for expressions in found.values() for e in expressions}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"ts", "k", "g"}),
        ({"key": ["k"]}, {"ts", "k"}),
        ({"properties": pk.StreamProperties(ordered=True, strictly_ordered=True)}, {"ts"}),
    ],
)
def test_rows_of_one_event_meet_whatever_the_last_bits_of_their_floats(
    options: dict[str, object], expected: set[str]
) -> None:
    assert spread(plan("SELECT * FROM clean", **options)) == expected


def test_an_aggregate_over_a_merge_is_spread_by_exact_columns_only() -> None:
    counted = "SELECT {0}, count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM clean GROUP BY {0}"
    assert spread(plan(counted.format("g"), key=["k"])) == {"g"}
    assert spread(plan(counted.format("x"), key=["k"])) is None


@pytest.mark.parametrize(
    ("options", "hosted"),
    [
        ({"key": ["k"]}, False),
        ({}, True),
        ({"schema": "ts bigint, k string"}, False),
        ({"key": ["k"], "driver": "majority"}, True),
        ({"key": ["k"], "on_divergence": "stop"}, True),
        ({"properties": pk.StreamProperties(ordered=True, strictly_ordered=True)}, False),
    ],
)
def test_bounded_replicas_are_merged_natively_where_that_means_the_same(
    options: dict[str, object], hosted: bool
) -> None:
    assert spark_batch(plan("SELECT * FROM clean", **options), Catalog()).is_hosted is hosted


def test_rows_whose_times_were_moved_do_not_meet_by_the_time_before() -> None:
    flow = pk.Flow().stream("s", iter(()), time="ts", schema="ts int, k string", progress=pk.bounded(5))
    flow.alter("later", "s", shift=3).alter("longer", "s", duration=3)
    assert spread(bind("SELECT DISTINCT ts, k FROM later", flow.catalog)) == {"k"}
    assert spread(bind("SELECT DISTINCT ts FROM later", flow.catalog)) is None
    assert spread(bind("SELECT DISTINCT k FROM longer", flow.catalog)) == {"k"}
    assert spread(bind("SELECT DISTINCT ts FROM longer", flow.catalog)) == {"ts"}
    made = "SELECT t, count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM (SELECT ts, ts DIV 10 AS t FROM {}) i GROUP BY t"
    assert spread(bind(made.format("later"), flow.catalog)) is None
    assert spread(bind(made.format("longer"), flow.catalog)) is not None


def test_altered_lives_are_hosted_over_bounded_rows_too() -> None:
    flow = pk.Flow().stream("s", iter(()), time="ts", schema="ts bigint, k string").alter("later", "s", shift=3)
    assert spark_batch(bind("SELECT * FROM later", flow.catalog), flow.catalog).is_hosted
