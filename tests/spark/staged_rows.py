"""Files of rows for queries in stages: so many rows that partials travel, results of which there are files, late rows.

A file is one micro-batch, of which Spark makes two parts. Times are plain numbers.

```
file        0         1         2   …
time   0----|----40
            20---|----60
                 40---|----80
late             ^5        ^25                     (15 behind the bound of the files before)
```
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import NamedTuple

ROWS = 5000
SPLIT = {"spark.sql.files.openCostInBytes": "1", "spark.sql.files.maxPartitionBytes": "400000"}
"""With these a session reads a file in two tasks or more."""
DDL = "ts bigint, src string, g bigint, k bigint, v int, p boolean, _corrupt_record string"


class Row(NamedTuple):
    """A row that can be read; `p` says that it is punctuation where that is asked for."""

    ts: int
    src: str
    g: int
    k: int
    v: int
    p: bool | None = None


def rows_of_file(number: int) -> list[Row]:
    """In order of arrival."""
    rng = random.Random(number)
    times = [20 * number + rng.randrange(40) for _ in range(ROWS)]
    if number:
        times += [20 * number - 15 + rng.randrange(5) for _ in range(25)]
    rows = [Row(t, rng.choice("ab"), rng.randrange(9), rng.randrange(20_000), rng.randrange(1000)) for t in times]
    # The slowest source holds the stream back where each has a progress of its own.
    rows += [Row(20 * number + rng.randrange(31), "c", 3, 7, rng.randrange(1000)) for _ in range(20)]
    rows += [Row(20 * number + 30, "c", 3, 7, 5), *(Row(20 * number + 39, src, 3, 7, 5) for src in "ab")]
    rng.shuffle(rows)
    rows.insert(rng.randrange(len(rows)), Row(20 * number + 20, "a", 0, 0, 0, True))
    return rows


def broken_of_file(number: int) -> list[str]:
    """The records of a file that cannot be used."""
    whole = {"ts": None, "src": "a", "g": number, "k": 1, "v": 2, "p": None}
    return ['{"ts": 12, "src', json.dumps(whole)] if number % 2 == 0 else []


def write_file(folder: Path, number: int, seed: int | None = None) -> None:
    """Put a file where the stream reads it; with a seed, as a replica that has the rows in an order of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = rows_of_file(number)
    if seed is not None:
        random.Random(seed).shuffle(rows)
    lines = [json.dumps(row._asdict()) for row in rows]
    lines[3:3] = broken_of_file(number)
    partial = folder / f".{number:03}.json"
    partial.write_text("\n".join(lines) + "\n")
    os.utime(partial, (1_000 + number, 1_000 + number))
    partial.rename(folder / f"{number:03}.json")
