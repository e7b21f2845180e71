"""Replacing queries of a flow's run while the others go on.

What was asked under the name of a query, and is, goes into snapshots; a run that goes on from one knows both texts of a
query that was being replaced (`generations`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.engines.local.replacing import cannot_replace
from penstock.errors import PenstockError, StreamError
from penstock.flow.generations import Asked, Generations, generations_in
from penstock.flow.local import LocalQuery
from penstock.flow.replacement import Replacement, ReplacementCheck, checked
from penstock.flow.successor import successor
from penstock.io.event_loops import at_home

if TYPE_CHECKING:
    from penstock.flow.flow_run import FlowRun
    from penstock.flow.query_run import QueryRun

Mapped = Mapping[str, str] | None


class ReplacingTogether:
    """The replacements of one run."""

    def __init__(self, run: FlowRun) -> None:
        """None so far."""
        self.run = run
        self._under_way: dict[str, tuple[LocalQuery, Replacement]] = {}
        """Of queries that are being replaced: by what, and what is told of it."""
        run.execution.when_replaced = self.ended

    def can_replace(self, run: QueryRun, sql: Any, mapping: Mapped) -> ReplacementCheck:
        """Whether a query can be replaced by another one now."""
        try:
            with self.run._joining:
                query = self._to_replace(run, sql, mapping)
                prospect = self.run.execution.can_replace(run.name, query.plan)
        except PenstockError as error:
            return ReplacementCheck(run.name, str(getattr(sql, "sql", sql)), possible=False, error=error)
        endless = prospect.endless
        why = None if endless is None else cannot_replace(run.name, endless)
        return checked(run.name, run.query.schema.domain, query.sql, prospect, why)

    def replace(self, run: QueryRun, sql: Any, mapping: Mapped) -> Replacement:
        """Let another query take the place of one."""
        flow_run = self.run
        with flow_run._joining, at_home(flow_run._home):
            query = self._to_replace(run, sql, mapping)
            flow_run._check_kept(query)
            migration = flow_run.execution.replace(run.name, query.plan, flow_run._openers)
            made = run._replacement = Replacement(
                run.query, query.sql, migration, flow_run.execution.domain, self._abandon
            )
            self._under_way[run.name] = query, made
            run._generations.follow(Asked(query.sql, dict(mapping or {})))
            self.ended()
        flow_run._hand_on_what_follows()
        return made

    def _to_replace(self, run: QueryRun, sql: Any, mapping: Mapped) -> LocalQuery:
        """The query that is to take the place of one that runs, with its columns."""
        self.run._check_at_work()
        if run._is_removed or run.name not in self.run.execution.plans:
            raise StreamError(
                "The query has left, so it cannot be replaced.", where=f"query {run.name}", hint="run.add(query, sink)"
            )
        return successor(run.query, sql, mapping, self.run._sources)

    def _abandon(self, replacement: Replacement) -> None:
        with self.run._joining:
            name = replacement.query
            if self._under_way.get(name, (None, None))[1] is not replacement:
                raise StreamError("The replacement is over.", where=f"query {name}", got=repr(replacement)[:200])
            self.run.execution.abandon(name)
            self.ended()
        self.run._hand_on_what_follows()

    def ended(self) -> None:
        """Replacements may have come to their end, in whichever thread."""
        runs = self.run.runs
        for name, (query, replacement) in list(self._under_way.items()):
            if replacement.status == "under way" or self._under_way.pop(name, None) is None:
                continue
            if replacement.status == "done":
                runs[name]._goes_on_as(query)
                runs[name]._generations.move_on()
            else:
                runs[name]._generations.go_back()
            replacement.is_over()
        at_work = {n: run for n, run in list(runs.items()) if n in self.run.execution.plans and not run._is_removed}
        self.run.execution.notes = {
            name: run._generations.to_plain() for name, run in at_work.items() if run._generations.are_several
        }
        for run in at_work.values():
            if run._replacement is not None:
                run._look_again()

    def forget(self, name: str) -> None:
        """A query has left."""
        found = self._under_way.pop(name, None)
        if found is not None:
            found[1].is_over()

    def resume(self, snapshot: bytes) -> None:
        """Take up a snapshot; where queries were being replaced, by either text of both."""
        flow_run = self.run
        following: dict[str, LocalQuery] = {}
        for name, plain in generations_in(snapshot).items():
            run = flow_run.runs.get(name)
            if run is None:
                continue  # that it is missing is said when the graph is taken up
            run._generations = Generations.from_plain(plain)
            found = run._generations.queries(run.query, flow_run._sources)
            for query in found:
                flow_run._check_kept(query)
            run._goes_on_as(found[0])
            if len(found) > 1:
                following[name] = found[1]
            flow_run.execution.stand_for(name, found[0].plan)
        flow_run.execution.restore(snapshot, {name: query.plan for name, query in following.items()})
        for name, query in following.items():
            run, migration = flow_run.runs[name], flow_run.execution.replacements.under_way[name]
            made = Replacement(run.query, query.sql, migration, flow_run.execution.domain, self._abandon)
            run._replacement, self._under_way[name] = made, (query, made)
