"""What Spark computes of rows before they go to Python: expressions that Python could only evaluate row by row.

Where a plan is cut, rows go to Python once, to be judged, whatever else is done with them, and most expressions are
evaluated there by column, which costs no more than in Spark's generated code. Some have no columnar form: a remainder
by a column, a CASE whose branches may fail, quotients of decimals, some parts of text. Row by row these take about a
microsecond each; in generated code they take next to nothing, and a column more crosses for some nanoseconds. So they
are computed on this side, where Spark's answer is exactly ours (`attempts`): a value, and whether there is none. Rows
without one are looked at again by the code that evaluates rows, which finds the reason.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.engines.spark.attempts import Attempts
from penstock.engines.spark.files import CORRUPT
from penstock.engines.spark.native_reading import settled
from penstock.engines.spark.session import other_meaning
from penstock.engines.spark.sources import SparkSource
from penstock.engines.spark.types import spark_type
from penstock.model.schema import VOID, Schema
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import Call, Column, Expression, calls_users_code, columns_in, substitute
from penstock.runtime.column_functions import column_function

_REASON = "__reason"
_READ = "__read_"
_MADE = "__made_"


def computes_natively(spark: SparkSession, catalog: Catalog) -> Callable[[Expression, Schema], bool]:
    """Whether Spark had better compute an expression over a stream's columns; nothing under settings it reads so."""
    has_other_meaning = other_meaning(spark) is not None

    def better(expression: Expression, schema: Schema) -> bool:
        if has_other_meaning or not isinstance(expression, Call) or expression.type == VOID:
            return False
        if calls_users_code(expression) or column_function(expression, schema) is not None:
            return False
        attempts = Attempts(catalog.functions)
        attempts.of(expression)
        return not attempts.prepared

    return better


def read_with_made(source: SparkSource, made: tuple[Expression, ...], catalog: Catalog) -> DataFrame:
    """A stream's columns as they are read; of each expression a value and a failure; why a record is corrupt."""
    read = source.schema if source.lived is None else source.lived[1]
    own: list[SparkColumn] = [F.col(f"`{name}`") for name in read.names]
    corrupt: list[SparkColumn] = []
    if source.corrupt_reason is not None:
        corrupt = [source.corrupt_reason.alias(_REASON), F.col(CORRUPT)]
    if not made:
        return source.frame.select(*own, *corrupt)
    pairs, brought = _pairs(source, made, catalog)
    whole = source.frame.select(*own, *corrupt, *brought)
    told = [F.col(_REASON), F.col(CORRUPT)] if corrupt else []
    return whole.select(*own, *pairs, *told)


def _pairs(
    source: SparkSource, made: tuple[Expression, ...], catalog: Catalog
) -> tuple[list[SparkColumn], list[SparkColumn]]:
    """A value and a failure of each expression; and the columns that they read, in the stream's types."""
    given, attempts = source.frame.schema, Attempts(catalog.functions)
    read = sorted({name for expression in made for name in columns_in(expression)})
    fields = {name: source.schema[name] for name in read}
    brought = [settled(n, given[n].dataType, f, source.schema).alias(_READ + n) for n, f in fields.items()]
    names = {n: Column(_READ + n, f.type) for n, f in fields.items()}
    pairs: list[SparkColumn] = []
    for at, expression in enumerate(made):
        attempt = attempts.of(substitute(expression, names))
        failed = F.lit(False) if attempt.failed is None else F.coalesce(attempt.failed, F.lit(False))
        value = attempt.value.cast(spark_type(expression.type))
        pairs += [value.alias(f"{_MADE}{at}"), failed.alias(f"{_MADE}{at}_failed")]
    return pairs, brought
