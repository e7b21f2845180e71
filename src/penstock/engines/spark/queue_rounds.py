"""The driver's side of update queues: before a micro-batch it decides the round, after it what was measured is kept.

What buckets tell of their queues is in every record, bucket by bucket, with what is known of the consumer's pace: so a
run goes on with it after a restart, and whoever asks how stale a key's delivery is reads one record. As long as
something waits the record says so, and the clock makes the next micro-batch, whether or not rows come (`clock.py`). In
homes of earlier releases the clock is none of the sources, and cannot become one; there a line in the control folder
does it, put before the micro-batch at hand is done, and again when that is done again, so that there always is one.

A run whose trigger takes what is there and ends has no such next micro-batch: there everything goes on with each.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from penstock.engines.spark.bucket_queues import QUEUES
from penstock.engines.spark.clock import ASKS
from penstock.engines.spark.mapper import TICKS
from penstock.engines.spark.rounds import Round, put_round, round_of
from penstock.model.time import Domain, show_span
from penstock.operators.queues.queue import QueueCounts
from penstock.operators.queues.staleness_sum import StalenessSum, together
from penstock.plan.nodes import Conflate
from penstock.plan.physical import Physical
from penstock.runtime.round_pacing import RECENT, RoundPacing, shares
from penstock.storage.files import Place
from penstock.storage.log import Record

LOGGER = logging.getLogger("penstock.run")
SECOND = 1_000_000
CONTROL_FOLDER = "control"


@dataclass(frozen=True)
class QueueState:
    """What a record has of one queue."""

    buckets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each bucket told last, by its number."""
    pacing: Mapping[str, Any] = field(default_factory=dict)
    budget: int | None = None
    """How many rows could go on; None for all."""

    @property
    def waiting(self) -> int:
        """How many rows wait."""
        return sum(told["waiting"] for told in self.buckets.values())

    @property
    def ready(self) -> int:
        """How many updates could go on."""
        return sum(told["ready"] for told in self.buckets.values())

    @property
    def counts(self) -> QueueCounts:
        """What became of the rows; what a micro-batch hands on is delivered when its record is kept."""
        summed: Counter[str] = Counter()
        for told in self.buckets.values():
            summed.update(told["counts"])
        known = {each.name: summed[each.name] for each in fields(QueueCounts)}  # queues of windows count more
        return QueueCounts(**{**known, "delivered": summed["dequeued"]})

    def metered(self, delivered: int) -> StalenessSum:
        """The staleness of all keys; what went on was delivered at this time."""
        return together(StalenessSum.from_plain(told["staleness"]) for told in self.buckets.values()).delivered(
            delivered
        )

    def line(self, buckets: int) -> list[int]:
        """How many keys were in line in each bucket."""
        return [self.buckets.get(str(number), {}).get("waited", 0) for number in range(buckets)]


def queues_in(record: Record | None) -> dict[str, QueueState]:
    """The queues of a record, by identity."""
    state = record.state.get(QUEUES) if record is not None and isinstance(record.state, dict) else None
    return {identity: QueueState(**own) for identity, own in ((state or {}).get("told") or {}).items()}


def _began(record: Record | None) -> int:
    """What time it was to the queues of a record."""
    state = record.state.get(QUEUES) if record is not None and isinstance(record.state, dict) else None
    return int((state or {}).get("now", 0))


