"""Wording, and what a query does not read, may change under a checkpoint; meaning may not, and a refusal says what."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

import penstock as pk
from penstock.errors import CheckpointError
from penstock.model.progress import Progress, bounded, ordered, per_source, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.schema import parse_type, schema_of
from penstock.plan.catalog import Catalog, StreamInfo, UserFunction
from penstock.plan.fingerprint import check, describe
from penstock.plan.identity import identities
from penstock.sql.binder import bind

COLUMNS = "ts timestamp, k string, v int, d double, kind string"
SQL = "SELECT k, max(v) AS m, count(*) AS n [RANGE 10 seconds, SLIDE 5 seconds, WA ts] FROM s WHERE d > 1 GROUP BY k"


class Longest:
    def __init__(self, least: int = 0) -> None:
        self.least = least

    def lift(self, value: Any) -> Any:
        return max(len(str(value)), self.least)

    def combine(self, left: Any, right: Any) -> Any:
        return max(left, right)

    def lower(self, partial: Any) -> Any:
        return partial


def description(
    sql: str = SQL,
    columns: str = COLUMNS,
    progress: Progress | None = None,
    function: Any = abs,
    version: str | None = None,
    aggregate: Any = None,
    time: str = "ts",
    max_ahead: int | None = None,
    time_format: str | None = None,
) -> dict[str, Any]:
    catalog = Catalog()
    pairs = [(c.split(maxsplit=1)[0], c.split(maxsplit=1)[1]) for c in columns.split(", ")]
    schema = replace(schema_of(pairs, time), time_format=time_format)
    for name in ("s", "z"):
        catalog.add_stream(StreamInfo(name, schema, progress or bounded("5 seconds"), StreamProperties(), max_ahead))
    catalog.functions["f"] = UserFunction("f", function, parse_type("int"), version)
    catalog.aggregates["longest"] = (aggregate or Longest(), parse_type("int"))
    described = describe(bind(sql, catalog), catalog)
    assert json.loads(json.dumps(described)) == described
    return described


def refusal(saved: dict[str, Any], now: dict[str, Any]) -> str:
    with pytest.raises(CheckpointError) as caught:
        check(saved, now, "flows/x")
    text = str(caught.value)
    assert text.startswith("The checkpoint was made by another query.\n  where: flows/x\n  got:   ")
    return text


@pytest.mark.parametrize(
    "same",
    [
        {"sql": SQL.replace("SELECT", "select /* again */").replace("FROM s", "\n FROM  S")},
        {"sql": SQL.replace("10 seconds", "10000 ms")},
        {"sql": SQL.replace("FROM s", "FROM s AS x").replace("d >", "x.d >")},
        {"progress": bounded("5000 ms")},
        {"columns": "kind string, d double, v int, k string, ts timestamp"},
        {"columns": COLUMNS + ", more bigint"},
        {"columns": COLUMNS.replace("kind string", "kind bigint")},
        {"columns": COLUMNS.replace(", kind string", "")},
        {"function": len},  # which the query does not call
    ],
)
def test_what_does_not_matter_may_change(same: dict[str, Any]) -> None:
    check(description(), description(**same), "flows/x")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"columns": COLUMNS.replace("v int", "v string")}, "column v of stream s: was int, is string"),
        ({"columns": COLUMNS.replace("k string", "k bigint")}, "column k of stream s: was string, is bigint"),
        ({"columns": COLUMNS.replace("d double", "d int")}, "column d of stream s: was double, is int"),
        ({"progress": ordered()}, "progress of stream s: was bounded('5 seconds'), is ordered()"),
        ({"progress": bounded("6 seconds")}, "progress of stream s: was bounded('5 seconds'), is bounded('6 seconds')"),
        ({"progress": per_source("k")}, "progress of stream s: was bounded('5 seconds'), is per_source('k')"),
        ({"sql": SQL.replace("FROM s", "FROM z")}, "streams that are read: was s, is z"),
        ({"sql": SQL.replace("AS m", "AS mm")}, "columns of the result: was"),
        ({"sql": SQL.replace("d > 1", "d > 2")}, "was Select (d > CAST(1 AS double)), is Select (d > CAST(2"),
        ({"sql": SQL.replace("SLIDE 5", "SLIDE 2")}, "[RANGE 10 seconds, SLIDE 2 seconds, WA ts]"),
        ({"sql": SQL.replace("max(v)", "min(v)")}, "min("),
        ({"sql": SQL.replace("max(v) AS m, count(*) AS n", "count(*) AS n, max(v) AS m")}, "order of the result's"),
    ],
)  # fmt: skip
def test_what_matters_is_named_as_it_was_and_as_it_is(other: dict[str, Any], said: str) -> None:
    assert said in refusal(description(), description(**other))


def test_the_time_of_a_stream_matters() -> None:
    columns, sql = "a bigint, b bigint", "SELECT a, b FROM s"
    now = description(sql, columns, bounded(5), time="b")
    assert "time of stream s: was a, is b" in refusal(description(sql, columns, bounded(5), time="a"), now)


def test_a_limit_on_rows_from_the_future_may_be_another_one_but_not_come_or_go() -> None:
    check(description(max_ahead=5), description(max_ahead=6), "flows/x")
    assert "limit max_ahead of stream s: was none, is some" in refusal(description(), description(max_ahead=6))


def test_what_windows_over_row_numbers_do_not_read_may_change() -> None:
    sql = "SELECT max(v) AS m [RANGE 4 rows, SLIDE 2 rows, WA row-num] FROM s"
    base = description(sql)
    assert set(base["streams"]["s"]["columns"]) == {"ts", "v"}
    check(base, description(sql, "v int, ts timestamp, x string"), "flows/x")


def test_functions_matter_and_a_version_may_stand_for_them() -> None:
    sql = "SELECT ts, f(v) AS x FROM s"
    base = description(sql, function=lambda v: v + 1)
    check(base, description(sql, function=lambda v: v + 1), "flows/x")
    text = refusal(base, description(sql, function=lambda v: v + 2))
    assert "code of function f: was py3." in text
    assert "try:   if it means the same, register it with version='py3." in text
    was = base["functions"]["f"][1]
    check(base, description(sql, function=lambda v: 1 + v, version=was), "flows/x")
    assert "was 1, is 2" in refusal(description(sql, version="1"), description(sql, version="2"))


def test_aggregates_of_users_matter() -> None:
    sql = "SELECT longest(k) AS x [RANGE 10 seconds, SLIDE 5 seconds, WA ts] FROM s"
    check(description(sql), description(sql, aggregate=Longest()), "flows/x")
    assert "code of function longest" in refusal(description(sql), description(sql, aggregate=Longest(3)))


def test_functions_in_the_predicate_of_punctuation_matter() -> None:
    sql, progress = "SELECT ts, v FROM s", punctuated("f(v) = 1")
    base = description(sql, progress=progress, function=lambda v: v)
    assert set(base["streams"]["s"]["columns"]) == {"ts", "v"}
    assert "code of function f" in refusal(base, description(sql, progress=progress, function=lambda v: -v))
    check(base, description(sql, progress=punctuated("F( v )  = 1"), function=lambda v: v), "flows/x")


def test_where_whole_rows_are_kept_the_order_of_columns_matters() -> None:
    sql = "SELECT DISTINCT * FROM s"
    columns = ", ".join(reversed(COLUMNS.split(", ")))
    assert "order of the result's columns" in refusal(description(sql), description(sql, columns))


def test_the_order_of_columns_matters_to_a_merge() -> None:
    def merged(*columns: tuple[str, str]) -> dict[str, Any]:
        flow = pk.Flow()
        for name in ("a", "b"):
            flow.stream(name, [], time="ts", schema=", ".join(map(" ".join, columns)))
        flow.merge("m", ["a", "b"])
        return describe(bind("SELECT ts, k FROM m", flow.catalog), flow.catalog)

    ts, k, v = ("ts", "bigint"), ("k", "string"), ("v", "int")
    check(merged(ts, k, v), merged(ts, k, v), "flows/x")
    said = "order of the columns of stream a, whose rows are kept whole: was ts, k, v, is ts, v, k"
    assert said in refusal(merged(ts, k, v), merged(ts, v, k))


def test_equal_parts_of_a_plan_have_identities_of_their_own() -> None:
    catalog = Catalog()
    catalog.add_stream(
        StreamInfo("s", schema_of([("ts", "bigint"), ("v", "int")], "ts"), ordered(), StreamProperties())
    )
    known = identities(bind("SELECT ts, v FROM s UNION ALL SELECT ts, v FROM s", catalog))
    assert len({k.identity for k in known}) == len(known)
    assert [k.node for k in known] == list(bind("SELECT ts, v FROM s UNION ALL SELECT ts, v FROM s", catalog).walk())


def test_a_label_may_be_worded_otherwise() -> None:
    saved = description()
    for operator in saved["operators"]:
        operator[2] = f"as it was called before: {operator[2]}"
    check(saved, description(), "flows/x")


@pytest.mark.parametrize("damage", [None, [], {}, {"streams": 1}, {"streams": {}, "functions": {}, "result": []}])
def test_a_damaged_description_is_an_error(damage: Any) -> None:
    with pytest.raises(CheckpointError, match="description of the checkpoint is damaged"):
        check(damage, description(), "flows/x")


ELSEWHERE = """
import json, penstock as pk
from penstock.plan.fingerprint import describe

