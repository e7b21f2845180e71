"""What can still come out of a join of some groups: the least times of pairs, and of rows without a partner.

A pair that is still to come has a row that is still to come. So it is of two rows to come, or of one to come and one
that is kept, and each of these three cases has its least times: rows to come are not below what was promised of the
group, those that are kept are known, and partners are near each other. Since what is near moves on with the time, the
oldest row that is kept decides. Where nothing can come any more in any of the cases, the group has ended.

The times of rows that are not joined by their time are taken for themselves, which is sound: what is near says nothing
of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.time import END_OF_TIME
from penstock.operators.joins.nearness import LEFT, RIGHT, Nearness


@dataclass(frozen=True)
class Half:
    """One side of a group: what was promised of rows to come, and what is kept."""

    bound: int
    """On the attribute that it is joined by."""
    time: int
    """On the time."""
    kept: int = END_OF_TIME
    """The least attribute of the rows that are kept and may still be met."""
    kept_time: int = END_OF_TIME
    """Their least time."""
    alone_time: int = END_OF_TIME
    """The least time of those that have met none yet, where they then come out."""


@dataclass(frozen=True)
class Least:
    """The least values of what is still to come; the end of time where nothing is."""

    left: int
    right: int
    time: int

    @property
    def is_over(self) -> bool:
        """Whether nothing comes any more."""
        return self.left == self.right == self.time == END_OF_TIME


NOTHING = Least(END_OF_TIME, END_OF_TIME, END_OF_TIME)


@dataclass(frozen=True)
class GroupBounds:
    """How near rows are to be, and by what each side is joined."""

    near: Nearness
    on_time: tuple[bool, bool]

    def pairs(self, left: Half, right: Half) -> Least:
        """Of pairs."""
        both = self._to_come(left, right)
        found = [Least(*both, max(self._time(LEFT, left, both[0]), self._time(RIGHT, right, both[1])))]
        for side, coming, kept in ((LEFT, left, right), (RIGHT, right, left)):
            first = self._first(side, coming.bound, kept.kept)
            if first < END_OF_TIME:
                time = max(self._time(side, coming, first), kept.kept_time)
                found.append(Least(first, kept.kept, time) if side == LEFT else Least(kept.kept, first, time))
        return _least(found)

    def with_partner(self, left: Half, right: Half) -> Least:
        """Of rows of the left that are told of once they have met one; those that have are not among the kept."""
        coming = min(self._to_come(left, right)[0], self._first(LEFT, left.bound, right.kept))
        found = [Least(coming, END_OF_TIME, self._time(LEFT, left, coming))]
        if right.bound < END_OF_TIME:
            found.append(Least(left.kept, END_OF_TIME, left.alone_time))
        return _least(found)

    def alone(self, side: int, own: Half) -> Least:
        """Of rows of a side that come out without a partner."""
        least, time = min(own.bound, own.kept), min(self._time(side, own, own.bound), own.alone_time)
        return Least(least, END_OF_TIME, time) if side == LEFT else Least(END_OF_TIME, least, time)

    def _to_come(self, left: Half, right: Half) -> tuple[int, int]:
        """The least attributes of two rows to come that are near each other."""
        return (
            max(left.bound, self.near.settled(LEFT, right.bound)),
            max(right.bound, self.near.settled(RIGHT, left.bound)),
        )

    def _first(self, side: int, bound: int, kept: int) -> int:
        """The least attribute of a row to come on a side that meets one which the other side keeps."""
        if END_OF_TIME in (bound, kept):
            return END_OF_TIME
        first, _ = self.near.partners(1 - side, kept)  # type: ignore[arg-type]
        return max(bound, int(first))

    def _time(self, side: int, half: Half, attribute: int) -> int:
        """The least time of a row to come whose attribute is not below this."""
        if attribute == END_OF_TIME:
            return END_OF_TIME
        return max(half.time, attribute) if self.on_time[side] else half.time


def _least(found: list[Least]) -> Least:
    return Least(min(f.left for f in found), min(f.right for f in found), min(f.time for f in found))


def either(one: Least, other: Least) -> Least:
    """Of what comes in one way or another."""
    return _least([one, other])
