"""Scalar functions on single values: every expected value was read off Spark 4 under ANSI rules."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.reading import read_text
from penstock.model.schema import FLOAT, schema_of
from penstock.model.text import read_timestamp
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.reference import evaluate, outcome
from penstock.sql.binder import bind

SCHEMA = schema_of(
    [
        ("t", "bigint"),
        ("nan", "double"),
        ("inf", "double"),
        ("low", "double"),
        ("big", "bigint"),
        ("wide", "decimal(38,0)"),
        ("tiny", "decimal(20,10)"),
        ("at", "timestamp"),
        ("word", "string"),
        ("near", "bigint"),
    ],
    "t",
)
WIDE = Decimal("12345678901234567890123456789012345678")
ROW = (
    1,
    math.nan,
    math.inf,
    -math.inf,
    2**63 - 1,
    WIDE,
    Decimal("0E-10"),
    read_timestamp("0099-01-01 10:00:00.000001"),
    "straße",
    2**53 + 1,
)


def catalog() -> Catalog:
    result = Catalog()
    result.add_stream(StreamInfo("s", SCHEMA, ordered(), StreamProperties()))
    return result


def values(expression: str) -> list[object]:
    """The value by rows, by columns, and by the oracle."""
    own = catalog()
    plan = bind(f"SELECT {expression} AS x FROM s", own)
    rows = Batch(SCHEMA, [ROW])
    found: list[object] = []
    for batch in (rows, Batch(SCHEMA, table=rows.table)):
        (out,) = (x for x in LocalExecution(plan, own).feed("s", batch) if isinstance(x, Batch))
        found.append(out.rows[0][0])
    ((payload, _, _),) = evaluate(plan, [("s", ROW)])
    return [*found, payload[0]]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("substring('abc', -5)", "abc"),
        ("substring('abc', -5, 3)", "a"),
        ("substring('abc', -5, 2)", ""),
        ("substring('abc', 0, 2)", "ab"),
        ("substring('abc', 2, -1)", ""),
        ("substring('abc', 2)", "bc"),
        ("floor(nan)", 0),
        ("ceil(nan)", 0),
        ("floor(-1.5e0)", -2),
        ("inf % 3e0", math.nan),
        ("3e0 % inf", 3.0),
        ("nan % 3e0", math.nan),
        ("-3.5e0 % 2e0", -1.5),
        ("-7 % 3", -1),
        ("sqrt(-1e0)", math.nan),
        ("CAST(nan AS DECIMAL(10,2))", None),
        ("CAST(inf AS DECIMAL(10,2))", None),
        ("CAST(at AS STRING)", "0099-01-01 10:00:00.000001"),
        ("CAST(tiny AS STRING)", "0.0000000000"),
        ("CAST(wide AS STRING)", str(WIDE)),
        ("CAST(' 12 ' AS INT)", 12),
        ("CAST('+5' AS INT)", 5),
        ("CAST('inf' AS DOUBLE)", math.inf),
        ("CAST('1e3' AS DOUBLE)", 1000.0),
        ("-wide", WIDE.copy_negate()),
        ("abs(-wide)", WIDE),
        ("CAST('1d' AS DOUBLE)", 1.0),
        ("CAST('0x1p3' AS DOUBLE)", 8.0),
        ("CAST(CAST('2026-1-1' AS TIMESTAMP) AS STRING)", "2026-01-01 00:00:00"),
        ("CAST(CAST('2026-1-1 10:0:0 Europe/Berlin' AS TIMESTAMP) AS STRING)", "2026-01-01 09:00:00"),
        ("CAST(CAST(concat(word, '') AS STRING) AS STRING)", "straße"),
        ("year(CAST('12026-01-01' AS TIMESTAMP))", 12026),
        ("CAST(CAST('-0001-01-01' AS TIMESTAMP) AS STRING)", "-0001-01-01 00:00:00"),
        ("'a%b' LIKE 'a\\%b'", True),
        ("'axb' LIKE 'a\\%b'", False),
        ("'a\\\\b' LIKE 'a\\\\\\\\b'", True),
        ("'it''s'", "it's"),
        ('"x""y"', 'x"y'),
        ("'a' 'b'", "ab"),
        ("upper(word)", "STRASSE"),
        ("length(word)", 6),
        ("nan = nan", True),
        ("nan > inf", True),
        ("greatest(nan, 1e0)", math.nan),
        ("least(nan, 1e0)", 1.0),
        ("1 IN (2, NULL)", None),
        ("1.0 / 3", Decimal("0.333333")),
        ("near = 9007199254740992e0", True),
        ("near IN (9007199254740992e0, 1)", True),
        ("concat('a', NULL)", None),
        ("NULL AND 1 = 2", False),
        ("CAST(at AS STRING) LIKE '0099%'", True),
        ("'a\nb' LIKE 'a%b'", True),
        ("99999999999999999999 > big", True),
    ],
)
def test_values_are_sparks(expression: str, expected: object) -> None:
    for value in values(expression):
        if isinstance(expected, float) and math.isnan(expected):
            assert isinstance(value, float)
            assert math.isnan(value)
        else:
            assert value == expected
            assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("floor(inf)", "overflow"),
        ("ceil(low)", "overflow"),
        ("big + 1", "overflow"),
        ("CAST(big AS INT)", "overflow"),
        ("CAST(nan AS INT)", "overflow"),
        ("CAST('12.7' AS INT)", "cannot be cast to int"),
        ("CAST('1_000' AS INT)", "cannot be cast to int"),
        ("CAST('1_000' AS DOUBLE)", "cannot be cast to double"),
        ("CAST('' AS INT)", "cannot be cast to int"),
        ("CAST(word AS TIMESTAMP)", "cannot be cast to timestamp"),
        ("CAST(concat('10:00', '') AS TIMESTAMP)", "cannot be cast to timestamp"),
        ("word LIKE concat('a', '\\\\', 'b')", "LIKE pattern is wrong"),
        ("inf % 0e0", "Division by zero"),
        ("1 / 0", "Division by zero"),
        ("big % 0", "Division by zero"),
        ("wide * 10", "overflow"),
        ("CAST(12345.678 AS DECIMAL(5,2))", "overflow"),
    ],
)
def test_what_has_no_value_is_a_dead_letter_with_the_same_reason_by_rows_by_columns_and_by_the_oracle(
    expression: str, part: str
) -> None:
    own = catalog()
    plan = bind(f"SELECT {expression} AS x FROM s", own)
    (letter,) = outcome(plan, [("s", ROW)]).dead
    assert part in letter.reason
    rows = Batch(SCHEMA, [ROW])
    for batch in (rows, Batch(SCHEMA, table=rows.table)):
        execution = LocalExecution(plan, own)
        assert not [x for x in execution.feed("s", batch) if isinstance(x, Batch)]
        (found,) = execution.dead_letters().to_pylist()
        assert found == {"stream": "s", "operator": plan.label, "reason": letter.reason, "row": letter.row}


@pytest.mark.parametrize("form", [list, pa.Table.from_pylist])
def test_numbers_beyond_single_precision_do_not_depend_on_how_warnings_are_set(form: Callable[[Any], Any]) -> None:
    rows = [{"t": t, "d": d} for t, d in enumerate([1e300, -1e300, 1e-300, 1.5])]
    flow = pk.Flow().stream("s", form(rows), time="t")
    query: Any = flow.query("SELECT CAST(d AS float) AS x, -CAST(d AS float) * CAST(d AS float) AS y FROM s")
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        got = [tuple(row.values()) for row in query.collect().to_pylist()]
    infinite = math.inf
    assert got == [(infinite, -infinite), (-infinite, -infinite), (0.0, -0.0), (1.5, -2.25)]
    assert query.counts["failed"] == 0


def test_text_too_great_or_small_for_single_precision_is_read_however_numpy_is_set() -> None:
    with np.errstate(all="raise"):
        assert [read_text(t, FLOAT) for t in ("1e300", "1e-300", "-1e39")] == [math.inf, 0.0, -math.inf]
