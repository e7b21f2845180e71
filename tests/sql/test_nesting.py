"""Long and deep queries work, or are refused with a place; so are numbers that no type holds."""

from __future__ import annotations

import sys
import threading

import pytest

from penstock.engines.local.execution import LocalExecution
from penstock.errors import PenstockError, QueryError
from penstock.model.batch import Batch
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.reference import evaluate
from penstock.sql.binder import bind

SCHEMA = schema_of([("t", "bigint"), ("k", "string"), ("v", "int"), ("b", "boolean")], "t")
ROW = (1, "a", 7, True)


def catalog() -> Catalog:
    result = Catalog()
    result.add_stream(StreamInfo("s", SCHEMA, ordered(), StreamProperties()))
    return result


def results(sql: str) -> list[list[tuple[object, ...]]]:
    """The rows by pushing one, by a batch of rows, by columns, and by the oracle."""
    own = catalog()
    plan = bind(sql, own)
    visible = len(plan.schema.visible)
    found: list[list[tuple[object, ...]]] = []
    execution = LocalExecution(plan, own)
    execution.pusher("s")(ROW)
    pushed = execution.take()
    rows = Batch(SCHEMA, [ROW])
    fed = [LocalExecution(plan, own).feed("s", b) for b in (rows, Batch(SCHEMA, table=rows.table))]
    for outputs in (pushed, *fed):
        found.append([row[:visible] for out in outputs if isinstance(out, Batch) for row in out.rows])
    found.append([payload[:visible] for payload, _, _ in evaluate(plan, [("s", ROW)])])
    return found


def nested(before: str, middle: str, after: str, times: int) -> str:
    return before * times + middle + after * times


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (" OR ".join(f"v = {i}" for i in range(99, 198)), False),
        (" OR ".join(f"v = {i}" for i in range(600)), True),
        (" AND ".join(["b"] * 300), True),
        (" OR ".join(f"v = {i} AND b" for i in range(120)), True),
        (nested("(", "v", ")", 49) + " = 7", True),
        (nested("(", "v", ")", 63), 7),
        (nested("NOT ", "b", "", 34), True),
        (nested("NOT ", "b", "", 63), False),
        (nested("coalesce(", "v", ", 1)", 43), 7),
        (nested("CASE WHEN b THEN ", "v", " END", 40), 7),
        (nested("if(b, ", "v", ", 0)", 60), 7),
        (" + ".join(["v"] * 60), 420),
        (" || ".join(["k"] * 500), "a" * 500),
        (nested("concat(", "k", ", 'b')", 50), "a" + "b" * 50),
        (nested("abs(-", "v", ")", 30), 7),
        (f"v IN ({', '.join(map(str, range(1_500)))})", True),
        (f"v IN ({', '.join(map(str, range(8, 1_500)))}, NULL)", None),
        (f"coalesce({', '.join(['NULL'] * 900)}, v)", 7),
        ("CASE " + " ".join(f"WHEN v = {i} THEN {i}" for i in range(250)) + " END", 7),
    ],
    ids=lambda value: str(value)[:30],
)
def test_long_and_deep_expressions_have_their_value(expression: str, expected: object) -> None:
    for rows in results(f"SELECT {expression} AS x FROM s"):
        assert rows == [(expected,)]
    if isinstance(expected, bool):
        for rows in results(f"SELECT t FROM s WHERE {expression}"):
            assert rows == ([(1,)] if expected else [])


