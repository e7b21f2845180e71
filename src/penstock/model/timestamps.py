"""Whose clock gave the times of a stream, and what ours says while it is silent (Stream Mill, section 4; thesis 8.1).

Times are mostly *external*: rows bring them. *Internal* ones are given here: a row is stamped with the clock as it
enters, all rows of a batch alike, and the column is added to its own. A stamp is not below the one before it nor below
any bound, so where the clock goes back, or a bound from outside is ahead of it, stamps stand still until the clock has
caught up; so nothing is ever late. Each is kept with the state, and holds after a restart.

*Latent* times are given later still: a row has none until it comes to the first operator that needs one, and is stamped
there. Until then nothing is waited for.

Rows alone tell how far a stream has come, so one that falls silent holds back every union, join and window that waits
for it. Two things may be known of its times besides, and each gives a bound while nothing comes:

- **External** times go on as ours do: what the last row allowed, later by as long as it is ago, less a *skew*, which is
  how much more than the last row the next one may be delayed, by its way to us and by the drift of both clocks.
- A **lull**: rows are at most so old when they come, by our clock. However long nothing has come, and also if nothing
  ever came, the clock less that is a bound (the thesis's timer).

For internal times the clock itself is a bound while nothing comes, which is a lull of nothing.

A bound is of use only where it lies beyond what the rows have allowed. It is kept before it is used, like any promise,
so that a clock that goes back takes nothing back. A row that is below it all the same is late.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import StreamError
from penstock.model.progress import Progress, Several, span_ticks
from penstock.model.schema import TIMESTAMP, Field, Schema
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
class Internal:
    """Times are given here: rows are stamped with the clock as they enter."""

    def __str__(self) -> str:
        """As written by the user."""
        return "internal()"


def internal() -> Internal:
    """Rows are stamped with the clock as they enter; `time` names the column, which the source does not have."""
    return Internal()


@dataclass(frozen=True)
class Latent:
    """There are no times until an operator needs one."""

    def __str__(self) -> str:
        """As written by the user."""
        return "latent()"


def latent() -> Latent:
    """Rows have no time until an operator needs one, and are stamped with the clock as they come to it.

    `time` names the column that holds it from there on, which the source does not have.
    """
    return Latent()


Timestamps = External | Internal | Latent
"""Whose clock gave the times of a stream."""
KINDS = "timestamps=pk.external(skew='2 seconds'), pk.internal() or pk.latent()"


def with_stamps(columns: Schema, time: str) -> Schema:
    """The columns of a stream whose rows are stamped here: first the time, then those of its source."""
    there = {name.lower() for name in (*columns.names, *dict(columns.unusable))}
    if time.lower() in there:
        raise StreamError(
            "The source has the column already that is to hold the times given here.",
            got=f"time={time!r}, and columns {', '.join(columns.names)}",
            hint="give the time another name; or leave timestamps= out, if the source's are meant",
        )
    return Schema((Field(time, TIMESTAMP), *columns.fields), time, unusable=columns.unusable)


def without_stamps(schema: Schema) -> Schema:
    """The columns of the source of such a stream."""
    return Schema(tuple(field for field in schema.fields if field.name != schema.time), unusable=schema.unusable)


def check_stamped(timestamps: object, **options: object) -> bool:
    """Whether times are given here; refuses what are no timestamps, and by their names options that go with others."""
    if timestamps is not None and not isinstance(timestamps, Timestamps):
        raise StreamError("These are no timestamps.", got=f"timestamps={timestamps!s}"[:200], hint=KINDS)
    if not isinstance(timestamps, Internal | Latent):
        return False
    given = [name for name, value in options.items() if value is not None and value is not False]
    if given:
        raise StreamError(
            "Where times are given here, their progress is known, and rows live for a tick.",
            got=f"timestamps={timestamps}, and {', '.join(given)}",
            hint=f"leave {' and '.join(given)} out",
        )
    return True


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


def declared_silence(
    timestamps: Timestamps | None, lull: Length | None, schema: Schema, progress: Progress
) -> Silence | None:
    """What a user says of a stream's times besides its progress."""
    if timestamps is None and lull is None:
        return None
    given = f"lull={lull!r}" if timestamps is None else f"timestamps={timestamps!s}"[:200]
    if isinstance(timestamps, Latent):
        return None
    if isinstance(timestamps, Internal):
        return Silence(lull=0)
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
