"""Replacing a query that was started by itself, or whose elements somebody reads.

It reads its own streams alone, and of files that are read column by column only the columns that it needs: a new query
can have no others. `flow.start` runs queries without either limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.engines.local.execution import LocalExecution
from penstock.engines.local.replacing import cannot_replace
from penstock.errors import PenstockError, StreamError
from penstock.flow.local import LocalQuery
from penstock.flow.replacement import Replacement, ReplacementCheck, checked
from penstock.flow.successor import successor
from penstock.plan.node import Node
from penstock.plan.read_columns import read_of


class ReplacingOne:
    """The replacements of one execution of a query."""

    def __init__(self, query: LocalQuery, execution: LocalExecution, goes_on_as: Callable[[LocalQuery], None]) -> None:
        """`goes_on_as` is told when another query has taken its place."""
        self.query, self.execution, self.goes_on_as = query, execution, goes_on_as
        self.replacement: Replacement | None = None
        self._next: LocalQuery | None = None
        self._is_over = False
        execution.when_replaced = self._ended

    def can_replace(self, sql: Any, mapping: Mapping[str, str] | None) -> ReplacementCheck:
        """Whether the query can be replaced by another one now."""
        name = self.query.name
        try:
            query = self._to_replace(sql, mapping)
            prospect = self.execution.can_replace(query.plan)
        except PenstockError as error:
            return ReplacementCheck(name, str(getattr(sql, "sql", sql)), possible=False, error=error)
        why = None if prospect.endless is None else cannot_replace(name, prospect.endless)
        return checked(name, self.query.schema.domain, query.sql, prospect, why)

    def replace(self, sql: Any, mapping: Mapping[str, str] | None) -> Replacement:
        """Let another query take its place."""
        query = self._to_replace(sql, mapping)
        migration = self.execution.replace(query.plan)
        domain = self.execution.domain
        made = Replacement(self.query, query.sql, migration, domain, self._abandon)
        self.replacement, self._next = made, query
        self._ended()
        return made

    def _to_replace(self, sql: Any, mapping: Mapping[str, str] | None) -> LocalQuery:
        if self._is_over or self.execution.is_over:
            raise StreamError("The run is over.", where=f"query {self.query.name}", hint="start the new query")
        found = successor(self.query, sql, mapping, self.query.given)
        self._check_columns(found.plan)
        return found

    def _check_columns(self, plan: Node) -> None:
        for stream in self.execution.streams:
            if self.query.given[stream.lower()].narrowed is None:
                continue
            missing = read_of(plan, stream) - read_of(self.query.plan, stream)
            if missing:
                raise StreamError(
                    "The run leaves out columns that the new query reads.",
                    where=f"query {self.query.name}, stream {stream}",
                    got=", ".join(sorted(missing)),
                    hint="flow.start({query: sink}) reads whole rows",
                )

    def _abandon(self, replacement: Replacement) -> None:
        if replacement is not self.replacement or self._next is None:
            raise StreamError("The replacement is over.", where=f"query {self.query.name}", got=repr(replacement)[:200])
        self.execution.abandon()
        self._ended()

    def _ended(self) -> None:
        """The replacement may have come to its end."""
        made, query = self.replacement, self._next
        if made is None or query is None or made.status == "under way":
            return
        self._next = None
        if made.status == "done":
            self.query = query
            self.goes_on_as(query)
        made.is_over()

    def over(self) -> None:
        """The run is over."""
        self._is_over = True
        if self.replacement is not None:
            self.replacement.is_over()
