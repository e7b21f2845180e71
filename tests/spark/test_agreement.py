"""All evaluators agree on random queries and input, and expressions mean what Spark says they mean.

Input is made from a seed: disordered, with late rows, ties, nulls, rows without a time and empty batches.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkException

import penstock as pk
from penstock.model.batch import Row, rows_of, table_of
from penstock.model.progress import Progress
from penstock.model.schema import Schema, parse_type, schema_of
from penstock.model.time import SECOND
from penstock.plan.catalog import Catalog, UserFunction
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import EVALUATORS, Evaluator, agreement
from tests.profiles import some_and_slow

pytestmark = pytest.mark.spark

WITHOUT_STREAMING: tuple[Evaluator, ...] = ("reference", "local", "spark batch")


# Random queries

COLUMNS = [("k", "string"), ("v", "int"), ("d", "decimal(8,2)"), ("f", "double"), ("kind", "string")]
INTEGER = schema_of([("t", "bigint"), *COLUMNS], "t")
TIMESTAMP = schema_of([("t", "timestamp"), *COLUMNS], "t")


def window(rng: random.Random, schema: Schema, attribute: str = "t") -> str:
    slide = rng.randint(1, 9)
    length = rng.choice([slide, 2 * slide, 4 * slide, rng.randint(1, 20)])
    unit = "" if schema is INTEGER else " seconds"
    return f"[RANGE {length}{unit}, SLIDE {slide}{unit}, WA {attribute}]"


def several_aggregates(rng: random.Random, schema: Schema) -> str:
    return (
        "SELECT k, count(*) AS n, count(v) AS c, sum(v) AS s, avg(v) AS a, min(f) AS lo, max(d) AS hi, sum(d) AS sd, "
        f"avg(d) AS ad, stddev(v) AS dev, count(DISTINCT v) AS dv {window(rng, schema)} "
        "FROM a WHERE v IS NULL OR v % 3 <> 1 GROUP BY k HAVING count(*) > 1"
    )


def paned_aggregates(rng: random.Random, schema: Schema) -> str:
    return (
        f"SELECT v % 2 AS parity, count(*) AS n, avg(v) AS a, min(k) AS lo, sum(f) AS s {window(rng, schema)} "
        "FROM a GROUP BY v % 2"
    )


def holistic(rng: random.Random, schema: Schema) -> str:
    return (
        "SELECT k, count(*) AS n, count(DISTINCT v) AS dv, count(DISTINCT f) AS df, stddev(v) AS dev, var_pop(f) AS vf "
        f"{window(rng, schema)} FROM a GROUP BY k"
    )


def of_values(rng: random.Random, schema: Schema) -> str:
    return (
        "SELECT k, median(v) AS m, percentile(f, 0.3) AS p, mode(v) AS o, sum(DISTINCT v) AS s, avg(DISTINCT d) AS a, "
        "min_by(f, v) AS lo, last(v) AS la, first(f) IGNORE NULLS AS fi, corr(v, f) AS r, covar_samp(v, d) AS c, "
        "bit_xor(v) AS x, bool_or(v > 5) AS b, count_if(v > 2) AS n, sum(f) FILTER (WHERE v > 0) AS fs, "
        f"count(DISTINCT v, f) AS dv, var_pop(DISTINCT v) AS dd {window(rng, schema)} FROM a GROUP BY k"
    )


def grouping_sets(rng: random.Random, schema: Schema) -> str:
    by = rng.choice(
        ["ROLLUP (k, v % 2)", "CUBE (k, v % 2)", "GROUPING SETS ((k), (v % 2), (k))", "k, v % 2 WITH ROLLUP"]
    )
    return (
        "SELECT k, v % 2 AS odd, grouping_id() AS g, grouping(k) AS gk, count(*) AS n, sum(v) AS s "
        f"{window(rng, schema)} FROM a GROUP BY {by} HAVING count(*) > 1 OR grouping(k) = 1"
    )


def union(rng: random.Random, schema: Schema) -> str:
    return f"SELECT k, sum(v) AS s, max(f) AS hi {window(rng, schema)} FROM a UNION b UNION c GROUP BY k"


def user_defined(rng: random.Random, schema: Schema) -> str:
    return (
        f"SELECT k, spread(plus(v, 1)) AS x, count(*) AS n {window(rng, schema)} FROM a WHERE plus(v, 2) > 1 GROUP BY k"
    )


def distinct(rng: random.Random, schema: Schema) -> str:
    return rng.choice(["SELECT DISTINCT t, k, v div 4 AS q FROM a UNION b", "SELECT DISTINCT k FROM a WHERE v > 0"])


def nested(rng: random.Random, schema: Schema) -> str:
    inner = f"SELECT k, count(*) AS n {window(rng, schema)} FROM a GROUP BY k"
    return f"SELECT max(n) AS most, count(*) AS groups {window(rng, schema, 'window_end')} FROM ({inner}) counts"


def stateless(rng: random.Random, schema: Schema) -> str:
    return "SELECT k, v + 1 AS w, CASE WHEN f > 0 THEN 'up' ELSE k END AS c FROM a WHERE NOT (v < 0 AND d > 1)"


SHAPES: list[Callable[[random.Random, Schema], str]] = [
    several_aggregates, paned_aggregates, holistic, union, user_defined, distinct, nested, stateless, of_values,
    grouping_sets,
]  # fmt: skip


def user_catalog() -> Catalog:
    """Made here, so that Spark's workers get the definitions by value."""

    def plus(value: int | None, by: int) -> int | None:
        return None if value is None else value + by

    class Spread:
        def lift(self, value: Any) -> tuple[Any, Any]:
            return value, value

        def combine(self, left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
            return min(left[0], right[0]), max(left[1], right[1])

        def lower(self, partial: tuple[Any, Any] | None) -> Any:
            return None if partial is None else partial[1] - partial[0]

    catalog = Catalog()
    catalog.functions["plus"] = UserFunction("plus", plus, parse_type("int"))
    catalog.aggregates["spread"] = (Spread(), parse_type("int"))
    return catalog


def progress(rng: random.Random) -> Progress:
    return rng.choice(
        [
            pk.ordered(),
            pk.bounded(rng.randint(0, 8)),
            pk.bounded(rows=rng.randint(0, 6)),
            pk.estimated(0.2, rows=rng.randint(1, 12)),
            pk.punctuated("kind = 'punct'", whole_stream=rng.choice([True, True, False])),
            pk.per_source("k", disorder=rng.randint(0, 4), idle=rng.choice([None, 12])),
        ]
    )


def arrivals(rng: random.Random, name: str, schema: Schema) -> Arrivals:
    """About 25 rows with times from -10 to 50, in three batches."""
    tick = 1 if schema is INTEGER else SECOND
    how = progress(rng)
    if schema is TIMESTAMP and isinstance(how, pk.model.progress.Bounded) and how.delay is not None:
        how = pk.bounded(f"{how.delay} seconds")
    if schema is TIMESTAMP and isinstance(how, pk.model.progress.PerSource):
        how = pk.per_source("k", disorder="3 seconds")
    rows: list[Row] = []
    for i in range(rng.randint(15, 30)):
        time = None if rng.random() < 0.05 else (2 * i - 10 + rng.randint(-6, 2)) * tick
        is_punctuation = isinstance(how, pk.model.progress.Punctuated) and rng.random() < 0.2
        rows.append(
            (
                time if time is None or not is_punctuation else time - 4 * tick,
                rng.choice(["x", "y", None]),
                rng.choice([None, *range(-4, 9)]),
                rng.choice([None, Decimal(rng.randint(-500, 500)) / 100]),
                rng.choice([None, rng.randint(-40, 40) / 8]),
                "punct" if is_punctuation else None,
            )
        )
    cuts = sorted(rng.choice([0, len(rows), rng.randint(0, len(rows))]) for _ in range(2))
    return Arrivals(name, schema, how, tuple(map(tuple, (rows[: cuts[0]], rows[cuts[0] : cuts[1]], rows[cuts[1] :]))))


def case(seed: int) -> tuple[str, list[Arrivals]]:
    rng = random.Random(seed)
    schema = rng.choice([INTEGER, TIMESTAMP])
    sql = SHAPES[seed % len(SHAPES)](rng, schema)
    return sql, [arrivals(rng, name, schema) for name in "abc"]


ALIKE = (paned_aggregates, stateless, of_values, grouping_sets)
"""Which are near enough to others, or judged in batches as well, to be among the slow tests as streams."""


@pytest.mark.parametrize(
    "seed",
    [pytest.param(at, marks=[pytest.mark.slow] if shape in ALIKE else []) for at, shape in enumerate(SHAPES)],
    ids=lambda seed: SHAPES[seed].__name__,
)
def test_all_evaluators_agree(seed: int, spark: Any) -> None:
    sql, streams = case(seed)
    found = agreement(sql, streams, user_catalog(), EVALUATORS, spark)
    assert found.agrees, f"{sql}\n{found.render()}"


@pytest.mark.parametrize("seed", some_and_slow(range(100, 100 + 3 * len(SHAPES)), len(SHAPES) // 2))
def test_batch_evaluators_agree(seed: int, spark: Any) -> None:
    sql, streams = case(seed)
    found = agreement(sql, streams, user_catalog(), WITHOUT_STREAMING, spark)
    assert found.agrees, f"{sql}\n{found.render()}"


# What expressions mean: Spark's own SQL is the judge

VALUES = schema_of(
    [
        ("id", "int"), ("t", "timestamp"), ("i", "int"), ("j", "int"), ("l", "bigint"), ("s", "string"),
        ("d", "decimal(8,2)"), ("e", "decimal(12,4)"), ("f", "double"), ("b", "boolean"),
    ],
    "t",
)  # fmt: skip
ROWS: list[Row] = [
    (0, 0, 7, 2, 10, "abc", Decimal("1.50"), Decimal("0.3333"), 2.5, True),
    (1, -1, -7, 2, -10, "", Decimal("-1.55"), Decimal("7.0000"), -2.5, False),
    (2, 1_767_225_599_999_999, 0, 0, 3_000_000_000, " a%c ", Decimal("0.05"), Decimal("-0.0001"), 0.0, None),
    (3, 951_782_400_000_000, 1000, -3, -1, "Äß", Decimal("999999.99"), Decimal("12345678.9999"), 1e15, True),
    (4, 59_500_000, None, 5, None, None, None, Decimal("2.0000"), None, None),
    (5, 3_600_000_000, 5, None, 0, "a_b", Decimal("-0.25"), Decimal("4.0000"), -0.0, False),
    (6, -86_400_000_001, -1, 1, 7, "ab\nc", Decimal("100.00"), Decimal("3.0000"), 0.1, True),
]
EXPRESSIONS = [
    "i + j", "i - l", "i * 2", "i / 4", "i % 3", "-i % 3", "i % -3", "l div 4", "i div -2", "-i", "abs(i)",
    "i + NULL", "i / 2.5", "d + e", "d - 1", "d * e", "d / e", "d % 3", "e % d", "d * i", "d / 3", "d + f", "-d",
    "abs(d)", "i + 0.1", "f * i", "f / 3", "f % 2", "l + i * 2.50", "i = j", "i <> j", "i <=> j", "i <=> NULL",
    "i < d", "d = 1.50", "d >= f", "s < 'b'", "NOT b", "b AND i > 0", "b OR i > 0", "i IS NULL", "b IS NOT TRUE",
    "i IN (1, 7, NULL)", "i NOT IN (1, 2)", "d IN (1.5, 100)", "i BETWEEN -5 AND 5", "i NOT BETWEEN -5 AND 5",
    "s LIKE 'a%'", "s LIKE 'a_c'", "s NOT LIKE '%c%'", r"s LIKE '%\\%%'", r"s LIKE 'a\\_b'", "s LIKE ''",
    "CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' END", "CASE i WHEN 7 THEN 1.5 ELSE 2 END", "if(b, i, l)",
    "coalesce(i, j, 0)", "nullif(i, 7)", "greatest(i, j)", "least(i, NULL, j)", "greatest(d, i)", "greatest(f, 0.0D)",
    "CAST(i AS STRING)", "CAST(d AS INT)", "CAST(d AS STRING)", "CAST(i AS DECIMAL(10,3))", "CAST(d AS DECIMAL(8,1))",
    "CAST(' 12 ' AS INT)", "CAST(i AS DOUBLE)", "CAST(b AS STRING)", "CAST(t AS STRING)", "CAST(d AS DOUBLE)",
    "length(s)", "upper(s)", "lower(s)", "trim(s)", "s || '!'", "concat(s, NULL)", "substring(s, 2)",
    "substring(s, -1, 1)", "substring(s, 0, 2)", "substring(s, -9, 8)", "floor(i / 2)", "ceil(i / 2)", "floor(f)",
    "ceil(f)", "sqrt(i)", "sqrt(f)", "year(t)", "month(t)", "day(t)", "hour(t)", "minute(t)", "second(t)",
    "date_trunc('hour', t)", "date_trunc('day', t)", "t + INTERVAL 90 SECONDS", "t - INTERVAL '1' DAY",
    "t > '1970-01-01 00:00:10'",
]  # fmt: skip


def by_expression(rows: list[Row]) -> dict[str, dict[object, object]]:
    """The value per id of every expression."""
    return {text: {row[0]: row[place + 1] for row in rows} for place, text in enumerate(EXPRESSIONS)}


def test_expressions_mean_what_spark_says(spark: Any) -> None:
    frame = spark.createDataFrame(table_of(VALUES, ROWS)).selectExpr("id", *EXPRESSIONS).toArrow()
    sql = ", ".join(f"{text} AS e{place}" for place, text in enumerate(EXPRESSIONS))
    stream = Arrivals("m", VALUES, pk.bounded("36000 days"), (tuple(ROWS[:4]), tuple(ROWS[4:])))
    found = agreement(f"SELECT id, {sql} FROM m", [stream], evaluators=EVALUATORS, spark=spark)
    types = [str(f.type) for f in found.plan.schema.visible][1:]
    spark_types = [t.simpleString() for t in (f.dataType for f in spark.createDataFrame(frame).schema.fields[1:])]
    assert dict(zip(EXPRESSIONS, types, strict=True)) == dict(zip(EXPRESSIONS, spark_types, strict=True))
    truth = by_expression(rows_of(frame))
    for evaluator in EVALUATORS:
        got = found[evaluator].got
        assert got is not None, found.render()
        values = by_expression([payload for payload, _, _ in got.result])
        wrong = {e: (truth[e], values[e]) for e in EXPRESSIONS if not same(truth[e], values[e])}
        assert not wrong, f"{evaluator}: " + "\n".join(f"{e}: Spark {a}, here {b}" for e, (a, b) in wrong.items())
    assert found.agrees, found.render()


def same(left: dict[object, object], right: dict[object, object]) -> bool:
    """Equal values, NaN included."""

    def stand_in(value: object) -> object:
        return "NaN" if isinstance(value, float) and math.isnan(value) else value

    return {k: stand_in(v) for k, v in left.items()} == {k: stand_in(v) for k, v in right.items()}


RAISING = [
    "floor(f * 1e20)", "i + 2147483647", "-i * 2147483647 * 2", "l * 9223372036854775807", "i / 0", "i % 0",
    "l div 0", "d / 0", "CAST(s AS INT)", "CAST(l AS TINYINT)", "CAST(1000 * d AS DECIMAL(4,2))",
]  # fmt: skip


@pytest.mark.parametrize("expression", RAISING)
def test_what_has_no_value_is_a_dead_letter(expression: str, spark: Any) -> None:
    row = (0, 0, 7, 2, 1000, "abc", Decimal("1.50"), Decimal("0.3333"), 2.5, True)
    with pytest.raises(PySparkException):
        spark.createDataFrame(table_of(VALUES, [row])).selectExpr(expression).toArrow()
    stream = Arrivals("m", VALUES, pk.ordered(), ((row,),))
    found = agreement(f"SELECT id, {expression} AS x FROM m", [stream], evaluators=WITHOUT_STREAMING, spark=spark)
    assert found.agrees, found.render()
    assert all(v.got is not None and v.got.failed.total() == 1 for v in found.verdicts)


def test_an_overflow_does_not_stop_a_stream(spark: Any) -> None:
    rows = ((1, "x", 2**31 - 1, None, None, None), (2, "x", 1, None, None, None))
    stream = Arrivals("m", INTEGER, pk.ordered(), (rows,))
    found = agreement("SELECT v + 1 AS w FROM m", [stream], evaluators=("spark streaming",), spark=spark)
    assert found.agrees, found.render()
    got = found["spark streaming"].got
    assert got is not None
    assert (got.result.size, got.failed.total()) == (1, 1)


def test_a_difference_is_shown() -> None:
    """An evaluator that is wrong is told apart: a user function that does not always answer the same."""
    calls = iter(range(100))
    catalog = Catalog()
    catalog.functions["count_up"] = UserFunction("count_up", lambda v: next(calls), parse_type("int"))
    stream = Arrivals("m", INTEGER, pk.ordered(), (((1, "x", 5, None, None, None),),))
    found = agreement("SELECT t, count_up(v) AS n FROM m", [stream], catalog, ("local",))
    assert not found.agrees
    assert found.render() == (
        "local: differs (1 rows, 0 late, 0 dead)\n"
        "  result\n"
        "    only in the oracle (1):\n"
        "      [1, 2) (1, 1)\n"
        "    only in local (1):\n"
        "      [1, 2) (1, 0)"
    )


def test_what_an_engine_does_not_support_is_said(spark: Any) -> None:
    stream = Arrivals("m", INTEGER, pk.ordered(), (((1, "x", 5, None, None, None),),))
    sql = "SELECT max(v) AS hi [RANGE 2 rows, SLIDE 1 rows, WA row-num] FROM m"
    found = agreement(sql, [stream], evaluators=WITHOUT_STREAMING, spark=spark)
    assert not found["spark batch"].is_supported
    assert "spark batch: not supported" in found.render()
    assert found.agrees