def test_selections_on_selections() -> None:
    for rows in results(nested("SELECT * FROM (", "SELECT t, v FROM s", ") WHERE v > 1", 30)):
        assert rows == [(1, 7)]
    unions = " UNION ".join(["SELECT k FROM s"] * 100)
    assert all(rows == [("a",)] for rows in results(unions))


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        (f"SELECT {nested('(', 'v', ')', 65)} FROM s", "nested too deeply"),
        (f"SELECT {nested('NOT ', 'b', '', 2000)} FROM s", "nested too deeply"),
        (f"SELECT {nested('coalesce(', 'v', ', 1)', 2000)} FROM s", "nested too deeply"),
        (f"SELECT {nested('- ', 'v', '', 2000)} FROM s", "nested too deeply"),
        (f"SELECT {nested('CASE WHEN b THEN ', 'v', ' END', 100)} FROM s", "nested too deeply"),
        (nested("SELECT * FROM (", "SELECT t, v FROM s", ") WHERE v > 1", 100), "nested too deeply"),
        (f"SELECT {' + '.join(['v'] * 200)} FROM s", "too large"),
        (f"SELECT {nested('(', 'v', ' BETWEEN 0 AND 1) = (b', 60)} FROM s", ""),
        (f"SELECT {nested('nullif(', 'v', ', 1)', 40)} FROM s", "too large"),
        (
            "WITH " + ", ".join(f"c{i + 1} AS (SELECT * FROM c{i} WHERE v > {i})" for i in range(99))
            + " SELECT * FROM c99", "Unknown stream",
        ),
        (
            "WITH c0 AS (SELECT * FROM s), "
            + ", ".join(f"c{i + 1} AS (SELECT * FROM c{i} WHERE v > {i})" for i in range(99)) + " SELECT * FROM c99",
            "too many steps",
        ),
        (
            "WITH c0 AS (SELECT * FROM s), "
            + ", ".join(f"c{i + 1} AS (SELECT * FROM c{i} UNION ALL SELECT * FROM c{i})" for i in range(40))
            + " SELECT * FROM c40",
            "too many steps",
        ),
        (f"SELECT CAST(v AS {nested('array<', 'int', '>', 3000)}) FROM s", ""),
        ("SELECT " + "9" * 39 + " FROM s", "Not a number that a type can hold"),
        ("SELECT " + "9" * 4301 + " FROM s", "Not a number that a type can hold"),
        ("SELECT 0." + "9" * 39 + " FROM s", "Not a number that a type can hold"),
        ("SELECT 1e400 FROM s", "Not a number that a type can hold"),
        ("SELECT 5e FROM s", "Not a number that a type can hold"),
        ("SELECT count(*) [RANGE 1, SLIDE 1, WA t] FROM s GROUP BY 1e400", "Not a number that a type can hold"),
        ("SELECT count(*) [RANGE 1e400, SLIDE 1, WA t] FROM s", ""),
        ("SELECT count(*) [RANGE " + "9" * 5000 + ", SLIDE 1, WA t] FROM s", ""),
        ("SELECT count(*) [RANGE 9223372036854775807, SLIDE 1, WA t] FROM s", "RANGE is too long"),
        ("SELECT count(*) [RANGE 1, SLIDE 1, WA t, ORIGIN " + "9" * 5000 + "] FROM s", ""),
        ("SELECT count() [RANGE 1, SLIDE 1, WA t] FROM s", "takes one argument"),
        ("SELECT " + ", ".join(["v"] * 80_000) + " FROM s", "The query is too long"),
        ("-- nothing but a comment", "The query is empty"),
        ("/* nothing */ ;", ""),
        ("SELECT '", "cannot be read"),
        ("SELECT k FROM s WHERE k = 'a\nb\n", "cannot be read"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_is_too_much_is_refused_with_its_place(sql: str, part: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(sql, catalog())
    assert part in caught.value.message
    assert caught.value.line >= 1
    assert caught.value.column >= 1


def test_the_limit_on_recursion_is_left_as_it_was() -> None:
    before = sys.getrecursionlimit()
    bind(f"SELECT {nested('(', 'v', ')', 60)} AS x FROM s", catalog())
    with pytest.raises(PenstockError):
        bind("SELECT", catalog())
    assert sys.getrecursionlimit() == before


def test_a_caller_that_is_deep_itself_is_told() -> None:
    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            bind(f"SELECT {nested('coalesce(', 'v', ', 1)', 60)} AS x FROM s", catalog())

    before = sys.getrecursionlimit()
    deep(800)
    sys.setrecursionlimit(4000)
    try:
        with pytest.raises(QueryError, match="The query"):
            deep(3300)
    finally:
        sys.setrecursionlimit(before)


def test_deep_queries_are_read_in_several_threads() -> None:
    errors: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(5):
                bind(f"SELECT {nested('coalesce(', 'v', ', 1)', 60)} AS x FROM s", catalog())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sys.getrecursionlimit() < 6000
