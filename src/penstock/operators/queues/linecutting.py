"""LINECUTTING: keys that update slowly are served first, since what they are served with stays fresh (section 5.3).

When a key updates it is *slow* if all who wait could be served before it is likely to update again: `u_k < 1 / (c n)`,
with its rate `u_k`, the cost `c` of serving a key, and `n` who wait. A slow key goes to the line of those who cut in,
any other to the end of the ordinary line unless it waits; both lines are IN-PLACE. Rates and cost are estimated as
updates come and keys are served, each as an average in which the past fades.

Cutting in unguarded starves those who wait where the slow ones are many and not so slow, and reorders keys that update
alike for nothing. The guard is two conditions:
- A key that cuts in stands out: its updates are half as far apart again as those of the average update's key.
- Whoever is first in either line is weighed by what serving it is worth. A key that is served at an age `s`, and is
  stale again after `g` on average, costs `s^2 / 2` in every `g + s`; the charge for a service at which that is the best
  age is `s^2 / 2 + s g`. The key with the greater charge is served. Among keys that update alike this is the older, as
  it should be; and as age counts squared, nobody waits for ever.
Without the guard whoever cuts in is served, as in the paper.

Before a cost is known nobody cuts in. A key's rate is known from its second update on. One that has been silent for
four times its usual gap is taken to be as slow as that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.operators.queues.key_orders import Line, Occurrences
from penstock.operators.queues.key_table import NONE, KeyCells
from penstock.operators.queues.queue import Kept, KeyOrder

FADING = 1 / 64
"""What the latest gap between two updates counts in an average at least, and the latest cost in that of costs."""
STANDS_OUT = 1.5
"""How much further apart than those of others the updates of a key are that cuts in."""
SILENT = 0.25
"""Which part of the time since its last update a key's gap is at least."""


