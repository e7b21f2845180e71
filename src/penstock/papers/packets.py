"""Packets of two links in opposite directions, as the join experiments of the thesis have them (7.3).

Each link has 4000 packets a second, in order of time and in step with the other. Packets are of flows that come, grow
busier and end: some thousand are there at once, the busiest with a few packets a second, most with one now and then.
What a link carries of a flow one way, the other carries the other way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.schema import Schema, schema_of
from penstock.model.time import SECOND

RATE = 4000
"""Packets of a link in a second."""
FLOWS = 8000
"""How many flows there are at once."""
NEW_FLOWS = 400
"""How many begin in a second."""
AT_ONCE = 1000
"""Packets in a batch."""
LINKS = ("M1", "M2")
SCHEMA: Schema = schema_of(
    [("ts", "timestamp"), ("srcIP", "bigint"), ("destIP", "bigint"), ("srcPort", "int"), ("destPort", "int"),
     ("len", "int")],
    "ts",
)  # fmt: skip


def packets(link: int, seconds: int, start: int) -> pa.Table:
    """What one link carries."""
    random = np.random.default_rng(link)
    size = seconds * RATE
    ticks = start + np.arange(size, dtype=np.int64) * SECOND // RATE
    flow = ticks // (SECOND // NEW_FLOWS) + (FLOWS * random.random(size) ** 2).astype(np.int64)
    ends = [(flow * 2654435761 + salt) % 2**32 for salt in (17, 4711)]
    ports = [1024 + flow * 7919 % 60000, flow % 3 * 363 + 80]
    (source, target), (source_port, target_port) = (ends, ports) if link == 0 else (ends[::-1], ports[::-1])
    columns = [ticks, source, target, source_port, target_port, random.integers(40, 1500, size)]
    arrow = SCHEMA.arrow
    arrays = [pa.array(column).cast(kind) for column, kind in zip(columns, arrow.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow)


@dataclass(frozen=True)
class Arrivals:
    """What comes of both links: a batch of each in turn, then a punctuation of each, as ordered streams have it."""

    seconds: int
    start: int
    tables: tuple[pa.Table, pa.Table]

    @staticmethod
    def of(seconds: int, start: int = 0) -> Arrivals:
        """So many seconds of both."""
        return Arrivals(seconds, start, (packets(0, seconds, start), packets(1, seconds, start)))

    @property
    def size(self) -> int:
        """Packets of both."""
        return sum(int(table.num_rows) for table in self.tables)

    def __iter__(self) -> Iterator[tuple[str, Batch | Punctuation]]:
        """The link, and rows of memory of their own, or a bound."""
        for at in range(0, self.seconds * RATE, AT_ONCE):
            own = pa.array(np.arange(at, at + AT_ONCE))
            for link, table in zip(LINKS, self.tables, strict=True):
                yield link, Batch(SCHEMA, table=table.take(own))
            for link in LINKS:
                yield link, linear("ts", self.start + (at + AT_ONCE) * SECOND // RATE)
