"""Expressions by columns: CASE, decimals, remainders, parts of text and of time give what rows give, and the oracle."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.expressions import Expression
from penstock.plan.nodes import Project
from penstock.reference import evaluate
from penstock.runtime.column_functions import column_function
from penstock.sql.binder import bind

SCHEMA = schema_of(
    [
        ("t", "bigint"), ("v", "int"), ("n", "bigint"), ("d", "decimal(10,2)"), ("wide", "decimal(38,2)"),
        ("k", "string"), ("at", "timestamp"), ("x", "double"),
    ],
    "t",
)  # fmt: skip
SMALL = [None, 0, 1, -1, 7, -7, 8, 2**31 - 1, -(2**31)]
LARGE = [None, 0, 3, -3, 2**63 - 1, -(2**63), 122, 123, -123]
DECIMALS = [None, "0.00", "1.50", "-1.50", "99999999.99", "-99999999.99", "0.01", "7.00", "-0.01"]
TEXTS = [None, "", "-", "a-b-c", "a--b", "channel-12", "Apple", "b-", "straße-7"]
TIMES = [
    "1970-01-01 00:00:00",
    None,
    "2026-03-29 23:59:59.999999",
    "1969-12-31 12:00",
    "0001-01-01",
    "9999-12-31 23:59",
]
DOUBLES = [None, 0.0, -1.5, 2.5]


def table() -> pa.Table:
    def decimal(at: int) -> Decimal | None:
        text = DECIMALS[at % len(DECIMALS)]
        return None if text is None else Decimal(text)

    def time(at: int) -> dt.datetime | None:
        text = TIMES[at % len(TIMES)]
        return None if text is None else dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)

    rows = [
        {
            "t": at, "v": SMALL[at % 9], "n": LARGE[at // 2 % 9], "d": decimal(at // 3), "wide": decimal(at // 5),
            "k": TEXTS[at // 4 % 9], "at": time(at // 3), "x": DOUBLES[at % 4],
        }
        for at in range(180)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema([(f.name, f.type.arrow) for f in SCHEMA.fields]))


def bound(expression: str) -> tuple[Project, Expression, Catalog]:
    own = Catalog()
    own.add_stream(StreamInfo("s", SCHEMA, ordered(), StreamProperties()))
    plan = bind(f"SELECT t, {expression} AS made FROM s", own)
    assert isinstance(plan, Project)
    return plan, dict(plan.columns)["made"], own


@pytest.mark.parametrize(
    "expression",
    [
        "CASE WHEN v > 0 THEN k WHEN v IS NULL THEN 'none' END",
        "CASE WHEN v > n THEN 1 WHEN k = 'Apple' THEN n ELSE x END",
        "CASE WHEN n > 0 THEN v END",
        "CASE WHEN NULL THEN 1 WHEN 1 = 1 THEN 2 ELSE 3 END",
        "CASE WHEN x < 0 THEN NULL ELSE at END",
        "CASE WHEN d > v THEN k LIKE 'a%' WHEN 0.5 * d < n THEN 1 = 2 ELSE NULL END",
        "0.908 * n",
        "d * 2 + 0.125",
        "d - 5",
        "5 - d * v",
        "d * d",
        "d > 1.5 AND 0.908 * v < d",
        "d = v OR n >= 0.5",
        "d <> 7",
        "v % 123",
        "n % 123 = 0",
        "n % 7 + v % 7",
        "split_part(k, '-', 1)",
        "split_part(k, '-', 2)",
        "split_part(k, '--', 3)",
        "date_format(at, 'HH:mm')",
        "date_format(at, 'yyyy-MM-dd hh a')",
        "date_format(at, 'EEE MMM ss.SSS')",
        "timestamp_millis(v)",
        "timestamp_seconds(v)",
        "timestamp_micros(n)",
    ],
)
def test_columns_give_what_rows_and_the_oracle_give(expression: str) -> None:
    plan, made, own = bound(expression)
    by_column = column_function(made, SCHEMA)
    assert by_column is not None
    assert by_column(table()) is not None  # without going by rows
    rows = Batch(SCHEMA, table=table()).rows
    found: list[Any] = []
    for batch in (Batch(SCHEMA, rows), Batch(SCHEMA, table=table())):
        (out,) = (each for each in LocalExecution(plan, own).feed("s", batch) if isinstance(each, Batch))
        assert out.table.schema.field("made").type == made.type.arrow
        found.append(out.rows)
    assert found[0] == found[1]
    assert sorted(found[0]) == sorted(payload for payload, _, _ in evaluate(plan, [("s", row) for row in rows]))


@pytest.mark.parametrize(
    "expression",
    [
        "wide * d", "wide + 1", "wide > 1e0", "v % n", "v % -7", "n % 0", "split_part(k, '-', -1)", "d / 3",
        "CASE WHEN v <> 0 THEN 7 % v ELSE 0 END", "CASE WHEN v > 0 THEN v + 1 END", "CASE WHEN v > 0 THEN d END",
    ],
)  # fmt: skip
def test_what_may_fail_or_lose_digits_goes_by_rows(expression: str) -> None:
    _, made, _ = bound(expression)
    assert column_function(made, SCHEMA) is None


def test_counts_that_are_no_times_are_told_as_by_rows() -> None:
    plan, _, own = bound("timestamp_millis(n)")
    rows = Batch(SCHEMA, table=table()).rows
    told = []
    for batch in (Batch(SCHEMA, rows), Batch(SCHEMA, table=table())):
        execution = LocalExecution(plan, own)
        list(execution.feed("s", batch))
        told.append(execution.dead_letters().to_pylist())
    assert told[0] == told[1]
    assert len(told[0]) == sum(row[2] in (2**63 - 1, -(2**63)) for row in rows)
