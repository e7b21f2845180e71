"""LIKE against a definition by dynamic programming, in every form that the in-process engine has, and its cost."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from penstock.errors import EvaluationError
from penstock.model.schema import BOOLEAN, STRING, schema_of
from penstock.plan.expressions import Call, Column, Literal
from penstock.plan.like import is_simple, like, wrong_escape
from penstock.runtime.column_functions import column_function
from penstock.runtime.row_functions import row_function

SCHEMA = schema_of([("t", "bigint"), ("x", "string")], "t")


def defined(text: str, pattern: str) -> bool:
    """Whether the pattern matches, from the places in the text that each of its signs can lead to."""
    places, at = {0}, 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "%":
            places = set(range(min(places), len(text) + 1)) if places else set()
        else:
            if sign == "\\":
                at += 1
            wanted = None if sign == "_" else pattern[at]
            places = {p + 1 for p in places if p < len(text) and wanted in (None, text[p])}
        at += 1
    return len(text) in places


@example("\\", "%\\\\")  # an escaped backslash at the end
@given(st.text("ab%_\\\n😀", max_size=12), st.text("ab%_\\\n😀", max_size=9))
def test_all_forms_agree_with_the_definition(text: str, pattern: str) -> None:
    assume(not wrong_escape(pattern))
    expected = defined(text, pattern)
    call = Call("like", (Column("x", STRING), Literal(pattern, STRING)), BOOLEAN)
    assert row_function(call, SCHEMA, {})((1, text)) is expected
    by_column = column_function(call, SCHEMA)
    assert by_column is not None
    assert by_column(pa.table({"t": [1], "x": [text]})).to_pylist() == [expected]


@pytest.mark.parametrize("pattern", ["a\\", "\\a", "%\\x%", "\\\\\\"])
def test_a_wrong_escape_is_an_error(pattern: str) -> None:
    with pytest.raises(EvaluationError, match="LIKE pattern is wrong"):
        like("a", pattern)


@pytest.mark.parametrize(
    "pattern", ["%a%a%a%b", "%a%a%a%a%a%a%a%a%b", "%_a%_a%_a%_b_", "a%a%a%a%a%a%c%", "%" * 40 + "b"]
)
def test_the_cost_grows_with_the_text(pattern: str) -> None:
    started = time.process_time()
    assert not like("a" * 20_000, pattern)
    assert time.process_time() - started < 2  # by trying combinations of places: hours


def test_which_patterns_need_no_care() -> None:
    assert all(map(is_simple, ["", "abc", "a%", "%a", "a%b", "a_%", "%abc%"]))
    assert not any(map(is_simple, ["%a%b", "%a_b%", "%%%", "a%b%c", "%\\%%"]))
