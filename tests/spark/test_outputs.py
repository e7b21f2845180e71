"""The outputs of running replicas are merged into one folder, while any of them goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.flow.outputs import FolderMerge, merge_outputs
from tests.spark.test_merge import SQL, disordered, expected, output, write_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


def replica(spark: Any, home: Path, name: str, files: int) -> Any:
    """A pipeline of its own over its own copy of the stream."""
    flow = pk.Flow(spark, path=str(home / f"flow_{name}"))
    reader = spark.readStream.schema("ts bigint, k string, v int").option("maxFilesPerTrigger", files)
    flow.stream("clean", reader.parquet(str(home / name)), time="ts", progress=pk.bounded(12))
    return flow.query(SQL, name=f"counts_{name}").start(str(home / f"out_{name}"))


def merged(home: Path) -> FolderMerge:
    """Everything that is there, merged."""
    merge = merge_outputs([str(home / "out_a"), str(home / "out_b")], str(home / "out"), str(home / "merge"))
    merge.take_all()
    merge.close()
    return merge


def test_two_pipelines_write_and_one_folder_has_every_result_once(spark: Any, tmp_path: Path) -> None:
    """First a leads, then it stops for good and b, which was behind, goes on alone."""
    fast, slow = disordered(3, 10), disordered(4, 3)
    write_files(tmp_path / "a", fast, 60, range(3))
    write_files(tmp_path / "b", slow, 25, range(3))
    a, b = replica(spark, tmp_path, "a", 1), replica(spark, tmp_path, "b", 2)
    a.process_available()
    b.process_available()
    a.stop()
    merged(tmp_path)
    led = output(tmp_path)
    assert led
    assert led.items() <= expected().items()

    write_files(tmp_path / "b", slow, 25, range(3, 12))
    b.finish(for_good=True)
    merge = merged(tmp_path)
    assert output(tmp_path) == expected()
    assert merge.ended
    assert merge.progress["aside"] == 0
