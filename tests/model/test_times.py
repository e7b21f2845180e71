"""Times of every kind: none wraps, none is cut towards zero, none goes missing."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import StreamError
from penstock.model.columns import times_by_format
from penstock.model.time import FIRST_TIMESTAMP, LAST_TIMESTAMP, Domain, show_ticks, usable
from penstock.model.time_format import EPOCHS, parse_format

DDL = "ts timestamp, k string"
SECONDS = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}


def run(source: Any, **options: Any) -> Any:
    query = pk.Flow().stream("s", source, time="ts", **options).query("SELECT ts, k FROM s")
    return query, query.collect()


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("power", [50, 55, 60, 62])
def test_a_timestamp_beyond_the_calendar_is_a_dead_letter_and_never_wraps(unit: str, power: int) -> None:
    days = 2**power // SECONDS[unit] // 86_400
    for sign in (1, -1):
        times = pa.array([5 * SECONDS[unit], sign * 2**power], pa.timestamp(unit))
        query, result = run(pa.table({"ts": times, "k": ["near", "far"]}), progress=pk.bounded("1 day"))
        usable_days = {1: 2_896_000, -1: 682_000}[sign]
        assert query.counts["dead"] == (1 if days > usable_days else 0)
        assert "near" in result["k"].to_pylist()
        assert query.counts["read"] == sum(v for k, v in query.counts.items() if k != "read")


def test_negative_nanoseconds_are_rounded_down_however_they_come() -> None:
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)
    stamp = pd.Timestamp(-1, unit="ns")
    for source in (
        pa.table({"ts": pa.array([-1], pa.timestamp("ns")), "k": ["a"]}),
        pa.table({"ts": pa.array([-1], pa.timestamp("ns", "Europe/Berlin")), "k": ["a"]}),
        [{"ts": stamp, "k": "a"}],
        [{"ts": np.datetime64(-1, "ns"), "k": "a"}],
        pd.DataFrame({"ts": [stamp], "k": ["a"]}),
    ):
        _, result = run(source, schema=DDL)
        assert result["ts"].to_pylist() == [before]


@pytest.mark.parametrize(
    "missing", [None, pd.NaT, np.datetime64("NaT"), pd.NA, float("nan"), np.datetime64(2**62, "s"), 2**63, "2026-99-01"]
)
def test_a_row_without_a_usable_time_is_dead_and_counted(missing: Any) -> None:
    rows = [{"ts": dt.datetime(2026, 1, 1), "k": "a"}, {"ts": missing, "k": "b"}]
    query, result = run(rows, schema=DDL)
    assert result["k"].to_pylist() == ["a"]
    assert query.counts == {
        "read": 2, "on_time": 1, "late": 0, "dead": 1, "punctuation": 0, "skipped": 0, "failed": 0,
    }  # fmt: skip
    pushed = query.execution()
    push = pushed.pusher("s")
    push((dt.datetime(2026, 1, 1), "a"))
    push((missing, "b"))
    pushed.close()
    assert (pushed.counts.on_time, pushed.counts.dead, pushed.counts.skipped) == (1, 1, 0)


@pytest.mark.parametrize("edge", [0, 1])
def test_windows_at_the_edges_of_the_usable_times_have_times_of_their_own(edge: int) -> None:
    for domain, sql_type, clause in (
        (Domain.INTEGER, "bigint", f"[RANGE {2**60}, SLIDE 7, WA t]"),
        (Domain.INTEGER, "bigint", f"[RANGE {2**60}, SLIDE {2**60 - 1}, WA t]"),
        (Domain.TIMESTAMP, "timestamp", "[RANGE 36159 days, SLIDE 36159 days, WA t]"),
        (Domain.TIMESTAMP, "timestamp", "[RANGE 10 days, SLIDE 3 days, WA t]"),
    ):
        if clause.endswith("SLIDE 7, WA t]"):
            continue  # 2^57 windows for one row
        tick = usable(domain)[edge]
        flow = pk.Flow().stream("s", [], time="t", schema=f"t {sql_type}", progress=pk.ordered())
        execution: Any = flow.query(f"SELECT count(*) AS n {clause} FROM s").execution()
        execution.pusher("s")((tick,))
        out = [r for b in execution.take() + execution.close() if hasattr(b, "rows") for r in b.rows]
        assert execution.counts.on_time == 1
        assert out
        for _, start, end, n in out:
            assert start <= tick < end
            assert n == 1
        rows = [b.visible().to_pylist() for b in execution.take() if hasattr(b, "rows")]
        assert rows == []
        assert "us" not in show_ticks(out[0][2], domain)
        assert "us" not in show_ticks(out[-1][1], domain)


@pytest.mark.parametrize("tick", [2**62 + 1, -(2**62) - 1, 2**63 - 1, -(2**63), 2**63, -(2**70)])
def test_integers_near_the_ends_of_int64_are_dead_letters(tick: int) -> None:
    sources: list[Any] = [[{"t": tick}, {"t": 1}], [pk.Insert((tick,), tick, tick + 1), pk.Insert((1,), 1, 2)]]
    if -(2**63) <= tick < 2**63:
        sources.append(pa.table({"t": [tick, 1]}))
    for source in sources:
        flow = pk.Flow().stream("s", source, time="t", schema="t bigint", progress=pk.bounded(10))
        query: Any = flow.query("SELECT count(*) AS n [RANGE 10, SLIDE 5, WA t] FROM s")
        assert query.collect()["window_end"].to_pylist() == [5, 10]
        assert query.counts["dead"] == 1
        assert str(tick) in query.dead_letters["row"].to_pylist()[0]


def test_late_rows_and_other_columns_beyond_the_calendar_do_not_stop_a_query() -> None:
    far = pa.array([2**61, 0], pa.timestamp("us"))
    table = pa.table({"ts": pa.array([10**15, 0], pa.timestamp("us")), "k": ["a", "b"], "valid": far})
    query, _ = run(table)
    assert [json.loads(r)["valid"] for r in query.dead_letters["row"].to_pylist()] == [f"{2**61} as timestamp[us]"]
    assert query.counts["late"] == 0


@pytest.mark.parametrize(
    ("form", "value", "when"),
    [
        ("epoch_s", 1_700_000_000, "2023-11-14T22:13:20"),
        ("epoch_s", 1_700_000_000.25, "2023-11-14T22:13:20.250000"),
        ("epoch_s", "1700000000.000001", "2023-11-14T22:13:20.000001"),
        ("epoch_ms", -1, "1969-12-31T23:59:59.999000"),
        ("epoch_ns", -1, "1969-12-31T23:59:59.999999"),
        ("epoch_us", "  7 ", "1970-01-01T00:00:00.000007"),
        ("MM/dd/yyyy", "02/01/2026", "2026-02-01T00:00:00"),
        ("%m/%d/%Y %I:%M %p", "2/1/2026 12:05 am", "2026-02-01T00:05:00"),
        ("dd.MM.yyyy HH:mm:ss[.SSS]", "01.02.2026 03:04:05.6", "2026-02-01T03:04:05.600000"),
        ("%Y%m%d%H%M%S", "20260201030405", "2026-02-01T03:04:05"),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-02-01T00:00:00+01:00", "2026-01-31T23:00:00"),
        ("d MMM yy", " 1 feb 26 ", "2026-02-01T00:00:00"),
    ],
)
def test_times_in_other_forms(form: str, value: Any, when: str) -> None:
    want = dt.datetime.fromisoformat(when).replace(tzinfo=dt.UTC)
    for source in ([{"ts": value, "k": "a"}], pa.table({"ts": [value], "k": ["a"]})):
        query, result = run(source, time_format=form)
        assert (result["ts"].to_pylist(), query.counts["dead"]) == ([want], 0)


@pytest.mark.parametrize("form", ["epoch_s", "epoch_ms", "epoch_us", "epoch_ns"])
def test_whole_numbers_are_read_by_column_as_one_by_one(form: str) -> None:
    how = parse_format(form)
    ends = [int(Decimal(e) / Decimal(EPOCHS[form])) for e in (FIRST_TIMESTAMP, LAST_TIMESTAMP)]
    near = [e + by for e in (*ends, 0) for by in (-1001, -1000, -1, 0, 1, 999, 1000, 1001)]
    values = [v for v in (*near, -(2**63), 2**63 - 1) if -(2**63) <= v < 2**63]
    column = pa.chunked_array([[*values, None]], pa.int64())
    found = times_by_format(column, how).cast(pa.int64()).to_pylist()
    assert found == [*(how.ticks(v) for v in values), None]
    assert any(v is None for v in found[:-1]) == (form != "epoch_ns")


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("epoch_s", "soon"), ("epoch_s", 2**70), ("epoch_s", float("nan")), ("epoch_ms", float("inf")),
        ("epoch_s", "1_000"), ("MM/dd/yyyy", "13/01/2026"), ("MM/dd/yyyy", "2/1/2026"), ("MM/dd/yyyy", "02/30/2026"),
        ("hh:mm a yyyy", "13:00 pm 2026"), ("yyyy-MM-dd VV", "2026-01-01 Mars/Base"), ("%Y-%m-%d", "2026-01-01x"),
    ],
)  # fmt: skip
def test_what_a_format_does_not_read_is_a_dead_letter(form: str, value: Any) -> None:
    rows = [{"ts": value, "k": "a"}]
    query, result = run(rows, time_format=form, schema=DDL)
    assert (result.num_rows, query.counts["dead"]) == (0, 1)
    assert query.dead_letters["reason"].to_pylist() == [f"ts is not {form}: {value!r}"]


@pytest.mark.parametrize(
    ("form", "parts"),
    [
        ("epoch_m", ["Unknown unit of an epoch", "'epoch_m'", "epoch_ms"]),
        ("", ["A time format is a text"]),
        ("HH:mm", ["needs a year", "'HH:mm'"]),
        ("yyyy hh", ["need AM or PM"]),
        ("%Q %Y", ["is not known", "%Q"]),
        ("yyyy QQ", ["is not known", "QQ"]),
        ("yyyy MM M", ["a part twice", "M in"]),
        ("yyyy[-MM", ["has no partner"]),
        ("yyyy'x", ["does not end"]),
        ("yyyyMd", ["need two digits each", "yyyyM"]),
        ("yyyy#", ["cannot have this sign", "#"]),
    ],
)
def test_formats_that_cannot_be(form: str, parts: list[str]) -> None:
    with pytest.raises(StreamError) as caught:
        parse_format(form)
    for part in parts:
        assert part in caught.value.message


def test_a_format_must_fit_its_column() -> None:
    with pytest.raises(StreamError, match="Only text can be read by a pattern"):
        run([{"ts": 5, "k": "a"}], time_format="yyyy")
    with pytest.raises(StreamError, match="Only numbers, or text with numbers"):
        run([{"ts": dt.datetime(2026, 1, 1), "k": "a"}], time_format="epoch_s")
    with pytest.raises(StreamError, match="epoch_s"):
        run([{"ts": 5.5, "k": "a"}])


def test_a_date_is_a_time() -> None:
    day = dt.date(2026, 2, 1)
    for source in ([{"ts": day, "k": "a"}], pa.table({"ts": [day], "k": ["a"]}), pd.DataFrame({"ts": [day], "k": "a"})):
        _, result = run(source)
        assert result["ts"].to_pylist() == [dt.datetime(2026, 2, 1, tzinfo=dt.UTC)]
