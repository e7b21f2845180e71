"""Every aggregate over every type of argument: row form, Arrow's partials, array form and the oracle say the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import EvaluationError
from penstock.model.batch import Batch
from penstock.model.schema import BIGINT, BOOLEAN, DOUBLE, DataType, Schema, decimal, parse_type, schema_of
from penstock.model.values import canonical
from penstock.operators.aggregates.catalogue import DISTINCT_RECORDS, RECORDS, Aggregate, array_form, find
from penstock.operators.aggregates.distinct_values import DistinctValues
from penstock.operators.aggregates.functions import AggregateFunction
from penstock.operators.aggregates.measures import Measure, infinite, values_of
from penstock.operators.aggregates.partials import MIN_COLUMNAR, Grouping
from penstock.operators.aggregates.totals import Totals
from penstock.operators.state import MemoryPages
from penstock.plan.expressions import AggregateCall
from penstock.reference.aggregates import aggregate
from penstock.testing.strategies import values
from tests.profiles import examples

TYPES = [
    *map(
        parse_type,
        ["tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean", "binary", "date", "timestamp"],
    ),
    decimal(10, 2),
    decimal(38, 4),
]
SECOND: dict[str, DataType] = {"min_by": DOUBLE, "max_by": BIGINT, "count": BIGINT, "collect_list": BIGINT}
"""The type of the second argument; of numbers that go together, that of the first."""


def types_of(record: Aggregate) -> list[DataType]:
    """The types that it is tried with: all, or few where there is no array form; doubles where two go together."""
    if two(record) and record.type_of(BOOLEAN) is None:
        return [DOUBLE]
    tried = TYPES if record.measure is not None else [BIGINT, DOUBLE, parse_type("string"), decimal(10, 2)]
    return [type_ for type_ in tried if record.type_of(type_) is not None]


def two(record: Aggregate) -> bool:
    return record.arguments == 2


COUNT_ROWS = find("count", distinct=True, arguments=2)
assert COUNT_ROWS is not None
CASES = [
    pytest.param(record, type_, id=f"{record.name}{'-distinct' if record.distinct else ''}{record.arguments}-{type_}")
    for record in (*RECORDS, *DISTINCT_RECORDS, COUNT_ROWS)
    for type_ in types_of(record)
]


def column(type_: DataType) -> st.SearchStrategy[list[Any]]:
    """Values of a type with nulls among them, and what is odd of it: both ends of bigint, NaN and infinities."""
    odd: st.SearchStrategy[Any] = st.nothing()
    if type_ == BIGINT:
        odd = st.sampled_from([2**63 - 1, -(2**63), 2**62])
    elif type_.is_fractional:
        odd = st.sampled_from([math.nan, math.inf, -math.inf, -0.0])
    return st.lists(st.none() | values(type_) | odd, min_size=1, max_size=30)


def arguments(record: Aggregate, type_: DataType) -> st.SearchStrategy[list[Any]]:
    """What an aggregate is of: values, or pairs of them."""
    if not two(record):
        return column(type_)
    first, second = column(type_), column(SECOND.get(record.name, type_))
    return st.tuples(first, second).map(lambda both: list(zip(*both, strict=False)))


def lifted(function: AggregateFunction, given_values: list[Any]) -> Any:
    """The partial of some values."""
    return reduce(function.join, [function.lift(v) for v in given_values if v is not None], None)


def result_type(record: Aggregate, type_: DataType | None) -> DataType:
    found = record.type_of(type_)
    assert found is not None
    return found


def outcome(compute: Any) -> Any:
    """A value, or that there is none."""
    try:
        return compute()
    except EvaluationError as error:
        return ("failed", error.what)


def by_oracle(record: Aggregate, type_: DataType, given_values: list[Any]) -> Any:
    others = (("y",), (SECOND.get(record.name, type_),)) if two(record) else ((), ())
    call = AggregateCall(record.name, "x", result_type(record, type_), "r", record.distinct, type_, *others)
    return outcome(lambda: aggregate(call, given_values, {}))


def agree(left: Any, right: Any) -> bool:
    """Equal, or floats that differ in their last bits; arrays, element by element."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(agree, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return type(left) is type(right) and bool(left == right)


