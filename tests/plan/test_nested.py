"""Functions of arrays, maps and structs: by rows, by columns and by the oracle, and beside definitions in Python."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.errors import QueryError
from penstock.model.batch import Batch
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema, schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.nodes import Node
from penstock.reference import evaluate
from penstock.reference.evaluation import outcome
from penstock.sql.binder import bind
from tests.judge import nested
from tests.profiles import examples

SCHEMA = schema_of(list(nested.SCHEMA.items()), "t")


def catalog(schema: Schema = SCHEMA) -> Catalog:
    result = Catalog()
    result.add_stream(StreamInfo("s", schema, ordered(), StreamProperties()))
    return result


def shown(row: tuple[Any, ...]) -> str:
    """As text, in which NaN is NaN and the two zeros are one."""
    return repr(tuple(_plain(value) for value in row))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    return value + 0.0 if isinstance(value, float) else value


def made(plan: Node, own: Catalog, batch: Batch, stream: str = "s") -> Batch:
    (out,) = (out for out in LocalExecution(plan, own).feed(stream, batch) if isinstance(out, Batch))
    return out


def given_rows() -> tuple[list[tuple[Any, ...]], pa.Table]:
    table = pa.Table.from_pylist(nested.rows(), SCHEMA.arrow)
    return list(Batch(SCHEMA, table=table).rows), table


@pytest.mark.parametrize("text", nested.EXPRESSIONS)
def test_rows_columns_and_the_oracle_agree(text: str) -> None:
    rows, table = given_rows()
    own = catalog()
    plan = bind(f"SELECT t, {text} AS made FROM s", own)
    found = []
    for batch in (Batch(SCHEMA, rows), Batch(SCHEMA, table=table), Batch(SCHEMA, table=table.slice(7, 40))):
        out = made(plan, own, batch)
        assert out.table.schema.equals(plan.schema.arrow)
        out.table.validate(full=True)
        found.append([shown(row) for row in Batch(out.schema, table=out.table).rows])
    oracle = [shown(payload) for payload, _, _ in evaluate(plan, [("s", row) for row in rows])]
    assert sorted(found[0]) == sorted(found[1]) == sorted(oracle)
    assert found[2] == found[1][7:47]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a[2]", "The array has no such element"),
        ("a[-1]", "-1 of 3"),
        ("element_at(a, 4)", "4 of 3"),
        ("element_at(a, 0)", "0 of 3"),
        ("try_element_at(a, 0)", "0 of 3"),
        ("slice(a, 0, 1)", "start 0"),
        ("slice(a, 1, -1)", "length -1"),
        ("map(k, 1, 'a', 2)", "A map has a key twice"),
        ("map(nullif(k, 'a'), 1)", "A key of a map is null"),
        ("array_repeat(k, 5000000)", "would be too long"),
    ],
)
def test_what_has_no_value_is_a_dead_letter_with_its_reason(text: str, reason: str) -> None:
    """Row 0 has a = [1, 2, 3] and k = 'a'; whoever fails, fails alike by rows, by columns and in the oracle."""
    rows, table = given_rows()
    own = catalog()
    plan = bind(f"SELECT t, {text} AS made FROM s", own)
    dead = outcome(plan, [("s", row) for row in rows]).dead
    assert dead
    for batch in (Batch(SCHEMA, rows), Batch(SCHEMA, table=table)):
        run = LocalExecution(plan, own)
        outs = list(run.feed("s", batch))
        reasons = run.dead_letters()["reason"].to_pylist()
        assert len(reasons) == sum(dead.values())
        assert reason in reasons[0] or text == "a[2]"
        assert sum(len(out) for out in outs if isinstance(out, Batch)) == len(rows) - len(reasons)


ELEMENTS = st.none() | st.integers(-3, 3)
ARRAYS = st.none() | st.lists(ELEMENTS, max_size=6).map(tuple)
SMALL = schema_of([("t", "bigint"), ("a", "array<int>"), ("b", "array<int>"), ("v", "int")], "t")


def value(text: str, *values: Any) -> Any:
    own = catalog(SMALL)
    plan = bind(f"SELECT t, {text} AS made FROM s", own)
    return made(plan, own, Batch(SMALL, [(0, *values)])).rows[0][1]


@examples(60)
@given(ARRAYS, ARRAYS, ELEMENTS)
def test_arrays_beside_definitions_by_lists(a: Any, b: Any, v: int | None) -> None:
    def both(definition: Any) -> Any:
        return None if a is None or b is None else tuple(definition(list(a), list(b)))

    def once(values: list[Any]) -> list[Any]:
        return [x for at, x in enumerate(values) if x not in values[:at]]

    assert value("concat(a, b)", a, b, v) == both(lambda x, y: x + y)
    assert value("array_union(a, b)", a, b, v) == both(lambda x, y: once(x + y))
    assert value("array_intersect(a, b)", a, b, v) == both(lambda x, y: once([e for e in x if e in y]))
    assert value("array_except(a, b)", a, b, v) == both(lambda x, y: once([e for e in x if e not in y]))
    assert value("size(a)", a, b, v) == (None if a is None else len(a))
    there = None if a is None else sorted(x for x in a if x is not None)
    assert value("array_max(a)", a, b, v) == (there[-1] if there else None)
    assert value("array_compact(sort_array(a))", a, b, v) == (None if there is None else tuple(there))
    found = None if a is None or v is None else v in a or (None if None in a else False)
    assert value("array_contains(a, v)", a, b, v) is found
    assert value("a = b", a, b, v) is (None if a is None or b is None else a == b)


def test_parts_are_told_from_columns_of_relations() -> None:
    schema = schema_of([("t", "bigint"), ("s", "struct<t:int,u:int>"), ("u", "int")], "t")
    own = catalog(schema)
    batch = Batch(schema, [(1, (2, 3), 4)])
    for text, wanted in (("s.t", 1), ("s.u", 4), ("s.s.t", 2), ("s.s.u", 3), ("(s).t", 2)):
        out = made(bind(f"SELECT t, {text} AS made FROM s", own), own, batch)
        assert out.rows[0][1] == wanted, text
    other = Catalog()
    other.add_stream(StreamInfo("z", schema, ordered(), StreamProperties()))
    out = made(bind("SELECT t AS time, s.t, s.u, s.u AS other FROM z", other), other, batch, "z")
    assert out.schema.names == ("time", "t", "u", "other")
    assert out.rows[0] == (1, 2, 3, 3)


def test_what_may_not_be_compared_is_said() -> None:
    for sql in (
        "SELECT count(*) [RANGE 1, SLIDE 1, WA t] FROM s GROUP BY m",
        "SELECT DISTINCT m FROM s",
        "SELECT m FROM s UNION SELECT m FROM s",
        "SELECT count(DISTINCT m) [RANGE 1, SLIDE 1, WA t] FROM s",
        "SELECT max(m) [RANGE 1, SLIDE 1, WA t] FROM s",
        "SELECT t FROM s WHERE m IN (m)",
        "SELECT array_distinct(array(m)) AS x FROM s",
    ):
        with pytest.raises(QueryError, match=r"(.|\n)*map<string,int>"):
            bind(sql, catalog())


def test_nan_and_zeros_inside_are_one_value_as_keys() -> None:
    schema = schema_of([("t", "bigint"), ("x", "array<double>")], "t")
    rows = [(0, (math.nan, -0.0)), (0, (float("nan"), 0.0)), (0, (None,)), (0, (None,)), (0, None), (0, ())]
    own = catalog(schema)
    plan = bind("SELECT x, count(*) AS n [RANGE 1, SLIDE 1, WA t] FROM s GROUP BY x", own)
    for batch in (Batch(schema, rows), Batch(schema, table=Batch(schema, rows).table)):
        run = LocalExecution(plan, own)
        outs = [*run.feed("s", batch), *run.close()]
        found = [row for out in outs if isinstance(out, Batch) for row in out.rows]
        assert sorted(row[-1] for row in found) == [1, 1, 2, 2]
    assert sorted(p[-1] for p, _, _ in evaluate(plan, [("s", row) for row in rows])) == [1, 1, 2, 2]
