"""Every kind of source gives the same stream; what cannot be read is a dead letter with its reason."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import penstock as pk
from penstock.errors import SourceError, StreamError

START = dt.datetime(2026, 1, 1, 10)
ROWS = [{"ts": START + dt.timedelta(seconds=s), "k": "ab"[s % 2], "v": s} for s in range(0, 100, 7)]
TABLE = pa.Table.from_pylist(ROWS, pa.schema([("ts", pa.timestamp("us")), ("k", pa.string()), ("v", pa.int64())]))
SQL = "SELECT k, sum(v) AS s [RANGE 1 minute, SLIDE 30 seconds, WA ts] FROM m GROUP BY k"
DDL = "ts timestamp, k string, v bigint"


def as_parquet(home: Path) -> str:
    pa.parquet.write_table(TABLE, home / "m.parquet")
    return str(home / "m.parquet")


def as_csv(home: Path) -> str:
    pa.csv.write_csv(TABLE, home / "m.csv")
    return str(home / "m.csv")


def as_jsonl(home: Path) -> Path:
    with gzip.open(home / "m.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({**r, "ts": r["ts"].isoformat()}) + "\n" for r in ROWS)
    return home / "m.jsonl.gz"


def as_folder(home: Path) -> str:
    for part in (0, 1):
        pa.parquet.write_table(TABLE.slice(part * 8, 8), home / f"{part}.parquet")
    return str(home)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "list": lambda home: ROWS,
    "arrow": lambda home: TABLE,
    "reader": lambda home: TABLE.to_reader(),
    "pandas": lambda home: pd.DataFrame(ROWS),
    "polars": lambda home: pl.DataFrame(ROWS),
    "lazy polars": lambda home: pl.DataFrame(ROWS).lazy(),
    "parquet": as_parquet,
    "csv": as_csv,
    "jsonl": as_jsonl,
    "folder": as_folder,
    "paths": lambda home: [as_parquet(home)],
}


def answer(source: Any, schema: str | None = None) -> list[dict[str, Any]]:
    result = pk.Flow().stream("m", source, time="ts", schema=schema).query(SQL).collect().to_pylist()
    return sorted(result, key=lambda r: (r["wid"], r["k"]))


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_gives_the_same_stream(kind: str, tmp_path: Path) -> None:
    got = answer(SOURCES[kind](tmp_path))
    first = [r for r in got if r["window_end"].replace(tzinfo=None) == START + dt.timedelta(seconds=30)]
    # In the first half minute: 0, 14, 28 under a and 7, 21 under b.
    assert [(r["k"], r["s"]) for r in first] == [("a", 42), ("b", 28)]
    assert got == answer(ROWS)


def test_a_live_iterable_is_read_row_by_row() -> None:
    read: list[int] = []

    def live() -> Iterator[dict[str, Any]]:
        for row in ROWS:
            read.append(row["v"])
            yield row

    flow = pk.Flow().stream("m", live(), time="ts", schema=DDL)
    next(e for e in flow.query(SQL).elements() if isinstance(e, pk.Insert))
    assert read[-1] == 35, "the first row past the half minute closes the first window, and no more was asked for"


def test_rows_that_cannot_be_read_are_dead_letters(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    lines = [json.dumps({**ROWS[0], "ts": ROWS[0]["ts"].isoformat()}), "{torn", '{"ts": null, "k": "a", "v": 1}']
    path.write_text(
        "\n".join([*lines, '{"ts": "yesterday", "k": "a", "v": 1}', '{"ts": "2026-01-01", "k": "a", "v": "x"}'])
    )
    query = pk.Flow().stream("m", path, time="ts", schema=DDL).query(SQL)
    query.collect()
    reasons = query.dead_letters["reason"].to_pylist()
    assert reasons == [
        "not a JSON object",
        "ts is null",
        "ts is not a timestamp: 'yesterday'",
        "v is not a bigint: 'x'",
    ]
    assert query.counts == {"read": 5, "on_time": 1, "late": 0, "dead": 4, "punctuation": 0, "skipped": 0, "failed": 0}


def test_an_empty_stream_gives_nothing() -> None:
    assert answer([], DDL) == []
    assert answer(TABLE.slice(0, 0)) == []


def test_what_is_not_a_source_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="There is no such file"):
        answer(str(tmp_path / "none.parquet"))
    with pytest.raises(StreamError, match="cannot be read as a stream"):
        answer(42)
    (tmp_path / "m.xyz").write_text("")
    with pytest.raises(SourceError, match="kind of file is not known"):
        answer(str(tmp_path / "m.xyz"))


@pytest.mark.parametrize("schema", [None, "t bigint"])
@pytest.mark.parametrize("strange", [None, 5, "t", [1], object()])
def test_what_is_no_row_among_rows_is_a_dead_letter(strange: Any, schema: str | None) -> None:
    rows: list[Any] = [strange, {"t": 1}, strange, {"t": 2}]
    for source in (rows, iter(rows)):
        if schema is None and source is not rows:
            continue
        query: Any = pk.Flow().stream("s", source, time="t", schema=schema).query("SELECT t FROM s")
        assert query.collect()["t"].to_pylist() == [1, 2]
        assert query.dead_letters["reason"].to_pylist() == ["not a row or an element"] * 2
        assert (query.counts["read"], query.counts["dead"]) == (4, 2)


@pytest.mark.parametrize("rows", [[None], [None, None], [5, None]])
def test_a_list_without_any_row_is_refused(rows: list[Any]) -> None:
    with pytest.raises(StreamError, match="A list must hold dictionaries, elements or paths"):
        pk.Flow().stream("s", rows, time="t", schema="t bigint")


MIXED: list[Any] = [
    pk.linear("t", 0),
    {"t": 1},
    {"t": 12},
    pk.linear("t", 10),
    {"t": 4},
    "no row",
    pk.Insert((30,), 30, 31),
]


@pytest.mark.parametrize("schema", [None, "t bigint"])
@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize("made", [list, tuple, iter])
def test_punctuation_and_elements_stand_among_the_rows_of_any_iterable(
    made: Callable[[Any], Any], cut: int, schema: str | None
) -> None:
    #  1  12  | nothing below 10 comes any more |  4 is late  30 is an element
    declared = "t bigint" if made is iter else schema
    flow = pk.Flow().stream("s", made(MIXED[cut:]), time="t", schema=declared, progress=pk.bounded(100))
    query: Any = flow.query("SELECT t FROM s")
    assert query.collect()["t"].to_pylist() == [1, 12, 30]
    assert query.late["row"].to_pylist() == ['{"t": 4}']
    assert query.dead_letters["reason"].to_pylist() == ["not a row or an element"]


def test_a_list_of_punctuation_alone_needs_a_schema() -> None:
    with pytest.raises(StreamError, match="The columns of elements are not known"):
        pk.Flow().stream("s", [pk.linear("t", 10)], time="t")
