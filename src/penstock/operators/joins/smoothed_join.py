"""A join whose rows without a partner come out a few at a time: slow flush (thesis 8.3.3, carried over to outer joins).

When punctuation settles many rows at once, those without a partner would all come out with it. Here no more than so
many, the burst, come with each batch or punctuation that is taken; the others wait, in the order in which they were
settled, the oldest of those that were settled together first. What is promised is held back to the oldest row that
waits, promises of groups to the oldest of theirs. Latency is paid for a steady load; the result is the same. When both
inputs have ended all of it comes out, in portions.

Rows that nothing can meet when they come are no burst of punctuation's making, and come out with their batch.

State: the rows that wait, a page for those that were settled together, and promises that are held back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.compute as pc

from penstock.model.batch import Batch, ticks_of
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical
from penstock.operators.joins.kept_rows import having
from penstock.operators.joins.oa_join import OAJoin
from penstock.operators.operator import Output, Outputs
from penstock.operators.state import PROMISES

FLUSH = "flush"
HELD, TOLD = f"{PROMISES} held", f"{PROMISES} smoothed"


@dataclass
class Flush:
    """Which lots of rows wait, oldest first, and how many of the first have gone."""

    lots: list[int] = field(default_factory=list)
    next: int = 0
    gone: int = 0


class SmoothedJoin(OAJoin):
    """A join whose rows without a partner come out no more than so many at a time, or as they are settled."""

    burst: int | None = None
    """How many come out with each element; None for all. Rows that wait from a time with a limit are given out."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """As any join, and then some of the rows that wait."""
        yield from super().process(port, batch)
        if self.pages.get(FLUSH) is not None:
            yield from self._release()

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """What is settled waits for its turn, and so do promises that it would contradict."""
        if self.burst is None and self.pages.get(FLUSH) is None:
            yield from super().punctuate(port, punctuation)
            return
        fresh: list[Punctuation] = []
        for each in super().punctuate(port, punctuation):
            if isinstance(each, Batch):
                self._wait(each)
            elif isinstance(each, Punctuation):
                fresh.append(each)
            else:
                yield each
        yield from self._release(fresh)

    # Rows that wait

    def _flush(self) -> Flush:
        found: Flush | None = self.pages.get(FLUSH)
        return found or Flush()

    def _wait(self, batch: Batch) -> None:
        known = self._flush()
        order = np.argsort(batch.times(), kind="stable")
        self.pages.put_new(f"{FLUSH}{known.next}", Batch(self.schema, table=batch.take(order).table))
        known.lots.append(known.next)
        known.next += 1
        self.pages.put(FLUSH, known)

    def _release(self, fresh: Sequence[Punctuation] = ()) -> Outputs:
        """Give out what is due, and promise what nothing that waits contradicts."""
        known = self._flush()
        if known.lots:
            yield from self._due(known)
            if known.lots:
                self.pages.put(FLUSH, known)
            else:
                self.pages.delete(FLUSH)
        held: Frontier = self.pages.get(HELD) or Frontier()
        if fresh or len(held):
            yield from self._hold(Frontier([*held, *fresh]), list(self._waiting(known)))

    def _hold(self, promises: Frontier, waiting: list[Batch]) -> Outputs:
        """What can be said of promises beside rows that wait; what cannot is held back."""
        said: Frontier = self.pages.get(TOLD) or Frontier()
        kept, made = Frontier(), list[Punctuation]()
        for promise in promises:
            told = _held_back(promise, waiting)
            if told is not promise:
                kept.add(promise)
            # That a group has ended is said once, so it need not be remembered.
            is_last = told is promise and bool(promise.constants) and promise.bounds[0][1] == END_OF_TIME
            if told is not None and (is_last or said.add(told)):
                made.append(told)
        if made:
            self.pages.put(TOLD, said)
        if len(kept):
            self.pages.put(HELD, kept)
        else:
            self.pages.delete(HELD)
        yield from made

    def _due(self, known: Flush) -> Iterator[Output]:
        """Rows that come out now: as many as may at a time; all, in such portions, if there is no more to come."""
        ended = all(bound == END_OF_TIME for bound in self._bounds().attributes)
        left = self.burst
        while known.lots and (left is None or left > 0):
            number = known.lots[0]
            lot: Batch = self.pages.get(f"{FLUSH}{number}")
            size = len(lot) - known.gone if left is None else min(len(lot) - known.gone, left)
            yield lot.part(known.gone, known.gone + size)
            known.gone += size
            if known.gone == len(lot):
                self.pages.delete(f"{FLUSH}{number}")
                known.lots.pop(0)
                known.gone = 0
            left = self.burst if ended or left is None else left - size

    def _waiting(self, known: Flush) -> Iterator[Batch]:
        for at, number in enumerate(known.lots):
            lot: Batch = self.pages.get(f"{FLUSH}{number}")
            yield lot.part(known.gone, len(lot)) if at == 0 else lot

    # State

    def to_plain(self, key: str, page: Any) -> Any:
        """Lots as tables."""
        if isinstance(page, Flush):
            return [page.lots, page.next, page.gone]
        return page.table if key.startswith(FLUSH) else super().to_plain(key, page)

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key == FLUSH:
            return Flush(*data)
        return Batch(self.schema, table=data) if key.startswith(FLUSH) else super().from_plain(key, data, version)


def _held_back(promise: Punctuation, waiting: list[Batch]) -> Punctuation | None:
    """What of a promise holds of rows that wait too: the promise itself, a lesser one, or nothing."""
    if promise.is_joint:
        return None if any(_condemned(promise, lot).any() for lot in waiting) else promise
    name, bound = promise.bounds[0]
    least = bound
    for lot in waiting:
        over = _condemned(promise, lot)
        if over.any():
            least = min(least, int(ticks_of(lot.table.column(name).filter(over)).min()))
    return promise if least == bound else Punctuation(((name, least),), promise.constants)


def _condemned(promise: Punctuation, lot: Batch) -> np.ndarray:
    """Which rows that wait would contradict a promise."""
    mask = np.ones(len(lot), np.bool_)
    if promise.constants:
        named = lot.table.select([name for name, _ in promise.constants])
        mask &= having(named, [canonical(value) for _, value in promise.constants])
    for name, bound in promise.bounds:
        column = lot.table.column(name)
        valid = np.asarray(pc.is_valid(column).to_numpy())
        below = np.zeros(len(lot), np.bool_)
        below[valid] = (bound == END_OF_TIME) | (ticks_of(column.drop_null()) < bound)
        mask &= below
    return mask
