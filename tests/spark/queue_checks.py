"""What must be true of a conflated query that has come to its end, computed by hand from the rows of its files.

No key's latest value is lost, no row is given twice, and the counts add up. Conflated by windows, each window that
comes is whole, and the last of every key comes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.spark.queue_driver import RANGE, rows_of


def counted(progress: Mapping[str, Any], files: int) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """The rows that came, and what is told of their queue."""
    (queue,) = progress["queues"]
    came = [row for number in range(files) for row in rows_of(number)]
    assert (progress["read"], progress["on_time"], progress["late"]) == (len(came), len(came), 0)
    assert queue["waiting"] == 0
    assert queue["enqueued"] == len(came)
    assert queue["enqueued"] == queue["dequeued"] + queue["superseded"] + queue["older"]
    return came, queue


def check_rows(home: Path, files: int, progress: Mapping[str, Any]) -> None:
    came, queue = counted(progress, files)
    delivered = pq.read_table(home / "out").to_pylist()
    last: dict[int, int] = {}
    for row in came:
        last[row["k"]] = max(row["ts"], last.get(row["k"], 0))
    found: dict[int, int] = {}
    for row in delivered:
        found[row["k"]] = max(row["ts"], found.get(row["k"], 0))
    assert found == last
    assert not Counter(row["v"] for row in delivered) - Counter(row["v"] for row in came)  # none twice
    passed = pq.read_table(home / "superseded").to_pylist()
    whole = Counter(row["v"] for row in delivered) + Counter(json.loads(row["row"])["v"] for row in passed)
    assert whole == Counter(row["v"] for row in came)
    assert queue["delivered"] == queue["dequeued"] == len(delivered)
    assert queue["superseded"] + queue["older"] == len(passed)


def check_windows(home: Path, files: int, progress: Mapping[str, Any]) -> None:
    came, _ = counted(progress, files)
    sums, counts = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for row in came:
        window = ((row["ts"] // RANGE + 1) * RANGE, row["k"])
        sums[window] += row["v"]
        counts[window] += 1
    delivered = pq.read_table(home / "out").to_pylist()
    found = {(row["window_end"], row["k"]): row for row in delivered}
    assert len(found) == len(delivered)  # none twice
    for window, row in found.items():
        assert (row["v"], row["n"]) == (sums[window], counts[window])
    last = {key: max(end for end, own in sums if own == key) for _, key in sums}
    assert {key: max(end for end, own in found if own == key) for key in last} == last
    assert len(found) < len(sums)  # some were passed over


CHECKS = {"rows": check_rows, "linecutting": check_rows, "windows": check_windows}
