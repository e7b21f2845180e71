"""Joins: all evaluators agree, whatever is kept, however near rows are to be, and whatever is made of the pairs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.model.schema import Schema
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import EVALUATORS, agreement
from tests.profiles import some_and_slow
from tests.spark.test_agreement import INTEGER, TIMESTAMP, WITHOUT_STREAMING, arrivals, user_catalog

pytestmark = pytest.mark.spark

KINDS = ["JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "RIGHT JOIN"]


def length(rng: random.Random, schema: Schema, most: int = 9) -> str:
    number = rng.randint(1, most)
    return str(number) if schema is INTEGER else f"INTERVAL {number} SECONDS"


def near(rng: random.Random, schema: Schema) -> str:
    first, second = length(rng, schema), length(rng, schema)
    return rng.choice(
        [f"b.t BETWEEN a.t - {first} AND a.t + {second}", f"b.t >= a.t AND b.t < a.t + {first}", "a.t = b.t"]
    )


def joined(rng: random.Random, schema: Schema, kind: str) -> str:
    equal = rng.choice(["a.k = b.k AND ", "b.v = a.v AND a.k = b.k AND ", ""])
    more = rng.choice(["", " AND a.v < b.v", " AND a.f / b.v > 1"])
    on = f"FROM a {kind} b ON {equal}{near(rng, schema)}{more}"
    if "SEMI" in kind or "ANTI" in kind:
        return f"SELECT a.k, a.v, a.t {on}"
    return rng.choice([f"SELECT * {on}", f"SELECT a.k, b.v + a.v AS w, a.t AS at, b.d {on}"])


def windowed(rng: random.Random, schema: Schema, kind: str) -> str:
    unit = "" if schema is INTEGER else " seconds"
    lengths = [f"{rng.randint(1, 9)}{unit}" for _ in range(3)]
    relations = rng.choice(
        [f"a [RANGE {lengths[0]}, WA t], b [RANGE {lengths[1]}, WA t]", f"a, b [RANGE TUMBLING {lengths[0]}, WA t],"]
    )
    window = f"[RANGE TUMBLING {lengths[2]}, WA {rng.choice('ab')}.t]"
    return f"SELECT a.k AS k, count(*) AS n, max(b.v) AS hi {window} FROM {relations} WHERE a.k = b.k GROUP BY a.k"


def case(seed: int) -> tuple[str, list[Arrivals]]:
    rng = random.Random(seed)
    schema = rng.choice([INTEGER, TIMESTAMP])
    kind = KINDS[seed % len(KINDS)]
    sql = (windowed if seed % 4 == 3 else joined)(rng, schema, kind)
    return sql, [arrivals(rng, name, schema) for name in "ab"]


@pytest.mark.parametrize("seed", some_and_slow(range(18), 1))
def test_all_evaluators_agree(seed: int, spark: Any) -> None:
    sql, streams = case(seed)
    found = agreement(sql, streams, user_catalog(), EVALUATORS, spark)
    assert found.agrees, f"{sql}\n{found.render()}"


@pytest.mark.parametrize("seed", some_and_slow(range(100, 124), 4))
def test_batch_evaluators_agree(seed: int, spark: Any) -> None:
    sql, streams = case(seed)
    found = agreement(sql, streams, user_catalog(), WITHOUT_STREAMING, spark)
    assert found.agrees, f"{sql}\n{found.render()}"


def test_three_streams(spark: Any) -> None:
    rng = random.Random(7)
    sql = "SELECT a.k, b.v, c.t FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - 4 AND a.t + 4 JOIN c ON c.t = b.t"
    found = agreement(sql, [arrivals(rng, name, INTEGER) for name in "abc"], user_catalog(), EVALUATORS, spark)
    assert found.agrees, found.render()
