"""Several attributes that progress, on Spark's mapper and host without Spark: any parts, several buckets, by batch.

What the buckets put out together is what the oracle says of the same micro-batches.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.spark.host import BucketArrivals, HostedGraph
from penstock.engines.spark.mapper import Mapper
from penstock.engines.spark.wire import load, unpack
from penstock.model.batch import Batch, Row, rows_of
from penstock.model.letters import promise_text
from penstock.model.progress import Progress, bounded, declared, ordered
from penstock.model.time import MIN_TICK
from penstock.plan.catalog import Catalog
from penstock.plan.distribution import routes
from penstock.plan.nodes import Source
from penstock.plan.planner import spark_streaming
from penstock.reference.arrivals import Arrivals as Stream
from penstock.runtime.showing import reached_by
from penstock.sql.binder import bind
from penstock.testing.strategies import cuts
from tests.profiles import examples
from tests.runtime.test_attributes import AMBIGUOUS, INCOMPLETE, PROGRESS, ROWS, SCHEMA, SPOKEN, catalog, placed

BUCKETS = 3
ITEMS: st.SearchStrategy[list[Row]] = st.lists(ROWS | ROWS | ROWS | SPOKEN | INCOMPLETE | AMBIGUOUS, max_size=24).map(
    placed
)  # type: ignore[arg-type]


@pytest.mark.parametrize("attribute", ["ts", "seq", None])
@given(rows=ITEMS, progress=PROGRESS, data=st.data())
@examples(25)
def test_buckets_together_say_what_the_oracle_says(
    attribute: str | None, rows: list[Row], progress: Progress, data: st.DataObject
) -> None:
    own = catalog(progress)
    window = f"SELECT k, count(*) AS n [RANGE 6, SLIDE 6, WA {attribute}] FROM s GROUP BY k"
    plan = bind("SELECT ts, seq, k FROM s" if attribute is None else window, own)
    (source,) = [n for n in plan.walk() if isinstance(n, Source)]
    route = routes(plan)
    assert route is not None
    mapper = Mapper(source, own, route["s"], BUCKETS)
    hosts: dict[int, HostedGraph] = {}
    batches = [rows[c] for c in data.draw(cuts(len(rows)))]
    judged = Stream("s", SCHEMA, progress, tuple(map(tuple, batches))).judge("batch", Catalog())
    counts: Counter[str] = Counter()
    passed: list[Row] = []
    late: list[object] = []
    for batch in batches:
        shuffled = data.draw(st.permutations(batch))
        cut = data.draw(st.integers(0, len(batch)))
        arrived: dict[int, BucketArrivals] = {}
        for part in (shuffled[:cut], shuffled[cut:]):
            for packed in mapper(iter(Batch(SCHEMA, part).table.to_batches())):
                for bucket, stream, body, note in zip(*(c.to_pylist() for c in packed.columns), strict=True):
                    arrived.setdefault(bucket, BucketArrivals()).add(stream, body, note)
        for bucket, own_arrivals in arrived.items():
            for kind, body in hosts.setdefault(bucket, HostedGraph(spark_streaming(plan, own), own)).run(own_arrivals):
                if kind == "counts":
                    counts.update(load(body))
                if kind == "result":
                    passed += rows_of(unpack(body))
                if kind == "late":
                    late += unpack(body).column("bound").to_pylist()
    for host in hosts.values():
        passed += [row for kind, body in host.close() if kind == "result" for row in rows_of(unpack(body))]
    on_time = [row for row, is_late in judged.data if not is_late]
    assert counts["on_time"] == len(on_time)
    assert counts["dead"] == judged.dead
    assert Counter(late) == Counter(promise_text(p, SCHEMA) for _, p in judged.late)  # type: ignore[arg-type]
    if attribute is None:
        assert sorted(passed, key=repr) == sorted((row[:3] for row in on_time), key=repr)
    else:
        at = SCHEMA.index(attribute)
        expected = Counter((row[at] // 6, row[2]) for row in on_time)  # type: ignore[operator]
        assert Counter({(row[0], row[3]): row[4] for row in passed}) == expected


def test_a_record_tells_how_far_the_time_has_come() -> None:
    progress = declared({"seq": ordered(), "ts": bounded(5)}, "ts")
    (source,) = [n for n in bind("SELECT * FROM s", catalog(progress)).walk() if isinstance(n, Source)]
    assert reached_by(source, [7, 30]) == 25
    assert reached_by(source, None) == MIN_TICK
