"""Arrays, maps and structs from every kind of input and to every kind of output."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import StreamError
from penstock.model.elements import Insert

SCHEMA = (
    "ts timestamp, tags array<string>, pos struct<lat double, lon double>, props map<string, int>, "
    "seen array<timestamp>"
)
LINES: list[dict[str, Any]] = [
    {"ts": "2026-01-01 00:00:01", "tags": ["a", None], "pos": {"lat": 1, "lon": "2.5"}, "props": {"k": 7}},
    {"ts": "2026-01-01 00:00:02", "tags": [], "pos": {"zzz": 1}, "props": {}, "seen": ["2026-01-01 10:00:00", None]},
    {"ts": "2026-01-01 00:00:03", "tags": "x"},
    {"ts": "2026-01-01 00:00:04", "pos": {"lat": "q"}},
    {"ts": "2026-01-01 00:00:05", "props": {"k": 1.5}},
    {"ts": "2026-01-01 00:00:06", "tags": [1, True]},
]
AT = dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)


def read(path: Path) -> Any:
    path.write_text("\n".join(map(json.dumps, LINES)))
    script = f"CREATE STREAM s ({SCHEMA}) WITH (source = '{path}', time = 'ts'); SELECT tags, pos, props, seen FROM s;"
    made: Any = pk.Flow().sql(script)
    (query,) = made.queries
    return query


def test_json_lines_into_a_declared_stream(tmp_path: Path) -> None:
    query = read(tmp_path / "in.jsonl")
    rows = query.collect().to_pylist()
    assert rows[0] == {"tags": ["a", None], "pos": {"lat": 1.0, "lon": 2.5}, "props": [("k", 7)], "seen": None}
    assert rows[1] == {"tags": [], "pos": {"lat": None, "lon": None}, "props": [], "seen": [AT, None]}
    assert rows[2]["tags"] == ["1", "true"]  # as a member of the line itself would be read
    reasons = query.dead_letters["reason"].to_pylist()
    assert [reason.split(":")[0] for reason in reasons] == [
        "tags is not a array<string>",
        "pos is not a struct<lat",
        "props is not a map<string,int>",
    ]


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_results_in_files_read_back(tmp_path: Path, name: str) -> None:
    query = read(tmp_path / "in.jsonl")
    out = tmp_path / name
    query.start(str(out)).finish()
    wanted = query.collect().to_pylist()
    if name.endswith("parquet"):
        assert pq.read_table(out).to_pylist() == wanted
        return
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["tags"] for row in written] == [row["tags"] for row in wanted]
    assert [row["pos"] for row in written] == [row["pos"] for row in wanted]


def test_frames_and_rows() -> None:
    columns: dict[str, Any] = {"t": [1, 2, 3], "a": [[1, 2], None, []], "s": [{"x": 1, "y": ["u"]}, {"x": None}, None]}
    sources = [
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        pa.table(columns),
        [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    ]
    for source in sources:
        query: Any = pk.Flow().stream("s", source, time="t").query("SELECT t, a, s.x, get(s.y, 0) AS y FROM s")
        assert str(query.schema["a"].type) == "array<bigint>"
        rows = query.collect().to_pylist()
        assert [(row["t"], row["a"], row["x"], row["y"]) for row in rows] == [
            (1, [1, 2], 1, "u"),
            (2, None, None, None),
            (3, [], None, None),
        ]


def test_elements_go_out_as_tuples_and_come_in_again() -> None:
    schema = "t bigint, a array<timestamp>, s struct<x int, m map<string, int>>"
    rows = [{"t": 1, "a": [AT], "s": {"x": 1, "m": {"k": 2}}}]
    query: Any = pk.Flow().stream("s", rows, time="t", schema=schema).query("SELECT * FROM s")
    elements = [e for e in query.elements() if isinstance(e, Insert)]
    assert elements[0].payload == (1, (1_767_261_600_000_000,), (1, (("k", 2),)))
    again: Any = pk.Flow().stream("s", elements, time="t", schema=schema).query("SELECT a, s FROM s")
    assert again.collect().to_pylist() == [{"a": [AT], "s": {"x": 1, "m": [("k", 2)]}}]


def test_what_does_not_fit_inside_costs_the_row() -> None:
    schema = "t bigint, a array<tinyint>, m map<string, int>"
    rows = [
        {"t": 1, "a": [1, 300], "m": {}},
        {"t": 2, "a": [1], "m": {None: 1}},
        {"t": 3, "a": {"x": 1}, "m": None},
        {"t": 4, "a": [None], "m": {"a": None}},
    ]
    query: Any = pk.Flow().stream("s", rows, time="t", schema=schema).query("SELECT t FROM s")
    assert query.collect()["t"].to_pylist() == [4]
    table = pa.table({"t": [1, 2], "a": pa.array([[1, 300], [7]]), "m": pa.array([None, None])})
    query = pk.Flow().stream("s", table, time="t", schema=schema).query("SELECT t, a FROM s")
    assert query.collect().to_pylist() == [{"t": 2, "a": [7]}]
    assert query.dead_letters["reason"].to_pylist() == ["a is not a array<tinyint>: [1, 300]"]


def test_tables_are_looked_up_by_nested_keys() -> None:
    for few in (True, False):
        source: Any = [{"t": 1, "k": ["a", None]}, {"t": 2, "k": ["b"]}]
        flow = pk.Flow().stream("s", source if few else pa.table({"t": [1, 2], "k": [["a", None], ["b"]]}), time="t")
        flow.table("d", pa.table({"k": [["a", None], ["c"]], "info": [{"z": 1}, {"z": 2}]}))
        query: Any = flow.query("SELECT s.t, d.info.z, d.info FROM s LEFT JOIN d ON s.k = d.k")
        assert [tuple(row.values()) for row in query.collect().to_pylist()] == [(1, 1, {"z": 1}), (2, None, None)]


@pytest.mark.parametrize(
    ("type_", "part"),
    [
        ("array<>", "Unknown type"),
        ("array<int, int>", "not written so"),
        ("map<int>", "not written so"),
        ("struct<>", "not written so"),
        ("struct<a int, A int>", "the same name"),
        ("map<map<int,int>, int>", "cannot hold a map"),
        ("array<" * 40 + "int" + ">" * 40, "nested too deeply"),
    ],
)
def test_types_that_are_none_are_said(type_: str, part: str) -> None:
    with pytest.raises(StreamError, match=part):
        pk.Flow().stream("s", [{"t": 1}], time="t", schema=f"t bigint, x {type_}")