class Linecutting(KeyOrder):
    """Two lines: of those who cut in, and of the others."""

    kind = "linecutting"

    def __init__(self, *, guarded: bool = True) -> None:
        """`guarded`: those who cut in are weighed against those who wait."""
        self.guarded = guarded
        self.cutting, self.ordinary = Line(), Line()
        self._cells = cells = KeyCells()
        self._last, self._since = cells.add(NONE), cells.add(NONE)
        """Per key: when it updated last, and since when it waits."""
        self._gap, self._gaps = cells.add(-1.0), cells.add(0)
        """Per key: the average gap between updates (-1 if there was none), and of how many."""
        self._usual: float | None = None
        """The gap of the key of the average update."""
        self._keys = 0
        self._cost: float | None = None
        self._occurrences = Occurrences()

    def __len__(self) -> int:
        """Who is in either line."""
        return self.cutting.count + self.ordinary.count

    def waits(self, key: int) -> bool:
        """Whether it is in a line."""
        return key in self.cutting or key in self.ordinary

    def waiting(self) -> np.ndarray:
        """Both lines, those who cut in first."""
        return np.concatenate([self.cutting.keys(), self.ordinary.keys()])

    # In

    def arrive_one(self, key: int, now: int) -> None:
        """To the line that its rate says; whoever cuts in already stays where it is."""
        self._know(key + 1)
        last: int = self._last.view[key]
        if last != NONE:
            gaps: int = self._gaps.view[key] + 1
            gap: float = self._gap.view[key]
            gap += (now - last - gap) * max(FADING, 1 / gaps)
            self._gaps.view[key], self._gap.view[key] = gaps, gap
            self._usual = gap if self._usual is None else self._usual + (gap - self._usual) * FADING
        self._last.view[key] = now
        if key in self.cutting:
            return
        waits = key in self.ordinary
        if not waits:
            self._since.view[key] = now
        if self._is_slow(self._gap.view[key], len(self)):
            self.ordinary.remove_one(key)
            self.cutting.add_one(key)
        elif not waits:
            self.ordinary.add_one(key)

    def arrive(self, keys: np.ndarray, now: int) -> None:
        """The same of many; those that come several times have come at even distances since they came last."""
        if not len(keys):
            return
        different = keys[self._occurrences.first(keys)]
        counts = self._occurrences.counts(keys, different)
        self._know(int(different.max()) + 1)
        self._learn(different, counts, now)
        self._last.array[different] = now
        others = different[~_in(self.cutting, different)]
        waits = _in(self.ordinary, others)
        self._since.array[others[~waits]] = now
        before = len(self) + np.cumsum(~waits) - ~waits
        slow = self._are_slow(self._gap.array[others], before)
        for key in others[slow & waits].tolist():
            self.ordinary.remove_one(key)
        self.cutting.add(others[slow])
        self.ordinary.add(others[~slow & ~waits])

    def _learn(self, keys: np.ndarray, counts: np.ndarray, now: int) -> None:
        """Different keys have come, so many times each."""
        known = self._last.array[keys] != NONE
        keys, counts = keys[known], counts[known]
        if not len(keys):
            return
        gap, gaps = self._gap.array[keys], self._gaps.array[keys] + counts
        latest = (now - self._last.array[keys]) / counts
        gap += (latest - gap) * np.maximum(1 - (1 - FADING) ** counts, counts / gaps)
        self._gaps.array[keys], self._gap.array[keys] = gaps, gap
        mean = float(np.average(gap, weights=counts))
        faded = (1 - FADING) ** int(counts.sum())
        self._usual = mean if self._usual is None else mean + (self._usual - mean) * faded

    def _is_slow(self, gap: float, before: int) -> bool:
        if self._cost is None or self._usual is None or gap <= self._cost * before:
            return False
        return gap >= 0 and not (self.guarded and gap < STANDS_OUT * self._usual)

    def _are_slow(self, gaps: np.ndarray, before: np.ndarray) -> np.ndarray:
        if self._cost is None or self._usual is None:
            return np.zeros(len(gaps), np.bool_)
        least = STANDS_OUT * self._usual if self.guarded else 0.0
        return np.asarray((gaps >= least) & (gaps > self._cost * before))

    def _know(self, count: int) -> None:
        if count > self._keys:
            self._keys = count
            self._cells.grow(count)

    # Out

    def take(self, most: int, now: int) -> np.ndarray:
        """Who is worth most, again and again."""
        if not self.cutting.count:
            return self.ordinary.take(most)
        if not self.guarded:
            first = self.cutting.take(most)
            return np.concatenate([first, self.ordinary.take(most - len(first))])
        found: list[int] = []
        while len(found) < most and len(self):
            found.append(self._take_one(now))
        return np.array(found, np.int64)

    def _take_one(self, now: int) -> int:
        if not self.ordinary.count:
            return self.cutting.take_one()
        if not self.cutting.count or self._worth(self.ordinary.first(), now) >= self._worth(self.cutting.first(), now):
            return self.ordinary.take_one()
        return self.cutting.take_one()

    def _worth(self, key: int, now: int) -> float:
        """What serving a key now is worth: its charge, at the age that it has when it has been served."""
        age = now - self._since.view[key] + (self._cost or 0.0)
        silent = SILENT * (now - self._last.view[key])
        return float(age * (age / 2 + max(self._gap.view[key], silent)))

    def keep(self, kept: Kept) -> None:
        """The rates of those that are forgotten are, too."""
        self._know(len(kept.new))
        self._cells.keep(kept)
        self._keys = len(kept.numbers)
        self.cutting.keep(kept)
        self.ordinary.keep(kept)
        self._occurrences = Occurrences()

    def served(self, keys: int, cost: int) -> None:
        """What a key costs."""
        if keys:
            each = cost / keys
            faded = (1 - FADING) ** keys
            self._cost = each if self._cost is None else self._cost * faded + each * (1 - faded)

    # State

    def to_plain(self) -> Any:
        """Both lines, and what is known of rates and costs."""
        lines = [self.cutting.to_plain(), self.ordinary.to_plain()]
        known = {"keys": self._keys, "cost": self._cost, "usual": self._usual}
        return {"lines": lines, "cells": self._cells.to_plain(self._keys), **known}

    def from_plain(self, data: Any, version: int) -> None:
        """The other way."""
        self._keys, self._cost, self._usual = data["keys"], data["cost"], data["usual"]
        self._cells.from_plain(data["cells"])
        self.cutting.from_plain(data["lines"][0])
        self.ordinary.from_plain(data["lines"][1])


def _in(line: Line, keys: np.ndarray) -> np.ndarray:
    """Which keys are in a line."""
    line.place.grow(int(keys.max()) + 1 if len(keys) else 0)
    return np.asarray(line.place.array[keys] != NONE)
