"""Random queries against Spark's own SQL: in-process, and in batches on Spark for some. `make test-slow`: 2,000."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession

import penstock as pk
from tests.judge import ours
from tests.judge.compare import difference
from tests.judge.ours import Answer, table_of
from tests.judge.queries import Maker, Query
from tests.judge.spark_sql import SparkJudge, judging
from tests.spark.modes import chosen

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(chosen() != "local", reason="the judge is Spark in this process, whatever is judged"),
]
TOGETHER = 40
"""So many queries are asked about the same rows."""


def verdict(mine: Answer, judge: Answer) -> str:
    """What is wrong with an answer; empty if nothing is."""
    if mine.kind != judge.kind:
        return f"{mine.kind} instead of {judge.kind}: {mine.message} {judge.message}"
    if mine.kind != "rows":
        return ""
    if mine.types != judge.types:
        return f"types {mine.types} instead of {judge.types}"
    return difference(mine.rows, judge.rows)


def on_spark_engine(spark: SparkSession, query: Query, rows: list[dict[str, object]]) -> Answer:
    """What Penstock's own batch engine on Spark says; a failure there may be Spark's."""
    try:
        return ours.ask(pk.Flow(spark), query, spark.createDataFrame(table_of(rows)))
    except PySparkException as error:
        return Answer("failed", message=str(error).splitlines()[0])


def judge_many(spark: SparkSession, first: int, count: int, on_spark: int) -> Counter[str]:
    """Judge queries by number; every `on_spark`-th also as the Spark engine answers it. How many of each kind."""
    kinds: Counter[str] = Counter()
    wrong: list[str] = []
    asked: list[tuple[Query, list[dict[str, object]], Answer]] = []
    with judging(spark):
        for base in range(first, first + count, TOGETHER):
            chance = random.Random(base)
            maker = Maker(chance)
            rows = maker.rows(chance.randint(0, 25))
            queries = [maker.query() for _ in range(min(TOGETHER, first + count - base))]
            for query, theirs in zip(queries, SparkJudge(spark, rows).answers(queries), strict=True):
                mine = ours.answer(query, rows, chance)
                kinds[mine.kind] += 1
                # A row between two windows may fail here, and is not among those that the judge is given.
                unseen = mine.kind == "failed" and query.window is not None and query.window.has_gaps
                found = "" if unseen else verdict(mine, theirs)
                if found:
                    wrong.append(f"{query.penstock}\n{found}")
                asked.append((query, rows, theirs))
    for query, rows, theirs in asked[::on_spark]:
        kinds["on Spark"] += 1
        found = verdict(on_spark_engine(spark, query, rows), theirs)
        if found:
            wrong.append(f"on Spark: {query.penstock}\n{found}")
    assert not wrong, f"{len(wrong)} of {count}\n" + "\n\n".join(wrong[:5])
    return kinds


def test_random_queries_mean_what_they_mean_in_spark_sql(spark: SparkSession) -> None:
    kinds = judge_many(spark, 0, 40, 10)
    assert kinds["rows"] > 25
    assert kinds["refused"] < 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_queries_mean_what_they_mean_in_spark_sql(spark: SparkSession, part: int) -> None:
    kinds = judge_many(spark, 10_000 + 200 * part, 200, 20)
    assert kinds["rows"] > 120
