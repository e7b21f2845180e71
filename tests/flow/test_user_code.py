"""What may be registered as a function or an aggregate, and under which names."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as pk
from penstock.errors import StreamError
from tests.flow.test_misuse import Total


def one_row() -> pk.Flow:
    return pk.Flow().stream("s", [{"t": 1, "v": -5}], time="t")


@pytest.mark.parametrize("name", ["agg", "skewness", "stack", "listagg", "round", "order", "left", "replace"])
def test_a_name_that_is_no_function_here_is_free(name: str) -> None:
    """The parser knows hundreds of functions that queries cannot use; none of them stands in the way."""
    summed: Any = (
        one_row().aggregate(name, Total, "bigint").query(f"SELECT {name}(v) AS x [RANGE 9, SLIDE 9, WA t] FROM s")
    )
    assert summed.collect()["x"].to_pylist() == [-5]
    called: Any = one_row().function(name, lambda *v: 42, "bigint").query(f"SELECT {name.upper()}(v, 1) AS x FROM s")
    assert called.collect()["x"].to_pylist() == [42]


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("abs", "ABS(x)"), ("Abs", "ABS(x)"), ("COUNT", "COUNT(x)"), ("if", "a word of SQL"), ("nvl", "COALESCE(x)"),
        ("date", "CAST(x AS DATE)"), ("case", "a word of SQL"), ("distinct", "(x)"), ("tumble", "a window"),
        ("cast", "a word of SQL"), ("stddev", "STDDEV(x)"), ("Median", "an aggregate"), ("first", "an aggregate"),
    ],
)  # fmt: skip
def test_a_name_that_sql_has_is_refused(name: str, meaning: str) -> None:
    for register in (
        lambda: one_row().function(name, abs, "bigint"),
        lambda: one_row().aggregate(name, Total, "bigint"),
    ):
        with pytest.raises(StreamError) as refused:
            register()
        assert refused.value.what == "The name has a meaning in SQL already."
        assert refused.value.got == meaning


def test_a_name_can_be_registered_once() -> None:
    flow = one_row().function("g", abs, "bigint").aggregate("total", Total, "bigint")
    for register, known in (
        (lambda: flow.function("G", abs, "bigint"), "a function"),
        (lambda: flow.aggregate("G", Total, "bigint"), "a function"),
        (lambda: flow.aggregate("TOTAL", Total, "bigint"), "an aggregate"),
        (lambda: flow.function("Total", abs, "bigint"), "an aggregate"),
    ):
        with pytest.raises(StreamError, match=f"There is {known} of that name already"):
            register()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("g", None, "bigint"), ["A function must be callable", "function g", "None"]),
        (("g", abs, 5), ["returns must be a text", "function g", "5"]),
        (("g", abs, None), ["returns must be a text", "None"]),
        (("g", abs, "money"), ["Unknown type", "function g", "money"]),
        (("a b", abs, "int"), ["The name of a function must be an identifier", "'a b'"]),
        ((None, abs, "int"), ["The name of a function must be an identifier", "None"]),
        (("g", abs, "int", 5), ["version must be a text", "function g", "5"]),
    ],
)
def test_what_is_wrong_with_a_registration_is_told(arguments: tuple[Any, ...], parts: list[str]) -> None:
    version = {"version": arguments[3]} if len(arguments) > 3 else {}
    with pytest.raises(StreamError) as refused:
        one_row().function(*arguments[:3], **version)
    assert all(part in refused.value.message for part in parts), refused.value.message


def test_an_aggregate_that_cannot_be_made_is_told() -> None:
    class Needs(Total):
        def __init__(self, size: int) -> None: ...

    class Lacks(Total):
        combine = None  # type: ignore[assignment]

    for given, parts in ((Needs, ["The aggregate cannot be made", "size", "an object"]), (Lacks, ["no combine"])):
        with pytest.raises(StreamError) as refused:
            one_row().aggregate("g", given, "int")
        assert all(part in refused.value.message for part in parts), refused.value.message
