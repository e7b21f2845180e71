"""Twenty million rows of which one in a hundred is late and one in a hundred has no value: memory does not grow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.model.batch import Batch

ROWS, BATCH = 20_000_000, 65_536
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.int32())])


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, BATCH):
        n = np.arange(start, min(start + BATCH, rows))
        times = np.where(n % 100 == 7, n - 10_000, n)
        yield pa.record_batch([pa.array(times), pa.array(n % 100), pa.array((n % 100 != 9).astype(np.int32))], SCHEMA)


def resident() -> int:
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
def test_memory_stays_flat() -> None:
    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches(ROWS))
    flow = pk.Flow().stream("s", reader, time="t", progress=pk.bounded(1000))
    query: Any = flow.query(
        "SELECT k, count(*) AS n, sum(1000 div v) AS s [RANGE 100000, SLIDE 20000, WA t] FROM s GROUP BY k"
    )
    execution = query.execution()
    seen: list[tuple[int, int]] = []
    results = 0
    for item in query.items(execution):
        results += len(item) if isinstance(item, Batch) else 0
        if not seen or execution.counts.read - seen[-1][0] >= ROWS // 20:
            seen.append((execution.counts.read, resident()))
    counts = execution.counts
    late = sum(1 for n in range(1000) if n % 100 == 7) * (ROWS // 1000)
    assert counts.read == ROWS
    assert abs(counts.late - late) <= 100  # the first are not behind anything yet
    assert counts.failed == ROWS // 100
    assert results > 0
    settled = next(memory for read, memory in seen if read >= ROWS // 5)
    growth = max(memory for read, memory in seen if read >= ROWS // 5) - settled
    print(f"{settled / 2**20:.0f} MiB after a fifth, {growth / 2**20:.1f} MiB more at the most, {counts}")
    assert growth < 20 * 2**20  # the late rows alone would be thirty
    assert sum(table.num_rows for table in execution.side.late.tables()) == counts.late
    assert sum(table.num_rows for table in execution.side.letters.tables()) == counts.failed
