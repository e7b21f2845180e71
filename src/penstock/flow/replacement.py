"""What is told of replacing a running query: whether it can be, how far it is, what came of it.

Times are shown as those of the query's results are; `…_ticks` has the number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engines.local.replacing import Migration, Moment, Prospect
from penstock.errors import PenstockError, reason_of
from penstock.flow.run_progress import shown
from penstock.model.time import Domain, show_span
from penstock.plan.reach import Endless

if TYPE_CHECKING:
    from penstock.flow.query import Query

STOPPED = "stopped"


@dataclass(frozen=True)
class ReplacementCheck:
    """Whether a running query can be replaced by another one now, and what that would be; it is true if it can."""

    query: str
    sql: str
    possible: bool
    error: PenstockError | None = None
    """Why it cannot be, and what to do instead: what `replace` would raise."""
    at_once: bool = False
    """Whether nothing has to be waited for: neither query has state."""
    split: str | None = None
    """The first time of which the new query would speak."""
    split_ticks: int | None = None
    warm_up: str | None = None
    """How far the split is beyond the greatest row so far: so long the new query fills its windows."""
    postponed_by: str | None = None
    """The row that postpones the split most: its stream, and its time."""
    reach: Mapping[str, str | None] | None = None
    """Per stream, how long a row of it can matter to results; None if for ever."""
    shared: tuple[str, ...] = ()
    """What of the new query is at work already, and goes on as it is."""
    fresh: tuple[str, ...] = ()
    """What is new."""

    def __bool__(self) -> bool:
        """Whether it can be."""
        return self.possible

    def __str__(self) -> str:
        """A few lines for people."""
        if self.error is not None:
            return str(self.error)
        if self.at_once:
            when = "at once: neither query has state"
        elif self.split is None:
            when = "at once: no row has come yet"
        else:
            by = "" if self.postponed_by is None else f", by {self.postponed_by}"
            after = "" if self.warm_up is None else f", {self.warm_up} after the greatest row"
            when = f"at {self.split}{after}{by}"
        lines = [f"query {self.query} can be replaced {when}"]
        lines += [f"  shared: {label}" for label in self.shared]
        lines += [f"  new:    {label}" for label in self.fresh]
        return "\n".join(lines)


def checked(name: str, domain: Domain, sql: str, prospect: Prospect, error: PenstockError | None) -> ReplacementCheck:
    """The same of a prospect; results of the query of that name are on a `domain`."""
    newest = [tick for tick in prospect.newest.values() if tick is not None]
    by, split = prospect.postponed_by, prospect.split
    has_split = split is not None and bool(newest)
    return ReplacementCheck(
        name,
        sql,
        error is None,
        error,
        prospect.at_once,
        shown(split, domain),
        split,
        show_span(split - max(newest), domain) if has_split and split is not None and split > max(newest) else None,
        f"stream {by}, whose greatest row is at {shown(prospect.newest[by], domain)}" if has_split and by else None,
        {
            stream: None if isinstance(reach, Endless) else show_span(reach, domain)
            for stream, reach in prospect.reach.items()
        },
        prospect.shared,
        prospect.fresh,
    )


@dataclass(frozen=True)
class ReplacementMoment:
    """How far the streams of a query had come."""

    arrivals: int
    """How many of their rows had been read."""
    newest: Mapping[str, str | None]
    """Per stream, the greatest time of a row."""
    frontier: Mapping[str, str | None]
    """Per stream, the bound below which nothing more comes."""


class Replacement:
    """A running query that another one takes the place of; when it is over, the report of it."""

    def __init__(
        self,
        query: Query,
        sql: str,
        migration: Migration,
        domain_of: Callable[[str], Domain],
        abandon: Callable[[Replacement], None],
    ) -> None:
        """Made by `run.replace`; `query` is the old one, `domain_of` tells what the ticks of a stream are."""
        self.query = query.name
        """The name of the query, which stays."""
        self.sql, self.former_sql = sql, query.sql
        self._domain, self._domain_of = query.schema.domain, domain_of
        self._migration, self._abandon = migration, abandon
        self._over = threading.Event()

    @property
    def status(self) -> str:
        """`under way`, `done`, `abandoned`, `failed`, or `stopped` if the run ended before.

        Where the new query has failed the old one goes on; `exception` says what went wrong.
        """
        state = self._migration.state
        return STOPPED if state == "removed" or (state == "under way" and self._over.is_set()) else state

    @property
    def exception(self) -> Exception | None:
        """Why the new query was given up."""
        return self._migration.error

    @property
    def at_once(self) -> bool:
        """Whether nothing had to be waited for."""
        return self._migration.split is None

    @property
    def split(self) -> str | None:
        """The first time of which the new query speaks."""
        return shown(self._migration.split, self._domain)

    @property
    def split_ticks(self) -> int | None:
        """The same as a number."""
        return self._migration.split

    @property
    def began(self) -> ReplacementMoment:
        """How far the streams had come when it was asked for."""
        return self._moment(self._migration.began)

    @property
    def ended(self) -> ReplacementMoment | None:
        """How far they had come when the old query had said all; None if it has not."""
        ended = self._migration.ended
        return None if ended is None else self._moment(ended)

    @property
    def fed_to_both(self) -> int:
        """How many rows on time went to both queries."""
        return self._migration.fed_to_both

    @property
    def freed_operators(self) -> tuple[str, ...]:
        """What has left the graph with the query that was given up."""
        return self._migration.freed_operators

    @property
    def freed_bytes(self) -> int:
        """How much their state took, by estimate."""
        return self._migration.freed_bytes

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is over, or for so many seconds; whether it is over."""
        return self._over.wait(timeout)

    def abandon(self) -> None:
        """Let the old query go on; that is possible until results of the new one have come out."""
        self._abandon(self)

    def is_over(self) -> None:
        """Whoever waits for it need wait no longer."""
        self._over.set()

    def _moment(self, moment: Moment) -> ReplacementMoment:
        def told(ticks: Mapping[str, int | None]) -> dict[str, str | None]:
            return {stream: shown(tick, self._domain_of(stream)) for stream, tick in ticks.items()}

        return ReplacementMoment(moment.arrivals, told(moment.newest), told(dict(moment.frontier)))

    def __repr__(self) -> str:
        """One line."""
        when = "at once" if self.at_once or self.split is None else f"at {self.split}"
        why = "" if self.exception is None else f": {reason_of(self.exception)}"
        return f"<replacement of {self.query} {when}: {self.status}{why}>"
