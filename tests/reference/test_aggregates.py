"""Aggregates from their textbook definitions; every expected value is worked out by hand."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from penstock.errors import EvaluationError, UnsupportedError
from penstock.model.schema import BIGINT, DOUBLE, STRING, DataType, decimal
from penstock.plan.expressions import AggregateCall
from penstock.reference.aggregates import aggregate


def of(function: str, *values: object, type_: DataType = DOUBLE, distinct: bool = False) -> object:
    return aggregate(AggregateCall(function, "x", type_, "r", distinct), values, {})


def test_count_star_counts_rows_and_count_counts_values() -> None:
    star = AggregateCall("count", None, BIGINT, "n")
    assert aggregate(star, [None, None, None], {}) == 3
    assert of("count", 1, None, 1, type_=BIGINT) == 2
    assert of("count", None, type_=BIGINT) == 0


def test_count_distinct_takes_equal_values_once() -> None:
    assert of("count", 1, 2, 1, None, type_=BIGINT, distinct=True) == 2
    assert of("count", math.nan, float("nan"), 0.0, -0.0, type_=BIGINT, distinct=True) == 2


@pytest.mark.parametrize("function", ["sum", "avg", "min", "max", "var_samp", "var_pop", "stddev_samp", "stddev_pop"])
def test_of_nothing_but_nulls_there_is_no_value(function: str) -> None:
    assert of(function, None, None) is None


def test_sum_of_integers_is_exact() -> None:
    assert of("sum", 2**62, 2**62 - 1, None, type_=BIGINT) == 2**63 - 1
    assert of("sum", 2**63 - 1, 5, -5, type_=BIGINT) == 2**63 - 1


def test_sum_beyond_bigint_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="overflow"):
        of("sum", 2**62, 2**62, type_=BIGINT)


def test_sum_of_doubles_does_not_depend_on_order() -> None:
    assert of("sum", 1e100, 1.0, -1e100) == 1.0
    assert of("sum", *[0.1] * 10) == 1.0


def test_sum_with_infinities_and_nan() -> None:
    assert of("sum", math.inf, 1.0) == math.inf
    assert math.isnan(of("sum", math.inf, -math.inf))  # type: ignore[arg-type]
    assert math.isnan(of("sum", 1.0, math.nan))  # type: ignore[arg-type]
    assert of("sum", 1e308, 1e308) == math.inf


def test_avg_of_integers_is_a_double() -> None:
    result = of("avg", 1, 2, None)
    assert (result, type(result)) == (1.5, float)


def test_sum_of_decimals_keeps_the_scale() -> None:
    result = of("sum", Decimal("1.10"), Decimal("2.20"), type_=decimal(15, 2))
    assert str(result) == "3.30"


def test_avg_of_decimals_rounds_halves_up() -> None:
    type_ = decimal(10, 1)
    assert of("avg", Decimal("0.1"), Decimal("0.2"), type_=type_) == Decimal("0.2")  # 0.15
    assert of("avg", Decimal("-0.1"), Decimal("-0.2"), type_=type_) == Decimal("-0.2")  # away from zero
    assert of("avg", Decimal(1), Decimal(0), Decimal(0), type_=type_) == Decimal("0.3")


def test_a_decimal_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="overflow"):
        of("sum", Decimal("9.9"), Decimal("0.1"), type_=decimal(2, 1))


def test_nan_is_greater_than_every_number() -> None:
    assert math.isnan(of("max", 1.0, math.nan, math.inf))  # type: ignore[arg-type]
    assert of("min", 1.0, math.nan) == 1.0
    assert math.isnan(of("min", math.nan))  # type: ignore[arg-type]


def test_min_and_max_of_text() -> None:
    assert of("min", "b", None, "a", type_=STRING) == "a"
    assert of("max", "b", None, "a", type_=STRING) == "b"


def test_spread_of_a_few_values() -> None:
    # 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32
    values = (2, 4, 4, 4, 5, 5, 7, 9)
    assert of("var_pop", *values) == 4.0
    assert of("stddev_pop", *values) == 2.0
    assert of("var_samp", *values) == 32 / 7
    assert of("stddev_samp", *values) == math.sqrt(32 / 7)


def test_spread_of_one_value() -> None:
    assert of("var_samp", 3) is None
    assert of("stddev_samp", 3, None) is None
    assert of("var_pop", 3) == 0.0
    assert of("stddev_pop", 3) == 0.0


def test_spread_far_from_zero_loses_nothing() -> None:
    # deviations -1, 0, 1
    assert of("var_samp", 1e9 - 1, 1e9, 1e9 + 1) == 1.0


def test_spread_of_nan_is_nan() -> None:
    assert math.isnan(of("var_pop", 1.0, math.nan))  # type: ignore[arg-type]


class Longest:
    """The longest text, and how many were looked at."""

    def lift(self, value: str) -> tuple[str, int]:
        return value, 1

    def combine(self, left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
        return max(left[0], right[0], key=len), left[1] + right[1]

    def lower(self, partial: tuple[str, int]) -> str:
        return f"{partial[0]} of {partial[1]}"


def test_a_user_aggregate_never_sees_nulls() -> None:
    call = AggregateCall("user:longest", "x", STRING, "r")
    assert aggregate(call, ["a", None, "ccc", "bb"], {"longest": Longest()}) == "ccc of 3"
    assert aggregate(call, [None], {"longest": Longest()}) is None


def test_an_unknown_aggregate_is_named() -> None:
    with pytest.raises(UnsupportedError, match="user aggregate is not known"):
        aggregate(AggregateCall("user:nope", "x", STRING, "r"), ["a"], {})
