"""What buckets promise together, without Spark: never what one of them does not, and all that they all have said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.spark.bucket_promises import BucketPromises
from penstock.engines.spark.wire import load
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, groupwise, linear
from penstock.model.frontier import Frontier
from penstock.model.recent_promises import RecentPromises
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME
from penstock.storage.log import Record
from tests.engines.hosted import HostedPlan, bodies, tables

pytestmark = pytest.mark.spark
BUCKETS = 3
SAID = st.lists(
    st.tuples(
        st.integers(0, BUCKETS - 1),
        st.builds(lambda b, k: groupwise("t", b, k=k), st.integers(1, 6) | st.just(END_OF_TIME), st.sampled_from("ab"))
        | st.builds(lambda b: linear("t", b), st.integers(1, 8)),
    ),
    max_size=30,
)


@given(said=SAID, size=st.integers(1, 4))
def test_the_result_promises_what_all_buckets_do(said: list[tuple[int, Punctuation]], size: int) -> None:
    """Each step is a micro-batch, after which only what is in its record is left."""
    record: Record | None = None
    reached: dict[str, int] = {}
    whole = [Frontier() for _ in range(BUCKETS)]
    for start in range(0, len(said), size):
        told: dict[str, list[Any]] = {}
        for bucket, promise in said[start : start + size]:
            if not whole[bucket].add(promise):
                continue  # no operator says the same twice
            if promise.is_linear:
                reached[str(bucket)] = promise.value
            else:
                told.setdefault(str(bucket), []).append((promise.bounds, promise.constants))
        buckets = BucketPromises.after(record, BUCKETS)
        common = buckets.take(told, reached)
        record = Record("r", 0, 0, promises={"": common.to_text()}, state={"promised": buckets.kept()})
        together = whole[0].common(whole[1]).common(whole[2])
        assert all(own.implies(promise) for own in whole for promise in common)
        least = linear("t", min(reached.values()) if len(reached) == BUCKETS else 0)
        known = Frontier([least, *common])
        assert all(known.implies(promise) for promise in together if promise.constants)


def test_a_record_of_the_release_before_has_no_promises() -> None:
    assert len(BucketPromises.after(Record("r", 0, 0, state={"reached": {"0": 5}}), 2).take({}, {"0": 5})) == 0


SCHEMA = schema_of([("ts", "bigint"), ("a", "int"), ("v", "int"), ("p", "boolean")], "ts")


def test_hosted_groups_come_with_their_promise_and_the_promise_is_told_by_every_bucket() -> None:
    flow = pk.Flow().stream(
        "s", SCHEMA.arrow.empty_table(), time="ts", progress=pk.punctuated("p", per=["a"], final=True)
    )
    query: Any = flow.query("SELECT a, count(*) AS n, sum(v) AS t FROM s GROUP BY a")
    hosted = HostedPlan(query.plan, query.catalog, BUCKETS)
    batches = [
        [(1, 0, 5, None), (2, 1, 6, None), (3, 2, 7, None)],
        [(4, 0, 5, None), (9, 0, None, True)],
        [(5, 0, 1, None), (6, None, None, True)],
    ]
    came: list[list[Any]] = []
    late = 0
    merged = BucketPromises(BUCKETS, {}, RecentPromises())
    reached: dict[str, int] = {}
    for rows in batches:
        said = hosted.run(Batch(SCHEMA, rows).table)
        came.append([row for table in tables(said, "result") for row in table.to_pylist()])
        late += sum(table.num_rows for table in tables(said, "late"))
        told = {str(bucket): promises for bucket, promises in map(load, bodies(said, "promises"))}
        reached |= {str(bucket): bound for bucket, bound in map(load, bodies(said, "punctuation"))}
        common = list(merged.take(told, reached))
    progress = load(bodies(said, "progress")[-1])["promises"]
    assert came == [[], [{"a": 0, "n": 2, "t": 10}], []]
    assert late == 1
    assert common == [groupwise("__time", END_OF_TIME, a=0)]
    assert list(RecentPromises.from_plain(progress["s"])) == [groupwise("ts", END_OF_TIME, a=0)]
    assert sorted(reached.values()) == [2, 3, 6], "an open group holds its own bucket back"
