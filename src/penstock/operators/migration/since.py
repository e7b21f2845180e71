"""What a new plan says: its results that start at the split or later.

Those that start before are the old plan's; the new one has not seen all the rows that count in them. A row costs a
comparison.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.batch import Batch
from penstock.operators.migration.until import parted


@dataclass(frozen=True)
class Since:
    """From a time on."""

    split: int

    def cut(self, batch: Batch) -> Batch | None:
        """What starts at the split or later; None if nothing does."""
        return parted(batch, self.split)[1]
