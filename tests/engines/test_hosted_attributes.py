"""Several attributes that progress, on Spark's mapper and host without Spark: any parts, several buckets, by batch.

What the buckets put out together is what the oracle says of the same micro-batches.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.spark.wire import load
from penstock.model.batch import Batch, Row
from penstock.model.letters import promise_text
from penstock.model.progress import Progress, bounded, declared, ordered
from penstock.model.time import MIN_TICK
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Source
from penstock.reference.arrivals import Arrivals as Stream
from penstock.runtime.showing import reached_by
from penstock.sql.binder import bind
from penstock.testing.strategies import cuts
from tests.engines.hosted import HostedPlan, bodies, results, tables
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
    hosted = HostedPlan(plan, own, BUCKETS)
    batches = [rows[c] for c in data.draw(cuts(len(rows)))]
    judged = Stream("s", SCHEMA, progress, tuple(map(tuple, batches))).judge("batch", Catalog())
    counts: Counter[str] = Counter()
    passed: list[Row] = []
    late: list[object] = []
    for batch in batches:
        shuffled = data.draw(st.permutations(batch))
        cut = data.draw(st.integers(0, len(batch)))
        said = hosted.run(*(Batch(SCHEMA, part).table for part in (shuffled[:cut], shuffled[cut:])))
        for body in bodies(said, "counts"):
            counts.update(load(body))
        passed += results(said)
        late += [bound for table in tables(said, "late") for bound in table.column("bound").to_pylist()]
    passed += results(hosted.close())
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
