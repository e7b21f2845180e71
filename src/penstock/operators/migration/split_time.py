"""The split time T: the first instant at which nothing matters to the new plan that came before it (GenMig, 4.2, 4.5).

Whatever has come to an input matters for as long as it lives, and for the *reach* of the new plan on that input longer:
the sum of the windows that are inside of the plan, one above another. One T is for all inputs: with a T for each,
results of the old plan and of the new one overlap or leave gaps wherever a join looks at two of them.

    by starts     the greatest start seen + how long an event lives + reach, and one more
    by ends       the greatest end seen + reach, and one more; earlier where events live shorter than they might

One more, so that nothing of what the old plan knows ends at T: whatever its results are cut there, the new plan has the
other half. An input of which nothing was seen has nothing to say, so it delays nothing. Where nothing was seen at all
there is no T to wait for. It is the new plan's reach that counts, not the old one's, whose results are cut.

Nor is T earlier than what was promised of the results. Results that are out cannot be cut for a consumer that takes no
revisions: where the plans differ, T is then no earlier than the greatest end of a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.errors import PlanError
from penstock.model.batch import Batch
from penstock.model.time import END_OF_TIME


@dataclass
class Seen:
    """The greatest start and end of what came to each input and of what came out, None where nothing did."""

    starts: list[int | None]
    ends: list[int | None] = field(default_factory=list)
    result_end: int | None = None

    @classmethod
    def of(cls, ports: int) -> Seen:
        """Nothing yet."""
        return cls([None] * ports, [None] * ports)

    def take(self, port: int, batch: Batch) -> None:
        """A batch came to an input."""
        if len(batch):
            lives = batch.its_lives()
            reached = int(np.maximum(lives.ends, lives.olds).max())
            self.starts[port] = _greater(self.starts[port], int(batch.times().max()))
            self.ends[port] = _greater(self.ends[port], reached)

    def give(self, batch: Batch) -> None:
        """A batch came out."""
        if len(batch):
            self.result_end = _greater(self.result_end, int(batch.its_lives().ends.max()))


def _greater(known: int | None, value: int) -> int:
    return value if known is None or value > known else known


def by_starts(seen: Seen, lifetime: int, reaches: Sequence[int | None]) -> int | None:
    """T from starts alone, where no event lives longer than `lifetime`; None if there is nothing to wait for."""
    return _latest([None if start is None else start + lifetime for start in seen.starts], reaches)


def by_ends(seen: Seen, reaches: Sequence[int | None]) -> int | None:
    """T from ends; None if there is nothing to wait for."""
    return _latest(seen.ends, reaches)


def after_results(split: int | None, seen: Seen) -> int | None:
    """T for a consumer that takes no revisions: results that are out stay as they are."""
    if seen.result_end is None:
        return split
    return _greater(split, seen.result_end)


def _latest(ends: Sequence[int | None], reaches: Sequence[int | None]) -> int | None:
    """The greatest of ends and reaches; an input without a reach is one that the new plan does not read."""
    split = None
    for port, (end, reach) in enumerate(zip(ends, reaches, strict=True)):
        if end is None or reach is None:
            continue
        if end + reach >= END_OF_TIME:
            raise PlanError(
                "A plan cannot be replaced while an event is open: it would matter for ever.",
                where=f"input {port}",
                got="an event without an end",
                hint="give events an end, or start the new plan from the sources",
            )
        split = _greater(split, end + reach + 1)
    return split
