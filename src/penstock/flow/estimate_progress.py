"""What estimated bounds have cost: the share of rows that came late, beside the share that was aimed at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.model.estimated import Estimated
from penstock.model.time import show_span
from penstock.operators.progress.ahead import GuardedTracker
from penstock.operators.progress.trackers import tracker_for
from penstock.plan.nodes import Source


@dataclass(frozen=True)
class EstimateProgress:
    """Of one stream of which the progress is estimated, since its first row."""

    aimed: float
    """The share of late rows that was aimed at."""
    rows: int = 0
    late: int = 0
    """How many came below the bound."""
    delay: str | None = None
    """How far the bound is behind the greatest time now; None while nothing was estimated."""

    @property
    def lateness(self) -> float:
        """The share of the rows that came late."""
        return self.late / self.rows if self.rows else 0.0

    @property
    def in_words(self) -> str:
        """On one line."""
        told = f"{self.lateness:.3%} late of {self.aimed:.3%} aimed at"
        return told if self.delay is None else f"{told}, {self.delay} behind the newest row"


def estimate_of(source: Source, state: Any, passed: Mapping[str, int] | None = None) -> EstimateProgress | None:
    """What the state of a stream's progress says of its estimates; None if nothing is estimated.

    Where rows are judged by micro-batch the state does not count all late rows: `passed` says how many rows have gone
    into the entrance and out of it.
    """
    if not isinstance(source.progress, Estimated):
        return None
    aimed = float(source.progress.share)
    if isinstance(tracker_for(source.progress, source.schema.domain, source.max_ahead), GuardedTracker):
        state = None if state is None else state[1]
    if state is None:
        return EstimateProgress(aimed)
    delay = None if state["delay"] is None else show_span(state["delay"], source.schema.domain)
    if passed is None:
        return EstimateProgress(aimed, state["rows"], state["late"], delay)
    rows, out = passed.get("rows_in", 0), passed.get("rows_out", 0)
    return EstimateProgress(aimed, rows, rows - out, delay)
