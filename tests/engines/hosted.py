"""A plan over one stream on Spark's mapper and host, without Spark: parts of micro-batches in, what buckets say out."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from penstock.engines.spark.host import BucketArrivals, HostedGraph
from penstock.engines.spark.mapper import ControlMapper, Mapper
from penstock.engines.spark.wire import unpack
from penstock.model.batch import Row, rows_of
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Node, Source
from penstock.plan.planner import spark_streaming

Said = tuple[int, str, bytes]
"""What a bucket says: its id, a kind and a body."""


class HostedPlan:
    """The buckets of a plan; each is there from the first micro-batch on in which it is given anything."""

    def __init__(self, plan: Node, catalog: Catalog, buckets: int, lived: Any = None) -> None:
        self.planned, self.catalog = spark_streaming(plan, catalog), catalog
        (entrance,) = [p for p in self.planned.walk() if isinstance(p.node, Source)]
        assert isinstance(entrance.node, Source)
        self.stream = entrance.node.name
        self.mapper = Mapper(entrance.node, catalog, entrance.distribution.keys, buckets, lived=lived)
        self.control = ControlMapper(buckets, (self.stream,))
        self.hosts: dict[int, HostedGraph] = {}

    def run(self, *parts: pa.Table, bound: int | None = None) -> list[Said]:
        """A micro-batch of parts in this order, and a bound from outside."""
        packed = [batch for part in parts for batch in self.mapper(iter(part.to_batches()))]
        if bound is not None:
            line = json.dumps({"stream": self.stream, "bound": bound})
            packed += self.control(iter([pa.RecordBatch.from_pydict({"value": [line]})]))
        arrived: dict[int, BucketArrivals] = {}
        for batch in packed:
            for row in batch.to_pylist():
                arrived.setdefault(row["bucket"], BucketArrivals()).add(row["stream"], row["rows"], row["note"])
        return [(id_, *said) for id_, own in arrived.items() for said in self._host(id_).run(own)]

    def _host(self, bucket: int) -> HostedGraph:
        if bucket not in self.hosts:
            self.hosts[bucket] = HostedGraph(self.planned, self.catalog)
        return self.hosts[bucket]

    def close(self) -> list[Said]:
        """The end of the stream."""
        return [(id_, *said) for id_, host in self.hosts.items() for said in host.close()]


def bodies(said: list[Said], kind: str) -> list[bytes]:
    """What buckets say of one kind."""
    return [body for _, found, body in said if found == kind]


def tables(said: list[Said], kind: str) -> list[pa.Table]:
    """The tables of one kind: results, late rows or dead letters."""
    return [unpack(body) for body in bodies(said, kind)]


def results(said: list[Said]) -> list[Row]:
    """The rows of the result."""
    return [row for table in tables(said, "result") for row in rows_of(table)]
