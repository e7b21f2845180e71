"""A plan on Spark's mappers and host, without Spark: parts of micro-batches in, what buckets say out."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from penstock.engines.spark.buckets import bucket_ids
from penstock.engines.spark.host import HostedGraph, sorted_packets
from penstock.engines.spark.judging import JudgingMapper
from penstock.engines.spark.mapper import ControlMapper, Mapper
from penstock.engines.spark.parts import PartReader
from penstock.engines.spark.streaming import is_single
from penstock.engines.spark.trackers import plain_tracker, tracked
from penstock.engines.spark.wire import OUT, Packet, load, unpack
from penstock.model.batch import Row, rows_of
from penstock.model.letters import late_schema
from penstock.operators.relational.attempt import by_row
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import Expression
from penstock.plan.native import with_native
from penstock.plan.nodes import Node, Source
from penstock.plan.physical import Physical
from penstock.plan.planner import spark_streaming
from penstock.runtime.row_functions import row_function
from penstock.storage.log import Record

Said = tuple[int, str, bytes]
"""What a bucket says: its id, a kind and a body."""
Parts = Iterable[pa.Table]


def packets_of(batches: Iterable[pa.RecordBatch]) -> list[Packet]:
    return [Packet(**row) for batch in batches for row in batch.to_pylist()]


class HostedPlan:
    """The buckets of a plan; each is there from the first micro-batch on in which it is given anything."""

    def __init__(
        self,
        plan: Node,
        catalog: Catalog,
        buckets: int,
        lived: Any = None,
        *,
        staged: bool = False,
        native: Callable[[Expression], bool] = lambda expression: False,
    ) -> None:
        """Expressions that are `native` are computed beside the rows, as Spark would."""
        planned = spark_streaming(plan, catalog, staged=staged)
        self.planned, self.catalog = with_native(planned, lambda e, schema: native(e)), catalog
        self.buckets = 1 if is_single(self.planned) and staged else buckets
        entrances = {p.node.name: p for p in self.planned.walk() if isinstance(p.node, Source)}
        late = late_schema(*(p.node.schema for p in entrances.values()))
        self.mappers = {name: self._mapper(entrance, late, lived) for name, entrance in entrances.items()}
        self.stream = next(iter(entrances))
        self.control = ControlMapper(self.buckets, tuple(entrances))
        self.hosts: dict[tuple[int, int], HostedGraph] = {}
        self.record = Record("run", -1, -1)
        self.sent: dict[int, list[Packet]] = {}
        """What was sent in the last micro-batch, by the stage that has sent it; 0 is where rows are read."""

    def _mapper(self, entrance: Physical, late: Any, lived: Any) -> Mapper | JudgingMapper:
        source = entrance.node
        assert isinstance(source, Source)
        reader = PartReader(source.schema, lived=lived, made=self.planned.made_of(source.name))
        if self.planned.stages:
            return JudgingMapper(self.planned, source, self.catalog, self.buckets, reader, late, "")
        return Mapper(source, self.catalog, entrance.distribution.keys, self.buckets, reader)

    def run(self, *parts: pa.Table, bound: int | None = None) -> list[Said]:
        """A micro-batch of parts of the first stream in this order, and a bound from outside."""
        return self.run_all({self.stream: parts}, {} if bound is None else {self.stream: bound})

    def run_all(self, parts: Mapping[str, Parts], bounds: Mapping[str, int] | None = None) -> list[Said]:
        """A micro-batch of parts of all streams, each read by a task of its own, and bounds from outside."""
        packets = []
        for task, (stream, part) in enumerate((s, p) for s, own in parts.items() for p in own):
            mapper = self.mappers[stream]
            batches = iter(with_columns_made(part, mapper.reader).to_batches())
            if isinstance(mapper, JudgingMapper):
                packets += packets_of(mapper.judged(batches, tracked(self.record, stream), task))
            else:
                packets += packets_of(mapper(batches))
        for stream, bound in (bounds or {}).items():
            line = json.dumps({"stream": stream, "bound": bound})
            packets += packets_of(self.control(iter([pa.RecordBatch.from_pydict({"value": [line]})])))
        self.sent = {0: packets}
        for stage in range(1, self.planned.stages + 1) if self.planned.stages else [0]:
            packets = self.sent[stage] = self._stage(packets, stage)
        said = [(packet.bucket, packet.kind, packet.body) for packet in packets]
        for known in map(load, bodies(said, "progress")):
            told = {stream: plain_tracker(*state) for stream, state in known["trackers"].items()}
            self.record = Record("run", 0, 0, trackers={**self.record.trackers, **told})
        return said

    def _stage(self, packets: list[Packet], stage: int) -> list[Packet]:
        arrived: dict[int, list[Packet]] = defaultdict(list)
        for packet in packets:
            arrived[packet.bucket].append(packet)
        given: list[Packet] = []
        for id_, own in arrived.items():
            arrivals, passing = sorted_packets(own, stage)
            host = self._host(id_, stage)
            ran = host.run(arrivals, numbers_of(self.buckets)[id_])
            given += [p._replace(bucket=id_) if p.stage == OUT else p for p in [*passing, *ran]]
        return given

    def _host(self, bucket: int, stage: int) -> HostedGraph:
        if (bucket, stage) not in self.hosts:
            made = HostedGraph(self.planned, self.catalog, buckets=self.buckets, stage=stage)
            self.hosts[bucket, stage] = made
        return self.hosts[bucket, stage]

    def close(self) -> list[Said]:
        """The end of the streams of a plan that is not cut."""
        return [(id_, p.kind, p.body) for (id_, _), host in self.hosts.items() for p in host.close()]


def with_columns_made(part: pa.Table, reader: PartReader) -> pa.Table:
    """The part with what is to be computed beside its rows: values, and whether there is none."""
    rows = rows_of(part)
    for at, expression in enumerate(reader.made):
        function = row_function(expression, reader.schema, {})
        good, failed = by_row(rows, lambda row, function=function: (function(row),))
        values, flags = [None] * len(rows), [False] * len(rows)
        for place, (value,) in good:
            values[place] = value
        for place, _ in failed:
            flags[place] = True
        part = part.append_column(f"m{at}", pa.array(values, expression.type.arrow))
        part = part.append_column(f"f{at}", pa.array(flags))
    return part


def numbers_of(buckets: int) -> dict[int, int]:
    """The number of each bucket by its id."""
    return {id_: number for number, id_ in enumerate(bucket_ids(buckets))}


def bodies(said: list[Said], kind: str) -> list[bytes]:
    """What buckets say of one kind."""
    return [body for _, found, body in said if found == kind]


def tables(said: list[Said], kind: str) -> list[pa.Table]:
    """The tables of one kind: results, late rows or dead letters."""
    return [unpack(body) for body in bodies(said, kind)]


def results(said: list[Said]) -> list[Row]:
    """The rows of the result."""
    return [row for table in tables(said, "result") for row in rows_of(table)]
