"""A query that is stopped and started again goes on from its checkpoint. Holds in every mode of running Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import CheckpointError, RunError, StorageWarning
from tests.spark import scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


def test_goes_on_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    half = scenario.FILES // 2
    scenario.write_files(tmp_path / "in", range(half))
    first = scenario.start(spark, tmp_path)
    first.process_available()
    first.stop()
    assert first.progress["batches"] == half

    scenario.write_files(tmp_path / "in", range(half, scenario.FILES))
    second = scenario.start(spark, tmp_path)
    second.finish()

    assert scenario.output(tmp_path) == scenario.expected()
    assert second.progress.items() >= scenario.expected_counts().items()
    *_, source = second.progress.operators
    assert source.rows_out == scenario.expected_counts()["on_time"], "statistics of both starts"


COLUMNS = "ts bigint, k string, v int, other double"
WINDOWS = "SELECT k, max(f(v)) AS m [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k"
START: dict[str, Any] = {"columns": COLUMNS, "sql": WINDOWS, "progress": pk.bounded(5), "function": lambda v: v}


def begin(spark: Any, home: Path, **changed: Any) -> Any:
    """Start a query over a folder of JSON files, with something changed since its checkpoint was made."""
    given = {**START, **changed}
    (home / "in").mkdir(exist_ok=True)
    frame = spark.readStream.schema(given["columns"]).json(str(home / "in"))
    flow = pk.Flow(spark, path=str(home / "flow"))
    flow.stream("s", frame, time="ts", progress=given["progress"])
    flow.function("f", given["function"], "int", version=given.get("version"))
    return flow.query(given["sql"], name="windows").start(str(home / "out"))


def put(home: Path, number: int, *rows: dict[str, Any]) -> None:
    (home / "in").mkdir(exist_ok=True)
    (home / "in" / f"{number}.json").write_text("\n".join(map(json.dumps, rows)) + "\n")


def test_a_restart_with_something_changed_is_refused_by_the_part_that_differs(spark: Any, tmp_path: Path) -> None:
    put(tmp_path, 0, {"ts": 1, "k": "a", "v": 3}, {"ts": 12, "k": "a", "v": 1})
    first = begin(spark, tmp_path)
    first.process_available()
    first.stop()
    for changed, said in (
        ({"columns": COLUMNS.replace("v int", "v string")}, "column v of stream s: was int, is string"),
        ({"columns": COLUMNS.replace("k string", "k bigint")}, "column k of stream s: was string, is bigint"),
        ({"progress": pk.ordered()}, "progress of stream s: was bounded(5), is ordered()"),
        ({"function": lambda v: v + 1}, "code of function f: was py3"),
        ({"sql": WINDOWS.replace("SLIDE 5", "SLIDE 10")}, "SLIDE 10"),
        ({"sql": WINDOWS.replace("AS m", "AS greatest_v")}, "columns of the result"),
    ):
        with pytest.raises(CheckpointError) as caught:
            begin(spark, tmp_path, **changed)
        assert said in str(caught.value)
        assert WINDOWS not in str(caught.value)

    manifest = tmp_path / "flow" / "windows" / "manifest.json"
    whole = manifest.read_text()
    for damaged, said in ((whole[:-20], "manifest is damaged or cut short"), (None, "has lost its manifest")):
        manifest.unlink()
        if damaged is not None:
            manifest.write_text(damaged)
        with pytest.raises(CheckpointError, match=said):
            begin(spark, tmp_path)
    manifest.write_text(whole)

    # Wording, other columns and their order, and an equal function may change, and an operator without state may come.
    put(tmp_path, 1, {"ts": 4, "k": "a", "v": 9}, {"ts": 13, "k": "a", "v": 5})
    harmless = {
        "columns": "v int, k string, ts bigint, more string",
        "sql": WINDOWS.lower().replace("from s", "\nfrom S x") + " having max(f(v)) > 4",
        "function": lambda value: value,
    }
    second = begin(spark, tmp_path, **harmless)
    second.finish()
    found = {(r["window_end"], r["m"]) for r in pq.read_table(tmp_path / "out").to_pylist()}
    assert found == {(5, 3), (15, 5), (20, 5)}  # 4 was late: the bound had reached 7; (10, 3) is not above 4


def test_branches_of_a_union_change_places_and_sources_are_read_on(spark: Any, tmp_path: Path) -> None:
    """Spark knows loaded sources by their number, so the order of the checkpoint is the one that counts."""

    def start(order: str) -> Any:
        flow = pk.Flow(spark, path=str(tmp_path / "flow"))
        for name in "ab":
            frame = spark.readStream.schema("t bigint, k string").json(str(tmp_path / name))
            flow.stream(name, frame, time="t", progress=pk.bounded(2))
        query = flow.query(f"SELECT k, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM {order} GROUP BY k", name="u")
        return query.start(str(tmp_path / "out"))

    def bring(stream: str, number: int, *times: int) -> None:
        (tmp_path / stream).mkdir(exist_ok=True)
        rows = "\n".join(json.dumps({"t": t, "k": stream}) for t in times)
        (tmp_path / stream / f"{number}.json").write_text(rows + "\n")

    bring("a", 0, 1, 2, 11)
    bring("b", 0, 3)
    first = start("a UNION b")
    first.process_available()
    first.stop()
    bring("a", 1, 12)
    bring("b", 1, 4, 13)
    second = start("b UNION a")
    second.finish()
    found = {(r["window_end"], r["k"], r["n"]) for r in pq.read_table(tmp_path / "out").to_pylist()}
    assert found == {(10, "a", 2), (10, "b", 2), (20, "a", 2), (20, "b", 1)}
    assert (second.progress["read"], second.progress["late"]) == (7, 0)


def test_a_join_goes_on_whatever_its_relations_are_called_and_its_streams_have_besides(
    spark: Any, tmp_path: Path
) -> None:
    """Every column of orders is read at first; then there are more of them, elsewhere, one of a name that is shared."""

    def start(orders: str, sql: str) -> Any:
        flow = pk.Flow(spark, path=str(tmp_path / "flow"))
        for name, columns in (("orders", orders), ("paid", "ts bigint, id bigint, sum int")):
            (tmp_path / name).mkdir(exist_ok=True)
            frame = spark.readStream.schema(columns).json(str(tmp_path / name))
            flow.stream(name, frame, time="ts", progress=pk.bounded(2))
        return flow.query(sql, name="j").start(str(tmp_path / "out"))

    def bring(stream: str, number: int, *rows: dict[str, Any]) -> None:
        (tmp_path / stream / f"{number}.json").write_text("\n".join(map(json.dumps, rows)) + "\n")

    near = "p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + 10"
    sql = f"SELECT o.ts, o.id, o.item, p.sum FROM orders o LEFT JOIN paid p ON {near}"
    first = start("ts bigint, id bigint, item string", sql)
    bring("orders", 0, *({"ts": t, "id": t, "item": f"i{t}"} for t in range(6)))
    bring("paid", 0, {"ts": 4, "id": 3, "sum": 30})
    first.process_available()
    first.stop()

    other = sql.replace("o.", "x.").replace("orders o", "orders x").replace("p.", "o.").replace("paid p", "paid o")
    second = start("item string, sum int, ts bigint, id bigint", other)
    bring("paid", 1, {"ts": 7, "id": 5, "sum": 50}, {"ts": 40, "id": -1, "sum": 0})
    bring("orders", 1, {"ts": 40, "id": 40, "item": "i40", "sum": 1})
    second.finish()
    found = {(r["ts"], r["id"], r["item"], r["sum"]) for r in pq.read_table(tmp_path / "out").to_pylist()}
    paid = {3: 30, 5: 50}
    assert found == {(t, t, f"i{t}", paid.get(t)) for t in (*range(6), 40)}


def test_state_that_is_cut_and_results_that_are_gone_are_told(spark: Any, tmp_path: Path) -> None:
    for number in range(2):
        put(tmp_path, number, *({"ts": 20 * number + t, "k": "a", "v": t} for t in range(0, 20, 3)))
        first = begin(spark, tmp_path)
        first.process_available()
        first.stop()
    whole = {file: file.read_bytes() for file in (tmp_path / "flow/windows/checkpoint/state").rglob("*.changelog")}
    for file, content in whole.items():
        file.write_bytes(content[: len(content) // 2])
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    put(tmp_path, 2, {"ts": 60, "k": "a", "v": 1})
    cut = begin(spark, tmp_path)
    with pytest.raises(RunError) as told:
        cut.process_available()
    assert told.value.what == "State of the query in Spark's checkpoint is damaged or gone."
    with pytest.raises(RunError):
        cut.stop()

    for file, content in whole.items():
        file.write_bytes(content)
    gone = min(file for file in (tmp_path / "out").glob("part-*.parquet") if "empty" not in file.name)
    gone.unlink()
    with pytest.warns(StorageWarning, match=f"{gone.name} is gone"):
        second = begin(spark, tmp_path)
    second.process_available()
    second.stop()
    assert second.progress["read"] == 15
