"""The Spark engine's mapper and host without Spark: packed parts in any cut, several buckets, judged by micro-batch.

What the buckets put out together is what the oracle says of the same micro-batches, for every kind of progress.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.spark.wire import load
from penstock.model.batch import Batch, Row
from penstock.model.progress import Progress
from penstock.sql.binder import bind
from tests.engines.hosted import HostedPlan, bodies, results
from tests.operators.progress.test_ingest import SCHEMA, arrivals, catalog, every_progress, limits, played
from tests.profiles import examples

BUCKETS = 3
PLAIN = "SELECT ts, k, v FROM s"
NUMBERED = (
    "SELECT k, v, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end, k ORDER BY v DESC) AS rn "
    "FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), 6))) WHERE rn <= 2"
)
WINDOWED = "SELECT k, count(*) AS n [RANGE 6, SLIDE 6, WA ts] FROM s GROUP BY k"


@every_progress
@pytest.mark.parametrize("sql", [PLAIN, WINDOWED, NUMBERED])
@given(batches=arrivals(), max_ahead=limits, data=st.data())
@examples(25)
def test_buckets_together_say_what_the_oracle_says(
    sql: str, progress: Progress, batches: list[list[Row]], max_ahead: int | None, data: st.DataObject
) -> None:
    own = catalog(progress, max_ahead)
    plan = bind(sql, own)
    hosted = HostedPlan(plan, own, BUCKETS)
    judged = played(progress, batches, "batch", max_ahead)
    counts: Counter[str] = Counter()
    passed: list[Row] = []
    for rows in batches:
        shuffled = data.draw(st.permutations(rows))
        cut = data.draw(st.integers(0, len(rows)))
        said = hosted.run(*(Batch(SCHEMA, part).table for part in (shuffled[:cut], shuffled[cut:])))
        for body in bodies(said, "counts"):
            counts.update(load(body))
        passed += results(said)
    passed += results(hosted.close())
    assert counts["on_time"] == len(judged.on_time)
    assert counts["late"] == len(judged.late)
    assert counts["dead"] == len(judged.backwards) + len(judged.ambiguous) + len(judged.ahead)
    assert len(hosted.hosts) in (0, BUCKETS)
    if sql == PLAIN:
        assert sorted(passed, key=repr) == sorted(judged.on_time, key=repr)
    elif sql == NUMBERED:
        assert Counter(row[:3] for row in passed) == first_two(judged.on_time)
    else:
        expected = Counter((t // 6, k) for t, k, _ in judged.on_time)
        assert Counter({(row[0], row[3]): row[4] for row in passed}) == expected


def first_two(rows: list[Row]) -> Counter[Row]:
    """Of each window and key the two greatest values, each with its number; null is the least."""
    groups: dict[Any, list[Any]] = {}
    for time, key, value in rows:
        groups.setdefault((time // 6, key), []).append(value)
    found: Counter[Row] = Counter()
    for (_, key), values in groups.items():
        ordered = sorted(values, key=lambda v: (v is None, -(v or 0)))
        found.update((key, value, number) for number, value in enumerate(ordered[:2], 1))
    return found
