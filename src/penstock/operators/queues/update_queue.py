"""The update queue: of every key the newest value waits, and nothing else (UpStream, section 4.1).

A value that comes while an older one of its key waits takes its place; the key is served when its turn comes, in the
order of the queue's `KeyOrder`, with the value that it has then. So the queue never holds more rows than there are
keys, and what is dequeued was the newest value of its key at that time. Tuples lie as bytes where the queue's
`MemoryManager` says.

Newest is by event time. A row whose time is before that of the newest value that came of its key, whether that waits,
is under way or was delivered long ago, overwrites nothing and is counted as `older`. Of equal times the later arrival
wins. Rows of a stream without a time are as new as they come.

With `forget_after` keys are forgotten that nothing has come of for so long, once a promise says that nothing older than
their newest value can come: whatever comes of them then is newer, so nobody has to know what that was. Those that wait
or are under way are kept. What is forgotten is gone over when there are twice as many keys as were left the last time.
A stream that promises nothing on its time never forgets.

Whoever hosts the queue may ask for the rows that are passed over (`passed`), and may have brought rows down to the
newest of each key before, where they came from: each then stands for so many updates.

Cost: a few steps per row alone. A batch finds its keys column by column, keeps the newest row of each key, and encodes
only those. Neither depends on how many keys there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.operators.queues.key_orders import InPlace, Occurrences
from penstock.operators.queues.key_table import NONE
from penstock.operators.queues.meter import FEW
from penstock.operators.queues.page_pool import rounded
from penstock.operators.queues.queue import Kept, Key, KeyOrder, MemoryManager
from penstock.operators.queues.staleness_sum import StalenessSum
from penstock.operators.queues.tuple_queue import TupleQueue, part_plain

LEAST_KEYS = 1024
"""Fewer keys are never gone over."""


class UpdateQueue(TupleQueue):
    """Rows of which the newest of every key waits."""

    kind = "update queue"

    def __init__(
        self,
        schema: Schema,
        key: tuple[str, ...] = (),
        order: KeyOrder | None = None,
        memory: MemoryManager | None = None,
        forget_after: int | None = None,
    ) -> None:
        """IN-PLACE on pages on demand, unless something else is given; keys are kept for ever, unless it is said."""
        super().__init__(schema, key, memory, known=(NONE, 0, 0))
        self.order = InPlace() if order is None else order
        self._locations, self._room, self._updates = self._known
        """Per key: where the value lies that waits, how large one may be to fit there, updates since the last take."""
        self.forget_after = forget_after
        self._forgets_at = LEAST_KEYS
        """There must be so many keys before it is worth looking for some to forget."""
        self.passed: list[tuple[str, Batch]] | None = None
        """Rows that were passed over and why, `superseded` or `older`, if somebody wants them and takes them away."""

    def __len__(self) -> int:
        """As many as keys wait."""
        return len(self.order)

    # In

    def _enqueue_one(self, row: Row, now: int) -> None:
        key = self._keys.number(row)
        if key >= self._meter.keys:
            self._know(now)
        counts = self.counts
        counts.enqueued += 1
        if self._time is not None:
            time: int = row[self._time]  # type: ignore[assignment]
            newest = self._newest.view
            if time < newest[key]:
                counts.older += 1
                if self.passed is not None:
                    self._pass("older", Batch(self.schema, [row]))
                return
            newest[key] = time
            self._floor.came(time)
        data = self._codec.encode_row(row)
        size = len(data)
        location: int = self._locations.view[key]
        if location == NONE:
            self.tuples.account(now)
            location = self._placed(key, self.tuples.allocate(key, size), size)
        else:
            counts.superseded += 1
            if self.passed is not None:
                self._pass("superseded", Batch(self.schema, [self._codec.decode_row(self.tuples.view(location))]))
            self._floor.left(1)
            if size > self._room.view[key]:
                self.tuples.account(now)
                location = self._placed(key, self.tuples.overwrite(key, location, size), size)
        self.tuples.write(location, data)
        self._updates.view[key] += 1
        self.order.arrive_one(key, now)
        self._meter.arrived_one(key, now)

    def _placed(self, key: int, location: int, size: int) -> int:
        self._locations.view[key], self._room.view[key] = location, rounded(size)
        return location

    def _enqueue_many(self, batch: Batch, now: int) -> None:
        self.enqueue_newest(batch, np.ones(len(batch), np.int64), now)

    def enqueue_newest(self, batch: Batch, stands_for: np.ndarray, now: int, *, is_at_once: bool = False) -> None:
        """Rows arrived in this order, or without any, each the newest of so many of its key."""
        keys = self._keys.numbers(batch)
        self._know(now)
        self.tuples.account(now)
        self.counts.enqueued += int(stands_for.sum())
        taken = self._new_enough(keys, batch)
        if taken is not None:
            self.counts.older += int(stands_for.sum() - stands_for[taken].sum())
            self._pass("older", batch, taken)
            keys, stands_for, batch = keys[taken], stands_for[taken], batch.take(taken)
        if not len(keys):
            return
        last = self._occurrences.last(keys)
        different = keys[last]
        if self._time is not None:
            self._newest.array[different] = times = batch.times()[last]
            self._floor.came(int(times.min()))
        self._pass("superseded", batch, last)
        self._store(different, batch if len(last) == len(batch) else batch.take(last))
        total = int(stands_for.sum())
        self.counts.superseded += total - len(last)
        came = keys if total == len(keys) else np.repeat(keys, stands_for)
        counts = self._occurrences.counts(came, different)
        self._updates.array[different] += counts
        (self.order.arrive_at_once if is_at_once else self.order.arrive)(came, now)
        self._meter.arrived(different, counts, now)

    def _pass(self, why: str, batch: Batch, but: np.ndarray | None = None) -> None:
        """Rows are passed over, all of a batch but those at some places."""
        if self.passed is None:
            return
        if but is not None:
            batch = batch.take(np.setdiff1d(np.arange(len(batch)), but, assume_unique=True))
        if len(batch):
            self.passed.append((why, batch))

    def _new_enough(self, keys: np.ndarray, batch: Batch) -> np.ndarray | None:
        """The places of rows that are no older than what came before them of their key; None if all are."""
        if self._time is None:
            return None
        times = batch.times()
        known = times >= self._newest.array[keys]
        if known.all() and (times[1:] >= times[:-1]).all():
            return None
        places = np.flatnonzero(known)
        places = places[np.argsort(keys[places], kind="stable")]
        ranks = np.unique(times[places], return_inverse=True)[1]
        reached = keys[places] * (len(keys) + 1) + ranks  # ascends from key to key, whatever the times
        is_newest = reached >= np.maximum.accumulate(reached)
        return np.sort(places[is_newest])

    def _store(self, keys: np.ndarray, batch: Batch) -> None:
        """Put a value of each of these keys where it lies."""
        data, starts = self._codec.encode(batch.table)
        sizes = np.diff(starts)
        locations = self._locations.array[keys]
        fresh = locations == NONE
        overwritten = len(keys) - int(fresh.sum())
        self.counts.superseded += overwritten
        if overwritten and self.passed is not None:
            replaced = self._codec.decode(*self.tuples.read_many(locations[~fresh]))
            self._pass("superseded", Batch(self.schema, table=replaced))
        self._floor.left(overwritten)
        locations[fresh] = self.tuples.allocate_many(keys[fresh], sizes[fresh])
        self._room.array[keys[fresh]] = sizes[fresh]
        for at in np.flatnonzero(sizes > self._room.array[keys]).tolist():
            key, size = int(keys[at]), int(sizes[at])
            locations[at] = self.tuples.overwrite(key, int(locations[at]), size)
            self._room.view[key] = size
        self._locations.array[keys] = locations
        self.tuples.write_many(locations, data, starts)

    # Out

    def dequeue(self, now: int, most: int) -> Batch:
        """The values of the keys that are next."""
        self.tuples.account(now)
        keys = self.order.take(most, now)
        self.counts.dequeued += len(keys)
        self._floor.left(len(keys))
        if not len(keys):
            return Batch(self.schema, [])
        answers = self._updates.array[keys]
        self._updates.array[keys] = 0
        locations = self._locations.array[keys]
        self._locations.array[keys] = NONE
        if len(keys) > FEW:
            self._meter.start(keys, self._meter.queue.end(keys, now), answers, now)
            table = self._codec.decode(*self.tuples.read_many(locations))
            self.tuples.free_many(keys, locations)
            return Batch(self.schema, table=table)
        since = [self._meter.queue.end_one(key, now) for key in keys.tolist()]
        self._meter.start(keys, np.array(since), answers, now)
        rows = []
        for key, at in zip(keys.tolist(), locations.tolist(), strict=True):
            rows.append(self._codec.decode_row(self.tuples.view(at)))
            self.tuples.free(key, at)
        return Batch(self.schema, rows)

    def delivered(self, now: int, most: int | None = None) -> None:
        """What was dequeued has been processed."""
        for keys, cost in self._meter.delivered(now, most):
            self.counts.delivered += keys
            self.order.served(keys, cost)

    def punctuate(self, punctuation: Punctuation, now: int) -> None:
        """A bound on the time is what keys are forgotten by."""
        if self.forget_after is None or len(self._keys) < self._forgets_at:
            return
        bounds = dict(punctuation.bounds)
        if self.schema.time in bounds and len(bounds) == 1 and not punctuation.constants:
            self._forget(bounds[self.schema.time], now, self.forget_after)
            self._forgets_at = max(LEAST_KEYS, 2 * len(self._keys))

    def _forget(self, bound: int, now: int, silent: int) -> None:
        """Those whose values are before a bound, and of which nothing has come for so long."""
        count = len(self._keys)
        goes = self._meter.are_fresh(now, silent) & (self._newest.array[:count] < bound)
        goes &= self._locations.array[:count] == NONE
        goes[np.array(self.order.remembers(now), np.int64)] = False
        if goes.any():
            self.tuples.account(now)
            self._keep(Kept.of(~goes))

    def _keep(self, kept: Kept) -> None:
        self.forgotten += len(kept.new) - len(kept.numbers)
        self.order.keep(kept)
        self.tuples.keep(kept)
        self._meter.keep(kept)
        self._cells.keep(kept)
        self._keys.keep(kept)
        self._occurrences = Occurrences()

    def knows(self, key: Key) -> bool:
        """Whether it has a number."""
        return self._keys.find(key) is not None

    def read(self, key: Key) -> Row | None:
        """The value of a key that waits."""
        number = self._keys.find(key)
        if number is None or self._locations.view[number] == NONE:
            return None
        return self._codec.decode_row(self.tuples.view(self._locations.view[number]))

    def newest(self, key: Key) -> int | None:
        """The time of the newest row of a key, waiting or not; None of one that is not known."""
        number = self._keys.find(key)
        return None if number is None or self._time is None else int(self._newest.view[number])

    # What it is like

    def earliest(self) -> int | None:
        """The least time of the values that wait, or of one that did; see `Floor`."""
        if not len(self):
            return None
        return MIN_TICK if self._time is None else self._floor.at(len(self), self._waiting_times)

    def _waiting_times(self) -> np.ndarray:
        keys = self.order.waiting()
        return np.asarray(self._newest.array[self._locations.array != NONE if keys is None else keys])

    def metered(self, now: int) -> StalenessSum:
        """What is known of the staleness of all keys, so that it can be summed with that of other queues."""
        return StalenessSum.of(self._meter, now, int(self._updates.array[: len(self._keys)].sum()))

    # State

    def to_plain(self) -> dict[str, Any]:
        """The order of keys too."""
        return {**super().to_plain(), "order": part_plain(self.order)}

    def from_plain(self, data: Any, version: int) -> None:
        """The other way; the parts must be of the kinds that wrote it."""
        super().from_plain(data, version)
        self._take_up(self.order, data["order"], "order")
