"""Users' functions and aggregates see UTC datetimes, and what they give is checked."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk

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


class Odd:
    """Cannot even show itself."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def _raise(t: dt.datetime) -> int:
    raise ValueError("not this one")


def _exit(t: dt.datetime) -> int:
    raise SystemExit(3)


def _give_up(t: dt.datetime) -> int:
    raise GeneratorExit


def flow(source: object = ROWS) -> pk.Flow:
    made = pk.Flow().stream("s", source, time="ts")
    made.function("hour_of", lambda t: None if t is None else f"{t:%H:%M} {t.tzname()}", "string")
    made.function("later", lambda t: t + dt.timedelta(hours=1), "timestamp")
    made.function("naive", lambda t: t.replace(tzinfo=None), "timestamp")
    made.function("wrong", lambda t: "text", "bigint")
    made.function("raising", _raise, "bigint")
    made.function("exhausted", lambda t: next(iter(())), "bigint")
    made.function("exiting", _exit, "bigint")
    made.function("giving_up", _give_up, "bigint")
    made.function("huge", lambda t: 2**63, "bigint")
    made.function("torn", lambda t: "\ud800", "string")
    made.function("odd", lambda t: Odd(), "bigint")
    made.function("several", lambda t: np.array([1, 2]), "bigint")
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


@pytest.mark.parametrize("source", [ROWS, pa.Table.from_pylist(ROWS)], ids=["rows", "arrow"])
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("wrong", "does not fit its declared type (wrong): 'text' where bigint was declared"),
        ("raising", "A user function raised (raising): ValueError: not this one"),
        ("exhausted", "A user function raised (exhausted): StopIteration:"),
        ("exiting", "A user function raised (exiting): SystemExit: 3"),
        ("giving_up", "A user function raised (giving_up): GeneratorExit:"),
        ("huge", "does not fit its declared type (huge)"),
        ("torn", "does not fit its declared type (torn)"),
        ("odd", "does not fit its declared type (odd): a Odd where bigint was declared"),
        ("several", "does not fit its declared type (several)"),
    ],
)
def test_a_function_that_fails_costs_the_row_and_is_named(source: object, name: str, part: str) -> None:
    query = flow(source).query(f"SELECT CASE WHEN k = 'a' THEN 'fine' ELSE CAST({name}(ts) AS STRING) END AS w FROM s")
    assert query.collect()["w"].to_pylist() == ["fine", "fine"]
    (letter,) = query.dead_letters.to_pylist()
    assert part in letter["reason"]
    assert letter["operator"] == query.plan.label
    assert '"k": null' in letter["row"]
    assert query.counts["on_time"] == 3
    assert query.counts["failed"] == 1


def test_the_keyboards_interrupt_goes_through() -> None:
    def interrupted(t: dt.datetime) -> int:
        raise KeyboardInterrupt

    query = (
        pk.Flow().stream("s", ROWS, time="ts").function("f", interrupted, "bigint").query("SELECT f(ts) AS x FROM s")
    )
    with pytest.raises(KeyboardInterrupt):
        query.collect()


class Touchy(Latest):
    """Refuses a minute."""

    def __init__(self, where: str, error: type[BaseException] = ValueError) -> None:
        self.where, self.error = where, error

    def _refuse(self, where: str, value: dt.datetime) -> dt.datetime:
        if where == self.where and value.minute == 1:
            raise self.error("not that minute")
        return value

    def lift(self, value: dt.datetime) -> dt.datetime:
        return self._refuse("lift", value)

    def combine(self, left: dt.datetime, right: dt.datetime) -> dt.datetime:
        return self._refuse("combine", max(left, right))

    def lower(self, partial: dt.datetime) -> dt.datetime:
        return self._refuse("lower", partial)


@pytest.mark.parametrize("error", [ValueError, SystemExit])
@pytest.mark.parametrize("where", ["lift", "combine", "lower"])
def test_an_aggregate_that_fails_costs_the_groups_window(where: str, error: type[BaseException]) -> None:
    made = flow()
    made.aggregate("touchy", Touchy(where, error), "timestamp")
    query = made.query("SELECT touchy(ts) AS l [RANGE 4 minutes, SLIDE 2 minutes, WA ts] FROM s")
    got = query.collect()
    # windows that end at 2, 4, 6, 8 minutes past noon; the first two hold the minute that is refused
    assert got["window_end"].to_pylist() == [NOON + dt.timedelta(minutes=m) for m in (6, 8)]
    letters = query.dead_letters.to_pylist()
    assert [letter["reason"] for letter in letters] == [
        f"A user function raised (touchy): {error.__name__}: not that minute"
    ] * 2
    assert [json.loads(letter["row"])["window_end"] for letter in letters] == [
        (NOON + dt.timedelta(minutes=m)).isoformat() for m in (2, 4)
    ]


def test_a_value_beyond_single_precision_is_a_dead_letter() -> None:
    rows = [{"t": t} for t in range(4)]
    given = [1.5, 1e300, float("inf"), -1e39]
    flow = pk.Flow().stream("s", rows, time="t").function("f", lambda t: given[t], "float")
    query: Any = flow.query("SELECT t, f(t) AS x FROM s")
    assert [tuple(r.values()) for r in query.collect().to_pylist()] == [(0, 1.5), (2, float("inf"))]
    reasons = query.dead_letters["reason"].to_pylist()
    assert len(reasons) == 2
    assert all("does not fit its declared type (f)" in r for r in reasons), reasons


def test_an_error_that_cannot_say_itself_still_names_the_function() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    def mute(t: int) -> int:
        raise Mute

    query: Any = pk.Flow().stream("s", [{"t": 1}], time="t").function("f", mute, "int").query("SELECT f(t) AS x FROM s")
    assert query.collect().num_rows == 0
    assert query.dead_letters["reason"].to_pylist() == [
        "A user function raised (f): Mute: its text cannot be made (RuntimeError)"
    ]
