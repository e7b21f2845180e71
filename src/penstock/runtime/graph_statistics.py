"""What is known of a running graph: of every operator, every arc and every result (see `docs/concepts/graph.md`).

Counts are exact. Times are of a sample (`runtime.sampling`), bytes are looked up when somebody asks
(`runtime.held_bytes`), rates are of a recent stretch (`runtime.recent_rates`). Asking costs time by the number of
operators and arcs, and by what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import pyarrow as pa

from penstock.operators.merge.measures import MergeStatistics, measures_of
from penstock.operators.merge.operator import MergeOperator
from penstock.runtime.arcs import Arc, Outlet, QueuedArc, size_of
from penstock.runtime.graph import Graph
from penstock.runtime.graph_node import GraphNode
from penstock.runtime.held_bytes import bytes_of, bytes_of_pages
from penstock.runtime.recent_rates import RecentRates
from penstock.runtime.takers import takers_of


@dataclass(frozen=True)
class OperatorStatistics:
    """Of one operator. Times are in seconds; what is not known (yet) is None."""

    identity: str
    """What its state is kept under."""
    state: str
    """Its name in the state table: σ, Σ1, …"""
    label: str
    queries: tuple[str, ...]
    """Those that take part in it, in the order in which they joined."""
    rows_in: int
    rows_out: int
    punctuations_in: int
    punctuations_out: int
    failed: int
    selectivity: float | None
    """Rows out per row in."""
    rate_in: float | None
    """Rows in a second, lately."""
    rate_out: float | None
    processor_seconds: float | None
    """Processor time that it took, by the sample."""
    cost: float | None
    """The same per row that came in, with what punctuation took."""
    timed: int
    """How many elements were timed."""
    state_bytes: int
    buffer_bytes: int
    """Of what it has given and somebody has not taken, and of what came from outside and it has not taken."""
    merge: MergeStatistics | None = None
    """Of a logical merge."""


@dataclass(frozen=True)
class ArcStatistics:
    """Of one arc: how much waits on it, how much did at most, and for how long."""

    producer: str
    """By its name in the state table; for what comes in, the stream."""
    consumer: str
    """The same, or the query whose results are taken here."""
    port: int
    kind: str
    """`entrance` for what came in and was not taken, `arc`, `break` for a break node, `queue` for an update queue,
    `result` where results are taken."""
    elements: int
    rows: int
    peak_elements: int
    """At most, as far as they waited: what is handed on at once is not counted."""
    peak_rows: int
    wait: float | None
    """Seconds on average, of those that were traced; of a result since its last cause came in."""
    wait_most: float | None
    traced: int


@dataclass(frozen=True)
class ResultStatistics:
    """Of the results of one query: how long after its last cause has come in a result is taken, in seconds."""

    query: str
    elements: int
    """Batches and bounds that wait to be taken."""
    latency: float | None
    """On average."""
    latency_half: float | None
    """Of the last that were traced, what half do not exceed."""
    latency_p99: float | None
    latency_most: float | None
    traced: int


@dataclass(frozen=True)
class GraphStatistics:
    """Of a running graph."""

    operators: tuple[OperatorStatistics, ...]
    """Sources first."""
    arcs: tuple[ArcStatistics, ...]
    results: tuple[ResultStatistics, ...]

    def __getitem__(self, state: str) -> OperatorStatistics:
        """The operator of a name in the state table."""
        found = next((each for each in self.operators if each.state == state), None)
        if found is None:
            raise KeyError(state)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Of operators, as dictionaries."""
        return [asdict(each) for each in self.operators]

    @property
    def table(self) -> pa.Table:
        """Of operators, a row for each."""
        return _table(self.operators, OPERATORS)

    @property
    def arc_table(self) -> pa.Table:
        """Of arcs."""
        return _table(self.arcs, ARCS)

    @property
    def result_table(self) -> pa.Table:
        """Of results."""
        return _table(self.results, RESULTS)


