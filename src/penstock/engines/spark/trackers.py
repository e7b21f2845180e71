"""The progress of streams in records: what their entrances remember, encoded as in pages, which JSON cannot say."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.engines.spark.wire import dump, load
from penstock.model.time import MIN_TICK
from penstock.model.timer import Timer
from penstock.operators.progress.ahead import GuardedTracker
from penstock.operators.progress.timers import TimerTracker
from penstock.operators.progress.trackers import tracker_for
from penstock.plan.nodes import Source
from penstock.runtime.showing import reached_by
from penstock.storage.log import Record


def plain_tracker(state: Any, outside: int | None) -> dict[str, Any]:
    """The state of a stream's progress for a record, and the bound that came from outside."""
    return {"state": base64.b64encode(dump(state)).decode(), "outside": outside}


def tracked(record: Record, stream: str) -> dict[str, Any]:
    """What the entrance of a stream remembered when a record was put, as its pages."""
    kept = record.trackers.get(stream)
    return {} if kept is None else {"progress": _state(kept), "outside": kept["outside"]}


def streams_reached(record: Record, sources: Iterable[Source]) -> dict[str, int]:
    """How far each stream had come after a micro-batch, as its entrance would judge by what the record keeps."""
    return {s.name: reached_in(record.trackers, s) for s in sources if s.name in record.trackers}


def reached_in(trackers: Mapping[str, Any], source: Source) -> int:
    """How far a stream has come, by the progress of streams as a record has it."""
    kept = trackers.get(source.name)
    if kept is None:
        return MIN_TICK
    bound = reached_by(source, _state(kept))
    return bound if kept["outside"] is None else max(bound, kept["outside"])


def timer_due(trackers: Mapping[str, Any], source: Source) -> int | None:
    """The last time at which the timer of a stream would say no more than it did; None if there is nothing to say."""
    kept = trackers.get(source.name)
    if kept is None or not isinstance(source.progress, Timer):
        return None
    state, tracker = _state(kept), tracker_for(source.progress, source.schema.domain, source.max_ahead)
    if isinstance(tracker, GuardedTracker):
        state, tracker = None if state is None else state[1], tracker.inner
    assert isinstance(tracker, TimerTracker)
    return tracker.due(state)


def _state(kept: dict[str, Any]) -> Any:
    return load(base64.b64decode(kept["state"]))
