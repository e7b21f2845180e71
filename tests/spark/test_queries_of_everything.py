"""Random queries of everything together mean what they mean in Spark's own SQL. `make test-slow` asks 300 of them.

A failure prints its seed.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from penstock.errors import QueryError
from tests.judge.asked import Found, judged, ours
from tests.judge.combined import Combined, CombinedQuery
from tests.judge.compare import difference
from tests.judge.odd_rows import Data, make_data
from tests.judge.spark_sql import judging
from tests.spark.modes import chosen

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(chosen() != "local", reason="the judge is Spark in this process, whatever is judged"),
]


def made(seed: int) -> tuple[CombinedQuery, Data, random.Random]:
    chance = random.Random(seed)
    data = make_data(chance)
    return Combined(chance, data).query(), data, chance


def in_spark_sql(spark: SparkSession, query: CombinedQuery, data: Data) -> Found:
    for name, table in judged(query.grids, data).items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
    *views, text = query.spark.split("; ")
    for view in views:
        spark.sql(view)
    table = spark.sql(text).toArrow()
    return [
        tuple(row.values()) for row in table.rename_columns([f"c{n}" for n in range(table.num_columns)]).to_pylist()
    ]


def check(spark: SparkSession, seed: int) -> str:
    """What there was to compare between the in-process engine and Spark."""
    query, data, chance = made(seed)
    if "ASOF" in query.ours:  # Spark's SQL has no as-of joins
        return "left out"
    try:
        found = ours(query, data, chance)
    except QueryError as error:
        if any(reason in error.message for reason in ("cannot hold together", "does not progress")):
            return "refused"  # chance made no sense of the times
        raise AssertionError(f"seed {seed}\n{query.ours}") from error
    expected = in_spark_sql(spark, query, data)
    if query.open_number:
        found, expected = [row[1:] for row in found], [row[1:] for row in expected]
    differs = difference(found, expected)
    assert not differs, f"seed {seed}\n{query.ours}\n{query.spark}\n{differs}"
    return "rows" if expected else "none"


def check_many(spark: SparkSession, seeds: range) -> Counter[str]:
    with judging(spark):
        return Counter(check(spark, seed) for seed in seeds)


def test_random_queries_of_everything_mean_what_they_mean_in_spark_sql(spark: SparkSession) -> None:
    assert check_many(spark, range(15))["rows"] > 4


@pytest.mark.slow
def test_many_random_queries_of_everything_mean_what_they_mean_in_spark_sql(spark: SparkSession) -> None:
    start = random.SystemRandom().randrange(2**40)
    assert check_many(spark, range(start, start + 300))["rows"] > 90
