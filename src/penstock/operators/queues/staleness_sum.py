"""Staleness of several queues together: what each has metered, as a few numbers that add up.

Where the keys of a queue are spread over places that share nothing, each place meters its own. What they have metered
at one time is summed: how many keys there are, of each level how many are stale, the sum of their staleness and its
integral, and how many updates are pending. From the sum follows what one queue of all keys would tell, now and later,
as long as nothing comes: within `dt` the staleness of every stale key grows by `dt`.

What was dequeued is delivered for all at one time. From then on the application is as stale as the queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from penstock.operators.queues.meter import StalenessMeter
from penstock.operators.queues.queue import Staleness
from penstock.operators.queues.window_ages import Ages


@dataclass(frozen=True)
class LevelSum:
    """How many keys are stale, the sum of their staleness, and twice its integral."""

    pending: int = 0
    sum: int = 0
    twice: int = 0

    def after(self, passed: int) -> LevelSum:
        """Later, if nothing comes."""
        grown = (2 * self.sum + self.pending * passed) * passed
        return LevelSum(self.pending, self.sum + self.pending * passed, self.twice + grown)

    def __add__(self, other: LevelSum) -> LevelSum:
        """Of both."""
        return LevelSum(self.pending + other.pending, self.sum + other.sum, self.twice + other.twice)


@dataclass(frozen=True)
class StalenessSum:
    """What queues have metered at one time."""

    at: int = 0
    keys: int = 0
    origin: int | None = None
    """When the first update came."""
    queue: LevelSum = LevelSum()
    application: LevelSum = LevelSum()
    unapplied: int = 0
    """Updates that no delivery has answered."""
    unapplied_area: int = 0
    """The integral of that."""
    waiting: int = 0
    """Of the updates that no delivery has answered, those that no dequeue has answered, either."""

    @staticmethod
    def of(meter: StalenessMeter, now: int, waiting: int) -> StalenessSum:
        """What one queue has metered, in which so many updates wait."""
        for level in (meter.queue, meter.application, meter.unapplied):
            level.advance(now)
        queue, application = (LevelSum(each.pending, each.sum, each.twice) for each in (meter.queue, meter.application))
        return StalenessSum(
            now, meter.keys, meter.origin, queue, application, meter.unapplied.sum, meter.unapplied.total, waiting
        )  # fmt: skip

    @staticmethod
    def of_windows(queue: Ages, application: Ages, now: int, origin: int | None) -> StalenessSum:
        """The same of a queue whose updates are windows."""
        levels = [LevelSum(ages.all.slope, ages.all.at(now), ages.all.areas(now)[0]) for ages in (queue, application)]
        pending, area = application.all.pending, application.all.areas(now)[1]
        return StalenessSum(
            now, len(queue.keys), origin, levels[0], levels[1], pending, area, queue.all.pending
        )  # fmt: skip

    def after(self, now: int) -> Self:
        """Later, if nothing comes; time does not go back."""
        passed = max(now - self.at, 0)
        return replace(
            self, at=self.at + passed, queue=self.queue.after(passed), application=self.application.after(passed),
            unapplied_area=self.unapplied_area + self.unapplied * passed,
        )  # fmt: skip

    def delivered(self, now: int) -> Self:
        """What was dequeued has been processed at this time."""
        then = self.after(now)
        fresh = replace(then.queue, twice=then.application.twice)
        return replace(then, application=fresh, unapplied=then.waiting)

    def __add__(self, other: StalenessSum) -> StalenessSum:
        """Of the keys of both, at the later of their times."""
        now = max(self.at, other.at)
        one, two = self.after(now), other.after(now)
        began = [each.origin for each in (one, two) if each.origin is not None]
        return StalenessSum(
            now, one.keys + two.keys, min(began, default=None), one.queue + two.queue,
            one.application + two.application, one.unapplied + two.unapplied,
            one.unapplied_area + two.unapplied_area, one.waiting + two.waiting,
        )  # fmt: skip

    def staleness(self, now: int) -> Staleness:
        """On average over all keys, as a queue of all of them would tell it."""
        if self.origin is None or not self.keys:
            return Staleness()
        then, passed = self.after(now), (max(now, self.at) - self.origin) * self.keys
        values = [each / self.keys for each in (then.queue.sum, then.application.sum, then.unapplied)]
        areas = (then.queue.twice / 2, then.application.twice / 2, then.unapplied_area)
        return Staleness(*values, *[area / passed if passed else 0.0 for area in areas])

    def to_plain(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @staticmethod
    def from_plain(data: Any) -> StalenessSum:
        """The other way."""
        levels = {name: LevelSum(**data[name]) for name in ("queue", "application")}
        return StalenessSum(**{**data, **levels})


def together(sums: Iterable[StalenessSum]) -> StalenessSum:
    """Of all of them."""
    return sum(sums, StalenessSum())
