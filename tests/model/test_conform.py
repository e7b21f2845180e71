"""Input is brought into its schema; what does not fit is a dead letter. Rows and tables are judged alike."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch
from penstock.model.conform import conform_rows, conform_table
from penstock.model.schema import schema_of

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TICKS = 1767268800_000000

COLUMNS: list[tuple[pa.DataType, list[object]]] = [
    (pa.int64(), [0, 5, -129, 70_000, 2**40, 2**53 + 1, None]),
    (pa.int8(), [0, 5, -128, None]),
    (pa.float64(), [0.0, 3.0, 2.5, -1e300, float("inf"), None]),
    (pa.float32(), [0.5, 3.0, None]),
    (pa.bool_(), [True, False, None]),
    (pa.binary(), [b"5", b"", None]),
    (pa.date32(), [dt.date(2026, 1, 1), None]),
    (pa.timestamp("us", "UTC"), [NOON, NOON - dt.timedelta(days=30_000), None]),
    (pa.timestamp("us"), [NOON.replace(tzinfo=None), None]),
    (pa.timestamp("us", "America/New_York"), [NOON, None]),
    (pa.decimal128(10, 4), [Decimal("1.5000"), Decimal("1.2345"), Decimal("99999.0000"), None]),
    (pa.decimal128(38, 0), [Decimal("9" * 38), Decimal(7), None]),
]
TYPES = [
    "tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "binary", "date", "timestamp",
    "decimal(5,2)", "decimal(38,4)", "decimal(38,38)",
]  # fmt: skip


@given(
    st.sampled_from(COLUMNS).flatmap(lambda c: st.tuples(st.just(c[0]), st.lists(st.sampled_from(c[1]), max_size=6))),
    st.sampled_from(TYPES),
)
def test_rows_and_tables_are_judged_alike(column: tuple[pa.DataType, list[object]], type_: str) -> None:
    arrow, values = column
    schema = schema_of([("t", "bigint"), ("x", type_)], "t")
    table = pa.table({"t": pa.array(range(len(values)), pa.int64()), "x": pa.array(values, arrow)})
    by_rows, dead_rows = conform_rows(schema, table.to_pylist())
    by_table, dead_table = conform_table(schema, table)
    assert list(by_table.rows) == list(by_rows.rows)
    assert [d.row for d in dead_table] == [d.row for d in dead_rows]
    assert [d.reason for d in dead_table] == [d.reason for d in dead_rows]
    assert len(by_rows) + len(dead_rows) == len(values)
    # and the rows have an Arrow form
    assert Batch(schema, by_rows.rows).table.num_rows == len(by_rows)


def test_a_row_without_a_time_is_a_dead_letter() -> None:
    schema = schema_of([("ts", "timestamp"), ("k", "string")], "ts")
    rows: list[dict[str, object]] = [
        {"ts": NOON, "k": "a"},
        {"ts": None, "k": "b"},
        {"k": "c"},
        {"ts": "noon", "k": "d"},
        {"ts": 5, "k": "e"},
        {"ts": "2026-01-01T12:00:00", "k": "f"},
        {"ts": "2026-01-01 13:00:00+01:00", "k": "g"},
    ]
    batch, dead = conform_rows(schema, rows)
    assert list(batch.rows) == [(TICKS, "a"), (TICKS, "f"), (TICKS, "g")]
    assert [d.reason for d in dead] == [
        "ts is null",
        "ts is null",
        "ts is not a timestamp: 'noon'",
        "ts is not a timestamp: 5",
    ]
    assert json.loads(dead[0].row) == {"ts": None, "k": "b"}


def test_text_columns_are_read_into_their_types() -> None:
    schema = schema_of([("t", "int"), ("f", "double"), ("b", "boolean"), ("d", "date"), ("c", "decimal(5,2)")], "t")
    table = pa.table(
        {
            "t": ["1", " 2", "x", None, "9999999999"],
            "f": ["1.5", "nan", "1", "1", "1"],
            "b": ["true", "False", "true", "true", "true"],
            "d": ["2026-01-01"] * 5,
            "c": ["1.25", "3", "1", "1", "1"],
        }
    )
    batch, dead = conform_table(schema, table)
    assert batch.rows[0] == (1, 1.5, True, dt.date(2026, 1, 1), Decimal("1.25"))
    assert batch.rows[1][2:] == (False, dt.date(2026, 1, 1), Decimal("3.00"))
    assert [d.reason for d in dead] == ["t is not a int: 'x'", "t is null", "t is not a int: '9999999999'"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit_are_microseconds(unit: str) -> None:
    schema = schema_of([("ts", "timestamp")], "ts")
    batch, dead = conform_table(schema, pa.table({"ts": pa.array([NOON], pa.timestamp(unit, "UTC"))}))
    assert (list(batch.rows), dead) == ([(TICKS,)], [])


def test_a_dictionary_column_is_its_values() -> None:
    schema = schema_of([("t", "bigint"), ("k", "string")], "t")
    table = pa.table({"t": [1, 2], "k": pa.array(["a", None]).dictionary_encode()})
    assert list(conform_table(schema, table)[0].rows) == [(1, "a"), (2, None)]
