"""What OA-Join is measured against: joins whose results come in the order of the left's time (thesis 7.3).

`OPOBJoin` (order-preserving, output-buffered) joins rows as they come, and holds the results until nothing of an
earlier time can follow. `OPIBJoin` (order-preserving, input-buffered) holds the rows of the left until all of their
partners have come, and then joins them in the order of their times; rows of the right are held until that has happened.

Both are an OA-Join with a buffer behind or before it, so that what is measured is the price of order and not of another
way to find partners. They are for joins by the inputs' times of which every result has a row of the left. State: that
of the OA-Join, and what is held.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import PlanError
from penstock.model.batch import Batch, ticks_of
from penstock.model.elements import Punctuation, linear
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.joins.nearness import LEFT
from penstock.operators.joins.oa_join import OAJoin
from penstock.operators.operator import BoundMemory, Operator, Outputs
from penstock.operators.state import Pages

HELD, TOLD, ENDS = "held", "told", "ends"
AT_ONCE = 1000
"""So many rows of the left are joined at once."""


@dataclass
class Sorted:
    """Rows in order of time, of which the first ones have been taken already."""

    table: pa.Table
    times: np.ndarray
    start: int = 0

    def take_below(self, bound: int) -> pa.Table:
        """Take out the rows below a bound; the memory of those that were taken is given back when it is half of all."""
        end = len(self.times) if bound == END_OF_TIME else int(np.searchsorted(self.times, bound))
        taken = self.table.slice(self.start, end - self.start)
        self.start = end
        if 2 * self.start > len(self.times):
            rest = np.arange(self.start, len(self.times))
            self.table, self.times, self.start = self.table.take(pa.array(rest)), self.times[rest], 0
        return taken

    def rest(self) -> pa.Table:
        """The rows that have not been taken."""
        return self.table.slice(self.start)


class OrderedBuffer:
    """Rows of one schema that leave in order of one of its times."""

    def __init__(self, column: int, tables: Iterable[pa.Table] = ()) -> None:
        """`column` is the place of the time; `tables` are rows that are held already."""
        self.column = column
        self.parts: list[Sorted] = []
        for table in tables:
            self.add(table)

    def add(self, table: pa.Table) -> None:
        """Hold rows."""
        if table.num_rows:
            self.parts.append(Sorted(*self._sorted(table)))

    def take_below(self, bound: int) -> pa.Table | None:
        """Take out the rows below a bound, in order of time, and of equal times in that of their coming."""
        taken = [part.take_below(bound) for part in self.parts]
        self.parts = [part for part in self.parts if len(part.times)]
        taken = [table for table in taken if table.num_rows]
        if len(taken) < 2:
            return taken[0] if taken else None
        return self._sorted(pa.concat_tables(taken))[0]

    def _sorted(self, table: pa.Table) -> tuple[pa.Table, np.ndarray]:
        times = ticks_of(table.column(self.column))
        if (times[1:] >= times[:-1]).all():
            return table, times
        order = np.argsort(times, kind="stable")
        return table.take(pa.array(order)), times[order]


class OrderPreserving(Operator):
    """An OA-Join with a buffer."""

    ports = 2

    def __init__(self, join: OAJoin) -> None:
        """`join` finds the partners."""
        super().__init__(join.schema)
        self.join, self.left = join, join.promised.left
        join.attach(self.pages)
        self._told = BoundMemory(TOLD)
        if not self.left or not all(side.on_time for side in join.sides):
            raise PlanError(
                "Only results that have a row of the left, joined by its time, can be in the order of that time.",
                where=self.kind,
                got="a join that keeps rows of the right, or is by another attribute",
                hint="an inner, left, semi or anti join by the times of both streams",
            )

    @property
    @abstractmethod
    def column(self) -> int:
        """The place of the left's time in what is held."""

    def attach(self, pages: Pages) -> None:
        """The OA-Join's pages are among these."""
        super().attach(pages)
        self.join.attach(pages)

    def _held(self) -> OrderedBuffer:
        found: OrderedBuffer | None = self.pages.get(HELD)
        return found or OrderedBuffer(self.column)

    def _hold(self, held: OrderedBuffer) -> None:
        if held.parts:
            self.pages.put(HELD, held)
        else:
            self.pages.delete(HELD)

    def _promise(self, bound: int) -> Iterator[Punctuation]:
        """No result to come is of an earlier time of the left, and so of an earlier time at all."""
        if self._told.advance(self.pages, bound):
            yield from (linear(name, bound) for name in dict.fromkeys((str(self.schema.time), self.left)))

    def to_plain(self, key: str, page: Any) -> Any:
        """What is held as tables."""
        if isinstance(page, OrderedBuffer):
            return [part.rest() for part in page.parts]
        return page if key in (TOLD, ENDS) else self.join.to_plain(key, page)

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key == HELD:
            return OrderedBuffer(self.column, data)
        return data if key in (TOLD, ENDS) else self.join.from_plain(key, data, version)


