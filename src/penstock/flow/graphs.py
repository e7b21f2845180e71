"""Drawings of what runs, or would run, in-process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.engines.local.hosting import Hosting
from penstock.engines.local.shared import SharedExecution
from penstock.errors import StreamError, UnsupportedError
from penstock.flow.query import Query
from penstock.monitor.of_graph import picture_of, picture_of_streams
from penstock.monitor.picture import Picture

if TYPE_CHECKING:
    from penstock.flow.flow import Flow


def graph_of(execution: Hosting[Any], query: str | None = None, *, at_work: bool = True) -> Picture:
    """Of a running graph, or of what one of its queries takes part in."""
    with execution.alone():
        return picture_of(execution.graph, execution.outlets(), execution.statistics(query), at_work=at_work)


def graph_of_flow(flow: Flow, queries: object) -> Picture:
    """Of queries as they would run together, or one by itself, and of streams that none of them reads."""
    if flow.spark is not None:
        raise UnsupportedError(
            "Graphs are drawn of what runs in-process.", where="flow.graph", hint="query.explain() tells Spark's plan"
        )
    wanted: list[Any] = list(queries) if isinstance(queries, list | tuple | set | dict) else [queries]
    for query in wanted:
        if not isinstance(query, Query) or query.catalog is not flow.catalog:
            raise StreamError(
                "Not a query of this flow.", where="flow.graph", got=repr(query)[:200], hint="flow.query('SELECT …')"
            )
    execution: Hosting[Any]
    if len(wanted) == 1:  # by itself it may run what it could not share
        execution = wanted[0].execution()
    else:
        execution = SharedExecution(flow.catalog, {query.name: query.plan for query in wanted})
    read = {name.lower() for name in execution.graph.sources}
    drawn = graph_of(execution, at_work=False)
    idle = picture_of_streams(info.name for key, info in flow.catalog.streams.items() if key not in read)
    return Picture((*idle.boxes, *drawn.boxes), drawn.lines)
