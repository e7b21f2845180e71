"""Staleness as it happens: now and on average, of every key and of all, in constant time per operation (section 5.1).

A *level* knows of every key when its oldest pending update came, if one is pending. Of all keys together it keeps how
many are stale and the sum of their staleness, and moves both on with time: within `dt`, `n` stale keys of a sum `S` add
`S dt + n dt^2 / 2` to the integral. The integral is a whole number (twice its value is kept), so nothing is lost in
years of microseconds. A key's own integral is brought up to date when its staleness falls, and is a float.

There are two levels, alike but for what ends staleness: being dequeued, or being delivered. What was dequeued is *under
way* with the arrival of the first update that it answers, and with how many it answers; when it is delivered, the
application is as stale as the key's next update: one that is under way as well, or waits, or none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.operators.queues.key_table import NONE, KeyCells
from penstock.operators.queues.queue import Kept, Staleness

FEW = 16
"""Up to so many keys are gone through one by one."""


class Level:
    """When the oldest pending update of every key came."""

    __slots__ = ("area", "last", "pending", "since", "start", "sum", "twice")

    def __init__(self, cells: KeyCells) -> None:
        """Nothing is pending."""
        self.since, self.start, self.area = cells.add(NONE), cells.add(NONE), cells.add(0.0)
        """Per key: when that update came, from when on it was the oldest, and the integral until then."""
        self.last = self.pending = self.sum = self.twice = 0

    def advance(self, now: int) -> None:
        """Time passes."""
        passed = now - self.last
        if passed and self.pending:
            self.twice += (2 * self.sum + self.pending * passed) * passed
            self.sum += self.pending * passed
        self.last = now

    def begin_one(self, key: int, since: int, now: int) -> None:
        """A key that was fresh is stale since a time."""
        self.advance(now)
        self.since.view[key], self.start.view[key] = since, now
        self.pending += 1
        self.sum += now - since

    def end_one(self, key: int, now: int) -> int:
        """A key is no longer stale; since when it was."""
        self.advance(now)
        since: int = self.since.view[key]
        start: int = self.start.view[key]
        self.area.view[key] += (now - start) * (now + start - 2 * since) / 2
        self.since.view[key] = NONE
        self.pending -= 1
        self.sum -= now - since
        return since

    def begin(self, keys: np.ndarray, since: np.ndarray, now: int) -> None:
        """Different keys that were fresh are stale since some times."""
        self.advance(now)
        self.since.array[keys], self.start.array[keys] = since, now
        self.pending += len(keys)
        self.sum += _sum(now - since)

    def end(self, keys: np.ndarray, now: int) -> np.ndarray:
        """Different keys are no longer stale; since when they were."""
        self.advance(now)
        since: np.ndarray = self.since.array[keys]
        start = self.start.array[keys]
        self.area.array[keys] += (now - start).astype(np.float64) * ((now - since) + (start - since)) / 2
        self.since.array[keys] = NONE
        self.pending -= len(keys)
        self.sum -= _sum(now - since)
        return since

    def of_key(self, key: int, now: int) -> tuple[int, float]:
        """How stale a key is now, and the integral until now."""
        since, start, area = self.since.view[key], self.start.view[key], self.area.view[key]
        if since == NONE:
            return 0, area
        return now - since, area + (now - start) * (now + start - 2 * since) / 2

    def of_all(self, now: int) -> tuple[int, float]:
        """The sum of how stale all keys are now, and of their integrals."""
        passed = now - self.last
        return self.sum + self.pending * passed, (self.twice + (2 * self.sum + self.pending * passed) * passed) / 2

    def to_plain(self) -> Any:
        """What is of no key, as plain data."""
        return [self.last, self.pending, self.sum, self.twice]

    def from_plain(self, data: Any) -> None:
        """The other way."""
        self.last, self.pending, self.sum, self.twice = data


class Unapplied:
    """How many updates of every key are pending, and the integral of that."""

    def __init__(self, cells: KeyCells) -> None:
        """None is."""
        self.count, self.at, self.area = cells.add(0), cells.add(0), cells.add(0.0)
        self.last = self.sum = self.total = 0

    def advance(self, now: int) -> None:
        """Time passes."""
        self.total += self.sum * (now - self.last)
        self.last = now

    def add_one(self, key: int, more: int, now: int) -> None:
        """More of a key's updates are pending, or less."""
        if now != self.last:
            self.total += self.sum * (now - self.last)
            self.last = now
        counts, at = self.count.view, self.at.view
        count: int = counts[key]
        if count:
            self.area.view[key] += count * (now - at[key])
        counts[key], at[key] = count + more, now
        self.sum += more

    def add(self, keys: np.ndarray, more: np.ndarray, now: int) -> None:
        """The same of different keys."""
        self.advance(now)
        counts = self.count.array[keys]
        self.area.array[keys] += counts.astype(np.float64) * (now - self.at.array[keys])
        self.count.array[keys], self.at.array[keys] = counts + more, now
        self.sum += int(more.sum())

    def of_key(self, key: int, now: int) -> tuple[int, float]:
        """How many now, and the integral."""
        count: int = self.count.view[key]
        return count, self.area.view[key] + count * (now - self.at.view[key])

    def of_all(self, now: int) -> tuple[int, float]:
        """The same of all keys together."""
        return self.sum, self.total + self.sum * (now - self.last)

    def to_plain(self) -> Any:
        """What is of no key, as plain data."""
        return [self.last, self.sum, self.total]

    def from_plain(self, data: Any) -> None:
        """The other way."""
        self.last, self.sum, self.total = data


