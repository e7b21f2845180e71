"""Started queries with traps at every point of their stages, and what each must come to, by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import penstock as pk
from penstock.model.progress import Progress
from tests.spark import staged_by_hand as by_hand
from tests.spark.staged_by_hand import Bag, Bound, Judged
from tests.spark.staged_rows import DDL, Row
from tests.spark.traps import STAGED, Traps

MEASURES = "count(*) AS n, sum(v) AS s, max(v) AS m"
TRAPPED = "FROM main WHERE reading(v) = v"
LAST = "HAVING in_last(count(*)) = count(*)"
PER_GROUP = "SELECT g, count(*) AS n, max(v) AS m [RANGE 10, SLIDE 10, WA ts]"


@dataclass(frozen=True)
class Case:
    """A query, how its stream progresses, and by hand what is promised and what the rows come to."""

    sql: str
    progress: Progress
    promised: Bound
    results: Callable[[Sequence[Row]], Bag]
    points: tuple[str, ...]
    """At which it can be caught, in the order of a micro-batch."""
    replicas: tuple[str, ...] = ("main",)

    def expected(self, files: int) -> dict[str, Bag]:
        judged = self.judged(files)
        return {
            "results": self.results(judged[0].on_time),
            "late": sum((own.late for own in judged), Counter()),
            "dead": sum((own.dead for own in judged), Counter()),
        }

    def counts(self, files: int) -> dict[str, int]:
        """What `run.progress` must add up to."""
        each = [own.counts() for own in self.judged(files)]
        return {name: sum(counts[name] for counts in each) for name in each[0]}

    def judged(self, files: int) -> list[Judged]:
        return [by_hand.judged(files, self.promised, stream) for stream in self.replicas]


BOUNDED = (pk.bounded(by_hand.DELAY), by_hand.behind_the_newest)
CASES = {
    "grouped": Case(
        f"SELECT k, {MEASURES} [RANGE 30, SLIDE 10, WA ts] {TRAPPED} GROUP BY k {LAST}",
        *BOUNDED,
        by_hand.grouped,
        ("reading", "in_last", STAGED),
    ),
    "whole": Case(
        f"SELECT {MEASURES} [RANGE 30, SLIDE 10, WA ts] {TRAPPED} {LAST}",
        *BOUNDED,
        by_hand.whole,
        ("reading", "in_last"),
    ),
    "two groupings": Case(
        "SELECT max(n) AS n, sum(n) AS s, max(m) AS m [RANGE 20, SLIDE 10, WA window_end] "
        f"FROM ({PER_GROUP} {TRAPPED} GROUP BY g) x WHERE in_first(n) = n {LAST}",
        pk.per_source("src", disorder=by_hand.DELAY),
        by_hand.of_the_slowest,
        by_hand.two_groupings,
        ("reading", "in_first", "in_last"),
    ),
    "joined": Case(
        "SELECT b.g, count(*) AS n, sum(a.v) AS s, max(b.v) AS m [RANGE 20, SLIDE 10, WA a.ts] "
        "FROM main a JOIN main b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + 5 "
        f"WHERE reading(a.v) = a.v AND in_first(a.v + b.v) = a.v + b.v GROUP BY b.g {LAST}",
        *BOUNDED,
        by_hand.joined,
        ("reading", "in_first", "in_last"),
    ),
    "union": Case(
        f"SELECT g, {MEASURES} [RANGE 20, SLIDE 10, WA ts] {TRAPPED} GROUP BY g {LAST} UNION ALL "
        f"SELECT v % 7, {MEASURES} [RANGE 20, SLIDE 10, WA ts] FROM main GROUP BY v % 7",
        pk.punctuated("p", whole_stream=True),
        by_hand.as_told,
        by_hand.union_of_two,
        ("reading", "in_last"),
    ),
    "replicas": Case(
        f"SELECT g, {MEASURES} [RANGE 20, SLIDE 10, WA ts] {TRAPPED} GROUP BY g {LAST}",
        *BOUNDED,
        by_hand.once,
        ("reading", "in_last"),
        ("left", "right"),
    ),
}


def start(spark: Any, home: Path, case: Case, traps: Traps, kills: int | None = None, **how: Any) -> Any:
    """Start a query, or go on from its checkpoint; what is caught `kills` a process group, or is held.

    The flow and its results are told as the home is. Spark takes a relative path for one of its JVM, so its own is not.
    """
    flow = pk.Flow(spark, path=home / "flow")
    for stream in case.replicas:
        reader = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
        flow.stream(stream, reader.json(str(Path(home).absolute() / "in" / stream)), time="ts", progress=case.progress)
    if len(case.replicas) > 1:
        flow.merge("main", list(case.replicas), key=["src", "g", "k", "v", "p"])
    for point in ("reading", "in_first", "in_last"):
        trapped = traps.function(point, kills=kills, staging=point == "in_last")
        flow.function(point, trapped, "bigint", version="1")
    return flow.query(case.sql, name="q").start(home / "out", **how)


def output(home: Path) -> dict[str, Bag]:
    """Results, late rows and dead letters as bags of tuples, as anybody sees who reads the folders."""
    late = ((stream, bound, *json.loads(row).values()) for stream, bound, row in rows_in(home / "flow/q/late"))
    return {
        "results": Counter(rows_in(home / "out")),
        "late": Counter(late),
        "dead": Counter(rows_in(home / "flow/q/dead")),
    }


def rows_in(folder: Path) -> list[tuple[object, ...]]:
    tables = [pq.read_table(file, partitioning=None) for file in sorted(folder.glob("*.parquet"))]
    return [row for table in tables for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def staged_files(home: Path) -> set[str]:
    """What lies in the staging folder of the results."""
    folder = home / "out/_penstock/staging"
    return {file.name for file in folder.iterdir()} if folder.exists() else set()
