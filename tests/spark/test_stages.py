"""Plans in several stages on Spark: what they come to, across restarts, and that a checkpoint fixes its stages."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import CheckpointError
from penstock.model.batch import table_of
from penstock.plan.catalog import Catalog
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import agreement
from tests.engines.test_stages import CASES, SCHEMA
from tests.profiles import some_and_slow

pytestmark = pytest.mark.spark
SHOWN = ["two groupings", "union of depths", "global", "over a union", "three groupings", "distinct counts"]
TWO = (
    "SELECT max(n) AS m, sum(n) AS c [RANGE 60, SLIDE 30, WA window_end] FROM "
    "(SELECT k, count(*) AS n {} FROM s GROUP BY k) x"
)


def rows(rng: random.Random, start: int) -> tuple[Any, ...]:
    return tuple(
        (start + rng.randint(-4, 12), rng.choice(["a", "bb", "ccc", None]), rng.randint(0, 4), 0.5, None)
        for _ in range(400)
    )


@pytest.mark.parametrize("case", some_and_slow(SHOWN, 2))
def test_every_evaluator_agrees(case: str, spark: Any) -> None:
    """So many rows that partials travel."""
    rng = random.Random(case)
    streams = [Arrivals(name, SCHEMA, pk.bounded(3), tuple(rows(rng, 12 * at) for at in range(3))) for name in "sz"]
    found = agreement(CASES[case][0], streams, Catalog(), spark=spark)
    assert found.agrees, found.render()
    assert found["spark streaming"].got is not None


def started(spark: Any, home: Path, window: str) -> Any:
    flow = pk.Flow(spark, path=str(home / "flow"))
    source = spark.readStream.schema(SCHEMA.ddl).option("maxFilesPerTrigger", 1).parquet(str(home / "in"))
    flow.stream("s", source, time="ts", progress=pk.bounded(20))
    query: Any = flow.query(TWO.format(window), "two")
    return query.start(str(home / "out"))


def test_two_stages_go_on_where_they_were(spark: Any, tmp_path: Path) -> None:
    """The counts of all windows together are the rows that were on time, each in two of the outer windows."""
    (tmp_path / "in").mkdir()
    window = "[RANGE 30, SLIDE 30, WA ts]"
    for at in range(4):
        made = [(at * 100 + i % 100, "abc"[i % 3], i, 0.5, None) for i in range(300)]
        pq.write_table(table_of(SCHEMA, made), tmp_path / "in" / f"{at}.parquet")
        run = started(spark, tmp_path, window)
        run.process_available()
        run.stop()
    run = started(spark, tmp_path, window)
    run.finish()
    assert (run.progress["read"], run.progress["on_time"], run.progress["late"]) == (1200, 1200, 0)
    found = spark.read.parquet(str(tmp_path / "out")).toPandas()
    assert found["c"].sum() == 2 * 1200
    assert found["wid"].is_unique
    assert set(found["m"]) == {30, 10}  # every key comes once in every tick, and the last window has ten
    manifest = json.loads((tmp_path / "flow" / "two" / "manifest.json").read_text())
    assert [(port, stage, kind) for _, port, stage, kind, _ in manifest["stages"]] == [(0, 2, "single"), (0, 1, "keys")]


def test_a_checkpoint_keeps_its_stages(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(table_of(SCHEMA, [(1, "a", 1, 0.5, None)]), tmp_path / "in" / "0.parquet")
    run = started(spark, tmp_path, "[RANGE 30, SLIDE 30, WA ts]")
    run.process_available()
    run.stop()
    file = tmp_path / "flow" / "two" / "manifest.json"
    saved = json.loads(file.read_text())
    file.write_text(json.dumps({**saved, "stages": saved["stages"][:1]}))
    with pytest.raises(CheckpointError, match="cut into other stages"):
        started(spark, tmp_path, "[RANGE 30, SLIDE 30, WA ts]")
