"""Rows that follow one another: all evaluators agree, on Spark in batch and as a stream."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.model.schema import Schema
from penstock.verify.agreement import EVALUATORS, agreement
from tests.profiles import some_and_slow
from tests.spark.test_agreement import INTEGER, TIMESTAMP, WITHOUT_STREAMING, arrivals, user_catalog

pytestmark = pytest.mark.spark
MODES = ["RECENT", "CHRONICLE", "CONTINUOUS", "CUMULATIVE"]


def pattern(seed: int, schema: Schema) -> str:
    """Every context, of two streams or one, with keys or without, and with something that must not come."""
    rng = random.Random(seed)
    length = "12" if schema is INTEGER else "12 SECONDS"
    steps, last, direction = [
        ("a AS x, b AS y", "y", f"{length} PRECEDING y"),
        ("a AS x, NOT b AS y", "x", f"{length} FOLLOWING x"),
        ("a AS x, NOT b AS n, a AS y", "y", f"{length} PRECEDING y"),
        ("a AS x, b AS n, a AS y", "y", f"{length} PRECEDING y"),
    ][seed % 4]
    partition = rng.choice([" PARTITION BY k", ""])
    where = " WHERE x.v > -2" + ("" if last == "x" or seed % 4 == 0 else " AND n.v > 3")
    mode = MODES[(seed + seed // 4) % 4]
    chosen = rng.choice([f"x.v AS xv, x.t AS xt, {last}.k AS k, {last}.t", "*"])
    return f"SELECT {chosen} FROM SEQ({steps}){partition} OVER [{direction}] MODE {mode}{where}"


def check(seed: int, evaluators: Any, spark: Any) -> None:
    rng = random.Random(seed)
    schema = rng.choice([INTEGER, TIMESTAMP])
    sql = pattern(seed, schema)
    streams = [arrivals(rng, name, schema) for name in ("ab" if "b AS" in sql else "a")]
    found = agreement(sql, streams, user_catalog(), evaluators, spark)
    assert found.agrees, f"{sql}\n{found.render()}"


@pytest.mark.parametrize("seed", some_and_slow(range(16), 2))
def test_all_evaluators_agree(seed: int, spark: Any) -> None:
    check(seed, EVALUATORS, spark)


@pytest.mark.parametrize("seed", some_and_slow(range(100, 116), 1))
def test_batch_evaluators_agree(seed: int, spark: Any) -> None:
    check(seed, WITHOUT_STREAMING, spark)
