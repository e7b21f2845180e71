"""What a join promises of what is still to come, from what its inputs have promised (thesis 7.1 and 7.2).

A pair that is still to come has a row that is still to come. So on the left attribute it is not below the left's bound,
nor below what the right's bound has settled, and on the right one likewise. The later of both times is not below what
holds of whichever row comes: its own time's bound, or that of a partner of it. And no pair is below both bounds at once
(joint punctuation), which says more than each by itself; it is told no further than pairs can be.

Rows that come out without a partner, or as they are, do so when they come or when they are settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.model.elements import Punctuation, joint, linear
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.joins.nearness import LEFT, RIGHT, Nearness

Pair = Sequence[int]
"""A number for the left and one for the right."""


@dataclass(frozen=True)
class Promised:
    """The names under which promises are made; empty where there is none."""

    left: str
    right: str
    time: str
    of_pairs: bool = True
    """Whether pairs come out, and not rows of the left alone."""
    on_time: tuple[bool, bool] = (True, True)
    """Whether each side is joined by its time."""

    def of(self, near: Nearness, times: Pair, bounds: Pair, kept: Sequence[int | None]) -> Iterator[Punctuation]:
        """What holds now.

        Args:
            near: how near rows are to be.
            times: the bounds of the inputs' times.
            bounds: those of the attributes by which they are joined.
            kept: of a side whose rows come out by themselves, the least time of those that are kept.
        """
        left, right = bounds
        settled = near.settled(LEFT, right), near.settled(RIGHT, left)
        linears = (
            (self.time, self._time(times, settled, kept)),
            (self.left, min(left, settled[LEFT])),
            (self.right, min(right, settled[RIGHT])),
        )
        yield from (linear(name, bound) for name, bound in linears if name and bound > MIN_TICK)
        if self.left and self.right:
            both = near.together(left, right)
            if MIN_TICK not in both and END_OF_TIME not in both:
                yield joint(**{self.left: both[LEFT], self.right: both[RIGHT]})

    def _time(self, times: Pair, settled: Pair, kept: Sequence[int | None]) -> int:
        """No result to come starts before this."""
        found = [END_OF_TIME]
        if self.of_pairs:
            for port in (LEFT, RIGHT):
                partner = settled[1 - port] if self.on_time[1 - port] else MIN_TICK
                found.append(max(times[port], partner))
        for port, least in enumerate(kept):
            if least is not None:
                found += [times[port], least]
        return min(found)
