"""Random shedding: of the rows that come as many are dropped, by lot, as are too many (UpStream, 5.2: AQ-RLS).

The baseline of load shedding that knows nothing of keys. A row is kept with a probability that is given, or that
follows from what is measured: the time between rows over the time that one takes, less some headroom, since a queue
that is fed as fast as it is emptied grows by chance alone. The lot is a generator of numbers whose state is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import StreamError

FADING = 1 / 256
"""What the latest row counts in the averages of gaps and costs; more as long as there were fewer."""

MANY = 1 << 30


class RandomShedding:
    """Which rows are dropped."""

    def __init__(self, keep: float | None = None, *, headroom: float = 0.9, seed: int = 0) -> None:
        """`keep` is the probability that a row is kept; without it, `headroom` of the capacity is used."""
        for name, value in (("keep", 1.0 if keep is None else keep), ("headroom", headroom)):
            if not 0 < value <= 1:
                raise StreamError(
                    f"{name} is a part of the whole.", got=f"{name}={value}", hint="more than 0 and at most 1"
                )
        self.fixed, self.headroom = keep, headroom
        self._lot = np.random.Generator(np.random.PCG64(seed))
        self._gap: float | None = None
        self._cost: float | None = None
        self._last: int | None = None
        self._gaps = self._costs = 0
        """Of how many rows the averages are."""

    @property
    def keep(self) -> float:
        """With which probability a row is kept."""
        if self.fixed is not None:
            return self.fixed
        if self._gap is None or self._cost is None or self._cost == 0:
            return 1.0
        return min(1.0, self.headroom * self._gap / self._cost)

    def kept(self, rows: int, now: int) -> np.ndarray:
        """Rows came; which of them are kept."""
        if self._last is not None and rows:
            self._gaps += rows
            self._gap = _faded(self._gap, (now - self._last) / rows, rows, self._gaps)
        self._last = now
        keep = self.keep
        return np.ones(rows, np.bool_) if keep >= 1 else self._lot.random(rows) < keep

    def served(self, rows: int, cost: int) -> None:
        """Rows were processed, which took so long together."""
        if rows:
            self._costs += rows
            self._cost = _faded(self._cost, cost / rows, rows, self._costs)

    def to_plain(self) -> Any:
        """Averages, and where the generator is."""
        known = {"gap": self._gap, "cost": self._cost, "last": self._last, "rows": [self._gaps, self._costs]}
        return {"lot": self._lot.bit_generator.state, **known}

    def from_plain(self, data: Any) -> None:
        """The other way."""
        self._lot.bit_generator.state = data["lot"]
        self._gap, self._cost, self._last = data["gap"], data["cost"], data["last"]
        self._gaps, self._costs = data.get("rows", (MANY, MANY))  # averages were over all rows at first


def _faded(average: float | None, latest: float, times: int, of: int) -> float:
    """The average of so many rows, the latest of which came just now."""
    if average is None:
        return latest
    left: float = min((1 - FADING) ** times, 1 - times / of)
    return average * left + latest * (1 - left)
