"""The first of each window: all evaluators agree, on Spark in batch and as a stream."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.model.schema import Schema
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import EVALUATORS, agreement
from tests.profiles import some_and_slow
from tests.spark.test_agreement import INTEGER, TIMESTAMP, arrivals, user_catalog

pytestmark = pytest.mark.spark


def numbered(rng: random.Random, schema: Schema) -> str:
    order = rng.choice(["v DESC", "f, k DESC", "d NULLS LAST", "k, f DESC NULLS FIRST"])
    keys = rng.choice(["", ", k", ", v % 2"])
    length = "7" if schema is INTEGER else "INTERVAL '7' SECONDS"
    over = f"ROW_NUMBER() OVER (PARTITION BY window_start, window_end{keys} ORDER BY {order})"
    return f"SELECT *, {over} AS rn FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(t), {length}))"


def case(seed: int) -> tuple[str, list[Arrivals]]:
    rng = random.Random(seed)
    schema = rng.choice([INTEGER, TIMESTAMP])
    most = rng.choice(["rn <= 2", "rn = 1", "rn < 4 AND v > 0"])
    inner = numbered(rng, schema)
    sql = (f"SELECT k, v, f, rn, window_end FROM ({inner}) WHERE {most}", inner)[seed % 2]
    return sql, [arrivals(rng, "a", schema)]


@pytest.mark.parametrize("seed", some_and_slow(range(8), 1))
def test_all_evaluators_agree(seed: int, spark: Any) -> None:
    sql, streams = case(seed)
    found = agreement(sql, streams, user_catalog(), EVALUATORS, spark)
    assert found.agrees, f"{sql}\n{found.render()}"