class OPOBJoin(OrderPreserving):
    """Joins rows as they come and sorts what comes of it."""

    kind = "opob-join"

    @property
    def column(self) -> int:
        """In a result."""
        return self.schema.index(self.left)

    def process(self, port: int, batch: Batch) -> Outputs:
        """Hold what comes of a batch."""
        yield from self._after(self.join.process(port, batch))

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Hold what comes of it, and give what can have no predecessor any more."""
        yield from self._after(self.join.punctuate(port, punctuation))

    def _after(self, outputs: Outputs) -> Outputs:
        held, bound = self._held(), None
        for output in outputs:
            if isinstance(output, Batch):
                held.add(output.table)
            elif not isinstance(output, Punctuation):
                yield output
            elif output.is_linear and output.attribute == self.left:
                bound = output.value
        if bound is not None and (ready := held.take_below(bound)) is not None:
            yield Batch(self.schema, table=ready)
        self._hold(held)
        if bound is not None:
            yield from self._promise(bound)


class OPIBJoin(OrderPreserving):
    """Joins rows of the left in order, each when all of its partners have come."""

    kind = "opib-join"

    @property
    def column(self) -> int:
        """In a row of the left."""
        return self.join.sides[LEFT].schema.time_index

    def process(self, port: int, batch: Batch) -> Outputs:
        """Hold rows of the left; those of the right are kept as OA-Join does."""
        if port != LEFT:
            yield from self._in_order(self.join.process(port, batch))
        elif len(batch):
            held = self._held()
            held.add(batch.table)
            self._hold(held)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Join the rows of the left of which all partners have come, and that can have no predecessor any more."""
        side = self.join.sides[port]
        if not punctuation.is_linear or punctuation.attribute != side.schema.time:
            return
        bounds: list[int] = self.pages.get(ENDS) or [MIN_TICK, MIN_TICK]
        if punctuation.value <= bounds[port]:
            return
        bounds[port] = punctuation.value
        self.pages.put(ENDS, bounds)
        if port != LEFT:
            yield from self._in_order(self.join.punctuate(port, punctuation))
        ready = min(bounds[LEFT], self.join.near.settled(LEFT, bounds[1 - LEFT]))
        yield from self._join_below(ready)

    def _join_below(self, bound: int) -> Outputs:
        held, left = self._held(), self.join.sides[LEFT].schema
        ready = held.take_below(bound)
        self._hold(held)
        if ready is not None:
            for start in range(0, ready.num_rows, AT_ONCE):
                yield from self._in_order(self.join.process(LEFT, Batch(left, table=ready.slice(start, AT_ONCE))))
        for _ in self.join.punctuate(LEFT, linear(str(left.time), bound)):
            pass  # rows of the right are given up; OA-Join's own promises say no more than this bound
        yield from self._promise(bound)

    def _in_order(self, outputs: Outputs) -> Outputs:
        """Results of some rows of the left, sorted."""
        made = OrderedBuffer(self.schema.index(self.left))
        for output in outputs:
            if isinstance(output, Batch):
                made.add(output.table)
            elif not isinstance(output, Punctuation):
                yield output
        ready = made.take_below(END_OF_TIME)
        if ready is not None:
            yield Batch(self.schema, table=ready)
