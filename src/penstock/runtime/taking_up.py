"""Whether a graph can take up a snapshot, and how it must be planned for that.

A snapshot names the query that it is of, and the kind of every operator's pages. Operators that hold no state may have
come and gone since then (`plan.fingerprint`); what the state fixes is planned as it was (`plan.kept`). Results that had
come out and were not taken are of the query that gave them: where what the query gives has changed since then, they are
refused and not passed off as its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import CheckpointError
from penstock.operators.operator import Operator
from penstock.operators.state import open_snapshot
from penstock.plan.fingerprint import check
from penstock.plan.kept import Kept

STATELESS = Operator.kind


def kept_in(snapshot: bytes) -> Kept:
    """What a snapshot has, for the planner."""
    saved = open_snapshot(snapshot)
    return Kept.of(_kinds(saved), saved.get("query"))


def check_snapshot(saved: Mapping[str, Any], query: dict[str, Any], kinds: Mapping[str, str]) -> None:
    """Refuse the content of a snapshot that a query cannot take up; `kinds` are those of its operators' pages."""
    if "query" not in saved:
        raise CheckpointError(
            "The snapshot is not of a query.",
            got=", ".join(map(str, saved)),
            hint="see pk.merge and flow.start, which have snapshots of their own",
        )
    stateless = {i for i, kind in [*_kinds(saved).items(), *kinds.items()] if kind == STATELESS}
    check(saved["query"], query, "", "snapshot", stateless=stateless, fixed_result=False)
    if saved.get("outputs") and _root(saved["query"]) != _root(query):
        raise CheckpointError(
            "The snapshot holds results that were not taken, and the query now gives others.",
            got=f"{len(saved['outputs'])} batches and bounds of {saved['query']['operators'][0][2]}",
            hint="take() them before the snapshot, or restore it into the query that it was made by",
        )


def _kinds(saved: Mapping[str, Any]) -> dict[str, Any]:
    """The kind of each operator's pages, as far as the content of a snapshot is in order."""
    operators = saved.get("operators")
    found = operators.items() if isinstance(operators, Mapping) else ()
    return {identity: held.get("kind") for identity, held in found if isinstance(held, Mapping)}


def _root(query: Mapping[str, Any]) -> str:
    operators: Sequence[Sequence[str]] = query["operators"]
    return operators[0][0]
