"""Text means the same everywhere: what is read from files is judged by Spark's own CAST."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.model.reading import read_column, read_text
from penstock.model.schema import parse_type
from penstock.model.text import BASE64
from penstock.model.time import FIRST_TIMESTAMP, LAST_TIMESTAMP

pytestmark = pytest.mark.spark

SEEDS = [
    "", " ", "NA", "NULL", "null", "nan", "NaN", "n/a", "-", "+", ".", "7", " 7 ", "\t7\n", "\x7f7", "\u00a07", "+7",
    "-0", "007", "1_000", "1,000", "7.0", "7.", ".5", "1e3", "1E-3", "1e400", "1e-400", "1d", "2F", "0x10", "0x1p3",
    "99999999999999999999", "-9223372036854775808", "9223372036854775808", "2147483648", "127", "128", "٣",
    "16777217.0000001", "16777217", "0.1", "3.4028236e38", "1.005", "99999999.995", "-0.005", "1e30", "123456789012.34",
    "inf", "+Infinity", "-inf", "-NaN", "true", "TRUE", "t", "yes", "no", "N", "0", "1", "on", "2026", "2026-1",
    "2026-1-1", "2026-01-01", "2026-02-30", "2024-02-29", "20260101", "2026-13-01", "0001-01-01", "9999-12-31",
    "2026-01-01T", "2026-01-01 1", "2026-01-01 1:2", "2026-01-01 1:2:3", "2026-01-01T10:11:12.123456",
    "2026-01-01 10:11:12.1234567", "2026-01-01 10:11:12.", "2026-01-01T10:11:12Z", "2026-01-01 10:11Z",
    "2026-01-01 10:11:12+1", "2026-01-01 10:11:12+01", "2026-01-01 10:11:12-0130", "2026-01-01 10:11:12 +01:00",
    "2026-01-01 10:11:12 +1:0", "2026-01-01 10:11:12+18:00", "2026-01-01 10:11:12+18:01", "2026-01-01 10:11:12 UTC",
    "2026-01-01 10:11:12 Europe/Berlin", "2026-03-29 02:30:00 Europe/Berlin", "2026-10-25 02:30:00 Europe/Berlin",
    "1893-04-01 00:03:00 Europe/Berlin", "2026-01-01 10:11:12 PST", "2026-01-01 10:11:12 GMT+2",
    "2026-01-01 10:11:12 UT",
    "2026-01-01 10:11:12 europe/berlin", "2026-01-01 10:11:12 z", "2026-01-01 24:00:00", "2026-01-01 23:59:60",
    "+2026-01-01", "02026-01-01", "01/02/2026", "2026-01-01t10:11:12", "1969-12-31 23:59:59.999999",
    "2060-07-01 12:00:00 America/New_York", "1900-01-01 00:00:00 Africa/Monrovia", "2026-01-01 10:11:12.5+01:30:15",
    "/w==", "YQ", "YQ=", "YR==", "YQ=Q", "A", " Y Q\t=\n=", "ab-_", "====",
]  # fmt: skip
ALPHABET = "0123456789 +-.:eEdfTZtrue/_,aN\t\x00\x7f\u00a0٣"
TYPES = [
    "tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal(10,2)", "decimal(38,18)",
    "decimal(5,5)", "date", "timestamp", "string", "binary",
]  # fmt: skip


def odd_texts(seed: int, count: int) -> list[str]:
    """The seeds, and so many mutations of them: a character dropped, doubled, replaced or put in."""
    rng = random.Random(seed)
    texts = list(SEEDS)
    for _ in range(count):
        text = list(rng.choice(SEEDS))
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(0, len(text))
            text[at : at + rng.randint(0, 1)] = rng.choice(["", rng.choice(ALPHABET)])
        texts.append("".join(text))
    return texts


def comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1, value))
    return value.as_tuple() if isinstance(value, Decimal) else value


def judged(spark: SparkSession, texts: list[str], type_: str) -> list[Any]:
    """What Spark's CAST makes of each text; bytes are base64, as in its JSON."""
    frame = spark.createDataFrame([(i, t) for i, t in enumerate(texts)], "i int, t string")
    cast = f"try_cast(t AS {type_})"
    if type_ == "binary":
        cast = rf"CASE WHEN t RLIKE r'\A{BASE64}\z' THEN unbase64(t) END"
    shown = f"unix_micros({cast})" if type_ == "timestamp" else f"unix_date({cast})" if type_ == "date" else cast
    rows = frame.selectExpr("i", f"{shown} AS v").orderBy("i").collect()
    return [bytes(r.v) if isinstance(r.v, bytearray) else r.v for r in rows]


def expected(text: str, value: Any, type_: str) -> Any:
    """Spark's answer, where ours is the same by design."""
    if type_ == "timestamp" and value is not None:
        only_time = text.strip().startswith("T") or ":" in text.strip()[:3]
        return None if only_time or not FIRST_TIMESTAMP <= value <= LAST_TIMESTAMP else value
    if type_ == "date" and value is not None:
        try:
            return dt.date(1970, 1, 1) + dt.timedelta(days=value)
        except OverflowError:
            return None
    return value


@pytest.mark.parametrize("type_", TYPES)
def test_text_is_read_as_spark_casts_it(spark: SparkSession, type_: str) -> None:
    texts = odd_texts(TYPES.index(type_), 1500)
    sql = parse_type(type_)
    wrong = [
        (text, ours, theirs)
        for text, judge in zip(texts, judged(spark, texts, type_), strict=True)
        if comparable(ours := read_text(text, sql)) != comparable(theirs := expected(text, judge, type_))
    ]
    assert wrong == []


@pytest.mark.parametrize("type_", TYPES)
def test_a_column_is_read_as_its_values_are(type_: str) -> None:
    sql = parse_type(type_)
    for seed in range(40):
        rng = random.Random(seed)
        texts: list[str | None] = [rng.choice(SEEDS) for _ in range(rng.randint(0, 3))] + [None]
        plain = {"date": "2026-01-02", "timestamp": "2026-01-02 03:04:05.678", "boolean": "true"}.get(type_, "12")
        column = read_column(pa.chunked_array([pa.array([*texts, plain], pa.string())]), sql)
        got = column.cast(pa.int64()).to_pylist() if type_ == "timestamp" else column.to_pylist()
        want = [None if t is None else read_text(t, sql) for t in [*texts, plain]]
        assert list(map(comparable, got)) == list(map(comparable, want)), texts
