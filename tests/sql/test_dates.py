"""Dates: literals, beside text, and their parts, by rows and by columns, as Python's calendar has them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import QueryError

DAYS = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31), None]
CASES: list[tuple[str, Any]] = [
    ("DATE '1980-01-01'", lambda d: dt.date(1980, 1, 1)),
    ("CAST('2024-2-29' AS DATE)", lambda d: dt.date(2024, 2, 29)),
    ("year(d)", lambda d: d and d.year),
    ("month(d)", lambda d: d and d.month),
    ("day(d)", lambda d: d and d.day),
    ("hour(d)", lambda d: d and 0),
    ("d = DATE '2024-02-29'", lambda d: d and d == dt.date(2024, 2, 29)),
    ("d > '1969-12-31'", lambda d: d and d > dt.date(1969, 12, 31)),
    ("'1970-01-01' >= d", lambda d: d and dt.date(1970, 1, 1) >= d),
    ("d BETWEEN '1969-12-31' AND '1970-01-01'", lambda d: d and dt.date(1969, 12, 31) <= d <= dt.date(1970, 1, 1)),
    ("d IN ('2024-02-29', DATE '0001-01-01')", lambda d: d and d in (dt.date(2024, 2, 29), dt.date(1, 1, 1))),
    ("d = TIMESTAMP '1970-01-01 00:00:00'", lambda d: d and d == dt.date(1970, 1, 1)),
    ("date_trunc('day', d)", lambda d: d and dt.datetime(d.year, d.month, d.day, tzinfo=dt.UTC)),
    ("coalesce(d, DATE '2000-01-01')", lambda d: d or dt.date(2000, 1, 1)),
]


@pytest.mark.parametrize(("expression", "expected"), CASES, ids=[c[0] for c in CASES])
@pytest.mark.parametrize("columnar", [False, True])
def test_dates(expression: str, expected: Any, columnar: bool) -> None:
    repeated = DAYS * 20  # enough for a batch by columns
    table = pa.table({"t": list(range(len(repeated))), "d": pa.array(repeated, pa.date32())})
    source = table if columnar else table.to_pylist()
    query: Any = pk.Flow().stream("s", source, time="t").query(f"SELECT t, {expression} AS x FROM s")
    assert query.collect()["x"].to_pylist() == [expected(d) for d in repeated]


@pytest.mark.parametrize("text", ["'soon'", "'2026-02-30'", "'10000-01-01'"])
def test_text_that_is_no_date_is_refused_with_its_place(text: str) -> None:
    flow = pk.Flow().stream("s", [{"t": 1, "d": dt.date(2026, 1, 1)}], time="t")
    for sql in (f"SELECT DATE {text} AS x FROM s", f"SELECT t FROM s WHERE d > {text}"):
        with pytest.raises(QueryError, match="Not a date") as refused:
            flow.query(sql)
        assert (refused.value.line, text in refused.value.got) == (1, True)
