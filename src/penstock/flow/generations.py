"""What was asked under the name of a query that has been replaced, for snapshots: its generations, by their texts.

A run goes on from a snapshot with the text of any generation that was live when it was taken: the one that spoke and,
if it was being replaced, the one that was to follow. What the other asked is in the snapshot. A text that was retired
by then is refused, and the one that took its place is named; it would be answered with another's state.

Texts are compared by what they mean (`plan.identity`), so they may be worded otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import CheckpointError, PenstockError
from penstock.flow.local import LocalQuery
from penstock.flow.successor import successor
from penstock.io.elements import LocalSource
from penstock.plan.identity import identities
from penstock.plan.node import Node
from penstock.runtime.shared_state import notes_in
from penstock.sql.binder import bind


@dataclass(frozen=True)
class Asked:
    """A text, and what its columns were called before."""

    sql: str
    mapping: dict[str, str] = field(default_factory=dict)


@dataclass
class Generations:
    """All that was asked under one name; the last one that is not yet to come speaks."""

    all: list[Asked]
    has_next: bool = False
    """Whether the last one is to follow the one before it."""

    @property
    def are_several(self) -> bool:
        """Whether there was a replacement."""
        return len(self.all) > 1

    def follow(self, asked: Asked) -> None:
        """Another one is to follow."""
        self.all.append(asked)
        self.has_next = True

    def move_on(self) -> None:
        """It has."""
        self.has_next = False

    def go_back(self) -> None:
        """It has not."""
        self.all.pop()
        self.has_next = False

    def queries(self, given: LocalQuery, sources: Mapping[str, LocalSource]) -> list[LocalQuery]:
        """The query that spoke and the one that was to follow, if `given`, by its text, is one of them."""
        live = self.all[-2:] if self.has_next else self.all[-1:]
        means = _meaning(given.plan)
        if means not in [_meaning(bind(each.sql, given.catalog)) for each in live]:
            if means in [_meaning_if_any(each.sql, given) for each in self.all]:
                raise CheckpointError(
                    "The query was replaced by another one, which the snapshot is of.",
                    where=f"query {given.name}",
                    got=given.sql[:200],
                    hint=f"start it with what took its place: {live[-1].sql}",
                )
            raise CheckpointError(
                "The snapshot is of another query of that name.",
                where=f"query {given.name}",
                got=given.sql[:200],
                hint=f"it is of {' and '.join(each.sql for each in live)}",
            )
        base = LocalQuery(given.name, self.all[0].sql, bind(self.all[0].sql, given.catalog), given.catalog, sources)
        return [base if each is self.all[0] else successor(base, each.sql, each.mapping, sources) for each in live]

    def to_plain(self) -> list[Any]:
        """As plain data."""
        return [[[each.sql, each.mapping] for each in self.all], self.has_next]

    @staticmethod
    def from_plain(data: list[Any]) -> Generations:
        """The other way."""
        asked, has_next = data
        return Generations([Asked(sql, dict(mapping)) for sql, mapping in asked], has_next)


def generations_in(snapshot: bytes) -> Mapping[str, list[Any]]:
    """What a snapshot says of queries that were replaced, by name."""
    notes = notes_in(snapshot)
    return {} if notes is None else notes[1]


def _meaning(plan: Node) -> str:
    return identities(plan)[0].identity


def _meaning_if_any(sql: str, given: LocalQuery) -> str | None:
    """What a retired text means; a stream that it read may not be there any more."""
    try:
        return _meaning(bind(sql, given.catalog))
    except PenstockError:
        return None
