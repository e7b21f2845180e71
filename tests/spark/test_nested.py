"""Arrays, maps and structs mean the same to Spark's own SQL, to its engine here, in streams, and in-process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.model.schema import schema_of
from tests.judge import nested
from tests.profiles import some_and_slow

pytestmark = pytest.mark.spark

SCHEMA = ", ".join(f"{name} {type_}" for name, type_ in nested.SCHEMA.items())
ARROW = schema_of(list(nested.SCHEMA.items()), "t").arrow
PARTS = 4
"""Functions are asked for in as many queries: one of all of them takes Spark long to plan."""


def table() -> pa.Table:
    return pa.Table.from_pylist(nested.rows(), ARROW)


def items(expressions: list[str]) -> str:
    return ", ".join(f"{text} AS x{at}" for at, text in enumerate(expressions))


def shown(value: Any) -> str:
    """As text: NaN is NaN, the two zeros are one."""
    return repr(value).replace("-0.0", "0.0")


def by_expression(rows: list[dict[str, Any]], expressions: list[str]) -> list[dict[int, str]]:
    return [{row["t"]: shown(row[f"x{at}"]) for row in rows} for at in range(len(expressions))]


@pytest.mark.parametrize("part", some_and_slow(range(PARTS), 1))
def test_every_function_means_what_it_means_in_spark(part: int, spark: SparkSession) -> None:
    rows = spark.createDataFrame(table()).selectExpr(*(f"CAST({n} AS {t}) AS {n}" for n, t in nested.SCHEMA.items()))
    rows.createOrReplaceTempView("nested_rows")
    texts = nested.EXPRESSIONS[part::PARTS]
    judged = spark.sql(f"SELECT t, {items(texts)} FROM nested_rows AS s").toArrow().to_pylist()
    wanted = by_expression(judged, texts)
    answers = []
    for flow, source in ((pk.Flow(), table()), (pk.Flow(spark), rows)):
        q: Any = flow.stream("s", source, time="t").query(f"SELECT t, {items(texts)} FROM s")
        answers.append(by_expression(q.collect().to_pylist(), texts))
    wrong = [
        f"{text}: {where} {own[t]} instead of {judge[t]} in row {t}"
        for where, found in zip(("in-process", "on Spark"), answers, strict=True)
        for text, own, judge in zip(texts, found, wanted, strict=True)
        for t in judge
        if own.get(t) != judge[t]
    ]
    assert not wrong, f"{len(wrong)}: " + "\n".join(wrong[:40])


FAILING = ["a[1]", "element_at(w, -2)", "slice(a, i, 1)", "map(coalesce(k, 'a'), 1, 'a', 2)", "map(k, 1)"]


@pytest.mark.parametrize("text", FAILING)
def test_rows_without_a_value_die_on_spark_as_they_do_in_process(spark: SparkSession, text: str) -> None:
    sql = f"SELECT t, {text} AS made FROM s"
    here: Any = pk.Flow().stream("s", table(), time="t").query(sql)
    there: Any = pk.Flow(spark).stream("s", spark.createDataFrame(table()), time="t").query(sql)
    rows = [sorted(map(shown, q.collect().to_pylist())) for q in (here, there)]
    assert rows[0] == rows[1]
    dead = there.dead_letters.toArrow()
    assert 0 < dead.num_rows == here.dead_letters.num_rows
    assert sorted(dead["reason"].to_pylist()) == sorted(here.dead_letters["reason"].to_pylist())


QUERIES = [
    "SELECT t, i, s, a, m, g, o FROM s",
    "SELECT t, posexplode_outer(m), k FROM s WHERE i > 0",
    "SELECT e, count(*) AS n, max(i) AS top [RANGE 20, SLIDE 10, WA t] FROM s CROSS JOIN UNNEST(w) AS v(e) GROUP BY e",
    "SELECT a, s.r, count(*) AS n, count(DISTINCT w) AS d [RANGE 20, SLIDE 20, WA t] FROM s GROUP BY a, s.r",
    "SELECT i, collect_list(k) AS l, collect_set(a) AS c, max(w) AS top [RANGE 30, SLIDE 30, WA t] FROM s GROUP BY i",
    "SELECT p.t, q.w FROM s p JOIN s q ON p.a = q.a AND q.t BETWEEN p.t AND p.t + 5",
    "SELECT DISTINCT t, a, s FROM s",
    "SELECT t, k, explode(a) AS e FROM s",
    "SELECT t, e.p, e.q FROM s LATERAL VIEW OUTER explode(z) v AS e",
]


@pytest.mark.parametrize("sql", some_and_slow(QUERIES, 3))
def test_queries_on_spark_give_what_they_give_in_process(spark: SparkSession, tmp_path: Path, sql: str) -> None:
    here: Any = pk.Flow().stream("s", table(), time="t").query(sql)
    wanted = sorted(map(shown, here.collect().to_pylist()))
    assert wanted
    frame = spark.createDataFrame(table())
    batch: Any = pk.Flow(spark).stream("s", frame, time="t").query(sql)
    assert sorted(map(shown, batch.collect().to_pylist())) == wanted
    for at in range(2):
        pq.write_table(table().slice(at * 30, 30), _folder(tmp_path) / f"{at}.parquet")
    read = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(_folder(tmp_path)))
    flow = pk.Flow(spark, path=str(tmp_path / "flow")).stream("s", read, time="t")
    query: Any = flow.query(sql, "q")
    run = query.start(str(tmp_path / "out"))
    run.process_available()
    run.finish()
    assert sorted(map(shown, pq.read_table(tmp_path / "out").to_pylist())) == wanted


def _folder(path: Path) -> Path:
    (path / "in").mkdir(exist_ok=True)
    return path / "in"
