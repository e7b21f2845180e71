"""The query that is to take the place of another one: over the same flow, with the same columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engines.local.replacing import other_columns
from penstock.errors import QueryError, StreamError
from penstock.flow.local import LocalQuery
from penstock.io.elements import LocalSource
from penstock.plan.node import Node
from penstock.plan.nodes import Source
from penstock.plan.same_columns import differences, fitted
from penstock.sql.binder import bind


def successor(
    query: LocalQuery, sql: Any, mapping: Mapping[str, str] | None, sources: Mapping[str, LocalSource]
) -> LocalQuery:
    """A text, or a query of the same flow, as a query of the name and with the columns of one that runs."""
    if isinstance(sql, LocalQuery) and sql.catalog is query.catalog:
        text, plan = sql.sql, sql.plan
    elif isinstance(sql, str):
        text, plan = sql, bind(sql, query.catalog)
    else:
        raise QueryError(
            "A query is a text, or a query of the flow.", got=repr(sql)[:200], hint="run.replace('SELECT …')"
        )
    if mapping is not None and not _is_of_names(mapping):
        raise StreamError(
            "A mapping is from names of the new query's columns to those of the old one's.",
            where=f"query {query.name}",
            got=repr(mapping)[:200],
            hint="mapping={'new name': 'old name'}",
        )
    _check_streams(plan, query.name, sources)
    found = differences(query.plan, plan, mapping)
    if found:
        raise other_columns(query.name, found)
    return LocalQuery(query.name, text, fitted(query.plan, plan, mapping), query.catalog, sources)


def _is_of_names(mapping: object) -> bool:
    return isinstance(mapping, Mapping) and all(isinstance(name, str) for pair in mapping.items() for name in pair)


def _check_streams(plan: Node, name: str, sources: Mapping[str, LocalSource]) -> None:
    """A run knows the streams that were declared when it was started."""
    unknown = [n.name for n in plan.walk() if isinstance(n, Source) and n.name.lower() not in sources]
    if unknown:
        raise StreamError(
            "The run does not know that stream: it was declared later.",
            where=f"query {name}",
            got=", ".join(dict.fromkeys(unknown)),
            hint="declare streams before flow.start(…), then they can be read at any time",
        )
