"""The way back through an expression that rises: the least bound that comes to a bound on it, by trying all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.schema import BIGINT, DOUBLE, STRING, TIMESTAMP
from penstock.model.time import DAY, HOUR, MINUTE
from penstock.plan.bounds_before import bound_before, value_at
from penstock.plan.expressions import Call, Column, Expression, Literal
from penstock.plan.monotone import rises_with, rises_with_all
from tests.plan.test_monotone import TS, T, numbers


@given(st.recursive(st.just(T), numbers, max_leaves=4), st.integers(-200, 200))
def test_it_is_the_first_at_which_the_expression_has_come_so_far(expression: Expression, bound: int) -> None:
    if rises_with(expression) is None:
        return
    reached = {at: value_at(expression, {"t": at}) for at in range(-3000, 3000)}
    found = bound_before(expression, bound)
    tried = next((at for at, value in reached.items() if value is not None and value >= bound), None)
    if tried is not None and tried > -3000:
        assert found == tried
    elif tried is None and found is not None:
        assert found >= 3000
        assert (value_at(expression, {"t": found}) or bound) >= bound > (value_at(expression, {"t": found - 1}) or 0)


def call(name: str, *args: Expression | int | str) -> Call:
    made = [
        Literal(arg, STRING) if isinstance(arg, str) else Literal(arg, BIGINT) if isinstance(arg, int) else arg
        for arg in args
    ]
    type_ = TIMESTAMP if name in ("date_trunc", "time_add") else DOUBLE if name == "divide" else BIGINT
    return Call(name, tuple(made), type_)


OTHER = Column("other", BIGINT)


@pytest.mark.parametrize(
    ("expression", "bound", "before"),
    [
        (T, 9, 9),
        (call("add", T, 7), 17, 10),
        (call("subtract", T, 7), 17, 24),
        (call("floor", call("divide", T, 10)), 3, 30),
        (call("ceil", call("divide", T, 10)), 3, 21),
        (call("int_divide", T, 10), 0, -9),
        (call("int_divide", T, 10), -1, -19),
        (call("multiply", T, 10), 31, 4),
        (call("date_trunc", "minute", TS), 3 * MINUTE, 3 * MINUTE),
        (call("date_trunc", "minute", TS), 3 * MINUTE + 1, 4 * MINUTE),
        (call("date_trunc", "month", TS), 15 * DAY, 31 * DAY),
        (call("time_add", call("date_trunc", "hour", TS), MINUTE), HOUR + MINUTE, HOUR),
        (call("least", T, OTHER), 9, 9),
        (call("add", call("least", T, OTHER), 2), 9, 7),
    ],
)
def test_bounds_that_are_known(expression: Expression, bound: int, before: int) -> None:
    assert rises_with_all(expression)
    assert bound_before(expression, bound) == before


@pytest.mark.parametrize("bound", [2**62, -(2**62), 2**63 - 2, -(2**63) + 1])
@pytest.mark.parametrize(
    "expression", [T, call("add", T, 7), call("subtract", T, 7), call("multiply", T, 3), call("int_divide", T, 3)]
)
def test_what_overflows_says_nothing_and_what_does_not_is_exact(expression: Expression, bound: int) -> None:
    found = bound_before(expression, bound)
    if found is None:
        assert (value_at(expression, {"t": 2**63 - 2}) or bound - 1) < bound
        return
    value = value_at(expression, {"t": found})
    assert value is not None
    assert value >= bound
    before = value_at(expression, {"t": found - 1})
    assert before is None or before < bound or found == -(2**63) + 1
