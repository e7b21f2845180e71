"""Patterns of files mean on Spark what they mean in-process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import SourceError

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_pattern_reads_any_number_of_folders(spark: Any, tmp_path: Path, ending: str) -> None:
    for t, name in enumerate(["a", "b/c", "b/{x}[1]/d e", "b/c/f/g"]):
        file = tmp_path / f"{name}.{ending}"
        file.parent.mkdir(parents=True, exist_ok=True)
        if ending == "csv":
            file.write_text(f"t\n{t}\n")
        else:
            pq.write_table(pa.table({"t": [t]}), file)
    for pattern, expected in (("**/*", [0, 1, 2, 3]), ("b/**/*", [1, 2, 3]), ("**/c", [1]), ("b/*/**/g", [3])):
        for flow in (pk.Flow(), pk.Flow(spark)):
            source = tmp_path / f"{pattern}.{ending}"
            q: Any = flow.stream("s", source, time="t", progress=pk.bounded(100)).query("SELECT t FROM s")
            assert sorted(q.collect()["t"].to_pylist()) == expected, (pattern, flow.engine)
    with pytest.raises(SourceError, match="There is no such file"):
        pk.Flow(spark).stream("s", tmp_path / f"**/none.{ending}", time="t")
