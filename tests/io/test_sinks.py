"""Files that a run writes are whole or called a part; what a failed run put aside is kept."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import PenstockError, SourceError
from penstock.io.sinks import open_sink


def failing(rows: int) -> Iterator[dict[str, Any]]:
    for t in (*range(rows), 1, None):
        yield {"t": t, "k": "a"}
    raise RuntimeError("the source broke")


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_failed_run_leaves_a_part_and_what_it_put_aside(tmp_path: Path, ending: str) -> None:
    flow = pk.Flow().stream("s", failing(10), time="t", schema="t bigint, k string")
    query: Any = flow.query("SELECT t, k FROM s")
    target, late, dead = (tmp_path / f"{name}.{ending}" for name in ("out", "late", "dead"))
    target.write_text("of an earlier run")
    run = query.start(target, late=late, dead_letters=dead)
    with pytest.raises(PenstockError, match="the source broke"):
        run.wait()
    assert target.read_text() == "of an earlier run"
    assert (tmp_path / f"out.{ending}.partial").stat().st_size > 0
    assert "1" in (late.read_bytes().decode("latin-1"))
    assert dead.exists()
    assert (run.progress["late"], run.progress["dead"]) == (1, 1)
    assert (query.late.num_rows, query.dead_letters.num_rows) == (1, 1)
    if ending == "parquet":
        assert pq.read_table(tmp_path / "out.parquet.partial").num_rows == 10
        assert pq.read_table(late)["bound"].to_pylist() == [9]


def test_a_failed_collect_keeps_what_it_put_aside() -> None:
    query: Any = pk.Flow().stream("s", failing(10), time="t", schema="t bigint, k string").query("SELECT t FROM s")
    with pytest.raises(SourceError, match="the source broke") as told:
        query.collect()
    assert (told.value.what, told.value.where) == ("The source of a stream failed.", "stream s")
    assert isinstance(told.value.__cause__, RuntimeError)
    assert (query.counts["late"], query.counts["dead"]) == (1, 1)
    assert (query.late.num_rows, query.dead_letters.num_rows) == (1, 1)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_run_without_results_writes_an_empty_file(tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"out.{ending}"
    target.write_text("of an earlier run")
    query: Any = pk.Flow().stream("s", [], time="t", schema="t bigint").query("SELECT t FROM s")
    query.start(f"file://{target}").wait()
    assert "earlier" not in target.read_bytes().decode("latin-1")
    assert not list(tmp_path.glob("*.partial"))
    if ending == "parquet":
        assert pq.read_table(target).schema.names == ["t"]


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="kind of file is not known"):
        open_sink(tmp_path / "x.txt")
    with pytest.raises(SourceError, match="give a path, a list, a function, or a sink"):
        open_sink(5)
    query: Any = pk.Flow().stream("s", [{"t": 1}], time="t").query("SELECT t FROM s")
    with pytest.raises(SourceError, match="Results cannot be written there"):
        query.start(tmp_path / "none" / "out.csv")


BYTES = [b"\xff", b"\\xff", b"\\", b"plain", None, bytes(range(256)), "ß".encode(), b"\xed\xa0\x80"]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_bytes_come_back_as_they_were(tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"out.{ending}"
    columns = "t bigint, b binary"
    rows = [{"t": t, "b": b} for t, b in enumerate(BYTES)]
    written: Any = pk.Flow().stream("s", rows, time="t", schema=columns).query("SELECT t, b FROM s")
    written.start(target).wait()
    again: Any = pk.Flow().stream("s", target, time="t", schema=columns).query("SELECT b FROM s")
    assert again.collect()["b"].to_pylist() == BYTES


def test_bytes_in_what_is_put_aside_can_be_told_apart() -> None:
    given: list[Any] = [{"t": 9, "b": b"x"}, *[{"t": 1, "b": b} for b in BYTES], {"t": "no", "b": memoryview(b"\xff")}]
    query: Any = pk.Flow().stream("s", given, time="t", schema="t bigint, b binary").query("SELECT b FROM s")
    query.collect()
    late = [json.loads(row)["b"] for row in query.late["row"].to_pylist()]
    assert [None if b is None else base64.b64decode(b, validate=True) for b in late] == BYTES
    (dead,) = query.dead_letters["row"].to_pylist()
    assert json.loads(dead)["b"] == "/w=="


@pytest.mark.parametrize(
    ("type_", "values", "text"),
    [
        ("bigint", [1, None, 3, None], '"v"\n1\n""\n3\n""\n'),
        ("string", ["a", None, "x\n\ny"], '"v"\n"a"\n""\n"x\n\ny"\n'),
        ("binary", [b"\xff", None], '"v"\n"/w=="\n""\n'),
        ("double", [None, None], '"v"\n""\n""\n'),
    ],
)
def test_a_null_alone_on_its_line_is_written_as_a_record(
    tmp_path: Path, type_: str, values: list[Any], text: str
) -> None:
    rows = [{"t": t, "v": v} for t, v in enumerate(values)]
    query: Any = pk.Flow().stream("s", rows, time="t", schema=f"t bigint, v {type_}").query("SELECT v FROM s")
    query.start(tmp_path / "out.csv").wait()
    assert (tmp_path / "out.csv").read_text() == text


def test_rows_that_come_one_by_one_are_one_group_of_a_parquet_file(tmp_path: Path) -> None:
    rows = ({"t": t} for t in range(500))
    run = (
        pk.Flow().stream("s", rows, time="t", schema="t bigint").query("SELECT t FROM s").start(tmp_path / "o.parquet")
    )
    run.wait()
    written = pq.ParquetFile(tmp_path / "o.parquet")
    assert (written.metadata.num_row_groups, written.read()["t"].to_pylist()) == (1, list(range(500)))


def test_text_files_are_written_as_rows_come(tmp_path: Path) -> None:
    for ending, first in (("csv", '"t"\n1\n'), ("jsonl", '{"t": 1}\n')):
        sink = open_sink(tmp_path / f"o.{ending}")
        sink.write(pa.table({"t": [1]}))
        assert (tmp_path / f"o.{ending}.partial").read_text() == first
        sink.close()
