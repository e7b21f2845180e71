"""The append queue: every row waits its turn, first in, first out; or some are shed at random (UpStream, section 5.2).

What other engines do, with the same measure of staleness as update queues have: an update that was delivered answers
those of its key that came before it, so a backlog of updates that nobody needs any more keeps keys stale, and a row
that was shed keeps its key stale until a later one of the key is delivered. A row older than the newest of its key that
came before is delivered like any other and answers nothing.

Every row that waits is an *entry*: where its tuple lies, its key, since when it makes the key stale (the arrival of the
first update that it answers, which may have been shed), how many it answers, when the first update came that it does
not answer, and its event time. That is what dequeuing it leaves, so each operation costs a few steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema
from penstock.operators.queues.key_table import NONE
from penstock.operators.queues.meter import FEW
from penstock.operators.queues.queue import Key, MemoryManager
from penstock.operators.queues.shedding import RandomShedding
from penstock.operators.queues.tuple_queue import TupleQueue

LOCATION, KEY, SINCE, ANSWERS, NEXT, TIME = range(6)
"""The columns of an entry."""
_WIDTH = 6
_LEAST = 64


class Entries:
    """The rows that wait, numbered from the first that ever did."""

    def __init__(self) -> None:
        """None waits."""
        self._rows = np.zeros((_LEAST, _WIDTH), np.int64)
        self.first = self.end = 0
        self._shift = 0
        """The number of the entry at the front of the array."""
        self._view: Any = self._rows.data

    def __len__(self) -> int:
        """How many wait."""
        return self.end - self.first

    def add(self, entries: np.ndarray) -> int:
        """More at the end; the number of the first of them."""
        if self.end - self._shift + len(entries) > len(self._rows):
            self._move(len(entries))
        number, at = self.end, self.end - self._shift
        self._rows[at : at + len(entries)] = entries
        self.end += len(entries)
        return number

    def add_one(self, entry: tuple[int, int, int, int, int, int]) -> int:
        """One more at the end; its number."""
        at = self.end - self._shift
        if at == len(self._rows):
            self._move(1)
            at = self.end - self._shift
        for column, value in enumerate(entry):
            self._view[at, column] = value
        self.end += 1
        return self.end - 1

    def take(self, most: int) -> np.ndarray:
        """The first so many."""
        at = self.first - self._shift
        taken = self._rows[at : at + min(most, len(self))].copy()
        self.first += len(taken)
        if len(self._rows) > _LEAST and len(self) * 8 < len(self._rows):
            self._move(0)
        return taken

    def at(self, number: int) -> np.ndarray:
        """One that waits, to look at or to change."""
        found: np.ndarray = self._rows[number - self._shift]
        return found

    def follow_one(self, number: int, now: int) -> None:
        """After this entry the first update came that it does not answer, unless one did before."""
        at = number - self._shift
        if self._view[at, NEXT] == NONE:
            self._view[at, NEXT] = now

    def follow(self, numbers: np.ndarray, now: int) -> None:
        """After each of these the first update came that it does not answer, unless one did before."""
        at = numbers - self._shift
        column = self._rows[:, NEXT]
        column[at[column[at] == NONE]] = now

    def all(self) -> np.ndarray:
        """All of them."""
        return self._rows[self.first - self._shift : self.end - self._shift]

    def _move(self, more: int) -> None:
        waiting = self.all().copy()
        self._rows = np.zeros((max(_LEAST, 2 * (len(waiting) + more)), _WIDTH), np.int64)
        self._rows[: len(waiting)] = waiting
        self._view = self._rows.data
        self._shift = self.first

    def to_plain(self) -> Any:
        """The number of the first, and all."""
        return [self.first, self.all().copy()]

    def from_plain(self, data: Any) -> None:
        """The other way."""
        self.first = self.end = self._shift = data[0]
        self.add(data[1])


class AppendQueue(TupleQueue):
    """Rows in the order in which they came."""

    kind = "append queue"
    keeps_order = True
    keeps_older = True
    """Whether rows wait that are older than the newest of their key that has come."""

    def __init__(
        self,
        schema: Schema,
        key: tuple[str, ...] = (),
        memory: MemoryManager | None = None,
        shedding: RandomShedding | None = None,
    ) -> None:
        """`key` is what staleness is measured by; with `shedding`, rows are dropped as it says."""
        super().__init__(schema, key, memory, known=(NONE, 0, NONE))
        self.shedding = shedding
        self._tail, self._shed, self._shed_since = self._known
        """Per key: the number of the last entry that is an update; how many were shed since, and from when on."""
        self._entries = Entries()

    def __len__(self) -> int:
        """All rows that were kept and not taken."""
        return len(self._entries)

    # In

    def _enqueue_one(self, row: Row, now: int) -> None:
        key = self._keys.number(row)
        if len(self._keys) > self._meter.keys:
            self._know(now)
        self.counts.enqueued += 1
        stays = self.shedding is None or bool(self.shedding.kept(1, now)[0])
        time: int = NONE if self._time is None else row[self._time]  # type: ignore[assignment]
        updates = time >= self._newest.view[key]
        if updates:
            self._newest.view[key] = time
            self._meter.arrived_one(key, now)
            if self._tail.view[key] >= self._entries.first:
                self._entries.follow_one(self._tail.view[key], now)
        if not updates and not self.keeps_older:
            self.counts.older += 1
            return
        if not stays:
            self.counts.shed += 1
            if updates:
                if not self._shed.view[key]:
                    self._shed_since.view[key] = now
                self._shed.view[key] += 1
            return
        self.tuples.account(now)
        data = self._codec.encode_row(row)
        location = self.tuples.allocate(key, len(data))
        self.tuples.write(location, data)
        self._floor.came(time)
        if not updates:
            self._entries.add_one((location, key, NONE, 0, NONE, time))
            return
        shed: int = self._shed.view[key]
        since = self._shed_since.view[key] if shed else now
        self._shed.view[key] = 0
        self._tail.view[key] = self._entries.add_one((location, key, since, shed + 1, NONE, time))

    def _enqueue_many(self, batch: Batch, now: int) -> None:
        rows = len(batch)
        if not rows:
            return
        keys = self._keys.numbers(batch)
        self._know(now)
        self.tuples.account(now)
        kept = np.ones(rows, np.bool_) if self.shedding is None else self.shedding.kept(rows, now)
        self.counts.enqueued += rows
        self.counts.shed += rows - int(kept.sum())
        is_update = self._updates(keys, batch)
        if not self.keeps_older:
            self.counts.older += rows - int(is_update.sum())
            kept &= is_update
        entries = np.full((rows, _WIDTH), NONE)
        entries[:, KEY], entries[:, ANSWERS] = keys, 0
        if self._time is not None:
            entries[:, TIME] = batch.times()
        entries[kept, LOCATION] = self._store(keys[kept], batch if kept.all() else batch.select(kept))
        if kept.any():
            self._floor.came(int(entries[kept, TIME].min()))
        self._link(entries, kept, is_update, now)

    def _updates(self, keys: np.ndarray, batch: Batch) -> np.ndarray:
        """Which rows are no older than those of their key that came before; the newest of each key is noted."""
        if self._time is None:
            return np.ones(len(keys), np.bool_)
        times = batch.times()
        order = np.argsort(keys, kind="stable")
        ranks = np.unique(np.concatenate([times, self._newest.array[keys]]), return_inverse=True)[1]
        mine, known = ranks[: len(keys)], ranks[len(keys) :]
        step = len(ranks) + 1
        reached = keys[order] * step + np.maximum(mine, known)[order]
        is_update = np.empty(len(keys), np.bool_)
        is_update[order] = (keys[order] * step + mine[order]) >= np.maximum.accumulate(reached)
        np.maximum.at(self._newest.array, keys[is_update], times[is_update])
        return is_update

    def _store(self, keys: np.ndarray, batch: Batch) -> np.ndarray:
        data, starts = self._codec.encode(batch.table)
        locations = self.tuples.allocate_many(keys, np.diff(starts))
        self.tuples.write_many(locations, data, starts)
        return locations

    def _link(self, entries: np.ndarray, kept: np.ndarray, is_update: np.ndarray, now: int) -> None:
        """Say of each entry which updates it answers, and put those that stay in the line."""
        updates = np.flatnonzero(is_update)
        updates = updates[np.argsort(entries[updates, KEY], kind="stable")]
        keys = entries[updates, KEY]
        starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, np.int64)
        different, counts = keys[starts], np.diff(np.r_[starts, len(keys)])
        tails = self._tail.array[different]
        self._entries.follow(tails[tails >= self._entries.first], now)
        self._meter.arrived(different, counts, now)
        places = np.arange(len(keys))
        stays = kept[updates]
        begin = np.repeat(starts, counts)
        # The place among the updates of the last one that stays before each, or before its key's first.
        previous = np.maximum.accumulate(np.r_[-1, np.where(stays, places, -1)])[:-1]
        previous = np.maximum(previous, begin - 1)
        is_first = previous < begin
        shed = np.where(is_first, self._shed.array[keys], 0)
        entries[updates, SINCE] = np.where(shed > 0, self._shed_since.array[keys], now)
        entries[updates, ANSWERS] = places - previous + shed
        is_last = places == np.repeat(starts + counts - 1, counts)
        entries[updates, NEXT] = np.where(is_last, NONE, now)
        number = self._entries.add(entries[kept]) + np.cumsum(kept) - 1
        staying = updates[stays]
        last = self._occurrences.last(entries[staying, KEY])
        self._note_shed(different, keys, stays, now)
        self._tail.array[entries[staying[last], KEY]] = number[staying[last]]

    def _note_shed(self, different: np.ndarray, keys: np.ndarray, stays: np.ndarray, now: int) -> None:
        """How many updates of each key were shed after the last that stays."""
        ends = np.searchsorted(keys, different, side="right")
        begins = np.searchsorted(keys, different, side="left")
        last = np.maximum.accumulate(np.r_[-1, np.where(stays, np.arange(len(keys)), -1)])[ends]
        some = last >= begins
        shed = np.where(some, ends - 1 - last, self._shed.array[different] + ends - begins)
        began = (self._shed.array[different] == 0) | some
        self._shed_since.array[different] = np.where(began, now, self._shed_since.array[different])
        self._shed.array[different] = shed

    # Out

    def dequeue(self, now: int, most: int) -> Batch:
        """The rows that came first."""
        self.tuples.account(now)
        taken = self._entries.take(most)
        if not len(taken):
            return Batch(self.schema, [])
        self.counts.dequeued += len(taken)
        self._floor.left(len(taken))
        keys, locations = taken[:, KEY], taken[:, LOCATION]
        answering = taken[taken[:, SINCE] != NONE]
        last = answering[self._occurrences.last(answering[:, KEY])]
        self._meter.queue.end(last[:, KEY], now)
        stale = last[last[:, NEXT] != NONE]
        self._meter.queue.begin(stale[:, KEY], stale[:, NEXT], now)
        self._meter.start(keys, taken[:, SINCE], taken[:, ANSWERS], now)
        if len(taken) <= FEW:
            rows = [self._codec.decode_row(self.tuples.view(at)) for at in locations.tolist()]
            found = Batch(self.schema, rows)
        else:
            found = Batch(self.schema, table=self._codec.decode(*self.tuples.read_many(locations)))
        self.tuples.free_many(keys, locations)
        return found

    def delivered(self, now: int, most: int | None = None) -> None:
        """What was dequeued has been processed."""
        for rows, cost in self._meter.delivered(now, most):
            self.counts.delivered += rows
            if self.shedding is not None:
                self.shedding.served(rows, cost)

    def read(self, key: Key) -> Row | None:
        """The newest row of a key that waits."""
        number = self._keys.find(key)
        if number is None or self._tail.view[number] < self._entries.first:
            return None
        return self._codec.decode_row(self.tuples.view(int(self._entries.at(self._tail.view[number])[LOCATION])))

    # What it is like

    def earliest(self) -> int | None:
        """The least time of those that wait, or one that was; see `Floor`."""
        if not len(self._entries):
            return None
        return self._floor.at(len(self._entries), lambda: self._entries.all()[:, TIME])

    # State

    def to_plain(self) -> dict[str, Any]:
        """The entries too, and how rows are shed."""
        shedding = None if self.shedding is None else self.shedding.to_plain()
        return {**super().to_plain(), "entries": self._entries.to_plain(), "shedding": shedding}

    def from_plain(self, data: Any, version: int) -> None:
        """The other way; memory must be of the kind that wrote it."""
        super().from_plain(data, version)
        self._entries.from_plain(data["entries"])
        if self.shedding is not None and data["shedding"] is not None:
            self.shedding.from_plain(data["shedding"])
