"""How far the output of several buckets has come, without Spark: a bucket of a merge may still hold an event back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.engines.spark.host import BucketArrivals, HostedGraph
from penstock.engines.spark.wire import NOTE, ROWS, Note, dump_note, load, numbered, pack, unpack
from penstock.engines.spark.writing import least_bound
from penstock.model.batch import Batch
from penstock.operators.progress.trackers import tracker_for
from penstock.plan.nodes import Source
from penstock.plan.planner import spark_streaming

pytestmark = pytest.mark.spark
Rows = Mapping[str, list[tuple[int, str]]]


def took(bucket: HostedGraph, all_rows: Rows, own: str) -> tuple[list[Any], int | None]:
    """A micro-batch of one bucket, which has the rows of a key and the progress of all: its rows, and its bound."""
    arrivals = BucketArrivals()
    for stream, rows in all_rows.items():
        source = bucket.sources[stream]
        assert isinstance(source, Source)
        tracker = tracker_for(source.progress, source.schema.domain, source.max_ahead)
        note = Note(tracker.summarise(np.array([t for t, _ in rows], np.int64), None))
        mine = [row for row in rows if row[1] == own]
        if mine:
            arrivals.add(stream, ROWS, numbered(0, 0, pack(Batch(source.schema, mine).table)))
        arrivals.add(stream, NOTE, dump_note(note))
    found = {packet.kind: packet.body for packet in bucket.run(arrivals)}
    rows = unpack(found["result"]).to_pylist() if "result" in found else []
    return rows, load(found["punctuation"])[1] if "punctuation" in found else None


def test_no_row_comes_before_what_was_promised() -> None:
    flow = pk.Flow()
    for name in "abc":
        flow.stream(name, [], time="ts", schema="ts bigint, k string", progress=pk.bounded(0))
    flow.merge("m", ["a", "b", "c"], driver="majority", key=["k"])
    query = flow.query("SELECT * FROM m")
    buckets = {key: HostedGraph(spark_streaming(query.plan, query.catalog), query.catalog) for key in "xy"}
    batches: list[Rows] = [
        {"a": [(1, "x"), (60, "y")], "b": [(60, "y")], "c": [(0, "y")]},  # one of three has x: undecided
        {"a": [(200, "y")], "b": [(200, "y")], "c": [(1, "x"), (200, "y")]},
    ]
    reached: dict[str, int] = {}
    frontier, held_back = None, False
    for batch in batches:
        for key, bucket in buckets.items():
            rows, bound = took(bucket, batch, key)
            assert all(frontier is None or row["ts"] >= frontier for row in rows)
            if bound is not None:
                reached[key] = bound
        held_back = held_back or len(set(reached.values())) > 1
        frontier = least_bound(reached, len(buckets))
    assert held_back  # or the case shows nothing
    assert frontier is not None


def test_nothing_is_promised_before_every_bucket_has_spoken() -> None:
    assert least_bound({}, 1) is None
    assert least_bound({"0": 5}, 2) is None
    assert least_bound({"0": 5, "3": 4}, 2) == 4
