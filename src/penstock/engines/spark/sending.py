"""What leaves a stage, or the place where rows are read, for a later stage: an exchange at its near end.

Rows go to the buckets that the exchange says, as few entries per pane and group where the aggregate behind it can take
those, each once where it is only asked which there are, and of each key the newest where they go to an update queue;
promises go to every bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

import numpy as np
import pyarrow as pa

from penstock.engines.spark.buckets import bucket_ids
from penstock.engines.spark.routing import Router, spread
from penstock.engines.spark.statistics import OPERATORS
from penstock.engines.spark.wire import BOUNDS, PARTIALS, ROWS, STANDS, UPDATES, Packet, dump, output, pack
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.letters import superseded_table
from penstock.operators.aggregates.partial_forms import PartialForm, partial_form
from penstock.operators.queues.newest_of_each import newest_of_each
from penstock.operators.relational.distinct import first_of_equal
from penstock.plan.nodes import Conflate, Distinct, Node, WindowAggregate
from penstock.plan.physical import Physical
from penstock.runtime.builder import Builder


class Sending:
    """The near end of one exchange."""

    def __init__(
        self, plan: Physical, sender: Physical, builder: Builder, buckets: int, *, keeps_superseded: bool = False
    ) -> None:
        """`plan` is the whole of which the sender is a part; whether rows that a queue would pass over are wanted."""
        assert sender.exchange is not None
        self.port, self.stage, self.buckets = sender.identity, sender.exchange.stage, buckets
        self.ids = bucket_ids(buckets)
        distribution, functions = sender.exchange.distribution, builder.functions
        self._route = Router(distribution, sender.node.schema, functions, buckets)
        consumer = next((above for above in plan.walk() if any(below is sender for below in above.inputs)), None)
        self._form = _form(consumer, builder)
        self._distinct = consumer.identity if consumer is not None and isinstance(consumer.node, Distinct) else None
        self._queue = consumer.node if consumer is not None and _keeps_newest(consumer.node) else None
        self._keeps_superseded = keeps_superseded
        if self._form is not None:
            self._route_entries = Router(distribution, self._form.keys, functions, buckets)

    def __call__(self, batch: Batch, here: int) -> Iterator[Packet]:
        """Rows, or what they come to; `here` is the number of the bucket or task that sends."""
        if not len(batch):
            return
        if self._distinct is not None:
            given, batch = batch, first_of_equal(batch)
            if len(batch) < len(given):
                left_out = {self._distinct: {"rows_in": len(given) - len(batch)}}
                yield output(OPERATORS, dump(left_out))
        if self._queue is not None:
            yield from self._newest(self._queue, batch, here)
            return
        entries = self._form.of(batch) if self._form is not None else None
        if entries is None or self._form is None:
            yield from self._packets(ROWS, batch.table, self._route(batch, here))
        else:
            keys = Batch(self._form.keys, table=entries)
            yield from self._packets(PARTIALS, entries, self._route_entries(keys, here))

    def _newest(self, queue: Conflate, batch: Batch, here: int) -> Iterator[Packet]:
        """Of each update key the newest row, with how many it stands for."""
        places, stands_for = newest_of_each(batch, queue.key)
        newest = batch.take(places)
        if self._keeps_superseded and len(newest) < len(batch):
            left = batch.take(np.setdiff1d(np.arange(len(batch)), places, assume_unique=True))
            yield output("superseded", pack(superseded_table(queue.label, "superseded", left)))
        table = newest.table.append_column(STANDS, pa.array(stands_for))
        yield from self._packets(UPDATES, table, self._route(newest, here))

    def _packets(self, kind: str, table: pa.Table, where: np.ndarray) -> Iterator[Packet]:
        for bucket, own in spread(table, where, self.buckets):
            yield Packet(self.ids[bucket], self.stage, self.port, kind, pack(own))

    def promise(self, promises: Sequence[Punctuation], here: int) -> Iterator[Packet]:
        """What is promised of the rows that a bucket sends."""
        if promises:
            body = dump((here, [(p.bounds, p.constants) for p in promises]))
            for id_ in self.ids:
                yield Packet(id_, self.stage, self.port, BOUNDS, body)


def _keeps_newest(node: Node) -> TypeGuard[Conflate]:
    """Whether of rows that go to a node the newest of each key matter, and not all rows of its windows."""
    return isinstance(node, Conflate) and node.windows is None


def _form(consumer: Physical | None, builder: Builder) -> PartialForm | None:
    """How rows are brought down for the aggregate that they go to, if they go to one."""
    if consumer is None or not isinstance(consumer.node, WindowAggregate):
        return None
    return partial_form(builder.operator(consumer))
