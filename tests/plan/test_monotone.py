"""What is said to rise does rise, and what is said to be constant on stretches is: random expressions, evaluated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import EvaluationError, PlanError
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import BIGINT, STRING, TIMESTAMP, schema_of
from penstock.model.time import MINUTE
from penstock.plan.expressions import Call, Column, Expression, Literal
from penstock.plan.monotone import rises_with, stretches, turns
from penstock.plan.nodes import Project, Source
from penstock.reference.scalars import value_of

NUMBERS = schema_of([("t", "bigint"), ("v", "int")], "t")
TIMES = schema_of([("ts", "timestamp")], "ts")
T = Column("t", BIGINT)
TS = Column("ts", TIMESTAMP)
SOURCE = Source("s", NUMBERS, ordered(), StreamProperties())


def _rest(expression: Expression, by: int) -> Expression:
    return Call("modulo", (expression, Literal(by, BIGINT)), BIGINT)


def numbers(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """Expressions of integers, monotone ones and others."""
    whole = st.integers(-70, 70)
    return st.one_of(
        st.builds(
            lambda name, e, by: Call(name, (e, Literal(by, BIGINT)), BIGINT),
            st.sampled_from(["add", "subtract", "multiply", "int_divide", "modulo"]), inner, whole,
        ),
        st.builds(lambda e, by: Call("add", (Literal(by, BIGINT), e), BIGINT), inner, whole),
        st.builds(lambda e, by: Call("subtract", (e, _rest(e, by)), BIGINT), inner, whole),
        st.builds(lambda e: Call("negate", (e,), BIGINT), inner),
        st.builds(lambda e: Call("abs", (e,), BIGINT), inner),
    )  # fmt: skip


def times(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """Timestamps shifted and truncated."""
    return st.one_of(
        st.builds(
            lambda e, by: Call("time_add", (e, Literal(by * MINUTE // 4, BIGINT)), TIMESTAMP), inner, st.integers(-9, 9)
        ),
        st.builds(
            lambda e, unit: Call("date_trunc", (Literal(unit, STRING), e), TIMESTAMP),
            inner,
            st.sampled_from(["second", "minute", "hour"]),
        ),
    )


@given(
    expression=st.recursive(st.just(T), numbers, max_leaves=4),
    values=st.lists(st.integers(-300, 300), min_size=2, max_size=30),
)
def test_what_is_said_to_rise_never_falls(expression: Expression, values: list[int]) -> None:
    if rises_with(expression) is None:
        return
    try:
        found = [value_of(expression, (t, 0), NUMBERS, {}) for t in sorted(values)]
    except EvaluationError:
        return
    assert found == sorted(found)


@given(expression=st.recursive(st.just(T), numbers, max_leaves=4), t=st.integers(0, 300))
def test_an_expression_rises_where_it_is_said_to_turn(expression: Expression, t: int) -> None:
    if rises_with(expression) is None:
        return
    step, origin = turns(expression)
    try:
        before, after = (value_of(expression, (at, 0), NUMBERS, {}) for at in (t + 300, t + 301))
    except EvaluationError:
        return
    assert before == after or (t + 301 - origin) % step == 0


@given(
    expression=st.recursive(st.just(TS), times, max_leaves=4),
    values=st.lists(st.integers(-400, 400), min_size=2, max_size=30),
)
def test_stretches_are_where_the_value_is_the_same(expression: Expression, values: list[int]) -> None:
    assert rises_with(expression) == "ts"
    known = stretches(expression)
    if known is None:
        return
    ticks = [value * MINUTE // 7 for value in values]
    found = {t: value_of(expression, (t,), TIMES, {}) for t in ticks}
    for t, value in found.items():
        begins = t - (t - known.origin) % known.length
        assert value == begins + known.shift
        assert all((found[other] == value) == (begins <= other < begins + known.length) for other in ticks)


@pytest.mark.parametrize(
    "expression",
    [
        Call("multiply", (T, Literal(-1, BIGINT)), BIGINT),
        Call("int_divide", (T, Literal(0, BIGINT)), BIGINT),
        Call("modulo", (T, Literal(5, BIGINT)), BIGINT),
        Call("add", (T, Column("v", BIGINT)), BIGINT),
        Call("subtract", (Literal(5, BIGINT), T), BIGINT),
        Column("k", STRING),
    ],
    ids=str,
)
def test_what_may_fall_is_not_said_to_rise(expression: Expression) -> None:
    assert rises_with(expression) is None


def test_a_time_that_may_fall_makes_no_projection() -> None:
    with pytest.raises(PlanError, match="rises with an attribute"):
        Project(SOURCE, (("x", Call("negate", (T,), BIGINT)),), "x")
