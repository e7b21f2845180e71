"""As-of joins, and joins of three streams as one operator: all evaluators agree."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.model.schema import Schema
from penstock.verify.agreement import EVALUATORS, agreement
from tests.profiles import some_and_slow
from tests.spark.test_agreement import INTEGER, TIMESTAMP, WITHOUT_STREAMING, arrivals, user_catalog
from tests.spark.test_joins import length

pytestmark = pytest.mark.spark


def latest(rng: random.Random, schema: Schema) -> str:
    """The latest one or few rows, in one of the ways in which that is written."""
    kind = rng.choice(["", "LEFT "])
    chosen = rng.choice(["SELECT *", "SELECT a.k, b.v, a.t AS at, b.t AS bt, b.d"])
    rows = rng.choice(["", "[ROWS 2]"])
    near = rng.choice(["a.t >= b.t", "a.t > b.t", f"a.t >= b.t AND b.t >= a.t - {length(rng, schema)}"])
    equal = rng.choice(["a.k = b.k AND ", "b.v = a.v AND a.k = b.k AND ", ""])
    if rng.random() < 0.3:
        return f"{chosen} FROM a {kind}JOIN b [ROWS 3, PA k, WA t] ON b.k = a.k AND a.v < b.v"
    return f"{chosen} FROM a ASOF {kind}JOIN b {rows} ON {equal}{near}"


def many(rng: random.Random, schema: Schema) -> str:
    first, second = length(rng, schema), length(rng, schema)
    also = rng.choice(["", " AND c.v = a.v", " AND a.v < c.v"])
    return (
        "SELECT /*+ MULTIWAY_JOIN */ a.k, a.v, b.v, c.t AS ct "
        f"FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - {first} AND a.t + {second} "
        f"JOIN c ON c.k = b.k AND c.t BETWEEN b.t - {second} AND b.t + {first}{also}"
    )


def check(sql: str, names: str, rng: random.Random, schema: Schema, evaluators: Any, spark: Any) -> None:
    found = agreement(sql, [arrivals(rng, name, schema) for name in names], user_catalog(), evaluators, spark)
    assert found.agrees, f"{sql}\n{found.render()}"


@pytest.mark.parametrize("seed", some_and_slow(range(12), 1))
def test_the_latest_rows_by_all_evaluators(seed: int, spark: Any) -> None:
    rng = random.Random(seed)
    schema = rng.choice([INTEGER, TIMESTAMP])
    check(latest(rng, schema), "ab", rng, schema, EVALUATORS, spark)


@pytest.mark.parametrize("seed", some_and_slow(range(100, 112), 1))
def test_the_latest_rows_in_batch(seed: int, spark: Any) -> None:
    rng = random.Random(seed)
    schema = rng.choice([INTEGER, TIMESTAMP])
    check(latest(rng, schema), "ab", rng, schema, WITHOUT_STREAMING, spark)


@pytest.mark.parametrize("seed", some_and_slow(range(8), 1))
def test_three_streams_as_one_operator(seed: int, spark: Any) -> None:
    rng = random.Random(seed)
    schema = rng.choice([INTEGER, TIMESTAMP])
    check(many(rng, schema), "abc", rng, schema, EVALUATORS, spark)


def test_three_streams_of_which_two_have_nothing_in_common(spark: Any) -> None:
    rng = random.Random(3)
    sql = (
        "SELECT a.k, b.v, c.t FROM a JOIN b ON b.t BETWEEN a.t - 2 AND a.t + 2 "
        "JOIN c ON c.k = a.k AND c.v = b.v AND c.t BETWEEN b.t - 3 AND b.t + 3"
    )
    check(sql, "abc", rng, INTEGER, EVALUATORS, spark)
