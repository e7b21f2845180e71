"""Misuse of `flow.alter` and of the clause that gives rows a life: every error says what, where and what to do."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import penstock as pk
from penstock.errors import MergeError, PlanError, QueryError, StreamError
from penstock.model.schema import schema_of
from penstock.plan.nodes import AlterLifetime, Source


def flow(schema: str = "ts bigint, k string") -> pk.Flow:
    return pk.Flow().stream("s", [], time="ts", schema=schema)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Nothing is altered"),
        ({"duration": 5, "extend": 2}, "given in two ways"),
        ({"duration": 5, "point": True}, "given in two ways"),
        ({"point": True, "at_most": 5}, "given in two ways"),
        ({"duration": 0}, "at least a tick"),
        ({"at_most": 0}, "at least a tick"),
        ({"duration": -3}, "does not fit the time column"),
        ({"extend": -3}, "does not fit the time column"),
        ({"duration": "5 seconds"}, "does not fit the time column"),
        ({"shift": "5 rows"}, "does not fit the time column"),
        ({"shift": 1.5}, "does not fit the time column"),
        ({"shift": 2**61}, "too great"),
    ],
)
def test_lengths_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(StreamError, match=message) as error:
        flow().alter("x", "s", **options)
    assert error.value.where == "stream x"


def test_what_is_moved_again_and_again_stays_within_time() -> None:
    made = flow().alter("x", "s", shift=2**60 - 5)
    with pytest.raises(StreamError, match="moved too far"):
        made.alter("y", "x", shift=-6)
    made.alter("z", "x", shift=5)


@pytest.mark.parametrize(("name", "stream", "message"), [
    ("5x", "s", "must be an identifier"), ("s", "s", "of that name already"), ("x", "t", "no such stream"),
    ("x", 7, "no such stream"),
])  # fmt: skip
def test_names_that_make_no_sense(name: str, stream: Any, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        flow().alter(name, stream, duration=5)


def test_lengths_as_users_write_them() -> None:
    made = flow("ts timestamp, k string")
    for name, shift in {"text": "-90 seconds", "delta": dt.timedelta(seconds=-90)}.items():
        made.alter(name, "s", shift=shift)
    nodes = [made.catalog.views[n] for n in ("text", "delta")]
    assert [n.shift for n in nodes if isinstance(n, AlterLifetime)] == [-90_000_000, -90_000_000]


def test_a_merge_of_altered_and_plain_streams_is_refused() -> None:
    made = flow().stream("r", [], time="ts", schema="ts bigint, k string").alter("x", "s", duration=5)
    with pytest.raises(MergeError, match="how long rows live"):
        made.merge("m", ["x", "r"])


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT count(*) AS n FROM s [RANGE 5]", "does not say which attribute"),
        ("SELECT k FROM s [RANGE 5] GROUP BY k", "does not say which attribute"),
        ("SELECT k FROM s [RANGE 5 rows]", "Rows live for a length of time"),
        ("SELECT k FROM s [RANGE 5 seconds]", "unit of RANGE does not fit"),
        ("SELECT k FROM s [RANGE 0]", "greater than zero"),
        ("SELECT k FROM s [RANGE 5, SLIDE 5]", "does not say which attribute"),
        ("SELECT k [RANGE 5] FROM s", "does not say which attribute"),
    ],
)
def test_a_clause_that_gives_no_life(sql: str, message: str) -> None:
    """A window of an aggregate means what it meant; a life is RANGE alone after a stream that is not aggregated."""
    with pytest.raises(QueryError, match=message):
        flow().query(sql)


def test_nodes_check_themselves() -> None:
    source = Source("s", schema_of([("ts", "bigint")], "ts"), pk.ordered(), pk.StreamProperties())
    for wrong in ({"duration": 0}, {"extend": -1}, {"at_most": 0}):
        with pytest.raises(PlanError, match="at least a tick"):
            AlterLifetime(source, **wrong)
    with pytest.raises(PlanError, match="nothing to extend"):
        AlterLifetime(source, duration=5, at_most=3)


def test_an_altered_stream_is_not_its_own_replica() -> None:
    made = flow().alter("x", "s", duration=5)
    with pytest.raises(MergeError, match="its own replica"):
        made.merge("m", ["x", "X"])


def test_rows_are_numbered_as_they_arrive_whatever_becomes_of_their_lives() -> None:
    rows = [{"ts": t, "k": "a"} for t in (3, 1, 9)]  # the second is late for its time, and has a number
    made = pk.Flow().stream("s", rows, time="ts").alter("x", "s", shift=5, duration=4)
    counted = made.query("SELECT count(*) AS n [RANGE 2 rows, SLIDE 2 rows, WA row-num] FROM x").collect()
    assert counted["n"].to_pylist() == [2, 1]
