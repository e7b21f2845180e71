"""What an estimated bound has cost, as a run on Spark tells it from its records; without Spark."""

from __future__ import annotations

import pytest

from penstock.engines.spark.statistics import OPERATORS, summed, sums_of
from penstock.engines.spark.trackers import streams_reached, tracked
from penstock.engines.spark.wire import load
from penstock.flow.estimate_progress import estimate_of
from penstock.model.batch import Batch
from penstock.model.estimated import estimated
from penstock.plan.identity import identities
from penstock.plan.nodes import Source
from penstock.sql.binder import bind
from penstock.storage.log import Record
from tests.engines.hosted import HostedPlan, bodies
from tests.operators.progress.test_ingest import SCHEMA, catalog

pytestmark = pytest.mark.spark  # the host is pyspark's; no session is started


@pytest.mark.parametrize("max_ahead", [None, 100])
@pytest.mark.parametrize("staged", [False, True])
def test_late_rows_of_all_micro_batches_are_counted(staged: bool, max_ahead: int | None) -> None:
    # rows=2: a micro-batch is a lot, and the last one is looked at
    # t       10 19  |  25 15! 16!  |  22 30
    # behind   0  0  |   0  4   3   |   3  0
    # bound         19             21       27
    own = catalog(estimated(0, rows=2), max_ahead)
    plan = bind("SELECT k, count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM s GROUP BY k", own)
    hosted, last = HostedPlan(plan, own, 2, staged=staged), None
    for number, times in enumerate([(10, 19), (25, 15, 16), (22, 30)]):
        rows = Batch(SCHEMA, [(t, "ab"[t % 2], None) for t in times])
        told = [load(body) for body in bodies(hosted.run(rows.table), OPERATORS)]
        last = Record("run", number, number, state={OPERATORS: summed(last, told)})
    (known,) = [k for k in identities(plan) if isinstance(k.node, Source)]
    assert isinstance(known.node, Source)
    state = tracked(hosted.record, "s")["progress"]
    found = estimate_of(known.node, state, sums_of(last)[known.identity])
    assert found is not None
    assert (found.rows, found.late, found.delay, found.aimed) == (7, 2, "3", 0.0)
    assert found.lateness == pytest.approx(2 / 7)
    assert streams_reached(hosted.record, [known.node]) == {"s": 27}
