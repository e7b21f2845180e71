"""Dates on Spark are those of the in-process engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from tests.sql.test_dates import CASES, DAYS

pytestmark = pytest.mark.spark


def test_dates(spark: Any) -> None:
    table = pa.table({"t": list(range(len(DAYS))), "d": pa.array(DAYS, pa.date32())})
    items = ", ".join(f"{expression} AS x{i}" for i, (expression, _) in enumerate(CASES))
    query: Any = pk.Flow(spark).stream("s", table, time="t").query(f"SELECT t, {items} FROM s")
    rows = sorted(query.collect().to_pylist(), key=lambda r: r["t"])
    assert [list(r.values())[1:] for r in rows] == [[expected(d) for _, expected in CASES] for d in DAYS]
