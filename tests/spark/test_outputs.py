"""The outputs of running replicas are merged into one folder, while any of them goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.errors import MergeError
from penstock.flow.outputs import merge_outputs
from tests.spark.test_merge import SQL, disordered, expected, output, write_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
ONCE = {"availableNow": True}


def replica(spark: Any, home: Path, name: str, files: int) -> Any:
    """A pipeline of its own over its own copy of the stream."""
    flow = pk.Flow(spark, path=str(home / f"flow_{name}"))
    reader = spark.readStream.schema("ts bigint, k string, v int").option("maxFilesPerTrigger", files)
    flow.stream("clean", reader.parquet(str(home / name)), time="ts", progress=pk.bounded(12))
    return flow.query(SQL, name=f"counts_{name}").start(str(home / f"out_{name}"))


def merged(spark: Any, home: Path) -> Any:
    return merge_outputs(
        spark, [str(home / "out_a"), str(home / "out_b")], str(home / "out"), str(home / "merge"), trigger=ONCE
    )


def test_two_pipelines_write_and_one_folder_has_every_result_once(spark: Any, tmp_path: Path) -> None:
    """First a leads, then it stops for good and b, which was behind, goes on alone."""
    fast, slow = disordered(3, 10), disordered(4, 3)
    write_files(tmp_path / "a", fast, 60, range(3))
    write_files(tmp_path / "b", slow, 25, range(3))
    a, b = replica(spark, tmp_path, "a", 1), replica(spark, tmp_path, "b", 2)
    a.process_available()
    b.process_available()
    a.stop()
    merged(spark, tmp_path).wait()
    led = output(tmp_path)
    assert led
    assert led.items() <= expected().items()

    write_files(tmp_path / "b", slow, 25, range(3, 12))
    b.finish()
    run = merged(spark, tmp_path)
    run.wait()
    assert output(tmp_path) == expected()
    assert run.progress["ended"]
    assert run.progress["dead"] == 0


def test_one_folder_is_not_a_merge(spark: Any) -> None:
    with pytest.raises(MergeError, match="at least two folders"):
        merge_outputs(spark, ["x"], "y", "z")
