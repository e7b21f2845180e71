"""A dataset gives what the same rows give as a table: results, counts, late rows and dead letters, with all columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import PenstockError
from penstock.io import datasets

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("note", pa.string())])
QUERIES = [
    "SELECT * FROM s",
    "SELECT ts, v + 1 AS w FROM s WHERE k = 'a'",
    "SELECT k, count(*) AS n [RANGE 4, SLIDE 2, WA ts] FROM s GROUP BY k",
    "SELECT max(v) AS m FROM s [RANGE TUMBLING 4, WA ts] WHERE v > 1",
    "SELECT a.k, b.v FROM (SELECT ts, k, v FROM s) a JOIN s b ON a.v = b.v AND a.ts BETWEEN b.ts - 2 AND b.ts + 2",
    "SELECT DISTINCT k FROM s WHERE v > 0",
    "SELECT ts, 10 div v AS d FROM (SELECT ts, k, v FROM s WHERE k <> 'b')",
    "SELECT count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM (SELECT ts, note, v FROM s) WHERE 10 div v > 1",
]
rows = st.fixed_dictionaries(
    {
        "ts": st.one_of(st.none(), st.integers(0, 20)),
        "k": st.sampled_from(["a", "b", None]),
        "v": st.one_of(st.none(), st.integers(0, 3)),
        "note": st.sampled_from(["x", "y, z", None]),
    }
)


def told(source: Any, sql: str) -> tuple[Any, ...]:
    query: Any = pk.Flow().stream("s", source, time="ts", progress=pk.bounded(3)).query(sql)
    found = sorted(map(repr, query.collect().to_pylist()))
    aside = [sorted(map(repr, t.to_pylist())) for t in (query.late, query.dead_letters)]
    return found, query.counts, *aside


@given(st.lists(rows, max_size=30), st.sampled_from(QUERIES), st.integers(1, 7))
def test_a_dataset_gives_what_a_table_gives(given_rows: list[dict[str, Any]], sql: str, size: int) -> None:
    table = pa.Table.from_pylist(given_rows, SCHEMA)
    parts = [table.slice(at, size) for at in range(0, table.num_rows, size)] or [table]
    dataset = pa.dataset.dataset(parts)
    assert told(dataset, sql) == told(pa.concat_tables(parts), sql)


def test_files_come_in_their_order_and_only_columns_that_are_read_are_parsed(tmp_path: Path) -> None:
    for number in range(4):
        lines = [f"{number * 100 + at},k{at},7,whatever" for at in range(100)]
        (tmp_path / f"{number}.csv").write_text("\n".join(lines) + "\n")
    form = pa.dataset.CsvFileFormat(
        read_options=pa.csv.ReadOptions(column_names=SCHEMA.names, block_size=256),
        convert_options=pa.csv.ConvertOptions(column_types=pa.schema([*list(SCHEMA)[:3], ("note", pa.int64())])),
    )
    typed = pa.schema([*list(SCHEMA)[:3], ("note", pa.int64())])
    dataset = pa.dataset.dataset(sorted(map(str, tmp_path.glob("*.csv"))), schema=typed, format=form)
    flow = pk.Flow().stream("s", dataset, time="ts", progress=pk.ordered())
    query: Any = flow.query("SELECT ts, v FROM s")
    assert query.collect()["ts"].to_pylist() == list(range(400))
    assert query.counts["on_time"] == 400
    with pytest.raises(PenstockError, match="CSV conversion error to int64"):
        flow.query("SELECT note FROM s").collect()


def test_late_rows_of_many_parts_are_read_once_more_and_no_row_is_mistaken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "BATCH_ROWS", 10)
    ts = [at - 50 if at % 7 == 3 and at > 50 else at for at in range(200)]
    table = pa.table({"ts": ts, "k": ["a"] * 200, "v": range(200), "note": [f"row {at}" for at in range(200)]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=33)
    dataset = pa.dataset.dataset(tmp_path / "x.parquet")
    sql = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM s"
    found = told(dataset, sql)
    assert found == told(table, sql)
    assert found[1]["late"] == 22
    notes = {f'"note": "row {at}"' for at in range(200) if at % 7 == 3 and at > 50}
    assert len(notes) == len(found[2]) == sum(any(note in text for text in found[2]) for note in notes)


def test_a_flow_of_several_queries_reads_a_dataset(tmp_path: Path) -> None:
    dataset = pa.dataset.dataset(pa.table({"ts": [1, 2], "k": ["a", "b"], "v": [3, 4], "note": ["x", "y"]}))
    flow = pk.Flow().stream("s", dataset, time="ts", progress=pk.ordered())
    one, other = (
        flow.query("SELECT ts, k FROM s", name="one"),
        flow.query("SELECT ts, v FROM s WHERE v > 3", name="other"),
    )
    run: Any = flow.start({one: (found := []), other: (more := [])})
    run.wait()
    assert [(row["k"]) for row in found] == ["a", "b"]
    assert [(row["v"]) for row in more] == [4]
