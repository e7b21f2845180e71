"""One record per aggregate function: all that anybody has to know of it, in one place.

- `names`: how SQL calls it, and `type_of`: the type of its result under Spark's ANSI rules;
- `row_form`: lift, combine, lower and, where it is exact, invert, over single values (`functions`);
- `measure` and `lowering`: its array form, a number per group (`measures`) and what is made of it; a mean is a sum
  divided by a count, a spread comes from moments. Without a measure there is no array form;
- `native`: the function of Spark that computes it over all rows of a window. Spark's partials are the measure's, too;
- `bounded`: whether a partial takes constant room, whatever is in it (thesis 6.2.2; else it is holistic);
- `arguments`: how many columns it reads; the row form of one that reads several is given them side by side.

The binder, the cost model, the planner, the operators, Spark's ways and the tests read these records; there is no other
list. Whether a function can be taken out of a window again is asked of its row form. The oracle has definitions of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from penstock.model.schema import BIGINT, DOUBLE, MAX_PRECISION, DataType, Schema
from penstock.model.types import array_of
from penstock.operators.aggregates import collected, functions, holistic, pairs
from penstock.operators.aggregates.functions import AggregateFunction, Spread
from penstock.operators.aggregates.measures import Kind, Lowering, Measure, Result

FIXED = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "timestamp"})
"""The types whose values are numbers in arrays."""
EXACT_DIGITS = 28
"""Spark adds decimals with ten more digits and 38 at the most, so sums of more digits than these may fail half way."""
Argument = DataType | None
"""The type of the argument, of several the first; None for `*`."""
RowForm = Callable[[Argument, DataType], AggregateFunction]


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function."""

    name: str
    type_of: Callable[[Argument], DataType | None]
    """The type of the result; None where the function does not apply."""
    row_form: RowForm
    """Over an argument, with a result, of these types."""
    names: tuple[str, ...] = ()
    measure: Kind | None = None
    lowering: Lowering = "extreme"
    spread: Spread | None = None
    native: str | None = None
    bounded: bool = True
    distinct: bool = False
    """Whether only distinct values count."""
    ignores_distinct: bool = False
    """Whether it is the same of distinct values."""
    takes_star: bool = False
    arguments: int = 1
    with_share: Callable[[float], RowForm] | None = None
    """The row form for a share between 0 and 1, of which the record's own is for one half."""

    def inverts(self, argument: Argument, result: DataType) -> bool:
        """Whether a partial can be taken out of another exactly (differential, thesis 6.2.2.2)."""
        return self.row_form(argument, result).invert is not None

    def has_array_form(self, argument: Argument) -> bool:
        """Whether it is a matter of numbers in arrays."""
        if argument is not None and argument.is_nested and self.measure != "count":
            return False
        return self.measure is not None and (argument is None or argument.name in FIXED or self.distinct)

    def is_native(self, argument: Argument) -> bool:
        """Whether Spark's own function always gives our result: not of sums that it may give up half way."""
        wide = argument is not None and argument.is_decimal and argument.precision > EXACT_DIGITS
        return self.native is not None and not (wide and self.lowering in ("sum", "mean"))

    def joins_natively(self, argument: Argument) -> bool:
        """Whether Spark's partials of panes give a window's value: not those of moments, nor of a mean of decimals."""
        if self.measure in (None, "moments", "distinct") or not self.is_native(argument):
            return False
        return not (self.lowering == "mean" and argument is not None and argument.is_decimal)

    def adds_bigints(self, argument: Argument) -> bool:
        """Whether a sum on the way may need more than 64 bits though the result does not."""
        return self.measure == "sum" and argument is not None and argument.name == "bigint"

    def overflows(self, argument: Argument) -> bool:
        """Whether there may be no value though Spark's own operators run it: sums of wide decimals do not run there."""
        return self.lowering == "sum" and argument is not None and argument.name == "bigint"

    def of_distinct(self) -> Aggregate:
        """The same of distinct values, where that is something else: by row form alone, since all values are kept."""

        def row_form(argument: Argument, result: DataType) -> AggregateFunction:
            return holistic.of_distinct(self.row_form(argument, result), self.arguments)

        native = None if self.name == "mode" else self.native  # Spark has none of distinct values
        return replace(self, row_form=row_form, names=(), measure=None, native=native, bounded=False, distinct=True)

    def of_share(self, share: float) -> Aggregate:
        """The same for a share; of distinct values, too."""
        assert self.with_share is not None
        made = replace(self, row_form=self.with_share(share), distinct=False)
        return made.of_distinct() if self.distinct else made

    def measures(self, column: int | None, argument: Argument) -> tuple[Measure, ...]:
        """Its array form over a column: the measure that it is lowered from, then how many values that is of."""
        assert self.measure is not None
        if column is None:
            return (Measure("rows"),)
        if self.measure == "distinct":
            return (Measure("distinct", column, values=argument),)
        is_float = self.measure == "moments" or (
            self.measure != "count" and argument is not None and argument.is_fractional
        )
        value = Measure(self.measure, column, is_float)
        return (value,) if self.measure in ("count", "moments") else (value, Measure("count", column))


def array_form(
    calls: Sequence[tuple[Aggregate, int | None, DataType]], schema: Schema
) -> tuple[tuple[Measure, ...], tuple[Result, ...]] | None:
    """The measures of some aggregates, each over a column with a result of that type, and how results come from them.

    None if one of them has no array form. The first measure is always the number of rows.
    """
    measures: list[Measure] = [Measure("rows")]
    results = []
    for record, column, type_ in calls:
        argument = None if column is None else schema.fields[column].type
        if not record.has_array_form(argument):
            return None
        places = []
        for measure in record.measures(column, argument):
            if measure not in measures:
                measures.append(measure)
            places.append(measures.index(measure))
        results.append(Result(type_, places[0], places[-1], record.lowering, record.spread))
    return tuple(measures), tuple(results)