class QueueRounds:
    """The queues of one run, as its driver sees them."""

    def __init__(
        self,
        home: Place,
        planned: Physical,
        buckets: int,
        *,
        drains: bool,
        by_clock: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """With `drains`, everything goes on with each micro-batch; `by_clock` says what makes the next one."""
        self.home, self.buckets, self.drains, self.by_clock, self.clock = home, buckets, drains, by_clock, clock
        self.nodes = {each.identity: each.node for each in planned.walk() if isinstance(each.node, Conflate)}
        self._round: Round | None = None
        self._left: float | None = None
        """When the last micro-batch ended, if something could have gone on then; in seconds."""
        self._between: float | None = None
        """How long it takes from the end of a micro-batch to the begin of the next; in seconds, with the past faded."""
        self._is_first = True

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.nodes)

    def begin(self, batch: int, last: Record | None) -> None:
        """Decide what a micro-batch goes by, before it is evaluated."""
        now = self.clock()
        if self._left is not None:
            between = max(now - self._left, 0.0)
            self._between = between if self._between is None else self._between + RECENT * (between - self._between)
        ticks = max(int(now * SECOND), _began(last))
        delivered = None if last is None else min(max(int(last.at * SECOND), _began(last)), ticks)
        self._round = put_round(self.home, batch, Round(ticks, delivered, self._most(batch, last)))

    def begin_again(self, recorded: Record) -> None:
        """A micro-batch is done again of which there is a record; it goes by what it went by."""
        state = recorded.state.get(QUEUES) if isinstance(recorded.state, dict) else None
        made = round_of((state or {}).get("round"))
        if made is not None:
            put_round(self.home, recorded.batch, made)

    def _most(self, batch: int, last: Record | None) -> dict[str, list[int]]:
        if self.drains:
            return {}
        found = queues_in(last)
        return {
            identity: shares(self._pacing(identity, found).most, state.line(self.buckets), batch)
            for identity in self.nodes
            if (state := found.get(identity, QueueState())) is not None
        }

    def _pacing(self, identity: str, found: Mapping[str, QueueState]) -> RoundPacing:
        node, state = self.nodes[identity], found.get(identity)
        return RoundPacing.after(None if state is None else state.pacing, node.max_staleness, node.budget)

    def after(self, last: Record | None, told: Sequence[tuple[int, Mapping[str, Any]]], sink: float) -> dict[str, Any]:
        """What the record of the micro-batch has of the queues, by its keys; the sink took so many seconds."""
        assert self._round is not None
        found, ends = queues_in(last), self.clock()
        inside = ends - self._round.now / SECOND
        period = None if self._is_first else int((inside + (self._between or 0.0)) * SECOND)
        self._is_first = False
        kept, asks = {}, False
        for identity in self.nodes:
            before = found.get(identity, QueueState())
            now = {str(bucket): own[identity] for bucket, own in told if identity in own}
            pacing = self._pacing(identity, found)
            if now:
                rows, waited = (sum(each[name] for each in now.values()) for name in ("rows", "waited"))
                took = max(each["took"] for each in now.values()) + int(sink * SECOND)
                pacing.measured(rows, took, waited, period)
                self._tell(identity, pacing)
            most = self._round.most.get(identity)
            budget = None if most is None else sum(most)
            state = QueueState({**before.buckets, **now}, pacing.to_plain(), budget)
            kept[identity] = vars(state)
            asks = asks or bool(state.ready)
        return {QUEUES: {"now": self._round.now, "round": asdict(self._round), "told": kept}, ASKS: asks}

    def _tell(self, identity: str, pacing: RoundPacing) -> None:
        """Say once that a bound is out of reach."""
        if not pacing.is_out_of_reach or pacing.is_told or self.drains:
            return
        pacing.is_told = True
        allowed, least = (show_span(t or 0, Domain.TIMESTAMP) for t in (pacing.max_staleness, pacing.least_bound))
        LOGGER.warning(
            "%s: max_staleness of %s cannot be met: a row costs %.3g ms and a micro-batch %.3g s besides, and %d keys "
            "waited at once; the least bound is %s",
            self.nodes[identity].label, allowed, (pacing.cost or 0) / 1000, (pacing.overhead or 0) / SECOND,
            int(pacing.longest), least,
        )  # fmt: skip

    def end(self, record: Record | None) -> None:
        """The micro-batch is kept; if something waits, there is another one."""
        self._left = None
        if record is None or not any(state.ready for state in queues_in(record).values()):
            return
        if not self.by_clock:
            (self.home / CONTROL_FOLDER / f"tick_{record.batch}.json").write(TICKS.encode())
        self._left = self.clock()
