"""Claims: a measured value beside its bar.

A claim is a ratio between things that ran in one command, since machines differ and are shared. It holds or it does
not; a bar is never moved by the run. A claim whose peer is absent is not made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Claim:
    """A value, and what it must reach."""

    name: str
    value: float
    bar: float
    better: Literal["higher", "lower"]

    @property
    def holds(self) -> bool:
        """Whether the bar is reached."""
        return self.value >= self.bar if self.better == "higher" else self.value <= self.bar

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return {**asdict(self), "value": round(self.value, 3), "holds": self.holds}


@dataclass(frozen=True)
class Report:
    """The rows of a benchmark's table and plot, its claims, and what was left out and why."""

    name: str
    rows: Sequence[dict[str, Any]]
    claims: Sequence[Claim]
    absent: Sequence[str] = ()

    def with_more(self, other: Report) -> Report:
        """This one, and what another part of the same run has."""
        absent = list(dict.fromkeys([*self.absent, *other.absent]))
        return Report(self.name, [*self.rows, *other.rows], [*self.claims, *other.claims], absent)

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return {
            "name": self.name,
            "rows": list(self.rows),
            "claims": [c.as_json() for c in self.claims],
            "absent": list(self.absent),
        }
