"""How far a run has come, in one shape on both engines.

It has fields (`run.progress.counts.late`) and can be read like the dictionary that PySpark's users know
(`run.progress["late"]`, `dict(run.progress)`), in which the counts lie flat and everything is plain. Times are written
as times; only `bound_ticks` is a number, for programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from penstock.flow.estimate_progress import EstimateProgress
from penstock.model.accounts import Counts
from penstock.model.recent_promises import Shown
from penstock.model.time import END_OF_TIME, MIN_TICK, Domain, show_span, show_ticks


@dataclass(frozen=True)
class OperatorProgress:
    """What has gone through one operator; `identity` is what its state and statistics are kept under."""

    identity: str
    label: str
    rows_in: int = 0
    rows_out: int = 0
    punctuations_in: int = 0
    punctuations_out: int = 0
    failed: int = 0
    older: int = 0
    """Rows of update streams that were left out, since a newer one of their key had come."""


@dataclass(frozen=True)
class QueueProgress:
    """What waits in one queue, what became of its rows, and how stale what it delivers is; times are in seconds.

    Stalenesses are averages over the keys that were ever seen: now, and over time since the first row came (UpStream,
    section 3.3). `run.staleness(key)` has those of one key.
    """

    identity: str
    label: str
    policy: str
    waiting: int = 0
    enqueued: int = 0
    dequeued: int = 0
    delivered: int = 0
    superseded: int = 0
    older: int = 0
    shed: int = 0
    queue_staleness: float = 0.0
    application_staleness: float = 0.0
    unapplied: float = 0.0
    """Updates of a key that no delivery has answered."""
    average_queue_staleness: float = 0.0
    average_application_staleness: float = 0.0
    average_unapplied: float = 0.0
    budget: int | None = None
    """How many rows go on at a time, or with a micro-batch; None for all that wait."""
    cost: float | None = None
    """What a row costs its consumer, as measured."""
    max_staleness: float | None = None
    """What was asked for."""
    least_bound: float | None = None
    """The least staleness that can be promised at this cost."""
    is_met: bool = True
    """Whether what was asked for can be."""
    memory: int = 0
    """Bytes of the pages on which its tuples lie, as the operating system gave them."""
    average_memory: float = 0.0
    """The same on average over time."""
    memory_usage: float = 1.0
    """Which part of the places for tuples holds one that waits, on average over time."""


@dataclass(frozen=True, eq=False)
class RunProgress(Mapping[str, Any]):
    """Where the rows went, and how far the streams and the result have come."""

    name: str
    status: str
    """`running`, `finished`, `stopped` or `failed`."""
    reason: str | None = None
    """The first line of why the run has failed."""
    counts: Counts = field(default_factory=Counts)
    batches: int = 0
    """Portions of the input that are done: micro-batches on Spark, items of a source in-process."""
    frontier: Mapping[str, str | None] = field(default_factory=dict)
    """Per stream, the time before which nothing more comes."""
    group_frontier: Mapping[str, tuple[Shown, ...]] = field(default_factory=dict)
    """Per stream, what it has lately promised of some groups besides: the constants, and up to when nothing comes."""
    newest: Mapping[str, str | None] = field(default_factory=dict)
    """Per stream, the greatest time of a row that was on time."""
    bound: str | None = None
    """The time before which the result is complete."""
    bound_ticks: int | None = None
    group_bounds: tuple[Shown, ...] = ()
    """What the result has lately been promised to be complete in besides, for some groups."""
    lag: str | None = None
    """How far the result is behind the newest row."""
    ended: bool = False
    """Whether nothing more can come out."""
    operators: tuple[OperatorProgress, ...] = ()
    """What has gone through each operator, the last one first, where that is known."""
    queues: tuple[QueueProgress, ...] = ()
    """What waits, and how stale it is, where streams are conflated."""
    estimates: Mapping[str, EstimateProgress] = field(default_factory=dict)
    """Per stream of which the progress is estimated, what that has cost."""

    def _plain(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "counts":
                found.update(asdict(value))
            elif each.name == "group_frontier":
                found[each.name] = {stream: list(promises) for stream, promises in value.items()}
            elif each.name == "group_bounds":
                found[each.name] = list(value)
            elif each.name == "estimates":
                found[each.name] = {s: {**asdict(one), "lateness": one.lateness} for s, one in value.items()}
            elif each.name in ("operators", "queues"):
                found[each.name] = [asdict(one) for one in value]
            else:
                found[each.name] = dict(value) if isinstance(value, Mapping) else value
        return found

    def __getitem__(self, name: str) -> Any:
        return self._plain()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plain())

    def __len__(self) -> int:
        return len(self._plain())

    @property
    def json(self) -> str:
        """The same as one JSON object."""
        return json.dumps(self._plain(), ensure_ascii=False)

    @property
    def summary(self) -> str:
        """On one line, for people: what is nothing is left out."""
        counts = {key.replace("_", " "): n for key, n in asdict(self.counts).items() if n or key == "read"}
        told = [f"{self.status}; " + ", ".join(f"{key} {n:,}".replace(",", " ") for key, n in counts.items())]
        if self.bound is not None:
            told.append("complete" if self.ended else f"complete up to {self.bound}")
        if self.lag is not None and not self.ended:
            told.append(f"{self.lag} behind the newest row")
        told += [f"{stream}: {estimate.in_words}" for stream, estimate in self.estimates.items()]
        told += [queue_in_words(queue) for queue in self.queues]
        if self.reason is not None:
            told.append(self.reason)
        return "; ".join(told)

    def rows(self) -> Iterator[tuple[str, str]]:
        """The same in rows of two columns, for people."""
        yield "status", self.status
        for key, n in asdict(self.counts).items():
            yield key.replace("_", " "), str(n)
        for stream, bound in self.frontier.items():
            yield f"stream {stream} up to", bound or "-"
        for stream, promises in self.group_frontier.items():
            if promises:
                yield f"stream {stream}, of groups", in_words(promises)
        for stream, estimate in self.estimates.items():
            yield f"stream {stream}, estimated", estimate.in_words
        if self.group_bounds:
            yield "complete of groups", in_words(self.group_bounds)
        for queue in self.queues:
            yield queue.label, queue_in_words(queue)
        for key in ("bound", "lag", "reason"):
            value = getattr(self, key)
            if value is not None:
                yield {"bound": "complete up to"}.get(key, key), value

    def __repr__(self) -> str:
        return f"<progress of {self.name}: {self.summary}>"


def shown(tick: int | None, domain: Domain) -> str | None:
    """A tick as a time; None where nothing is known."""
    return None if tick is None or tick == MIN_TICK else show_ticks(tick, domain)


def in_words(promises: Sequence[Shown], most: int = 3) -> str:
    """The last of some promises on one line."""
    told = [", ".join(f"{n} {v}" for n, v in p["of"].items()) + " up to " + " or ".join(p["up_to"].values())
            for p in promises[-most:]]  # fmt: skip
    return "; ".join([*(["…"] if len(promises) > most else []), *told])


def queue_in_words(queue: QueueProgress) -> str:
    """A queue on one line."""
    told = f"{queue.waiting} wait, {queue.application_staleness:.3g} s stale"
    told += f", {queue.superseded} superseded" if queue.superseded else ""
    if queue.is_met or queue.least_bound is None:
        return told
    return f"{told}; at most {queue.max_staleness:g} s cannot be met, the least bound is {queue.least_bound:.3g} s"


def lag(newest: int | None, bound: int | None, domain: Domain) -> str | None:
    """How far a bound is behind the newest row, which is nothing once everything has come."""
    if newest is None or bound is None or bound == MIN_TICK:
        return None
    return show_span(0 if bound == END_OF_TIME else max(newest - bound, 0), domain)
