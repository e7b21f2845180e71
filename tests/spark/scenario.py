"""One streaming query with everything that can go wrong in its input, and what must come of it, computed by hand.

Six files arrive one per micro-batch. Rows come up to 40 seconds out of order, some of them too late, and some records
are broken. The query counts and sums in sliding windows per address.

```
file        0         1         2         3   …
time   0----|----40
            20---|----60
                 40---|----80
late             ^5        ^25       ^45           (20 s behind the bound of the files before)
```
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import penstock as pk
from tests.spark.by_hand import Row, sorted_out, text, ticks, windowed

FILES = 6
PROGRESS = pk.bounded("20 seconds")
SQL = (
    "SELECT srcIP, count(*) AS n, sum(len) AS total, max(len) AS longest [RANGE 30 seconds, SLIDE 10 seconds, WA ts] "
    "FROM main WHERE {condition} GROUP BY srcIP"
)
START = ticks(dt.datetime(2026, 1, 1))
SECOND = 1_000_000
DELAY, RANGE, SLIDE = 20 * SECOND, 30 * SECOND, 10 * SECOND
"""What the progress and the query say."""

BEHIND = 15
"""Seconds by which late rows are behind the bound of the files before."""

Probe = Callable[[int], int]


def rows_of_file(number: int, behind: int = BEHIND) -> list[Row]:
    """The readable rows of one file, in order of arrival; the last is the newest. Late ones are so far `behind`."""
    rng = random.Random(number)
    seconds = [20 * number + rng.randrange(40) for _ in range(30)]
    if 20 * number > behind:
        seconds += [20 * number - behind, 20 * number - behind - 1]
    rows: list[Row] = [
        (START + s * SECOND, rng.choice(["10.0.0.1", "10.0.0.2", None]), rng.randrange(40, 1500)) for s in seconds
    ]
    rng.shuffle(rows)
    return [*rows, (START + (20 * number + 40) * SECOND, "10.0.0.9", number)]


def broken_of_file(number: int) -> list[str]:
    """The records of one file that cannot be used."""
    return ['{"ts": "2026-01', json.dumps({"ts": None, "srcIP": "10.0.0.1", "len": number})] if number % 2 == 0 else []


def write_files(folder: Path, files: range = range(FILES), behind: int = BEHIND) -> None:
    """Put the files where the stream reads them, oldest first."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in files:
        lines = [json.dumps({"ts": text(t), "srcIP": a, "len": n}) for t, a, n in rows_of_file(number, behind)]
        lines[3:3] = broken_of_file(number)
        path = folder / f"{number:03}.json"
        partial = folder / f".{number:03}.json"
        partial.write_text("\n".join(lines) + "\n")
        os.utime(partial, (1_000 + number, 1_000 + number))
        partial.rename(path)


def start(spark: Any, home: Path, *, sink: Any = None, probe: Probe | None = None, buckets: int | None = None) -> Any:
    """Start the query, or go on from its checkpoint. `probe` is called with `len` of every row that counts."""
    frame = (
        spark.readStream.schema("ts string, srcIP string, len int, _corrupt_record string")
        .option("maxFilesPerTrigger", 1)
        .json(str(home / "in"))
    )
    flow = pk.Flow(spark, path=str(home / "flow"))
    flow.stream("main", frame, time="ts", progress=PROGRESS)

    def same(value: int) -> int:
        return value if probe is None else probe(value)

    flow.function("probe", same, "int", version="1")  # with a probe or without, it means the same
    query = flow.query(SQL.format(condition="probe(len) = len"), name="talkers")
    return query.start(sink or str(home / "out"), buckets=buckets)


def output(home: Path) -> dict[str, Counter[tuple[object, ...]]]:
    """Results, late rows and dead letters as bags of tuples, times in ticks."""
    return output_of(home / "out", home / "flow" / "talkers")


def output_of(out: Path, flow: Path) -> dict[str, Counter[tuple[object, ...]]]:
    """The same of any query with these columns."""
    late = ((stream, bound, *_readable(json.loads(row))) for stream, bound, row in rows_in(flow / "late"))
    return {"results": Counter(rows_in(out)), "late": Counter(late), "dead": Counter(rows_in(flow / "dead"))}


def _readable(row: dict[str, Any]) -> Row:
    return ticks(dt.datetime.fromisoformat(row["ts"])), row["srcIP"], row["len"]


def rows_in(folder: Path) -> list[tuple[object, ...]]:
    """What anybody sees who reads the folder's parquet files."""
    tables = [pq.read_table(file, partitioning=None) for file in sorted(folder.glob("*.parquet"))]
    return [tuple(map(_plain, row.values())) for table in tables for row in table.to_pylist()]


def _plain(value: object) -> object:
    return ticks(value) if isinstance(value, dt.datetime) else value


def judged(files: int = FILES, behind: int = BEHIND) -> tuple[list[Row], list[tuple[Row, int]]]:
    """Which rows are on time, and which are late, when each file is one micro-batch."""
    return sorted_out([rows_of_file(number, behind) for number in range(files)], DELAY)


def expected(files: int = FILES, behind: int = BEHIND) -> dict[str, Counter[tuple[object, ...]]]:
    """Results of all windows, late rows, and the dead letters that were written into the files."""
    on_time, late = judged(files, behind)
    return {
        "results": windowed(on_time, RANGE, SLIDE),
        "late": Counter(("main", bound, *row) for row, bound in late),
        "dead": Counter(
            ("main", None, "the record is corrupt" if broken.endswith("-01") else "ts is null", broken)
            for number in range(files)
            for broken in broken_of_file(number)
        ),
    }


def expected_counts() -> dict[str, int]:
    """What `run.progress` must add up to."""
    on_time, late = map(len, judged())
    dead = sum(len(broken_of_file(number)) for number in range(FILES))
    nothing = dict.fromkeys(("punctuation", "skipped", "failed"), 0)
    return {"read": on_time + late + dead, "on_time": on_time, "late": late, "dead": dead, **nothing}
