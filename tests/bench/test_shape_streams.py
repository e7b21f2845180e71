"""The benchmark of shapes on Spark: its files are a stream of which nothing is late, and it claims the worst."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.bench.micro_batches import AT_ONCE, BATCHES
from penstock.bench.shape_streams import KEYS, ShapeStreamsBench


def test_claims_are_of_the_worst() -> None:
    bench = ShapeStreamsBench(None, 1000)
    assert {keys for keys, _ in bench.shapes} == set(KEYS)
    bench.ours = dict.fromkeys(bench.shapes, 100.0) | {(100_000, "integer"): 140.0, (1000, "text"): 120.0}
    bench.windows = dict.fromkeys(bench.shapes, 200.0) | {(1000, "text"): 132.0}
    even, lead = bench._claims()
    assert even.value == pytest.approx(1.4)
    assert lead.value == pytest.approx(1.1)
    row = next(r for r in bench._table() if r["keys"] == 100_000 and r["type"] == "integer")
    assert row["Spark started"] == 7143  # 1000 rows in 0.14 s
    assert row["times faster"] == 1.43


def test_files_are_a_stream_in_order_of_arrival(tmp_path: Path) -> None:
    batches = ShapeStreamsBench(None, 501)._stream(tmp_path, (1000, "text"))
    files = sorted(batches.folder.iterdir())
    assert len(files) == BATCHES * AT_ONCE
    bound = 0
    for file in files:
        times = pq.read_table(file)["ts"].cast("int64").to_numpy()
        assert len(times) == 250
        assert times.min() >= bound
        bound = times.max() - 5_000_000
