"""What a hosted query promises of some groups: what all of its buckets do.

Every bucket is told everything that streams promise, and says what follows for its own rows. A promise holds for the
result once every bucket has made it, or more: also where only one bucket can have rows of a group, since a bucket that
has none of them has nothing to wait for and says so at once, and where those of one group are in several, each of which
may hold something back. What some have said and others not yet is kept with the record, lately so many of each bucket
(`RecentPromises`); one that is forgotten is a promise that is not shown, never one that is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from penstock.model.elements import linear
from penstock.model.frontier import Frontier
from penstock.model.recent_promises import RecentPromises
from penstock.model.time import MIN_TICK
from penstock.storage.log import Record

PROMISED = "promised"
_WHERE = "promises in a record of a run"


class BucketPromises:
    """What buckets have said, and what they have said together."""

    def __init__(self, buckets: int, pending: dict[str, RecentPromises], common: RecentPromises) -> None:
        """`pending` is by the id of a bucket, what not all have said."""
        self.buckets, self.pending, self.common = buckets, pending, common

    @staticmethod
    def after(record: Record | None, buckets: int) -> BucketPromises:
        """As a record has it; one of an earlier release knows nothing."""
        if record is None:
            return BucketPromises(buckets, {}, RecentPromises())
        found = record.state.get(PROMISED) if isinstance(record.state, dict) else None
        pending = {bucket: RecentPromises.from_text(text, _WHERE) for bucket, text in (found or {}).items()}
        return BucketPromises(buckets, pending, RecentPromises.from_text(record.promises.get(""), _WHERE))

    def take(self, said: Mapping[str, Any], reached: Mapping[str, int]) -> RecentPromises:
        """What all promise, after each bucket has said something more and has come as far as it has."""
        for bucket, promises in said.items():
            own = self.pending.setdefault(bucket, RecentPromises())
            for promise in RecentPromises.from_plain(promises):
                own.add(promise)
        ids = {*self.pending, *reached}
        bounded = {name for own in (*self.pending.values(), self.common) for p in own for name, _ in p.bounds}
        if len(ids) < self.buckets or len(bounded) != 1:  # of joint promises no linear bound is known here
            return self.common
        (time,) = bounded
        bounds = {bucket: linear(time, reached.get(bucket, MIN_TICK)) for bucket in ids}
        together = reduce(Frontier.common, [Frontier([bounds[b], *self.pending.get(b, ())]) for b in sorted(ids)])
        for promise in together:
            self.common.add(promise)
        left = {b: [p for p in own if not together.implies(p)] for b, own in self.pending.items()}
        self.pending = {bucket: RecentPromises(own) for bucket, own in left.items() if own}
        return self.common

    def kept(self) -> dict[str, str]:
        """For the next record."""
        return {bucket: own.to_text() for bucket, own in self.pending.items()}
