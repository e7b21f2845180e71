"""Joins are given what is read of them: the answer stays, columns go, and whatever may fail is still asked."""

from __future__ import annotations

import pytest
from hypothesis import given

from penstock.model.progress import Bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.identity import identities
from penstock.plan.nodes import Join, Node
from penstock.plan.rules.narrow import narrowed
from penstock.reference.evaluation import outcome
from penstock.sql.binder import bind
from tests.runtime.joins import JoinCase, join_cases
from tests.runtime.test_asof_joins import cases as as_of

NEAR = "b.ts BETWEEN a.ts AND a.ts + 5"


def catalog() -> Catalog:
    made = Catalog()
    for name, own in (("a", "r"), ("b", "__time")):
        fields = [("ts", "bigint"), ("k", "string"), ("v", "int"), ("w", "int"), (own, "int")]
        made.add_stream(StreamInfo(name, schema_of(fields, "ts"), Bounded(5), StreamProperties()))
    return made


def joins(sql: str) -> list[Join]:
    plan = narrowed(bind(sql, catalog()))
    return [node for node in plan.walk() if isinstance(node, Join)]


@given(case=join_cases() | as_of)
def test_nothing_else_comes_out(case: JoinCase) -> None:
    plan: Node = case.plan
    slim = narrowed(plan)
    assert slim.schema == plan.schema
    arrivals = [(name, row) for name, rows in case.batches for row in rows]
    assert outcome(slim, arrivals).result == outcome(plan, arrivals).result


def test_only_what_is_read_is_joined() -> None:
    (join,) = joins(f"SELECT b.w, b.__time FROM a JOIN b ON a.k = b.k AND {NEAR} AND a.v < b.v")
    assert join.left.schema.names == ("k", "ts", "v")
    assert join.right.schema.names == ("__time", "k", "ts", "v", "w")


@pytest.mark.parametrize(
    "kind", ["JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "ASOF LEFT JOIN"]
)
def test_columns_that_nobody_reads_are_of_no_concern(kind: str) -> None:
    """All columns of a are read; one is added to it, others change places, and names that it shares with b change."""
    near = "a.ts >= b.ts" if "ASOF" in kind else NEAR
    read = "a.ts, a.k, a.v" + ("" if "SEMI" in kind or "ANTI" in kind else ", w, u")
    sql = f"SELECT {read} FROM a {kind} b ON a.k = b.k AND {near}"

    def identity(*columns: str) -> str:
        made = Catalog()
        for name, fields in (("a", columns), ("b", ("ts", "k", "w", "u"))):
            types = [(each, "string" if each == "k" else "bigint") for each in fields]
            made.add_stream(StreamInfo(name, schema_of(types, "ts"), Bounded(5), StreamProperties()))
        plan = narrowed(bind(sql, made))
        return next(each.identity for each in identities(plan) if isinstance(each.node, Join))

    assert identity("ts", "k", "v") == identity("v", "more", "ts", "k") == identity("k", "v", "x", "y", "ts")


def test_a_chain_of_joins_is_cut_down_all_the_way() -> None:
    upper, lower = joins(f"SELECT c.w FROM a JOIN a b ON a.k = b.k AND {NEAR} JOIN a c ON c.v = b.v AND c.ts = b.ts")
    assert [below.schema.names for below in lower.inputs] == [("k", "ts"), ("k", "ts", "v")]
    assert "k" not in upper.right.schema.names
    assert not {"a_k", "b_k"} & set(upper.left.schema.names)  # read by the lower one alone


def test_what_may_fail_is_computed_though_nobody_reads_it() -> None:
    (join,) = joins(f"SELECT b.w FROM (SELECT ts, k, 6 div v AS q, w AS r FROM a) a JOIN a b ON a.k = b.k AND {NEAR}")
    assert join.left.schema.names == ("ts", "k")
    below = join.left.inputs[0]
    assert below.schema.names == ("ts", "k", "q")


def test_all_columns_say_which_row_is_the_latest() -> None:
    (join,) = joins("SELECT b.w FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts")
    assert join.left.schema.names == ("k", "ts")
    assert join.right.schema.names == ("ts", "k", "v", "w", "__time")


def test_a_join_whose_time_would_be_called_otherwise_stays() -> None:
    (join,) = joins(f"SELECT b.w FROM a JOIN b ON a.k = b.k AND {NEAR}")
    assert join.schema.time == "___time"
    assert "__time" in join.right.schema.names


@pytest.mark.parametrize("sql", ["SELECT k FROM (SELECT ts, k, v FROM a) x", "SELECT DISTINCT k, v FROM a UNION b"])
def test_a_plan_without_joins_stays_as_it_is(sql: str) -> None:
    plan = bind(sql, catalog())
    assert narrowed(plan) is plan
