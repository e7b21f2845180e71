"""Users' functions and aggregates see UTC datetimes, and what they give is checked."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import EvaluationError

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
ROWS = [{"ts": NOON + dt.timedelta(minutes=m), "k": "a" if m else None} for m in (0, 1, 5)]


class Latest:
    """The greatest datetime, by comparing datetimes."""

    def lift(self, value: dt.datetime) -> dt.datetime:
        assert value.tzinfo is dt.UTC
        return value

    def combine(self, left: dt.datetime, right: dt.datetime) -> dt.datetime:
        return max(left, right)

    def lower(self, partial: dt.datetime) -> dt.datetime:
        return partial + dt.timedelta(seconds=1)


def flow(source: object = ROWS) -> pk.Flow:
    made = pk.Flow().stream("s", source, time="ts")
    made.function("hour_of", lambda t: None if t is None else f"{t:%H:%M} {t.tzname()}", "string")
    made.function("later", lambda t: t + dt.timedelta(hours=1), "timestamp")
    made.function("naive", lambda t: t.replace(tzinfo=None), "timestamp")
    made.function("wrong", lambda t: "text", "bigint")
    made.aggregate("latest", Latest, "timestamp")
    return made


@pytest.mark.parametrize("source", [ROWS, pa.Table.from_pylist(ROWS)], ids=["rows", "arrow"])
def test_functions_see_datetimes(source: object) -> None:
    result = flow(source).query("SELECT hour_of(ts) AS h, later(ts) AS l, naive(ts) AS n FROM s").collect()
    assert result["h"].to_pylist() == ["12:00 UTC", "12:01 UTC", "12:05 UTC"]
    assert result["l"].to_pylist()[0] == NOON + dt.timedelta(hours=1)
    assert result["n"].to_pylist()[0] == NOON


def test_functions_see_null_as_none() -> None:
    result = flow().query("SELECT hour_of(CASE WHEN k = 'a' THEN ts END) AS h FROM s").collect()
    assert result["h"].to_pylist() == [None, "12:01 UTC", "12:05 UTC"]


def test_aggregates_see_and_give_datetimes() -> None:
    result = flow().query("SELECT latest(ts) AS l [RANGE 4 minutes, SLIDE 2 minutes, WA ts] FROM s").collect()
    assert result["l"].to_pylist() == [
        NOON + dt.timedelta(minutes=m, seconds=1) for m in (1, 1, 5, 5)
    ]  # windows that end at 2, 4, 6, 8 minutes past noon


def test_a_wrong_result_names_the_function() -> None:
    with pytest.raises(EvaluationError) as caught:
        flow().query("SELECT wrong(ts) AS w FROM s").collect()
    for part in ("does not fit its declared type", "wrong", "'text' where bigint was declared", "returns="):
        assert part in caught.value.message
