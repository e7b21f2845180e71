"""What goes through the operators of a hosted graph, summed over buckets and micro-batches, without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.spark.statistics import OPERATORS, Numbers, summed, sums_of
from penstock.engines.spark.wire import load
from penstock.model.batch import Batch, Row
from penstock.model.progress import bounded
from penstock.model.time import END_OF_TIME
from penstock.plan.catalog import Catalog
from penstock.plan.identity import identities
from penstock.plan.nodes import Node, Select, Source, WindowAggregate
from penstock.sql.binder import bind
from penstock.storage.log import Record
from tests.engines.hosted import HostedPlan, Said, bodies, results
from tests.operators.progress.test_ingest import SCHEMA, arrivals, catalog, played
from tests.profiles import examples

pytestmark = pytest.mark.spark  # the host is pyspark's; no session is started
SQL = "SELECT k, count(*) AS n [RANGE 6, SLIDE 6, WA ts] FROM s WHERE v > 0 GROUP BY k"


class Buckets:
    """A hosted plan in several buckets, and the record after each micro-batch."""

    def __init__(self, plan: Node, own: Catalog, count: int) -> None:
        self.hosted = HostedPlan(plan, own, count)
        self.results = 0
        self.last: Record | None = None

    def take(self, rows: list[Row]) -> list[Numbers]:
        return self._recorded(self.hosted.run(Batch(SCHEMA, rows).table))

    def end(self) -> list[Numbers]:
        return self._recorded(self.hosted.run(bound=END_OF_TIME))

    def _recorded(self, said: list[Said]) -> list[Numbers]:
        told = [load(body) for body in bodies(said, OPERATORS)]
        self.results += len(results(said))
        number = 0 if self.last is None else self.last.number + 1
        self.last = Record("run", number, number, state={OPERATORS: summed(self.last, told)})
        return told


@given(batches=arrivals(), count=st.integers(1, 3))
@examples(25)
def test_rows_through_all_buckets_are_those_of_one_graph(batches: list[list[Row]], count: int) -> None:
    own = catalog(bounded(3), None)
    plan = bind(SQL, own)
    buckets = Buckets(plan, own, count)
    for rows in batches:
        buckets.take(rows)
    buckets.end()
    on_time = played(bounded(3), batches, "batch", None).on_time
    kept = [row for row in on_time if row[2] is not None and row[2] > 0]
    found = {k.node: sums_of(buckets.last).get(k.identity, {}) for k in identities(plan)}
    source, select, windows = (
        next(found[n] for n in found if isinstance(n, kind)) for kind in (Source, Select, WindowAggregate)
    )
    assert source.get("rows_in", 0) == sum(map(len, batches))
    assert (source.get("rows_out", 0), select.get("rows_in", 0)) == (len(on_time), len(on_time))
    assert (select.get("rows_out", 0), windows.get("rows_in", 0)) == (len(kept), len(kept))
    assert windows.get("rows_out", 0) == buckets.results == len({(t // 6, k) for t, k, _ in kept})


def test_every_bucket_counts_the_promises_that_it_is_given() -> None:
    own = catalog(bounded(0), None)
    plan = bind(SQL, own)
    buckets = Buckets(plan, own, 3)
    buckets.take([(7, "a", 1)])
    windows = next(k.identity for k in identities(plan) if isinstance(k.node, WindowAggregate))
    assert sums_of(buckets.last)[windows] == {"rows_in": 1, "punctuations_in": 3, "punctuations_out": 3}


def test_a_micro_batch_tells_only_what_it_added() -> None:
    own = catalog(bounded(3), None)
    plan = bind("SELECT ts, v FROM s WHERE v > 0", own)
    buckets = Buckets(plan, own, 1)
    buckets.take([(5, "a", 1), (6, "a", 0)])
    (told,) = buckets.take([(6, "a", 0)])
    source, select = (next(k.identity for k in identities(plan) if isinstance(k.node, n)) for n in (Source, Select))
    assert told == {source: {"rows_in": 1, "rows_out": 1}, select: {"rows_in": 1}}
    assert buckets.take([]) == []


@pytest.mark.parametrize("state", [None, {}, {"reached": {"0": 3}}])
def test_records_from_before_they_were_kept(state: Any) -> None:
    old = Record("run", 4, 4, state=state)
    assert sums_of(old) == sums_of(None) == {}
    assert summed(old, [{"a": {"rows_in": 2}}, {"a": {"rows_in": 3, "failed": 1}}]) == {
        "a": {"rows_in": 5, "failed": 1}
    }
