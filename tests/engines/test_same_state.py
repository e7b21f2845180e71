"""Two attempts of a task keep the same state, to the last bit, in whatever order packets come and whatever hashes are.

Spark may keep the state that one attempt has written, and go on from that of the other: one was slow, and another was
started beside it, or its executor was lost after it had written. Pages of both are then mixed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import penstock as pk
from penstock.engines.spark.host import HostedBuckets
from penstock.engines.spark.judging import JudgingMapper
from penstock.engines.spark.wire import PACKED_TYPES, Packet
from penstock.model.batch import table_of
from penstock.operators.aggregates import text_codes, word_table
from penstock.plan.nodes import Node
from tests.engines.hosted import HostedPlan, packets_of
from tests.engines.test_join_stages import JOINS, THREE
from tests.engines.test_stages import CASES, SCHEMA, tables_to_look_into
from tests.engines.test_state_pages import Store

pytestmark = pytest.mark.spark  # the host is pyspark's; no session is started
BUCKETS = 2
Held = dict[tuple[int, int], dict[tuple[str], tuple[bytes]]]
UNCUT = {
    "limit": (CASES["grouped"][0], {"max_ahead": 1000}),
    "top-n": (
        "SELECT k, i, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end, k ORDER BY i DESC) AS rn "
        "FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), 6))) WHERE rn <= 2",
        {},
    ),
    "as-of join": ("SELECT s.i, z.d FROM s ASOF LEFT JOIN z [ROWS 2] ON s.k = z.k AND s.ts >= z.ts", {}),
    "join of several": (
        "SELECT k, count(*) AS n [RANGE 6, SLIDE 3, WA x] FROM (SELECT /*+ MULTIWAY_JOIN */ s.k AS k, z.ts AS x FROM s "
        "JOIN z ON s.k = z.k AND s.i = z.i AND z.ts BETWEEN s.ts - 9 AND s.ts JOIN z y ON y.k = z.k AND y.ts = z.ts) "
        "GROUP BY k",
        {},
    ),
    "replicas": ("SELECT k, count(*) AS n [RANGE 6, SLIDE 3, WA ts] FROM m GROUP BY k", {}),
}


def rows(task: int, batch: int) -> list[Any]:
    rng = random.Random(f"{task} {batch}")
    times = [12 * batch + rng.randint(-4, 12) for _ in range(600)]
    return [(t, rng.choice(["a", "bb", None, str(rng.random())]), rng.randrange(500), 0.1, None) for t in times]


class Attempt:
    """The tasks of some micro-batches, each in a worker that has only what was kept, packets in an order of its own."""

    def __init__(self, plan: Node, catalog: Any, seed: int, *, staged: bool) -> None:
        self.made = HostedPlan(plan, catalog, BUCKETS, staged=staged)
        self.catalog, self.rng, self.seed = catalog, random.Random(seed), np.uint64(seed)
        self.stores: dict[tuple[int, int], Store] = defaultdict(Store)

    def take(self, batch: int) -> Held:
        """The state after a micro-batch."""
        packets = []
        for mapper in self.made.mappers.values():
            for task in range(3):
                batches = iter(table_of(SCHEMA, rows(task, batch)).to_batches())
                found = mapper.judged(batches, {}, task) if isinstance(mapper, JudgingMapper) else mapper(batches)
                packets += packets_of(found)
        with (
            mock.patch.object(word_table, "SEED", self.seed),
            mock.patch.object(text_codes, "SEED", self.seed),
        ):
            for stage in range(1, self.made.planned.stages + 1) if self.made.planned.stages else [0]:
                packets = self._stage(packets, stage)
        return {place: dict(store.held) for place, store in self.stores.items()}

    def _stage(self, packets: list[Packet], stage: int) -> list[Packet]:
        arrived: dict[int, list[Packet]] = defaultdict(list)
        for packet in packets:
            arrived[packet.bucket].append(packet)
        given: list[Packet] = []
        for id_, own in sorted(arrived.items()):
            self.rng.shuffle(own)
            made, store = self.made, self.stores[stage, id_]
            worker = HostedBuckets(store, made.planned, self.catalog, made.buckets, stage, {})
            frame = worker.take(id_, [pd.DataFrame(own, columns=list(PACKED_TYPES))])
            if frame is not None and stage < made.planned.stages:
                given += [Packet(*row) for row in zip(*(frame[name] for name in PACKED_TYPES), strict=True)]
        return given


def attempts(sql: str, options: dict[str, Any], *, staged: bool) -> list[Attempt]:
    flow = pk.Flow()
    for name in "szy":
        flow.stream(name, SCHEMA.arrow.empty_table(), time="ts", progress=pk.bounded(3), **options)
    flow.merge("m", ["s", "z"])
    flow.catalog.tables.update(tables_to_look_into().tables)
    query = flow.query(sql)
    return [Attempt(query.plan, query.catalog, seed, staged=staged) for seed in (1, 2)]


STAGED = {
    **CASES,
    **{f"join, {name}": case for name, case in JOINS.items()},
    **{f"join of three, {name}": case for name, case in THREE.items()},
}


@pytest.mark.parametrize("case", [*STAGED, *UNCUT])
def test_two_attempts_keep_the_same_state(case: str) -> None:
    sql, options = UNCUT[case] if case in UNCUT else (STAGED[case][0], {})
    first, second = attempts(sql, options, staged=case in STAGED)
    assert bool(first.made.planned.stages) == (case in STAGED)
    for batch in range(3):
        kept, other = first.take(batch), second.take(batch)
        assert kept.keys() == other.keys()
        for place, pages in kept.items():
            assert {key: pages[key] for key in sorted(pages)} == other[place], place
    assert any(kept.values())