# Types of results


def _bigint(argument: Argument) -> DataType:
    return BIGINT


def _same(argument: Argument) -> DataType | None:
    return argument


def _double(argument: Argument) -> DataType | None:
    return DOUBLE if argument is not None and argument.is_numeric else None


def _sum(argument: Argument) -> DataType | None:
    if argument is not None and argument.is_integer:
        return BIGINT
    return _wider(argument, 10, 0)


def _mean(argument: Argument) -> DataType | None:
    return _wider(argument, 4, 4)


def _wider(argument: Argument, digits: int, scale: int) -> DataType | None:
    """A decimal with more digits, cut to 38 without giving way in its scale, as Spark has it for aggregates."""
    if argument is None or not argument.is_decimal:
        return _double(argument)
    most = MAX_PRECISION
    return DataType("decimal", min(argument.precision + digits, most), min(argument.scale + scale, most))


def _array(argument: Argument) -> DataType | None:
    return None if argument is None else array_of(argument)


def _whole(argument: Argument) -> DataType | None:
    return argument if argument is not None and argument.is_integer else None


# The records


def _spread(name: str, *names: str) -> Aggregate:
    spread = Spread(sample=name.endswith("_samp"), root=name.startswith("stddev"))
    return Aggregate(
        name,
        _double,
        lambda argument, result: functions.moments(name, spread),
        (name, *names),
        measure="moments",
        lowering="spread",
        spread=spread,
        native=name,
    )


def _bits(name: str, *, ignores_distinct: bool = False) -> Aggregate:
    kind: Kind = "bit_and" if name == "bit_and" else "bit_or" if name == "bit_or" else "bit_xor"
    row_form = functions.bits(name)
    return Aggregate(name, _whole, row_form, (name,), measure=kind, native=name, ignores_distinct=ignores_distinct)


def _pairs(
    name: str, type_of: Callable[[Argument], DataType | None], row_form: RowForm, *, ignores_distinct: bool = False
) -> Aggregate:
    return Aggregate(name, type_of, row_form, (name,), native=name, ignores_distinct=ignores_distinct, arguments=2)


_COUNT_DISTINCT = Aggregate(
    "count",
    _bigint,
    functions.count_distinct,
    measure="distinct",
    lowering="distinct",
    native="count_distinct",
    bounded=False,
    distinct=True,
)
RECORDS: tuple[Aggregate, ...] = (
    Aggregate(
        "count",
        _bigint,
        functions.count,
        ("count",),
        measure="count",
        lowering="count",
        native="count",
        takes_star=True,
    ),
    Aggregate("sum", _sum, functions.sum_of, ("sum",), measure="sum", lowering="sum", native="sum"),
    Aggregate("avg", _mean, functions.avg_of, ("avg", "mean"), measure="sum", lowering="mean", native="avg"),
    Aggregate("min", _same, functions.min_of, ("min",), measure="min", native="min", ignores_distinct=True),
    Aggregate("max", _same, functions.max_of, ("max",), measure="max", native="max", ignores_distinct=True),
    _spread("var_samp", "variance"),
    _spread("var_pop"),
    _spread("stddev_samp", "stddev", "std"),
    _spread("stddev_pop"),
    _bits("bit_and", ignores_distinct=True),
    _bits("bit_or", ignores_distinct=True),
    _bits("bit_xor"),
    _pairs("min_by", _same, pairs.min_by, ignores_distinct=True),
    _pairs("max_by", _same, pairs.max_by, ignores_distinct=True),
    _pairs("covar_pop", _double, pairs.covar_pop),
    _pairs("covar_samp", _double, pairs.covar_samp),
    _pairs("corr", _double, pairs.corr),
    Aggregate(
        "percentile",
        _double,
        holistic.percentile(0.5),
        ("percentile",),
        native="percentile",
        bounded=False,
        with_share=holistic.percentile,
    ),
    Aggregate("mode", _same, holistic.mode, ("mode",), native="mode", bounded=False),
    Aggregate(
        "collect_list",
        _array,
        collected.collect_list,
        ("collect_list", "array_agg"),
        bounded=False,
        ignores_distinct=True,  # of distinct values it is `collect_set`, and is bound so
        arguments=2,
    ),
    Aggregate("collect_set", _array, collected.collect_set, ("collect_set",), bounded=False, ignores_distinct=True),
)
DISTINCT_RECORDS: tuple[Aggregate, ...] = (
    _COUNT_DISTINCT,
    *(r.of_distinct() for r in RECORDS if not r.takes_star and not r.ignores_distinct),
)
"""Those of distinct values, where that is something else."""
_COUNT_ROWS = Aggregate(
    "count",
    _bigint,
    holistic.count_rows,
    native="count_distinct",
    bounded=False,
    distinct=True,
    arguments=2,
)
_BY_NAME = {(record.name, record.distinct): record for record in (*RECORDS, *DISTINCT_RECORDS)}


def find(name: str, *, distinct: bool = False, arguments: int = 1) -> Aggregate | None:
    """The record of a function, of all values or of distinct ones; None if there is none."""
    if name == "count" and distinct and arguments > 1:
        return _COUNT_ROWS
    return _BY_NAME.get((name, distinct))