KINDS = {
    "str": pa.string(), "int": pa.int64(), "float | None": pa.float64(), "tuple[str, ...]": pa.list_(pa.string()),
}  # fmt: skip


def _columns(of: type) -> pa.Schema:
    return pa.schema([(each.name, KINDS[str(each.type)]) for each in fields(of) if str(each.type) in KINDS])


OPERATORS, ARCS, RESULTS = map(_columns, (OperatorStatistics, ArcStatistics, ResultStatistics))


def _table(found: Sequence[Any], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([{name: getattr(each, name) for name in schema.names} for each in found], schema)


def statistics_of(
    graph: Graph, outlets: Mapping[str, Outlet], rates: RecentRates, query: str | None = None
) -> GraphStatistics:
    """Of a graph that nobody runs meanwhile, or of what one query takes part in; nothing of one that has left."""
    names: dict[Any, str] = {**graph.table.names(), **{outlet: name for name, outlet in outlets.items()}}
    takers = takers_of(graph.nodes, outlets)
    now = graph.clocks.stopwatch()
    rates.look(now, graph.nodes)
    nodes = [n for n in names if isinstance(n, GraphNode) and (query is None or query in takers[n])]
    own = {name: outlet for name, outlet in outlets.items() if query in (None, name)}
    known = {*nodes, *own.values()}
    arcs = [arc for node in nodes for arc in node.arcs]
    return GraphStatistics(
        tuple(_of_operator(node, names[node], tuple(takers[node]), rates.of(node, now)) for node in nodes),
        (
            *(_of_entrance(node, names[node]) for node in nodes if node.stream is not None),
            *(_of_arc(arc, names) for arc in arcs if arc in known or arc.consumer in known),
        ),
        tuple(_of_result(name, outlet) for name, outlet in own.items()),
    )


def _of_operator(
    node: GraphNode, state: str, queries: tuple[str, ...], rate: tuple[float, float] | None
) -> OperatorStatistics:
    counted, seconds = node.statistics, node.processor_seconds
    return OperatorStatistics(
        node.identity,
        state,
        node.label,
        queries,
        **vars(counted),
        selectivity=counted.rows_out / counted.rows_in if counted.rows_in else None,
        rate_in=None if rate is None else rate[0],
        rate_out=None if rate is None else rate[1],
        processor_seconds=seconds,
        cost=seconds / counted.rows_in if seconds is not None and counted.rows_in else None,
        timed=node.meter.timed,
        state_bytes=bytes_of_pages(node.operator.pages),
        buffer_bytes=bytes_of([*node.buffer.elements, *node.inbox]),
        merge=measures_of(node.operator) if isinstance(node.operator, MergeOperator) else None,
    )


def _of_entrance(node: GraphNode, state: str) -> ArcStatistics:
    """What a live source has given, or somebody at once, and was not taken yet."""
    rows = sum(map(size_of, node.inbox))
    peak, peak_rows = node.meter.arrivals.peak, node.meter.arrivals.peak_rows
    return ArcStatistics(str(node.stream), state, 0, "entrance", len(node.inbox), rows, peak, peak_rows, None, None, 0)


def _of_arc(arc: Arc, names: Mapping[Any, str]) -> ArcStatistics:
    arc.count()
    kind = "result" if isinstance(arc, Outlet) else "queue" if isinstance(arc, QueuedArc) else "arc"
    return ArcStatistics(
        names[arc.producer],
        names[arc if isinstance(arc, Outlet) else arc.consumer],
        arc.port,
        "break" if arc.is_break else kind,
        arc.unread,
        len(arc.operator.queue) if isinstance(arc, QueuedArc) else arc.rows,
        arc.peak,
        arc.peak_rows,
        arc.waits.mean,
        arc.waits.most if arc.waits.count else None,
        arc.waits.count,
    )


def _of_result(name: str, outlet: Outlet) -> ResultStatistics:
    waits = outlet.waits
    most = waits.most if waits.count else None
    return ResultStatistics(
        name, outlet.unread, waits.mean, waits.quantile(0.5), waits.quantile(0.99), most, waits.count
    )
