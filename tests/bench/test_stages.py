"""The benchmark of stages: its queries are cut as it says, over files in which no row is late."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.bench.micro_batches import AT_ONCE, BATCHES
from penstock.bench.stages import PLANS, make_files
from penstock.plan.planner import spark_streaming


@pytest.mark.parametrize(("name", "stages"), [(name, 2 if name == "two groupings" else 1) for name in PLANS])
def test_plans_are_cut(name: str, stages: int) -> None:
    flow = pk.Flow().stream("main", [], time="ts", schema="ts timestamp, k bigint, v int")
    query = flow.query(PLANS[name])
    assert spark_streaming(query.plan, query.catalog, staged=True).stages == stages


def test_no_row_is_late_by_micro_batch(tmp_path: Path) -> None:
    folder = make_files(tmp_path, 200, skewed=True)
    files = sorted(folder.iterdir())
    assert len(files) == BATCHES * AT_ONCE
    bound = 0
    for at in range(0, len(files), AT_ONCE):
        batch = pq.read_table(files[at : at + AT_ONCE])
        times = batch["ts"].cast("int64").to_numpy()
        assert times.min() >= bound
        bound = max(bound, times.max() - 5_000_000)
        assert (batch["k"].to_numpy() == 0).mean() > 0.8
