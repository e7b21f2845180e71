"""Where rows go: state lives where it was put, so what a value hashes to must never change."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.engines.spark.routing import Router, spread
from penstock.model.batch import Batch
from penstock.model.schema import schema_of
from penstock.plan.distribution import ANY, SINGLE, by_keys
from penstock.plan.expressions import Column

pytestmark = pytest.mark.spark  # the engine is pyspark's; no session is started
SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("w", "bigint"), ("x", "decimal(8,2)")], "ts")
ROWS = [(t, k, w, Decimal(w).scaleb(-1)) for t, (k, w) in enumerate([("a", 1), ("b", 2), (None, 3), ("a", 4)])]


def router(*names: str, **options: Any) -> Router:
    return Router(by_keys(Column(n, SCHEMA[n].type) for n in names), SCHEMA, {}, 1000, **options)


def test_hashes_are_those_that_state_was_put_by() -> None:
    """Plans that are not cut go by texts, as the release before stages had it: these are its numbers."""
    batch = Batch(SCHEMA, ROWS)
    assert router("k", by_text=True)(batch).tolist() == [504, 975, 57, 504]
    assert router("w", by_text=True)(batch).tolist() == [966, 110, 609, 832]
    assert router("x", by_text=True)(batch).tolist() == [889, 407, 10, 824]


def test_integers_of_plans_that_are_cut_are_hashed_as_numbers() -> None:
    """By pandas' own hash of 64 bits, from the first release with stages on."""
    batch = Batch(SCHEMA, ROWS)
    assert router("w")(batch).tolist() == [789, 730, 856, 252]
    assert router("k")(batch).tolist() == router("k", by_text=True)(batch).tolist()


@pytest.mark.parametrize("by_text", [True, False])
def test_values_that_are_found_row_by_row_meet_those_of_a_column(by_text: bool) -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl)
    flow.function("tenth", lambda w: Decimal(w).scaleb(-1), "decimal(8,2)")
    query: Any = flow.query("SELECT tenth(w) AS g, ts FROM s")
    (expression,) = [e for name, e in query.plan.columns if name == "g"]
    functions = {name: f.function for name, f in query.catalog.functions.items()}
    found = Router(by_keys([expression]), SCHEMA, functions, 1000, by_text=by_text)(Batch(SCHEMA, ROWS))
    assert found.tolist() == router("x", by_text=by_text)(Batch(SCHEMA, ROWS)).tolist()


def test_rows_that_may_go_anywhere_stay_where_they_are_and_single_ones_meet() -> None:
    batch = Batch(SCHEMA, ROWS)
    assert Router(ANY, SCHEMA, {}, 4)(batch, 6).tolist() == [2] * 4
    assert Router(SINGLE, SCHEMA, {}, 4)(batch, 6).tolist() == [0] * 4


def test_spreading_keeps_the_order_of_rows() -> None:
    table = Batch(SCHEMA, ROWS).table
    found = {bucket: own.column("ts").to_pylist() for bucket, own in spread(table, np.array([2, 0, 2, 0]), 3)}
    assert found == {0: [1, 3], 2: [0, 2]}
