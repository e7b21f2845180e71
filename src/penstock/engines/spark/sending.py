"""What leaves a stage, or the place where rows are read, for a later stage: an exchange at its near end.

Rows go to the buckets that the exchange says, as few entries per pane and group where the aggregate behind it can take
those, and each once where it is only asked which there are; promises go to every bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.engines.spark.buckets import bucket_ids
from penstock.engines.spark.routing import Router, spread
from penstock.engines.spark.statistics import OPERATORS
from penstock.engines.spark.wire import BOUNDS, PARTIALS, ROWS, Packet, dump, output, pack
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.operators.aggregates.partial_forms import PartialForm, partial_form
from penstock.operators.relational.distinct import first_of_equal
from penstock.plan.nodes import Distinct, WindowAggregate
from penstock.plan.physical import Physical
from penstock.runtime.builder import Builder


class Sending:
    """The near end of one exchange."""

    def __init__(self, plan: Physical, sender: Physical, builder: Builder, buckets: int) -> None:
        """`plan` is the whole of which the sender is a part."""
        assert sender.exchange is not None
        self.port, self.stage, self.buckets = sender.identity, sender.exchange.stage, buckets
        self.ids = bucket_ids(buckets)
        distribution, functions = sender.exchange.distribution, builder.functions
        self._route = Router(distribution, sender.node.schema, functions, buckets)
        consumer = next((above for above in plan.walk() if any(below is sender for below in above.inputs)), None)
        self._form = _form(consumer, builder)
        self._distinct = consumer.identity if consumer is not None and isinstance(consumer.node, Distinct) else None
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
        entries = self._form.of(batch) if self._form is not None else None
        if entries is None or self._form is None:
            yield from self._packets(ROWS, batch.table, self._route(batch, here))
        else:
            keys = Batch(self._form.keys, table=entries)
            yield from self._packets(PARTIALS, entries, self._route_entries(keys, here))

    def _packets(self, kind: str, table: pa.Table, where: np.ndarray) -> Iterator[Packet]:
        for bucket, own in spread(table, where, self.buckets):
            yield Packet(self.ids[bucket], self.stage, self.port, kind, pack(own))

    def promise(self, promises: Sequence[Punctuation], here: int) -> Iterator[Packet]:
        """What is promised of the rows that a bucket sends."""
        if promises:
            body = dump((here, [(p.bounds, p.constants) for p in promises]))
            for id_ in self.ids:
                yield Packet(id_, self.stage, self.port, BOUNDS, body)


def _form(consumer: Physical | None, builder: Builder) -> PartialForm | None:
    """How rows are brought down for the aggregate that they go to, if they go to one."""
    if consumer is None or not isinstance(consumer.node, WindowAggregate):
        return None
    return partial_form(builder.operator(consumer))