class StalenessMeter:
    """Queue and application staleness of the keys of one queue."""

    def __init__(self, cells: KeyCells) -> None:
        """Nothing has come; what is kept of every key is in `cells`, which whoever has them keeps large enough."""
        self.queue, self.application, self.unapplied = Level(cells), Level(cells), Unapplied(cells)
        self.origin: int | None = None
        """When the first update came."""
        self.keys = 0
        self.forgotten = 0
        """How many keys were known that no longer are."""
        self.delivery = NONE
        """When something was delivered last."""
        self.under_way: deque[tuple[np.ndarray, np.ndarray, np.ndarray, int]] = deque()
        """What was dequeued together and not delivered: keys, since when they were stale, how many updates they answer,
        and when."""

    def know(self, keys: int, now: int) -> None:
        """There are so many keys now; said before anything else of those that are new."""
        self.keys = keys
        if self.origin is None:
            self.origin = now

    def are_fresh(self, now: int, silent: int) -> np.ndarray:
        """Which keys have no update that was not delivered, and have had none for so long."""
        count, at = self.unapplied.count.array[: self.keys], self.unapplied.at.array[: self.keys]
        return np.asarray((count == 0) & (at <= now - silent))

    def keep(self, kept: Kept) -> None:
        """Keys that are fresh are forgotten; what they came to stays in what is told of all."""
        self.forgotten += self.keys - len(kept.numbers)
        self.keys = len(kept.numbers)
        self.under_way = deque((kept.new[keys], *others) for keys, *others in self.under_way)

    def arrived_one(self, key: int, now: int) -> None:
        """An update came that was not shed."""
        if self.queue.since.view[key] == NONE:
            self.queue.begin_one(key, now, now)
            if self.application.since.view[key] == NONE:
                self.application.begin_one(key, now, now)
        self.unapplied.add_one(key, 1, now)

    def arrived(self, keys: np.ndarray, counts: np.ndarray, now: int) -> None:
        """Updates of different keys came, so many of each."""
        for level in (self.queue, self.application):
            fresh = keys[level.since.array[keys] == NONE]
            level.begin(fresh, np.full(len(fresh), now), now)
        self.unapplied.add(keys, counts, now)

    def start(self, keys: np.ndarray, since: np.ndarray, answers: np.ndarray, now: int) -> None:
        """These keys are under way, whose oldest updates came then, and which answer so many of them."""
        self.under_way.append((keys, since, answers, now))

    def delivered(self, now: int, most: int | None = None) -> list[tuple[int, int]]:
        """What is under way has come, or the first so many of it; how many keys took how long."""
        left = sum(len(part[0]) for part in self.under_way) if most is None else most
        costs: list[tuple[int, int]] = []
        while left > 0 and self.under_way:
            keys, since, answers, at = self.under_way.popleft()
            if len(keys) > left:
                self.under_way.appendleft((keys[left:], since[left:], answers[left:], at))
                keys, answers = keys[:left], answers[:left]
            left -= len(keys)
            costs.append((len(keys), now - max(at, self.delivery)))
            self.delivery = now
            self._come(keys, answers, now)
        return costs

    def _come(self, keys: np.ndarray, answers: np.ndarray, now: int) -> None:
        """Keys were delivered; one of them may be there several times."""
        if len(keys) <= FEW:
            for key, count in zip(keys.tolist(), answers.tolist(), strict=True):
                if self.application.since.view[key] != NONE:
                    self.application.end_one(key, now)
                self.unapplied.add_one(key, -count, now)
                later = self._next(key)
                if later != NONE:
                    self.application.begin_one(key, later, now)
            return
        different, which = np.unique(keys, return_inverse=True)
        counts = np.zeros(len(different), np.int64)
        np.add.at(counts, which, answers)
        self.application.end(different[self.application.since.array[different] != NONE], now)
        self.unapplied.add(different, -counts, now)
        later_of = self._next_of(different)
        stale = later_of != NONE
        self.application.begin(different[stale], later_of[stale], now)

    def _next(self, key: int) -> int:
        """Since when the updates of a key are pending that come after what was delivered."""
        for keys, since, _, _ in self.under_way:
            found = np.flatnonzero((keys == key) & (since != NONE))
            if len(found):
                return int(since[found[0]])
        return int(self.queue.since.view[key])

    def _next_of(self, keys: np.ndarray) -> np.ndarray:
        """The same of different keys."""
        found: np.ndarray = self.queue.since.array[keys].copy()
        if self.under_way:
            place = {key: at for at, key in enumerate(keys.tolist())}
            for others, since, _, _ in reversed(self.under_way):
                for key, time in zip(others[::-1].tolist(), since[::-1].tolist(), strict=True):
                    if key in place and time != NONE:
                        found[place[key]] = time
        return found

    def staleness(self, now: int, key: int | None = None) -> Staleness:
        """Of one key, or of all keys on average."""
        if self.origin is None or not self.keys + self.forgotten:
            return Staleness()
        parts = (self.queue, self.application, self.unapplied)
        found: Sequence[tuple[float, float]] = [p.of_all(now) if key is None else p.of_key(key, now) for p in parts]
        keys = self.keys + self.forgotten if key is None else 1
        passed = (now - self.origin) * keys
        values, areas = [value / keys for value, _ in found], [area / passed if passed else 0.0 for _, area in found]
        return Staleness(*values, *areas)

    def to_plain(self) -> Any:
        """As plain data, but for the cells."""
        levels = [each.to_plain() for each in (self.queue, self.application, self.unapplied)]
        under_way = [list(part) for part in self.under_way]
        scalars = {"keys": self.keys, "origin": self.origin, "delivery": self.delivery, "forgotten": self.forgotten}
        return {**scalars, "levels": levels, "under_way": under_way}

    def from_plain(self, data: Any) -> None:
        """The other way."""
        self.keys, self.origin, self.delivery = data["keys"], data["origin"], data["delivery"]
        self.forgotten = data.get("forgotten", 0)
        self.queue.from_plain(data["levels"][0])
        self.application.from_plain(data["levels"][1])
        self.unapplied.from_plain(data["levels"][2])
        self.under_way = deque(tuple(part) for part in data["under_way"])


def _sum(times: np.ndarray) -> int:
    """The sum of times that are not negative, which may be more than 64 bits hold."""
    low = 1 << 31
    return int((times // low).sum()) * low + int((times % low).sum())
