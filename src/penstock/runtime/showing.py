"""What a part of a batch shows of its stream's progress, for whoever judges by the batches before.

That is a summary, which can be joined with those of other parts, what is promised besides, and which rows are no data.
Streams of which one attribute progresses and those of several are read through the same three functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.model.batch import Batch
from penstock.model.progress import Several
from penstock.model.time import MIN_TICK
from penstock.operators.progress.marks import DATA
from penstock.operators.progress.promises import GroupPromises, Said
from penstock.operators.progress.several import SeveralTracker
from penstock.operators.progress.trackers import Tracker, tracker_for
from penstock.plan.nodes import Source
from penstock.runtime.builder import Builder, promises_of


@dataclass(frozen=True)
class Showed:
    """Of some rows that arrived together."""

    summary: Any
    said: list[Said]
    """What punctuation rows promise of some groups, or of several attributes together."""
    aside: np.ndarray | None
    """Which rows are no data: punctuation, and what cannot be used; None where all are data."""


class Showing:
    """Reads batches of one stream."""

    def __init__(self, source: Source, builder: Builder) -> None:
        """The trackers of the stream's progress."""
        self.source = source
        self.tracker = tracker_of(source, builder)
        several = isinstance(source.progress, Several)
        self.marks_of = None if several else builder.marks_of(source)
        self.groups: GroupPromises | None = None if several else promises_of(source)

    def __call__(self, batch: Batch) -> Showed:
        """What a batch shows."""
        if isinstance(self.tracker, SeveralTracker):
            seen = self.tracker.see(batch)
            return Showed(self.tracker.summarise(seen), self.tracker.said_in(seen), seen.kinds != DATA)
        times = batch.times() if len(batch) else np.empty(0, np.int64)
        marks = self.marks_of(batch) if self.marks_of is not None else None
        said = self.groups.said_in(batch, np.asarray(marks)) if self.groups is not None and len(batch) else []
        is_punctuated = self.source.punctuation is not None and len(batch)
        return Showed(self.tracker.summarise(times, marks), said, np.asarray(marks) != DATA if is_punctuated else None)


def tracker_of(source: Source, builder: Builder) -> Tracker | SeveralTracker:
    """What follows the progress of a stream."""
    if isinstance(source.progress, Several):
        return builder.tracker_of_several(source)
    return tracker_for(source.progress, source.schema.domain, source.max_ahead)


def reached_by(source: Source, state: Any) -> int:
    """The bound of a stream's time in a state of its tracker."""
    if not isinstance(source.progress, Several):
        return tracker_for(source.progress, source.schema.domain, source.max_ahead).bound(state)
    singles = [(names[0], how) for names, how in source.progress.entries if len(names) == 1]
    for (name, how), own in zip(singles, state or [None] * len(singles), strict=True):
        if name == source.schema.time:
            return tracker_for(how, source.schema.domain).bound(own)
    return MIN_TICK
