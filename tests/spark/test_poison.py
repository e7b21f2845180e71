"""Rows without a value on Spark: in batch and in streaming the same rows die as in-process, and for the same reasons.

The queries and rows are those of the in-process tests, made from a seed.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

import penstock as pk
from penstock.model.batch import Row
from penstock.model.schema import BIGINT, schema_of
from penstock.plan.catalog import Catalog, UserFunction
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import Evaluator, agreement
from tests.profiles import some_and_slow

pytestmark = pytest.mark.spark

SCHEMA = schema_of(
    [("ts", "bigint"), ("k", "string"), ("v", "int"), ("w", "bigint"), ("text", "string"), ("d", "decimal(38,2)")], "ts"
)
BATCH: tuple[Evaluator, ...] = ("reference", "local", "spark batch")
ALL: tuple[Evaluator, ...] = (*BATCH, "spark streaming")
WINDOWS = ("[RANGE 10, SLIDE 10, WA ts]", "[RANGE 12, SLIDE 4, WA ts]", "[RANGE 20, SLIDE 2, WA ts]")
POISON = (
    "100 div v", "100 / v", "w + 1", "w * 3", "-w", "w % v", "CAST(text AS INT)", "CAST(w AS INT)", "moody(v)",
    "CASE WHEN v > 5 THEN 100 div (v - 6) ELSE v END", "coalesce(v, 100 div (w - w))", "abs(w - 9)",
    "CASE WHEN text = 'x' THEN CAST(text AS INT) ELSE moody(v) END", "v + 100 div w", "length(text) + moody(v)",
    "d * 10", "d / v", "d % v", "CAST(d AS INT)", "CAST(d AS DECIMAL(10,2))",
    "moody(CAST(moody(v) AS INT))",
    "w div -1", "CAST(CAST(w AS DOUBLE) * 1e10 AS BIGINT)", "ceil(w * 1e0 * 10)", "CAST(text AS DOUBLE) / v",
    "CASE WHEN k LIKE text THEN 1 ELSE 2 END",
)  # fmt: skip
PREDICATES = (
    "100 div v > 10", "v > 3 AND 100 div (v - 5) > 0", "v < 3 OR moody(v) > 10", "NOT (w + 1 > 0)",
    "CAST(text AS INT) IS NULL", "v IN (1, 100 div w, 3)", "moody(v) BETWEEN 1 AND 20", "coalesce(moody(v), v) <=> 4",
    "NOT k LIKE text",
)  # fmt: skip


def shapes(poison: str, other: str, predicate: str, window: str) -> list[str]:
    return [
        f"SELECT ts, {poison} AS x, {other} AS y FROM s WHERE {predicate}",
        f"SELECT ts, x + 1 AS y FROM (SELECT ts, {poison} AS x FROM s) i WHERE x IS NOT NULL",
        f"SELECT {poison} AS g, count(*) AS n {window} FROM s GROUP BY {poison}",
        f"SELECT k, max({poison}) AS m, count({other}) AS n {window} FROM s GROUP BY k",
        f"SELECT k, sum(w) AS s, avg(w) AS a, count(*) AS n {window} FROM s GROUP BY k",
        f"SELECT k, sum(d) AS s, avg(d) AS a, max(text) AS m {window} FROM s GROUP BY k",
        f"SELECT k, sum(d) AS s, min(text) AS m {window} FROM s GROUP BY k",
        f"SELECT k, sum(w) AS s, count(DISTINCT v) AS n {window} FROM s GROUP BY k HAVING 10 div (count(*) - 2) > 0",
        f"SELECT k, 100 div (count(*) - 1) AS x, min(v) + 2147483640 AS y {window} FROM s GROUP BY k",
        f"SELECT k, picky(v) AS p, count(*) AS n {window} FROM s WHERE {predicate} GROUP BY k",
        f"SELECT ts, {poison} AS x FROM s WHERE {predicate} UNION ALL SELECT ts, {poison} FROM s",
        f"SELECT DISTINCT ts, {poison} AS x FROM s",
    ]


def user_catalog() -> Catalog:
    """Made here, so that Spark's workers get the definitions by value."""

    def moody(value: int | None) -> object:
        if value is None:
            return -1
        if value == 7:
            raise KeyError("seven")
        return "eight" if value == 8 else 2 * value

    class Picky:
        def lift(self, value: int) -> int:
            if value == 13:
                raise ValueError("thirteen")
            return value

        def combine(self, left: int, right: int) -> int:
            return max(left, right)

        def lower(self, partial: int) -> object:
            return "fourteen" if partial == 14 else partial

    return Catalog(functions={"moody": UserFunction("moody", moody, BIGINT)}, aggregates={"picky": (Picky(), BIGINT)})


