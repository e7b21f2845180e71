"""The rows that the window benchmarks run over: event time out of order, a key, a number.

Made from a seed and kept beside each other as one parquet file and as a folder of files for streams, so that every
contestant reads the same bytes. The rows are in order of arrival; none is more than `DISORDER` seconds behind the
greatest time before it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.model.time import SECOND

SLIDE = 10
SPAN = 7200
DISORDER = 5
START = 1_767_225_600 * SECOND
FAR = 365 * 86_400 * SECOND


@dataclass(frozen=True)
class Rows:
    """A data set on disk."""

    table: pa.Table
    file: str
    folder: str

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)


def make_rows(home: str, rows: int, keys: int = 1000, skew: float = 0.0, seed: int = 1, files: int = 8) -> Rows:
    """A data set of so many rows over two hours; `skew` is the exponent of a Zipf law over the keys, 0 is uniform.

    The folder holds the rows in `files` files and, last, one row far in the future, which closes every window before
    it.
    """
    rng = np.random.default_rng(seed)
    sent = np.sort(rng.integers(0, SPAN * SECOND, rows))
    order = np.argsort(sent + rng.integers(0, DISORDER * SECOND, rows), kind="stable")
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -skew
    edges = np.cumsum(weights / weights.sum())[:-1]
    key = np.searchsorted(edges, rng.random(rows)) if skew else rng.integers(0, keys, rows)
    table = pa.table(
        {
            "ts": pa.array(sent[order] + START, pa.timestamp("us", tz="UTC")),
            "k": pa.array(key, pa.int64()),
            "v": pa.array(rng.integers(0, 1_000_000, rows).astype(np.int32)),
        }
    )
    folder = Path(home, f"stream-{rows}-{skew:g}")
    folder.mkdir(parents=True)
    file = Path(home, f"rows-{rows}-{skew:g}.parquet")
    pq.write_table(table, file, row_group_size=max(rows // 8, 1))
    size = -(-rows // files)
    parts = [table.slice(i * size, size) for i in range(files)]
    far = pa.table([pa.array([START + FAR]), pa.array([0]), pa.array([0])], names=table.column_names).cast(table.schema)
    for i, part in enumerate([*parts, far]):
        path = folder / f"{i:03d}.parquet"
        pq.write_table(part, path)
        os.utime(path, (1_000_000 + i, 1_000_000 + i))
    return Rows(table, str(file), str(folder))