def assert_agree(left: Any, right: Any) -> None:
    assert agree(left, right), (left, right)


@pytest.mark.parametrize(("record", "type_"), CASES)
@examples(8)
@given(st.data())
def test_the_row_form_gives_what_the_oracle_says(record: Aggregate, type_: DataType, data: st.DataObject) -> None:
    given_values = data.draw(arguments(record, type_))
    function = record.row_form(type_, result_type(record, type_))
    partial = lifted(function, given_values)
    assert_agree(outcome(lambda: function.result(partial)), by_oracle(record, type_, given_values))


@pytest.mark.parametrize(("record", "type_"), CASES)
@examples(8)
@given(st.data())
def test_what_was_taken_out_again_leaves_no_trace(record: Aggregate, type_: DataType, data: st.DataObject) -> None:
    function = record.row_form(type_, result_type(record, type_))
    assert record.inverts(type_, result_type(record, type_)) is (function.invert is not None)
    if function.invert is None:
        return
    leaving, staying = data.draw(arguments(record, type_)), data.draw(arguments(record, type_))
    parts = [lifted(function, leaving), lifted(function, staying)]
    total = function.join(*parts)
    rest = total if parts[0] is None or total is None else function.invert(total, parts[0])
    assert_agree(outcome(lambda: function.result(rest)), by_oracle(record, type_, staying))