def some_rows(rng: random.Random) -> tuple[tuple[Row, ...], ...]:
    wide = Decimal("9" * 36 + ".99")
    rows: list[Row] = []
    for i in range(40):
        rows.append(
            (
                i + rng.randint(0, 5),
                rng.choice(["a", "b", None]),
                rng.choice([None, *range(-1, 16)]),
                rng.choice([None, 0, 1, 3, 2**31, 2**62, 2**63 - 1, -(2**63)]),
                rng.choice([None, "1", "x", "", "\\a"]),
                rng.choice([None, Decimal("1.50"), Decimal("0.00"), wide, wide.copy_negate()]),
            )
        )
    cut = rng.randint(0, len(rows))
    return tuple(rows[:cut]), tuple(rows[cut:])


def case(seed: int) -> tuple[str, list[Arrivals]]:
    rng = random.Random(seed)
    chosen = [rng.choice(POISON), rng.choice(POISON), rng.choice(PREDICATES), rng.choice(WINDOWS)]
    every = shapes(*chosen)
    return every[seed % len(every)], [Arrivals("s", SCHEMA, pk.bounded(100), some_rows(rng))]


def judge(seed: int, evaluators: tuple[Evaluator, ...], spark: Any) -> None:
    sql, streams = case(seed)
    found = agreement(sql, streams, user_catalog(), evaluators, spark)
    assert all(v.is_supported and v.got is not None for v in found.verdicts), f"{sql}\n{found.render()}"
    assert found.agrees, f"{sql}\n{found.render()}"


@pytest.mark.parametrize("seed", some_and_slow(range(24), 3))
def test_the_same_rows_die_in_batch(seed: int, spark: Any) -> None:
    judge(seed, BATCH, spark)


@pytest.mark.parametrize("seed", some_and_slow(range(102, 108), 1))
def test_the_same_rows_die_in_streaming(seed: int, spark: Any) -> None:
    judge(seed, ALL, spark)


def test_sums_of_distinct_values_that_do_not_fit_die_alike(spark: Any) -> None:
    streams = [Arrivals("s", SCHEMA, pk.bounded(100), some_rows(random.Random(1)))]
    sql = "SELECT k, sum(DISTINCT w) AS s, avg(DISTINCT w) AS a {} [RANGE 12, SLIDE 4, WA ts] FROM s GROUP BY k"
    for more, evaluators in (("", BATCH), (", picky(DISTINCT v) AS p, sum(DISTINCT d) AS d", ALL)):
        found = agreement(sql.format(more), streams, user_catalog(), evaluators, spark)
        assert found.agrees, found.render()
        assert all(v.got is not None and v.got.failed for v in found.verdicts)


def test_rows_that_may_or_may_not_be_punctuation_die(spark: Any) -> None:
    progress = pk.punctuated("100 div v > 40 AND moody(v) < 99", whole_stream=True)
    streams = [Arrivals("s", SCHEMA, progress, some_rows(random.Random(1)))]
    found = agreement("SELECT ts, k, v FROM s", streams, user_catalog(), ALL, spark)
    assert found.agrees, found.render()
    assert all(v.got is not None and v.got.dead > 0 for v in found.verdicts)


@pytest.mark.parametrize("expression", POISON)
def test_every_expression_dies_alike(expression: str, spark: Any) -> None:
    rows = some_rows(random.Random(expression))
    found = agreement(
        f"SELECT ts, {expression} AS x FROM s",
        [Arrivals("s", SCHEMA, pk.bounded(100), rows)],
        user_catalog(),
        BATCH,
        spark,
    )
    assert found.agrees, found.render()
    got = found["spark batch"].got
    assert got is not None
    assert got.failed.total() > 0
    assert got.result.size > 0
