"""Keys as people give them: what names a key of each type, to read it and to say its pace, and what names none."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import penstock as pk
from penstock.errors import StreamError

NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
TICKS = 1_769_860_800_000_000
GIVEN: list[tuple[str, Any, list[Any]]] = [
    (
        "timestamp",
        NOON,
        [
            NOON,
            NOON.replace(tzinfo=None),
            NOON.astimezone(dt.timezone(dt.timedelta(hours=2))),
            pd.Timestamp(NOON),
            pd.Timestamp("2026-01-31 12:00"),
            np.datetime64("2026-01-31T12:00"),
            "2026-01-31 12:00:00",
            "2026-01-31T14:00:00+02:00",
            TICKS,
            (NOON,),
        ],
    ),
    ("date", dt.date(2026, 1, 31), [dt.date(2026, 1, 31), "2026-01-31"]),
    ("bigint", 5, [5, np.int64(5)]),
    ("double", float("nan"), [float("nan"), np.nan]),
    ("decimal(5,2)", Decimal("1.50"), [Decimal("1.5"), "1.5"]),
    ("boolean", None, [None, pd.NA, (None,)]),
    ("struct<x: int, y: string>", {"x": 1, "y": "a"}, [{"x": 1, "y": "a"}, (1, "a"), ({"x": 1, "y": "a"},)]),
    ("array<int>", [1, 2], [[1, 2], (1, 2), ([1, 2],), np.array([1, 2])]),
]
NO_KEYS: list[tuple[str, Any, str]] = [
    ("string", 5, "a text"),
    ("string", object(), "a text"),
    ("int", "5", "a number"),
    ("int", 2**40, "a number"),
    ("boolean", 1, "True or False"),
    ("timestamp", "noon", "'2026-01-31 12:30:00'"),
    ("date", NOON, "date(2026, 1, 31)"),
    ("array<int>", ["a"], "a list"),
    ("struct<x: int, y: string>", {"x": "a"}, "a dictionary of its fields"),
]


def conflated(type_: str, rows: list[Any], **options: Any) -> Any:
    return pk.conflate(rows, time="ts", key="k", schema=f"ts bigint, k {type_}, v bigint", **options)


@pytest.mark.parametrize(("type_", "value", "names"), GIVEN, ids=[each[0] for each in GIVEN])
def test_a_key_is_read_by_whatever_a_stream_takes_for_it(type_: str, value: Any, names: list[Any]) -> None:
    run = conflated(type_, [{"ts": 1, "k": value, "v": 7}]).start(None)
    run.wait()
    for name in names:
        assert (run.read(name) or {}).get("v") == 7, name
        assert run.staleness(name)["average_queue_staleness"] >= 0
    if type_ == "bigint":
        assert run.read(6) is None


@pytest.mark.parametrize("name", [NOON, "2026-01-31 12:00:00", pd.Timestamp(NOON)], ids=["datetime", "text", "pandas"])
def test_a_pace_is_of_the_key_that_it_names(name: Any) -> None:
    paced = conflated("timestamp", [], access={name: "1 hour"}).execution()
    push, found = paced.pusher("stream"), []
    for n, key in enumerate([TICKS, TICKS + 1, TICKS, TICKS + 1]):
        push((n, key, n))
        found += [row[2] for item in paced.release() if hasattr(item, "rows") for row in item.rows]
    assert found == [0, 1, 3]


@pytest.mark.parametrize(("type_", "value", "hint"), NO_KEYS, ids=[f"{n}-{each[0]}" for n, each in enumerate(NO_KEYS)])
def test_what_is_none_of_the_type_is_refused(type_: str, value: Any, hint: str) -> None:
    run = conflated(type_, []).start(None)
    run.wait()
    for ask in (run.read, run.staleness):
        with pytest.raises(StreamError, match="No key has such a value: k is of type") as refused:
            ask(value)
        assert hint in (refused.value.hint or "")
        assert refused.value.got == repr(value)[:200]
    if not isinstance(value, list | dict):
        with pytest.raises(StreamError, match="No key has such a value"):
            conflated(type_, [], access={value: "1 hour"})


def test_a_key_has_one_pace() -> None:
    with pytest.raises(StreamError, match="twice how often"):
        conflated("timestamp", [], access={NOON: "1 hour", TICKS: "2 hours"})
    with pytest.raises(StreamError, match="A key has a value for each of its columns"):
        conflated("string", [], access={("a", "b"): "1 hour"})
