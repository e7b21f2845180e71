"""Text as numbers, times and bytes: every expected value and every refusal was read off Spark 4.3 under ANSI rules."""

from __future__ import annotations

import datetime as dt
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.text import (
    civil_of,
    days_of,
    read_bytes,
    read_double,
    read_timestamp,
    read_whole,
    write_bytes,
    write_timestamp,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(" 7 ", 7), ("\t7\n", 7), ("+7", 7), ("-7", -7), ("007", 7), ("\x01 7", 7), ("\x7f7", 7),
     ("-9223372036854775808", -(2**63))],
)  # fmt: skip
def test_whole_numbers(text: str, expected: int) -> None:
    assert read_whole(text) == expected


@pytest.mark.parametrize("text", ["", "-", ".", "7.", "7.0", "1e3", "1d", "1L", "1_000", "٣", "\u00a07", "\u20037"])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError):
        read_whole(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1d", 1.0), ("1F", 1.0), ("0x1p3", 8.0), ("0x1.8p1d", 3.0), ("inf", math.inf), ("+inf", math.inf),
     ("-Infinity", -math.inf), (" inf ", math.inf), ("1e400", math.inf), ("-1e400", -math.inf), ("1e-400", 0.0),
     (".5", 0.5), ("5.", 5.0), ("+.5e1", 5.0), ("\x01 7", 7.0)],
)  # fmt: skip
def test_floating_point(text: str, expected: float) -> None:
    assert read_double(text) == expected


@pytest.mark.parametrize("text", ["nan", "NaN", " NaN "])
def test_not_a_number_is_a_number(text: str) -> None:
    assert math.isnan(read_double(text))


@pytest.mark.parametrize("text", ["", "1e", ".", "1_000", "-nan", "+nan", "٣", "\u00a07", "\x7f7", "0x10", "1dd"])
def test_what_is_no_floating_point_number(text: str) -> None:
    with pytest.raises(ValueError):
        read_double(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-1-1", "2026-01-01 00:00:00"),
        ("2026", "2026-01-01 00:00:00"),
        ("2026-1", "2026-01-01 00:00:00"),
        ("2026-01-01 1:2:3", "2026-01-01 01:02:03"),
        ("2026-01-01T1:2", "2026-01-01 01:02:00"),
        ("2026-01-01 10", "2026-01-01 10:00:00"),
        ("2026-01-01 ", "2026-01-01 00:00:00"),
        ("2026-01-01 10:00:00.123456789", "2026-01-01 10:00:00.123456"),
        ("2026-01-01 10:00:00.1", "2026-01-01 10:00:00.1"),
        ("2026-01-01 10:00:00.", "2026-01-01 10:00:00"),
        ("2026-01-01 10:00:00Z", "2026-01-01 10:00:00"),
        ("2026-01-01 10:00:00+1", "2026-01-01 09:00:00"),
        ("2026-01-01 10:00:00+0130", "2026-01-01 08:30:00"),
        ("2026-01-01 10:00:00 +01:00", "2026-01-01 09:00:00"),
        ("2026-01-01 10:00:00+01:30:15", "2026-01-01 08:29:45"),
        ("2026-01-01 10:00:00+18:00", "2025-12-31 16:00:00"),
        ("2026-01-01 10:00:00-1:5", "2026-01-01 11:05:00"),
        ("2026-01-01 10:00:00 UTC+2", "2026-01-01 08:00:00"),
        ("2026-01-01 10:00:00 GMT-03:00", "2026-01-01 13:00:00"),
        ("2026-01-01 10:00:00 UT", "2026-01-01 10:00:00"),
        ("2026-01-01 10:00:00 GMT0", "2026-01-01 10:00:00"),
        ("2026-01-01 10:00:00Europe/Berlin", "2026-01-01 09:00:00"),
        ("2026-01-01 10:00:00 PST", "2026-01-01 18:00:00"),
        ("2026-01-01 10:00:00 EST", "2026-01-01 15:00:00"),
        ("2026-03-29 02:30:00 Europe/Berlin", "2026-03-29 01:30:00"),  # skipped by the clocks
        ("2026-10-25 02:30:00 Europe/Berlin", "2026-10-25 00:30:00"),  # shown twice by the clocks
        ("1800-01-01 00:00:00 Europe/Berlin", "1799-12-31 23:06:32"),
        ("12026-01-01", "+12026-01-01 00:00:00"),
        ("-0001-01-01", "-0001-01-01 00:00:00"),
        ("0000-01-01", "0000-01-01 00:00:00"),
        ("294247-01-10 04:00:54.775807", "+294247-01-10 04:00:54.775807"),
    ],
)
def test_times(text: str, expected: str) -> None:
    assert write_timestamp(read_timestamp(text)) == expected


@pytest.mark.parametrize(
    "text",
    ["", "now", "epoch", "2026-01-01T", "2026-01-01T10:00Z", "2026-01-01Z", "2026-01-01 Z", "2026-1-1  10:00:00",
     "20260101", "20260101T000000", "26-01-01", "226-01-01", "1234567-01-01", "294248-01-01", "2026-02-29",
     "2026-13-01", "2026-01-01 24:00:00", "2026-01-01 23:60:00", "2026-01-01 23:59:60", "2026-W01-1", "2026-001",
     "2026-01-0١", "2026-01-01 10:00:00[Europe/Berlin]", "2026-01-01 10:00:00+01:00[Europe/Berlin]",
     "2026-01-01 10:00:00+130", "2026-01-01 10:00:00+19:00", "2026-01-01 10:00:00z", "2026-01-01 10:00:00 utc",
     "2026-01-01 10:00:00 europe/berlin", "2026-01-01 10:00:00 Europe", "2026-01-01 10:00:00,5"],
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError):
        read_timestamp(text)


@pytest.mark.parametrize("text", ["10:00:00", "T10:00", "10:00"])
def test_a_time_of_day_is_no_time(text: str) -> None:
    # Spark takes today's date, so that the same query has another answer tomorrow.
    with pytest.raises(ValueError):
        read_timestamp(text)


@given(st.integers(dt.date.min.toordinal(), dt.date.max.toordinal()))
def test_the_calendar_is_pythons_where_python_has_one(ordinal: int) -> None:
    day = dt.date.fromordinal(ordinal)
    number = (day - dt.date(1970, 1, 1)).days
    assert days_of(day.year, day.month, day.day) == number
    assert civil_of(number) == (day.year, day.month, day.day)


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_is_read_again(ticks: int) -> None:
    written = write_timestamp(ticks)
    assert read_timestamp(written) == ticks


@given(st.binary())
def test_bytes_are_read_as_they_were_written(value: bytes) -> None:
    assert read_bytes(write_bytes(value)) == value


@pytest.mark.parametrize("text", ["A", "YQ", "YQ=", "YQ=Q", "ab-_", "====", "\\xff", "é", "YQ===", " YQ==", "YQ==\n"])
def test_what_is_no_base64_is_no_value(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        read_bytes(text)
