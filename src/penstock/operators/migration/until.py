"""What an old plan still says: its results that start before the split.

Results that start at the split or later are not its own any more. They are handed back apart, since whoever may give
the new plan up needs them then. What it promises is cut at the split: of what starts later it says nothing, and no new
result is below the split either, so what is left holds of both plans.

A row costs a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation


@dataclass(frozen=True)
class Until:
    """Up to a time, which is no part of it."""

    time: str
    """The attribute by which results start."""
    split: int

    def cut(self, batch: Batch) -> tuple[Batch | None, Batch | None]:
        """What starts before the split, and what does not."""
        return parted(batch, self.split)

    def promise(self, punctuation: Punctuation) -> Punctuation | None:
        """What a promise of the old plan comes to for both plans; None if to nothing."""
        if all(name != self.time for name, _ in punctuation.bounds):
            return None
        bounds = [(name, min(bound, self.split) if name == self.time else bound) for name, bound in punctuation.bounds]
        return replace(punctuation, bounds=tuple(bounds))


def parted(batch: Batch, split: int) -> tuple[Batch | None, Batch | None]:
    """Rows that start before a time, and those that do not; None where there are none."""
    if not len(batch):
        return None, None
    before = batch.times() < split
    if before.all():
        return batch, None
    if not before.any():
        return None, batch
    return batch.select(before), batch.select(~before)