LIMITS = ("a", "b", 3.5)

class Share:
    def __init__(self, of):
        self.of = of
    def lift(self, value):
        return (value in {"x", "y", "z", "w"}, 1)
    def combine(self, left, right):
        return left[0] + right[0], left[1] + right[1]
    def lower(self, partial):
        return self.of * partial[0] // partial[1]

flow = pk.Flow().stream("s", [], time="ts", schema="ts bigint, k string, v int", progress=pk.per_source("k", idle=5))
flow.function("f", lambda v: v in {"p", "q", "r", "s"} or v in LIMITS, "boolean").aggregate("share", Share(100), "int")
q = flow.query("SELECT k, share(k) AS x [RANGE 10, SLIDE 5, WA ts] FROM s WHERE f(k) AND v IN (1, 2, 3) GROUP BY k")
print(json.dumps(describe(q.plan, flow.catalog)))
"""


def test_every_process_gives_the_same_description() -> None:
    """Whatever the order of sets and the addresses of objects in it."""
    told = [
        subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert told[0] == told[1] == told[2]
    assert set(json.loads(told[0])["functions"]) == {"f", "share"}


def test_times_that_would_be_read_otherwise_are_told() -> None:
    seconds, thousandths = description(time_format="epoch_s"), description(time_format="epoch_ms")
    check(seconds, description(time_format="epoch_s"), "flows/x")
    assert "time_format of stream s: was 'epoch_s', is 'epoch_ms'" in refusal(seconds, thousandths)
    assert "time_format of stream s: was none, is 'epoch_s'" in refusal(description(), seconds)
    for stream in seconds["streams"].values():
        del stream["time_format"]  # as an earlier release wrote it
    check(seconds, thousandths, "flows/x")
