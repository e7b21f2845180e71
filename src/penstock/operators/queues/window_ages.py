"""How stale keys are whose updates are windows (UpStream, sections 3.3 and 6.1.2).

A window becomes *pending* when it is an update, and stays so until that window or a later one of its key is answered. A
key is as stale as its oldest pending window is old. `Pending` has the pending windows of a key, as runs that became
pending together; `Ages` the integrals over time, of every key and of all together.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from penstock.operators.queues.extents import Interval


class Pending:
    """The pending windows of a key."""

    __slots__ = ("count", "runs")

    def __init__(self) -> None:
        """None is pending."""
        self.runs: deque[tuple[int, int, int]] = deque()
        """First, last, and since when."""
        self.count = 0

    def add(self, run: Interval, now: int) -> None:
        """These windows, which are later than all before, are pending."""
        self.runs.append((*run, now))
        self.count += run[1] - run[0] + 1

    def answer(self, wid: int) -> None:
        """A window was answered, and so is every one before it."""
        runs = self.runs
        while runs and runs[0][0] <= wid:
            low, high, since = runs.popleft()
            self.count -= min(high, wid) - low + 1
            if high > wid:
                runs.appendleft((wid + 1, high, since))

    @property
    def since(self) -> int | None:
        """Since when the oldest is pending."""
        return self.runs[0][2] if self.runs else None


class _Age:
    """The integral of what grows by `slope` and is `slope * t - offset` at `t`, and of how many windows pend."""

    __slots__ = ("area", "last", "offset", "pending", "pending_area", "slope")

    def __init__(self, now: int) -> None:
        self.slope = self.offset = self.pending = 0
        self.area = self.pending_area = 0
        """The first is twice the integral, so that it is an integer."""
        self.last = now

    def at(self, now: int) -> int:
        return self.slope * now - self.offset

    def areas(self, now: int) -> tuple[int, int]:
        passed = now - self.last
        return self.area + (self.at(self.last) + self.at(now)) * passed, self.pending_area + self.pending * passed

    def change(self, now: int, slope: int, offset: int, pending: int) -> None:
        self.area, self.pending_area = self.areas(now)
        self.last = now
        self.slope += slope
        self.offset += offset
        self.pending += pending

    def to_plain(self) -> Any:
        return (self.slope, self.offset, self.pending, self.area, self.pending_area, self.last)

    @classmethod
    def from_plain(cls, data: Any) -> _Age:
        age = cls(0)
        age.slope, age.offset, age.pending, age.area, age.pending_area, age.last = data
        return age


class Ages:
    """How stale keys are and were."""

    def __init__(self) -> None:
        """No key was seen."""
        self.keys: list[_Age] = []
        self.all = _Age(0)
        self.pending: list[Pending] = []

    def new_key(self, now: int) -> None:
        """There is one key more, which is fresh."""
        self.keys.append(_Age(now))
        self.pending.append(Pending())

    def add(self, key: int, run: Interval, now: int) -> None:
        """Windows of a key are pending."""
        before, count = self.pending[key].since, self.pending[key].count
        self.pending[key].add(run, now)
        self._changed(key, before, count, now)

    def answer(self, key: int, wid: int, now: int) -> None:
        """A window of a key was answered."""
        before, count = self.pending[key].since, self.pending[key].count
        self.pending[key].answer(wid)
        self._changed(key, before, count, now)

    def _changed(self, key: int, before: int | None, count: int, now: int) -> None:
        after = self.pending[key].since
        slope = (after is not None) - (before is not None)
        change = now, slope, (after or 0) - (before or 0), self.pending[key].count - count
        self.keys[key].change(*change)
        self.all.change(*change)

    def measure(self, now: int, since: int, key: int | None = None) -> tuple[float, float, float, float]:
        """Staleness and pending windows now, and both on average since some time; of all keys: per key."""
        age, keys = (self.all, len(self.keys)) if key is None else (self.keys[key], 1)
        if not keys:
            return 0.0, 0.0, 0.0, 0.0
        area, pending = age.areas(now)
        passed = (now - since) * keys
        averages = (area / 2 / passed, pending / passed) if passed else (0.0, 0.0)
        return (age.at(now) / keys, age.pending / keys, *averages)

    def to_plain(self) -> Any:
        """The integrals, and what is pending."""
        pending = [list(each.runs) for each in self.pending]
        return [[age.to_plain() for age in self.keys], self.all.to_plain(), pending]

    def from_plain(self, data: Any) -> None:
        """The same."""
        keys, every, pending = data
        self.keys, self.all = [_Age.from_plain(each) for each in keys], _Age.from_plain(every)
        self.pending = []
        for runs in pending:
            self.pending.append(Pending())
            for low, high, since in runs:
                self.pending[-1].add((low, high), since)
