"""What the clock says of a stream that is silent (Stream Mill, section 4; thesis 8.1).

Rows alone tell how far a stream has come, so one that falls silent holds back every union, join and window that waits
for it. Two things may be known of its times besides, and each gives a bound while nothing comes:

- **External** times go on as ours do: what the last row allowed, later by as long as it is ago, less a *skew*, which is
  how much more than the last row the next one may be delayed, by its way to us and by the drift of both clocks.
- A **lull**: rows are at most so old when they come, by our clock. However long nothing has come, and also if nothing
  ever came, the clock less that is a bound (the thesis's timer).

A bound is of use only where it lies beyond what the rows have allowed. It is kept before it is used, like any promise,
so that a clock that goes back takes nothing back. A row that is below it all the same is late.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import StreamError
from penstock.model.progress import Progress, Several, span_ticks
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK, Domain, Length, earlier


@dataclass(frozen=True)
class External:
    """Times were given by the source, whose clock goes on while it is silent."""

    skew: Length = 0

    def __post_init__(self) -> None:
        """The length must be readable."""
        span_ticks(self.skew, None)

    def __str__(self) -> str:
        """As written by the user."""
        return f"external(skew={self.skew!r})"


def external(skew: Length = 0) -> External:
    """Times are the source's own; while it is silent they go on as the clock does, but for `skew`.

    Args:
        skew: How much more than the last row the next one may be delayed: `"2 seconds"`.
    """
    return External(skew)


@dataclass(frozen=True)
class Silence:
    """What holds of a stream while nothing comes, in ticks."""

    skew: int | None = None
    lull: int | None = None

    def bound(self, reached: int, arrived: int, now: int) -> int:
        """What the clock allows: rows have allowed `reached`, and the last one has `arrived` then."""
        found = MIN_TICK
        if self.skew is not None and reached > MIN_TICK:
            found = earlier(reached + max(now - arrived, 0), self.skew)
        return found if self.lull is None else max(found, earlier(now, self.lull))


def declared_silence(timestamps: object, lull: Length | None, schema: Schema, progress: Progress) -> Silence | None:
    """What a user says of a stream's times besides its progress."""
    if timestamps is None and lull is None:
        return None
    given = f"lull={lull!r}" if timestamps is None else f"timestamps={timestamps!s}"[:200]
    if timestamps is not None and not isinstance(timestamps, External):
        raise StreamError("These are no timestamps.", got=given, hint="timestamps=pk.external(skew='2 seconds')")
    if isinstance(progress, Several):
        raise StreamError(
            "What the clock says of a silent stream is not supported where several attributes progress.",
            got=given,
            hint="give one progress, that of the time, or feed punctuation",
        )
    if schema.domain is not Domain.TIMESTAMP:
        raise StreamError(
            "The clock says nothing of a stream whose time is a number.",
            got=f"{given}, and {schema.time} is a {schema[str(schema.time)].type}",
            hint="give it timestamps (time_format='epoch_s' makes them of numbers), or leave this out",
        )
    return Silence(
        None if timestamps is None else span_ticks(timestamps.skew, schema.domain),
        None if lull is None else span_ticks(lull, schema.domain),
    )