@pytest.mark.parametrize(("record", "type_"), CASES)
@examples(8)
@given(st.data())
def test_arrows_partials_of_a_batch_are_those_of_its_rows(
    record: Aggregate, type_: DataType, data: st.DataObject
) -> None:
    schema = schema_of([("x", type_)])
    if two(record):
        assert not record.row_form(type_, result_type(record, type_)).arrow
        return
    given_values = data.draw(column(type_))
    function = record.row_form(type_, result_type(record, type_))
    grouping = Grouping(schema, (), (0,), (function,))
    # The same values once more as often as it takes for a batch that Arrow is asked to reduce.
    many = given_values * -(-MIN_COLUMNAR // len(given_values))
    batch = Batch(schema, table=Batch(schema, [(v,) for v in many]).table)
    if not grouping.is_columnar(batch):
        return
    ((slot, key, partials),) = grouping.reduce(batch, np.full(len(many), 7))
    assert (slot, key) == (7, ())
    assert_agree(outcome(lambda: function.result(partials[0])), by_oracle(record, type_, many))


def distinct_in_both(measures: Sequence[Measure], schema: Schema, left: list[Any], right: list[Any]) -> int:
    """How many distinct values a window of two panes has, of which one comes as an Arrow table, the other as a set."""
    pages, totals, counting = MemoryPages(), Totals(added={1: np.zeros(1, np.int64)}), DistinctValues(measures)
    zeros = np.zeros(len(left), np.int64)
    counting.take(pages, Batch(schema, [(v,) for v in left]), zeros, zeros)
    seen = {canonical(v) for v in right if v is not None}
    counting.take_sets(pages, 1, np.zeros(1, np.int64), [[], [seen]])
    for pane in (0, 1):
        counting.enter(totals, pane, pages, np.zeros(1, np.int64))
    return int(totals.added[1][0])


@pytest.mark.parametrize(("record", "type_"), CASES)
@examples(8)
@given(st.data())
def test_the_array_form_gives_what_the_oracle_says(record: Aggregate, type_: DataType, data: st.DataObject) -> None:
    schema = schema_of([("x", type_)])
    form = array_form([(record, 0, result_type(record, type_))], schema)
    assert (form is not None) is record.has_array_form(type_)
    if form is None:
        return
    measures, (result,) = form
    assert all(m.is_invertible for m in measures) is record.inverts(type_, result_type(record, type_))
    left, right = data.draw(column(type_)), data.draw(column(type_))
    if record.distinct:
        assert_agree(distinct_in_both(measures, schema, left, right), by_oracle(record, type_, left + right))
        return
    with infinite():
        numbers = []
        for measure in measures:
            halves = []
            for part in (left, right):
                array, valid = values_of(Batch(schema, [(v,) for v in part]), 0)
                slots = np.zeros(len(part), np.int64)
                halves.append(measure.gather(slots, 1, array, valid, wide=True))
            numbers.append(measure.combine(*halves))
    expected = by_oracle(record, type_, left + right)
    if result.overflows(numbers):
        assert expected == ("failed", "Arithmetic overflow in sum.")
        return
    (got,) = (
        result.lower(numbers).to_pylist()
        if type_.name != "timestamp"
        else result.lower(numbers).cast("int64").to_pylist()
    )
    assert_agree(got, expected)


def test_every_name_is_of_one_record_and_every_record_but_those_of_distinct_values_has_one() -> None:
    names = [name for record in RECORDS for name in record.names]
    assert len(names) == len(set(names))
    assert all(r.names and not r.distinct for r in RECORDS)
    assert not any(r.names or not r.distinct for r in DISTINCT_RECORDS)


@examples(8)
@given(st.floats(0, 1), st.data())
def test_a_percentile_of_any_share_gives_what_the_oracle_says(share: float, data: st.DataObject) -> None:
    record, given_values = find("percentile"), data.draw(column(DOUBLE))
    assert record is not None
    function = record.of_share(share).row_form(DOUBLE, DOUBLE)
    call = AggregateCall("percentile", "x", DOUBLE, "r", False, DOUBLE, share=share)
    assert_agree(function.result(lifted(function, given_values)), aggregate(call, given_values, {}))


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        ("count", None, BIGINT),
        ("sum", None, None),
        ("sum", "int", BIGINT),
        ("sum", "float", DOUBLE),
        ("sum", "decimal(10,2)", DataType("decimal", 20, 2)),
        ("sum", "decimal(38,10)", DataType("decimal", 38, 10)),
        ("avg", "int", DOUBLE),
        ("avg", "decimal(10,2)", DataType("decimal", 14, 6)),
        ("avg", "decimal(38,36)", DataType("decimal", 38, 38)),
        ("avg", "string", None),
        ("var_pop", "decimal(10,2)", DOUBLE),
        ("var_pop", "timestamp", None),
        ("max", "string", DataType("string")),
        ("min", "timestamp", DataType("timestamp")),
    ],
)
def test_types_of_results_are_sparks(function: str, argument: str | None, expected: DataType | None) -> None:
    record = find(function)
    assert record is not None
    assert record.type_of(None if argument is None else parse_type(argument)) == expected


def test_what_is_said_of_functions_of_each_kind() -> None:
    def record(name: str, *, distinct: bool = False) -> Aggregate:
        found = find(name, distinct=distinct)
        assert found is not None
        return found

    wide, narrow = decimal(29, 2), decimal(28, 2)
    assert record("sum").is_native(narrow)
    assert not record("sum").is_native(wide)
    assert not record("avg").is_native(wide)
    assert record("max").is_native(wide)
    assert record("avg").joins_natively(DOUBLE)
    assert not record("avg").joins_natively(narrow)
    assert not record("var_pop").joins_natively(DOUBLE)
    assert not record("count", distinct=True).joins_natively(DOUBLE)
    assert not record("count", distinct=True).bounded
    assert record("sum").bounded
    assert not record("sum", distinct=True).bounded
    assert not record("sum", distinct=True).is_native(wide)
    assert not record("mode", distinct=True).is_native(BIGINT)
    assert find("max", distinct=True) is None  # it is the same
