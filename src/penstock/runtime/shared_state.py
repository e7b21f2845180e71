"""The state of a graph of many queries as plain data.

Besides the pages of every operator it has what the graph itself knows: what each node has promised and given, results
that nobody has taken, from when on each query is complete, and which families there are, since these depend on when
queries came. A snapshot is taken up by a graph of the same queries, by name; how their texts are worded is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import CheckpointError
from penstock.operators.aggregates.family import FaceOperator, FamilyAggregate
from penstock.operators.migration.handover import HandoverOperator
from penstock.operators.progress.ingest import RowIngest
from penstock.operators.state import MemoryPages, open_snapshot, seal_snapshot
from penstock.plan.fingerprint import check, describe
from penstock.plan.identity import identities
from penstock.plan.nodes import AlterLifetime, Ends, Node, Project, Select, Unnest
from penstock.plan.physical import Physical
from penstock.runtime.families import named_measures
from penstock.runtime.graph import GraphNode
from penstock.runtime.graph_pages import held_elements, held_pages, plain_elements, plain_pages
from penstock.runtime.kept_positions import kept_positions
from penstock.runtime.replacing_graph import ReplacingGraph


def snapshot_of(
    graph: ReplacingGraph,
    plans: Mapping[str, Node],
    positions: Mapping[str, Any] | None = None,
    sinks: Mapping[str, Any] | None = None,
    successors: Mapping[str, Node] | None = None,
    notes: Any = None,
) -> bytes:
    """Everything that the graph must remember, and where its sources and sinks are; take it between elements.

    `successors` are the plans that are taking the place of others; `notes` are the caller's, plain data.
    """
    content = {
        "queries": {name: describe(plan, graph.builder.catalog) for name, plan in plans.items()},
        "successors": {n: describe(plan, graph.builder.catalog) for n, plan in (successors or {}).items()},
        "handovers": {name: _plain_handover(node) for name, node in graph.handovers.items()},
        "notes": notes,
        "stateless": sorted(_stateless(plans) | _stateless(successors or {})),
        "outlets": {
            name: [outlet.complete_from, outlet.is_passed, outlet.register, outlet.unread]
            for name, outlet in graph.outlets.items()
        },
        "operators": {node.identity: plain_pages(node.operator, node.label) for node in graph.nodes},
        "nodes": {node.identity: _plain_node(node) for node in graph.nodes},
        "families": {n.identity: named_measures(n) for n in graph.nodes if isinstance(n.operator, FamilyAggregate)},
        "faces": {
            n.identity: n.inputs[0].producer.identity for n in graph.nodes if isinstance(n.operator, FaceOperator)
        },
    }
    return seal_snapshot(content | kept_positions(positions, sinks), f"queries {', '.join(plans)}")


def _plain_handover(node: GraphNode) -> list[Any]:
    assert isinstance(node.operator, HandoverOperator)
    return [node.identity, node.operator.split, sorted(arc.port for arc in node.inputs)]


def notes_in(snapshot: bytes) -> Any:
    """What whoever took a snapshot noted in it."""
    return open_snapshot(snapshot).get("notes")


def successors_in(snapshot: bytes) -> list[str]:
    """The queries that were being replaced when a snapshot was taken."""
    return list(open_snapshot(snapshot).get("successors", {}))


def _stateless(plans: Mapping[str, Node]) -> set[str]:
    """The identities of nodes without state: these may come and go."""
    kinds = Select | Project | Unnest | Ends | AlterLifetime
    return {k.identity for plan in plans.values() for k in identities(plan) if isinstance(k.node, kinds)}


def _plain_node(node: GraphNode) -> list[Any]:
    greatest = node.operator.greatest if isinstance(node.operator, RowIngest) else None
    stream = None if node.stream is None else [node.stream, getattr(node.plan, "by_arrival", False)]
    return [node.promised, node.last_given, greatest, plain_elements(node.buffer.elements), stream]


def restored(
    graph: ReplacingGraph,
    snapshot: bytes,
    plans: Mapping[str, Node],
    planned: Mapping[str, Physical],
    successors: Mapping[str, tuple[Node, Physical]] | None = None,
) -> ReplacingGraph:
    """A graph of the same queries, and of those that are taking their places, with the state of a snapshot."""
    saved, taking = open_snapshot(snapshot), successors or {}
    if "queries" not in saved:
        raise CheckpointError(
            "The snapshot is not of a flow's run.", got=", ".join(map(str, saved)), hint="see query.execution()"
        )
    if set(saved["queries"]) != set(plans):
        raise CheckpointError(
            "The snapshot is of other queries.",
            got=f"it has {', '.join(sorted(saved['queries']))}; these are {', '.join(sorted(plans))}",
            hint="start with the queries, by name, that were running when it was taken; others can join then",
        )
    if set(saved.get("successors", ())) != set(taking):
        raise CheckpointError(
            "The snapshot is of queries that were being replaced by others.",
            got=f"it has {', '.join(saved.get('successors', ())) or 'none'}; given are {', '.join(taking) or 'none'}",
            hint="flow.start(…, snapshot=…) knows the new queries by their texts",
        )
    made = ReplacingGraph(graph.builder)
    made.side, made.clock = graph.side, graph.clock
    made.measure(graph.clocks)
    made.strategy, made.own_strategies = graph.strategy, graph.own_strategies
    made.executor.skips = graph.executor.skips
    try:
        next_plans = {name: plan for name, (plan, _) in taking.items()}
        stateless = {*saved["stateless"], *_stateless(plans), *_stateless(next_plans)}
        for kind, each in (("queries", plans), ("successors", next_plans)):
            for name, plan in each.items():
                now = describe(plan, graph.builder.catalog)
                check(saved[kind][name], now, f"query {name}", "snapshot", stateless=stateless, fixed_result=False)
        kept = {*saved["operators"], *saved["faces"]}
        again = {name: made.as_kept(planned[name], kept) for name in saved["queries"]}
        following = {name: made.as_kept(each, kept) for name, (_, each) in taking.items()}
        made.grow_again_with(again, following, saved["families"], saved["faces"], saved.get("handovers", {}))
        made.keep_entrances([entry[4] for entry in saved["nodes"].values() if entry[4] is not None])
        for node in made.nodes:
            pages = held_pages(saved["operators"], node.identity, node.operator, node.label)
            node.operator.attach(MemoryPages(pages))
            if node.identity in saved["nodes"]:
                _take_up(node, saved["nodes"][node.identity])
        for name, (complete_from, is_passed, register, unread) in saved["outlets"].items():
            outlet = made.outlets[name]
            if unread and outlet.producer.identity not in saved["nodes"]:
                raise CheckpointError(
                    "The snapshot holds results that were not taken, and the query now gives others.",
                    where=f"query {name}",
                    hint="take() them before the snapshot, or restore it into the query that it was made by",
                )
            outlet.complete_from, outlet.is_passed, outlet.register = complete_from, is_passed, register
            outlet.head = outlet.producer.buffer.end - unread
            made.executor.waiting += [outlet] if unread else []
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            "The snapshot lacks a part of the graph.", got=f"{type(error).__name__}: {error}", hint="use another copy"
        ) from None
    made.require()
    return made


def _take_up(node: GraphNode, saved: list[Any]) -> None:
    node.promised, node.last_given, greatest, elements, _ = saved
    if isinstance(node.operator, RowIngest):
        node.operator.greatest = greatest
    node.buffer.elements.extend(held_elements(elements, node.operator.schema))
    for arc in node.arcs:
        arc.head, arc.register, arc.is_told = node.buffer.end, node.promised, True
