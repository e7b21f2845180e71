"""Spark's own SQL as judge: over the rows as they are, or over the rows copied to their windows.

Rules of Spark's optimizer that leave expressions out are off, since an expression that is not evaluated cannot fail:
then Spark would have a value where there is none.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tests.judge.ours import Answer, table_of
from tests.judge.queries import Query, Window
from tests.judge.windows import LEAD, in_windows

_RULES = [
    "BooleanSimplification", "ConstantFolding", "ConstantPropagation", "SimplifyConditionals", "NullPropagation",
    "NullDownPropagation", "PushDownPredicates", "PushPredicateThroughNonJoin",
    "PushFoldableIntoBranches", "SimplifyBinaryComparison",
    "ReplaceNullWithFalseInPredicate", "SimplifyConditionalsInPredicate", "OptimizeIn", "FoldablePropagation",
    "InferFiltersFromConstraints", "ReorderAssociativeOperator", "PruneFilters", "UnwrapCastInBinaryComparison",
    "CollapseProject", "ColumnPruning", "RemoveRedundantAggregates", "CombineFilters",
    "LikeSimplification", "RemoveDispensableExpressions",
]  # fmt: skip
SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.optimizer.excludedRules": ",".join(f"org.apache.spark.sql.catalyst.optimizer.{r}" for r in _RULES),
}


@contextlib.contextmanager
def judging(spark: SparkSession) -> Iterator[None]:
    """While the settings of the judge hold."""
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    # It writes every failure out, and failures are answers here. Spark's own way to get it: a plain logger of that name
    # would be in its place from then on, and cannot take what Spark tells it.
    log = PySparkLogger.getLogger("SQLQueryContextLogger")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        log.setLevel(level)
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


class SparkJudge:
    """Answers queries over the same rows; a query costs Spark mostly waiting, so several are asked at a time."""

    AT_A_TIME = 6

    def __init__(self, spark: SparkSession, rows: list[dict[str, Any]]) -> None:
        """The rows become a view, and one more for each window that is asked about."""
        self.spark, self.rows = spark, rows
        self._views: dict[Window | None, str] = {}

    def answers(self, queries: Sequence[Query]) -> list[Answer]:
        """What Spark says to each."""
        texts = [self._text(query) for query in queries]
        with ThreadPoolExecutor(self.AT_A_TIME) as pool:
            return list(pool.map(self._answer, texts))

    def _text(self, query: Query) -> str:
        view = self._views.get(query.window)
        if view is None:
            view = self._views[query.window] = f"judged{len(self._views)}"
            table = table_of(self.rows) if query.window is None else in_windows(self.rows, query.window)
            self.spark.createDataFrame(table).createOrReplaceTempView(view)
        return query.text(clause="", source=f"{view} AS s", lead=() if query.window is None else LEAD)

    def _answer(self, sql: str) -> Answer:
        try:
            frame = self.spark.sql(sql)
            types = [type_ for _, type_ in frame.dtypes]
        except (AnalysisException, ParseException) as error:
            return Answer("refused", message=str(error).splitlines()[0])
        try:
            table = frame.toArrow()
        except PySparkException as error:
            return Answer("failed", message=str(error).splitlines()[0])
        rows = table.rename_columns([f"c{n}" for n in range(table.num_columns)]).to_pylist()
        return Answer("rows", [tuple(row.values()) for row in rows], types)
