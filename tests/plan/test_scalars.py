"""Scalar functions: by rows, by columns and by the oracle alike, and each family as its own definition here says."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema, schema_of
from penstock.plan import functions, json_paths, matching, regular_expressions, time_patterns
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.scalars import BY_NAME, SCALARS
from penstock.reference import evaluate
from penstock.sql.binder import bind
from tests.judge import nested, scalars
from tests.profiles import examples

SCHEMA = schema_of(list(scalars.SCHEMA.items()), "t")


def arrow(schema: Schema) -> pa.Schema:
    return pa.schema([(f.name, f.type.arrow) for f in schema.fields])


def catalog() -> Catalog:
    result = Catalog()
    result.add_stream(StreamInfo("s", SCHEMA, ordered(), StreamProperties()))
    return result


def shown(row: tuple[Any, ...]) -> str:
    """As text, in which NaN is NaN; the two zeros are one value to a temporal database."""
    return repr(tuple(value + 0.0 if isinstance(value, float) else value for value in row))


def test_rows_columns_and_the_oracle_agree_on_every_function() -> None:
    table = pa.Table.from_pylist(scalars.rows(), arrow(SCHEMA))
    rows = Batch(SCHEMA, table=table).rows
    own = catalog()
    for text in scalars.EXPRESSIONS:
        plan = bind(f"SELECT t, {text} AS x FROM s", own)
        found = []
        for batch in (Batch(SCHEMA, rows), Batch(SCHEMA, table=table)):
            (out,) = (x for x in LocalExecution(plan, own).feed("s", batch) if isinstance(x, Batch))
            found.append(sorted(map(shown, out.rows)))
        oracle = sorted(shown(payload) for payload, _, _ in evaluate(plan, [("s", row) for row in rows]))
        assert found[0] == found[1] == oracle, text


def test_every_function_of_the_list_is_among_the_expressions_that_spark_judges() -> None:
    called = {
        name for text in (*scalars.EXPRESSIONS, *nested.EXPRESSIONS) for name in re.findall(r"([a-z0-9_]+)\(", text)
    }
    assert {s.called for s in SCALARS} <= called
    assert {s.name or s.called for s in SCALARS if s.returns} <= set(functions.STRICT)
    assert len(BY_NAME) == len({name for s in SCALARS for name in (s.called, *s.also)})


# Each family beside a definition that is written another way

TEXTS = st.text("aAb .é😀\n1", max_size=8)


@examples(60)
@given(TEXTS, TEXTS, st.integers(-4, 10))
def test_text(text: str, other: str, n: int) -> None:
    def value(name: str, *args: Any) -> Any:
        return functions.STRICT[name](list(args), SCHEMA["k"].type)

    assert value("left", text, n) + value("right", text, max(len(text) - max(n, 0), 0)) == text
    assert value("reverse", value("reverse", text)) == text
    padded = value("lpad", text, n, other)
    assert len(padded) == max(n, 0) or (len(padded) < n and not other)
    assert value("contains", text, other) == (value("locate", other, text, 1) > 0)
    if other:
        pieces = [value("split_part", text, other, at + 1) for at in range(text.count(other) + 1)]
        assert other.join(pieces) == text
        assert value("replace", text, other, "|") == "|".join(pieces)
    assert value("repeat", text, n) == "".join([text for _ in range(n)])


def atoms() -> st.SearchStrategy[str]:
    return st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", r"\.", "1", " "])


PATTERNS = st.recursive(
    atoms(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}|{p[1]})"),
        inner.map(lambda p: f"(?:{p})"),
        st.tuples(atoms(), st.sampled_from(["*", "+", "?", "{1,2}", "*?", "+?"])).map("".join),
    ),
    max_leaves=5,
)


@examples(80)
@given(PATTERNS, st.text("ab1. é", max_size=8))
def test_patterns_are_pythons_where_both_mean_the_same(pattern: str, text: str) -> None:
    """In these patterns and texts Python in ASCII and Java differ in nothing; RE2 must not either."""
    found = re.compile(pattern, re.ASCII).search(text)
    assert matching.finder(pattern)(text) == (found is not None)
    assert matching.extractor(pattern, 0)(text) == ("" if found is None else found[0])
    expression = regular_expressions.parse(pattern)
    assert expression.linear is not None
    linear = pa.compute.match_substring_regex(pa.scalar(text), pattern=expression.linear).as_py()
    assert linear == (found is not None)
    assert matching.replacer(pattern, "<$0>")(text) == re.sub(pattern, r"<\g<0>>", text, flags=re.ASCII)


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("(?<=a)b", "(?<="), (r"(a)\1", r"\1"), ("a++", "a repetition of a repetition"), (r"\p{L}", r"\p"),
        ("[a&&b]", "& in a class"), ("[[a]]", "[ in a class"), ("a{2", "counts nothing"), ("*a", "nothing before it"),
        ("(a", "not closed"), ("a)", "without an opening"), ("(?m)^a", "(?m)"), ("(a*)*", "can be empty"),
        (r"\Qa\E", r"\Q"), ("(?>a)", "(?>"), (r"a\Z", r"\Z"), ("[b-a]", "a later one"), ("a{2000}", "1000"),
        (r"((a|b)+)(?=c)", "together with lookahead"), ("[", "missing"), ("a\\", "missing"), (r"\ud800", r"\u"),
    ],
)  # fmt: skip
def test_patterns_that_mean_other_things_elsewhere_are_refused_by_name(pattern: str, part: str) -> None:
    with pytest.raises(regular_expressions.WrongPattern) as caught:
        regular_expressions.parse(pattern)
    assert part in str(caught.value)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a|aa)+$", "(x+x+)+y|(a*a)+b"])
def test_no_pattern_takes_exponential_time(pattern: str) -> None:
    """Whoever tries one way after the other does not come to an end here."""
    text = "a" * 5000 + "c"
    assert not matching.finder(pattern)(text)
    assert matching.extractor(pattern, 1)(text) == ""
    assert matching.replacer(pattern, "")(text) == text


@examples(60)
@given(st.decimals(-(10**6), 10**6, places=4), st.integers(-3, 5))
def test_rounding(value: Decimal, digits: int) -> None:
    """Half up is what is left when half is added to what is over."""
    unit = Decimal(10) ** -digits
    expected = math.copysign(float(abs(value) / unit + Decimal("0.5")) // 1, value) * float(unit)
    got = functions.STRICT["round"]([float(value), digits], SCHEMA["d"].type)
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-12)


@examples(60)
@given(st.datetimes(dt.datetime(1, 2, 1), dt.datetime(9999, 11, 30)), st.integers(-40, 40))
def test_times(moment: dt.datetime, n: int) -> None:
    """As Python's own calendar has them."""
    ticks = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)

    def value(name: str, *args: Any) -> Any:
        return functions.STRICT[name](list(args), SCHEMA["ts"].type)

    year, week, weekday = moment.isocalendar()
    assert (value("yearofweek", ticks), value("weekofyear", ticks), value("weekday", ticks)) == (
        year,
        week,
        weekday - 1,
    )
    assert value("dayofweek", ticks) == weekday % 7 + 1
    assert value("dayofyear", ticks) == moment.timetuple().tm_yday
    first = {"month": moment.replace(day=1), "year": moment.replace(month=1, day=1)}
    first["week"] = moment - dt.timedelta(days=weekday - 1)
    for unit, begin in first.items():
        cut = begin.replace(hour=0, minute=0, second=0, microsecond=0)
        assert value("date_trunc", unit, ticks) == (cut - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    assert value("date_add", moment.date(), n) == moment.date() + dt.timedelta(days=n)
    written = time_patterns.write(ticks, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS EEEE MMMM hh a")
    assert written == f"{moment.isoformat(timespec='microseconds')} {moment:%A %B %I %p}"
    assert time_patterns.read(written[:26], "yyyy-MM-dd'T'HH:mm:ss.SSSSSS") == ticks
    assert value("months_between", ticks, value("date_trunc", "year", ticks)) >= moment.month - 1


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.text("a\"\\'é\n\x01😀", max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)


@examples(60)
@given(JSON, st.lists(st.sampled_from(["a", "b", 0, 1]), max_size=3))
def test_json(value: Any, path: list[str | int]) -> None:
    """What Python's own reader finds there."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    steps = "$" + "".join([f"[{s}]" if isinstance(s, int) else f".{s}" for s in path])
    at, there = value, True
    for step in path:
        there = isinstance(at, list if isinstance(step, int) else dict) and (
            step in at if isinstance(at, dict) else step < len(at)
        )
        at = at[step] if there else None
        there = there and (at is not None or isinstance(step, int))
        if not there:
            break
    read = json_paths.read_path(steps)
    assert read == tuple(path)
    got = json_paths.get(text, read)
    if not there:
        assert got is None
    else:
        assert got == at if isinstance(at, str) else got is not None and json.loads(got) == at
    assert json_paths.get(text[:-1] + "?", read) is None or isinstance(value, int | bool | None)
