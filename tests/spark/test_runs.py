"""Runs on Spark: the suite of both engines, and what only this engine does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.errors import StreamError, UnsupportedError
from tests.flow.run_suite import SQL, Suite, parquet_rows
from tests.spark.modes import chosen

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class SparkHarness:
    writes_here = chosen() != "connect"

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.brought = spark, folder, 0
        (folder / "in").mkdir()

    def query(self, sql: str = SQL, name: str = "q", *, text: bool = False) -> pk.Query:
        frame = self.spark.readStream.schema(f"t {'string' if text else 'bigint'}").json(str(self.folder / "in"))
        flow = pk.Flow(self.spark, path=str(self.folder / "flow")).stream("s", frame, time="t")
        return flow.query(sql, name)

    def bring(self, times: list[Any]) -> None:
        partial = self.folder / f"{self.brought}.json"
        partial.write_text("\n".join(json.dumps({"t": t}) for t in times))
        partial.rename(self.folder / "in" / f"{self.brought}.json")
        self.brought += 1

    def target(self) -> str:
        return str(self.folder / "out")

    def written(self) -> list[dict[str, Any]]:
        return parquet_rows(iter((self.folder / "out").glob("*.parquet")))

    def rows(self, found: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = found.toArrow().to_pylist()
        return rows

    def failing_sink(self) -> Any:
        def failing_sink(frame: Any, number: int) -> None:
            raise OSError("disk full")

        return failing_sink


class TestOnSpark(Suite):
    @pytest.fixture
    def harness(self, spark: Any, tmp_path: Path) -> SparkHarness:
        return SparkHarness(spark, tmp_path)


def test_what_a_stream_has_not_is_said(spark: Any, tmp_path: Path) -> None:
    query = SparkHarness(spark, tmp_path).query()
    assert (query.is_streaming, query.engine) == (True, "Spark streaming")
    with pytest.raises(UnsupportedError, match="do not leave Spark one by one"):
        query.elements()
    with pytest.raises(StreamError, match=r"(?s)counted while it runs.*run\.progress"):
        _ = query.counts
    with query.start(str(tmp_path / "out"), late=lambda frame, number: None) as run:
        for asked, what in ((run.statistics, "Statistics are of graphs"), (run.graph, "Graphs are drawn of what")):
            with pytest.raises(UnsupportedError, match=what):
                asked()
        with pytest.raises(UnsupportedError, match=r"query\.explain\(\)"):
            pk.Flow(spark).graph()
        with pytest.raises(UnsupportedError, match="late rows of this run go to a function"):
            _ = run.late
        with pytest.raises(UnsupportedError, match="has no snapshot"):
            run.snapshot()


ROWS = [(1, "a", 1), (7, "a", 0), (12, None, 2), (2, "a", 3), (None, "a", 4), (30, "p", 1), (11, "a", 6), (40, None, 7)]


@pytest.mark.parametrize("progress", [pk.ordered(), pk.punctuated("k = 'p'", whole_stream=True)], ids=str)
@pytest.mark.parametrize("arrival", [None, "n"])
def test_a_batch_is_counted_as_in_process(spark: Any, progress: Any, arrival: str | None) -> None:
    columns = "t bigint, k string, v bigint"
    numbered = [(*row, n) for n, row in enumerate(ROWS)]
    frame = spark.createDataFrame(numbered, columns + ", n bigint")
    sql = "SELECT t, 10 div v AS x FROM s"
    flow = pk.Flow(spark).stream("s", frame, time="t", progress=progress, arrival=arrival)
    found = flow.query(sql).counts
    rows = [dict(zip(("t", "k", "v"), row, strict=True)) for row in ROWS]
    local = pk.Flow().stream("s", rows, time="t", progress=progress, schema=columns).query(sql)
    local.collect()
    if arrival is None:  # without an order nothing is late, and whoever was late counts
        late = local.counts["late"] + local.counts["dead"] - 1
        assert (found["late"], found["on_time"]) == (0, local.counts["on_time"] + late)
    else:
        assert found == local.counts


def test_a_hosted_batch_is_counted(spark: Any) -> None:
    class Total:
        def lift(self, value: int) -> int:
            return value

        def combine(self, left: int, right: int) -> int:
            return left + right

        def lower(self, partial: int) -> int:
            return partial

    frame = spark.createDataFrame([(t,) for t in (1, 5, None, 12)], "t bigint")
    flow = pk.Flow(spark).stream("s", frame, time="t").aggregate("total", Total, "bigint")
    query = flow.query("SELECT total(t) AS n [RANGE 10, SLIDE 10, WA t] FROM s")
    assert {k: n for k, n in query.counts.items() if n} == {"read": 4, "on_time": 3, "dead": 1}
    assert [t["n"].to_pylist() for t in query.batches()] == [query.collect()["n"].to_pylist()]
