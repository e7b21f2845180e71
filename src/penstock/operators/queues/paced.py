"""Access rates: of some keys a value is wanted now and then only, "GOOG every minute, GM every hour" (UpStream, 8).

A key that was served sleeps until its next value is wanted; an update that comes meanwhile waits, and newer ones take
its place, so that the key costs its consumer one row a period, however often it updates. When the time has come the key
joins the line of the order that is asked for. What is asked for is a period for all keys, and others for some.

At the end of the stream, or of a run that is finished, everybody is woken, so that the last value of every key comes
out. Staleness counts the sleep: who asks for a value an hour is up to an hour behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.model.values import canonical_row
from penstock.operators.queues.queue import Kept, Key, KeyOrder, MemoryManager
from penstock.operators.queues.update_queue import UpdateQueue
from penstock.operators.state import check_kind


class PacedOrder(KeyOrder):
    """Another order, of the keys of which a value is wanted by now."""

    kind = "paced"

    def __init__(self, inner: KeyOrder, every: int | None = None) -> None:
        """`every` so many ticks a value of a key is wanted, unless `periods` says otherwise of it."""
        self.inner, self.every = inner, every
        self.periods: dict[int, int] = {}
        self._wanted: dict[int, int] = {}
        """When the next value of each key is, of those that were served."""
        self._asleep: set[int] = set()
        self._alarms: list[tuple[int, int]] = []

    def arrive_one(self, key: int, now: int) -> None:
        """To the line, or to sleep."""
        if key in self._asleep:
            return
        due = self._wanted.get(key, MIN_TICK)
        if due > now:
            self._asleep.add(key)
            heappush(self._alarms, (due, key))
        else:
            self.inner.arrive_one(key, now)

    def arrive(self, keys: np.ndarray, now: int) -> None:
        """The same of many."""
        if not self._wanted:
            self.inner.arrive(keys, now)
            return
        listed = keys.tolist()
        due = [self._wanted.get(key, MIN_TICK) <= now and key not in self._asleep for key in listed]
        for key, is_due in zip(listed, due, strict=True):
            if not is_due:
                self.arrive_one(key, now)
        awake = keys[np.array(due, np.bool_)]
        if len(awake):
            self.inner.arrive(awake, now)

    def take(self, most: int, now: int) -> np.ndarray:
        """Those that are next; each sleeps until its next value is wanted."""
        self._wake(now)
        taken = self.inner.take(most, now)
        for key in taken.tolist():
            period = self.periods.get(key, self.every)
            if period is not None:
                self._wanted[key] = now + period
        return taken

    def ready(self, now: int) -> int:
        """How many are in the line."""
        self._wake(now)
        return len(self.inner)

    def wake_all(self, now: int) -> None:
        """Nothing more comes."""
        self._wanted.clear()
        while self._alarms:
            self._wake(self._alarms[0][0], at=now)

    def _wake(self, now: int, at: int | None = None) -> None:
        while self._alarms and self._alarms[0][0] <= now:
            key = heappop(self._alarms)[1]
            self._asleep.discard(key)
            self.inner.arrive_one(key, now if at is None else at)

    def waits(self, key: int) -> bool:
        """Asleep or in the line."""
        return key in self._asleep or self.inner.waits(key)

    def __len__(self) -> int:
        """All that wait."""
        return len(self.inner) + len(self._asleep)

    def remembers(self, now: int) -> list[int]:
        """Those whose next value is not wanted yet."""
        return [key for key, due in self._wanted.items() if due > now]

    def keep(self, kept: Kept) -> None:
        """Who sleeps does not stand in the line, and is kept; times that have passed are forgotten with their keys."""
        new: list[int] = kept.new.tolist()
        self.periods = {new[key]: period for key, period in self.periods.items() if new[key] >= 0}
        self._wanted = {new[key]: due for key, due in self._wanted.items() if new[key] >= 0}
        self._asleep = {new[key] for key in self._asleep}
        self._alarms = [(due, new[key]) for due, key in self._alarms]
        heapify(self._alarms)
        self.inner.keep(kept)

    def served(self, keys: int, cost: int) -> None:
        """The order wants to know."""
        self.inner.served(keys, cost)

    def to_plain(self) -> Any:
        """Who sleeps until when, and the order's own state."""
        order = [self.inner.kind, self.inner.version, self.inner.to_plain()]
        return {"wanted": list(self._wanted.items()), "alarms": list(self._alarms), "order": order}

    def from_plain(self, data: Any, version: int) -> None:
        """The other way."""
        self._wanted = {key: due for key, due in data["wanted"]}  # noqa: C416 - they are lists
        self._alarms = [(due, key) for due, key in data["alarms"]]
        self._asleep = {key for _, key in self._alarms}
        kind, of_version, plain = data["order"]
        check_kind(self.inner, kind, of_version, "paced order")
        self.inner.from_plain(plain, of_version)


class PacedQueue(UpdateQueue):
    """An update queue of which some keys are served less often than others."""

    kind = "paced update queue"
    is_timed = True
    order: PacedOrder

    def __init__(
        self,
        schema: Schema,
        key: tuple[str, ...],
        order: KeyOrder,
        every: int | None = None,
        pace: Mapping[Key, int] | None = None,
        memory: MemoryManager | None = None,
    ) -> None:
        """`every` as for a `PacedOrder`; `pace` has the periods of some keys, by their values."""
        super().__init__(schema, key, PacedOrder(order, every), memory)
        self._unseen = {canonical_row(values): period for values, period in (pace or {}).items()}

    def ready(self, now: int) -> int:
        """How many values are wanted by now."""
        return self.order.ready(now)

    def punctuate(self, punctuation: Punctuation, now: int) -> None:
        """At the end everything that waits is wanted."""
        super().punctuate(punctuation, now)
        if punctuation.is_end:
            self.wake(now)

    def wake(self, now: int) -> None:
        """Whoever sleeps joins the line; the next value of a key is wanted a period after the one that it has now."""
        self.order.wake_all(now)

    def _know(self, now: int) -> None:
        super()._know(now)
        self._set_periods()

    def _keep(self, kept: Kept) -> None:
        if self.order.periods:
            keys = self._keys.keys()
            self._unseen |= {canonical_row(keys[n]): p for n, p in self.order.periods.items() if kept.new[n] < 0}
        super()._keep(kept)

    def _set_periods(self) -> None:
        """Of keys that have come, which have numbers."""
        for values in list(self._unseen):
            number = self._keys.find(values)
            if number is not None:
                self.order.periods[number] = self._unseen.pop(values)

    def from_plain(self, data: Any, version: int) -> None:
        """The other way; periods are those that the queue was made with."""
        super().from_plain(data, version)
        self._set_periods()
