"""Stamps for the rows of streams whose times are given here, as they enter (`model.timestamps`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.schema import TIMESTAMP, Schema
from penstock.model.time import MIN_TICK, Domain, usable
from penstock.model.timestamps import without_stamps
from penstock.operators.progress.entrance import Ingest
from penstock.plan.catalog import StreamInfo

LAST = usable(Domain.TIMESTAMP)[1]
"""No row is stamped later."""
STAMP = "stamp"
"""The page of an entrance that holds the last stamp."""


class Stamps:
    """Gives the rows of some streams their times."""

    def __init__(self, streams: Mapping[str, StreamInfo]) -> None:
        """As they are declared, by lower-case name; others may be declared later."""
        self._streams = streams
        self._bare: dict[str, Schema] = {}

    def bare(self, stream: str) -> Schema | None:
        """The columns that rows of a stream have before they are stamped; None if they bring their times."""
        name = stream.lower()
        info = self._streams.get(name)
        if info is None or not info.stamped:
            return None
        return self._bare.setdefault(name, without_stamps(info.schema))

    def stamped(self, stream: str, batch: Batch, entrance: Ingest, now: int) -> Batch:
        """The rows with their time, which is kept as the last stamp; as they are if they bring their times."""
        bare = self.bare(stream)
        if bare is None:
            return batch
        if batch.schema.fields != bare.fields:
            raise StreamError(
                "A batch has other columns than the source of its stream, whose rows are stamped here.",
                where=stream, got=batch.schema.ddl, hint=bare.ddl,
            )  # fmt: skip
        # What a latent row is given here says when it entered; whether times go back is for those to say who need one.
        stamp = now if self._streams[stream.lower()].latent else next_stamp(entrance, now)
        return _with_time(batch, entrance.schema, stamp)


def next_stamp(entrance: Ingest, now: int) -> int:
    """Not before the last one, nor below a bound, unless that leaves no time that a row may have: then it is late."""
    last, reached = entrance.pages.get(STAMP), entrance.reached()
    stamp = max(now, MIN_TICK if last is None else last, MIN_TICK if reached > LAST else reached)
    entrance.pages.put(STAMP, stamp)
    return stamp


def _with_time(batch: Batch, schema: Schema, stamp: int) -> Batch:
    if not batch.columnar:
        return Batch(schema, [(stamp, *row) for row in batch.rows])
    times = pa.array(np.full(len(batch), stamp, np.int64)).cast(TIMESTAMP.arrow)
    return Batch(schema, table=batch.table.add_column(0, schema.arrow.field(0), times))
