"""Probes of Spark: what they say they carry comes through, and what they say they keep is there the next time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.bench.scale_pieces import make_rows
from penstock.bench.scale_spark import stream_of
from penstock.engines.spark.probe import Probe, driver_busy, empty_tasks, probe_stream

pytestmark = pytest.mark.spark


def test_a_probe_carries_its_packets_and_keeps_its_pages(spark: Any, tmp_path: Path) -> None:
    probe = Probe(packets=3, packet_bytes=100, pages=2, page_bytes=1000)
    frame = stream_of(spark, tmp_path / "in", [make_rows(1, 1, at) for at in range(2)], at_once=1)
    stream = probe_stream(frame, probe).writeStream.outputMode("append").format("memory").queryName("probed")
    running = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    running.awaitTermination()
    assert [row.taken for row in spark.table("probed").collect()] == [probe.carried] * 2
    (state,) = running.recentProgress[-1].stateOperators
    assert state.numRowsTotal == probe.pages


def test_the_driver_is_busy_with_tasks_that_do_nothing(spark: Any) -> None:
    before = driver_busy()
    took, busy = empty_tasks(spark, 20)
    assert took > 0
    assert busy >= 0
    after = driver_busy()
    assert before is None or (after is not None and after >= before)
