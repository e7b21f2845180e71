"""`finish` puts out what is open; a query that was finished goes on when more comes.

```
files     first     1 7  12      |  finish: [0,10) [10,20) are out
          second            15   |25  31      15 is late, 25 and 31 are not
windows   [---10---)[---10---)[---10---)[---10---)
```
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import CheckpointError

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
WINDOWS = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s"


def start(spark: Any, home: Path, sql: str = WINDOWS) -> Any:
    frame = spark.readStream.schema("t bigint").json(str(home / "in"))
    flow = pk.Flow(spark, path=str(home / "flow")).stream("s", frame, time="t", progress=pk.bounded(100))
    return flow.query(sql, name="q").start(str(home / "out"))


def bring(home: Path, name: str, times: list[int]) -> None:
    (home / "in").mkdir(exist_ok=True)
    (home / "in" / name).write_text("\n".join(json.dumps({"t": t}) for t in times))


def results(home: Path) -> list[tuple[int, int]]:
    tables = [pq.read_table(f) for f in (home / "out").glob("*.parquet")]
    return sorted((row["window_end"], row["n"]) for t in tables for row in t.to_pylist())


def test_streams_reopen_after_finish(spark: Any, tmp_path: Path) -> None:
    bring(tmp_path, "0.json", [1, 7, 12])
    first = start(spark, tmp_path)
    first.finish()
    assert results(tmp_path) == [(10, 2), (20, 1)]
    assert not first.progress["ended"]

    bring(tmp_path, "1.json", [15, 25, 31])
    second = start(spark, tmp_path)
    second.finish()
    assert results(tmp_path) == [(10, 2), (20, 1), (30, 1), (40, 1)]
    assert second.progress["late"] == 1
    assert second.progress["on_time"] == 5

    start(spark, tmp_path).finish()  # with nothing new it changes nothing
    assert results(tmp_path) == [(10, 2), (20, 1), (30, 1), (40, 1)]


def test_a_join_goes_on_after_finish(spark: Any, tmp_path: Path) -> None:
    sql = "SELECT a.t, b.t AS u FROM s a LEFT JOIN s b ON b.t BETWEEN a.t + 1 AND a.t + 4"

    def pairs() -> list[tuple[int, int | None]]:
        tables = [pq.read_table(f) for f in (tmp_path / "out").glob("*.parquet")]
        return sorted((row["t"], row["u"]) for t in tables for row in t.to_pylist())

    bring(tmp_path, "0.json", [1, 3, 12])
    first = start(spark, tmp_path, sql)
    first.finish()
    assert pairs() == [(1, 3), (3, None), (12, None)]
    assert not first.progress["ended"]

    bring(tmp_path, "1.json", [15, 17, 20])  # 17 is the first that nothing before could have met
    second = start(spark, tmp_path, sql)
    second.finish()
    assert pairs() == [(1, 3), (3, None), (12, None), (17, 20), (20, None)]
    assert second.progress["late"] == 1


def test_streams_that_ended_for_good_do_not_begin_again(spark: Any, tmp_path: Path) -> None:
    bring(tmp_path, "0.json", [1, 7, 12])
    run = start(spark, tmp_path)
    run.finish(for_good=True)
    assert results(tmp_path) == [(10, 2), (20, 1)]
    assert run.progress["ended"]
    with pytest.raises(
        CheckpointError, match=r"(?s)have ended.*closed them for good.*another name or flow path.*stop\(\)"
    ):
        start(spark, tmp_path)
