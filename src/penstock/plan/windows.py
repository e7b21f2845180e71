"""The kinds of windows: what a window clause means, and nothing of how windows are computed (thesis, chapter 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from penstock.model.time import Domain, show_span, show_ticks


@dataclass(frozen=True)
class Window:
    """What every kind of window has: the attribute it is on, and what that attribute counts."""

    attribute: str
    domain: Domain

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the input that say which windows hold a row."""
        return (self.attribute,)


@dataclass(frozen=True)
class SlidingWindow(Window):
    """Windows of `range` that advance by `slide`, aligned to `origin`; equal lengths make them tumbling."""

    range: int
    slide: int
    origin: int = 0

    @property
    def pane(self) -> int:
        """The widest stretch that lies in no window or wholly in each: GCD(RANGE, SLIDE)."""
        return gcd(self.range, self.slide)

    @property
    def is_tumbling(self) -> bool:
        """Whether windows neither overlap nor leave gaps."""
        return self.range == self.slide

    def __str__(self) -> str:
        """As a clause."""
        origin = f", ORIGIN {show_ticks(self.origin, self.domain)}" if self.origin else ""
        lengths = f"RANGE {show_span(self.range, self.domain)}, SLIDE {show_span(self.slide, self.domain)}"
        return f"[{lengths}, WA {self.attribute}{origin}]"


@dataclass(frozen=True)
class LandmarkWindow(Window):
    """Windows that all start at the origin (or before every row) and end every `slide`."""

    slide: int
    origin: int = 0

    def __str__(self) -> str:
        """As a clause."""
        return f"[RANGE ALL, SLIDE {show_span(self.slide, self.domain)}, WA {self.attribute}]"


@dataclass(frozen=True)
class PartitionedWindow(Window):
    """Row-based sliding windows within each partition."""

    range: int
    slide: int
    partition: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The attribute, and what tells partitions apart."""
        return (self.attribute, *self.partition)

    def __str__(self) -> str:
        """As a clause."""
        return (
            f"[RANGE {self.range} rows, SLIDE {self.slide} rows, WA {self.attribute}, PA {', '.join(self.partition)}]"
        )


@dataclass(frozen=True)
class SlideByTupleWindow(Window):
    """A window ends at every `slide`-th row, by number or by rank of the range attribute, and reaches back `range`."""

    range: int
    slide: int
    number: str | None
    """The column with the numbers of rows by arrival; None where rows are ranked."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The attribute, and the rows' numbers where they have some."""
        return (self.attribute,) if self.number is None else (self.attribute, self.number)

    @property
    def by_rank(self) -> bool:
        """Whether rows are counted in order of the range attribute."""
        return self.number is None

    def __str__(self) -> str:
        """As a clause."""
        by = f"rank({self.attribute})" if self.by_rank else "row-num"
        return (
            f"[RANGE {show_span(self.range, self.domain)}, RATTR {self.attribute}, SLIDE {self.slide} rows, SATTR {by}]"
        )


AnyWindow = SlidingWindow | LandmarkWindow | PartitionedWindow | SlideByTupleWindow
