"""The drawing of a graph: its streams, operators and queries, with what is known of them if it has been at work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.monitor.picture import Box, Line, LineKind, Picture
from penstock.runtime.arcs import Outlet
from penstock.runtime.graph import Graph, GraphNode
from penstock.runtime.graph_statistics import ArcStatistics, GraphStatistics, OperatorStatistics
from penstock.runtime.state_table import Fork

UNITS = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))
TIMES = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
KINDS: dict[str, LineKind] = {"arc": "arc", "break": "break", "queue": "queue", "result": "result"}


def picture_of(graph: Graph, outlets: Mapping[str, Outlet], known: GraphStatistics, *, at_work: bool) -> Picture:
    """What the statistics are of, with numbers if it is `at_work`."""
    names = {name: node for node, name in graph.table.names().items() if not isinstance(node, Fork)}
    boxes = [_operator(each, names[each.state], at_work=at_work) for each in known.operators]
    for each in known.results:
        details = []
        if at_work and each.latency_half is not None:
            details = [f"latency {time_of(each.latency_half)}, at most {time_of(each.latency_most or 0.0)}"]
        boxes.append(Box(_query(each.query), "query", f"query {each.query}", tuple(details)))
    lines = [_line(arc, at_work=at_work) for arc in known.arcs if arc.kind != "entrance"]
    return Picture(tuple(boxes), tuple(lines))


def picture_of_streams(streams: Iterable[str]) -> Picture:
    """Of streams that no query reads."""
    return Picture(tuple(Box(f"stream {name}", "stream", f"Source {name}") for name in streams), ())


def _query(name: str) -> str:
    """No operator has such a name."""
    return f"query {name}"


def _operator(each: OperatorStatistics, node: GraphNode, *, at_work: bool) -> Box:
    shared = len(each.queries) > 1
    details = [f"shared by {', '.join(each.queries)}"] if shared else []
    if at_work:
        details += _numbers(each)
    kind = "operator" if node.stream is None else "stream"
    return Box(
        each.state, "stream" if kind == "stream" else "operator", f"{each.state}  {each.label}", tuple(details), shared
    )


def _numbers(each: OperatorStatistics) -> Iterable[str]:
    rate = "" if each.rate_in is None else f", {short(each.rate_in)} rows/s"
    yield f"{short(each.rows_in)} rows in, {short(each.rows_out)} out{rate}"
    spent = [] if each.cost is None else [f"{time_of(each.cost)} a row"]
    spent += [f"state {short(each.state_bytes)}B"] if each.state_bytes else []
    spent += [f"held {short(each.buffer_bytes)}B"] if each.buffer_bytes else []
    if spent:
        yield ", ".join(spent)
    merge = each.merge
    if merge is not None:
        yield f"w {merge.w}, d {merge.d}, g {merge.g}, h {merge.h}" + ("" if merge.c is None else f", c {merge.c:.3g}")
        yield f"{merge.adjusts_out} adjusts out, {merge.removals_out} removals, {merge.held_back} held back"
        behind = [f"{one.name} {one.lag}" for one in merge.inputs if one.lag]
        if behind:
            yield f"ticks behind: {', '.join(behind)}"


def _line(arc: ArcStatistics, *, at_work: bool) -> Line:
    target = _query(arc.consumer) if arc.kind == "result" else arc.consumer
    told = [] if arc.kind in ("arc", "result") else [arc.kind]
    if at_work and (arc.rows or arc.elements or (arc.peak_rows and arc.kind != "result")):
        told.append(f"{arc.rows} rows wait, at most {arc.peak_rows}")
    if at_work and arc.kind == "break" and arc.wait is not None:
        told.append(f"for {time_of(arc.wait)}")
    return Line(arc.producer, target, KINDS[arc.kind], ", ".join(told))


def short(number: float) -> str:
    """A number in three digits."""
    unit, size = next((each for each in reversed(UNITS) if abs(number) >= each[1]), UNITS[0])
    shown = number / size
    return f"{shown:.0f}{unit}" if shown >= 100 or shown == int(shown) else f"{shown:.3g}{unit}"


def time_of(seconds: float) -> str:
    """A time in three digits."""
    unit, size = next((each for each in TIMES if seconds >= each[1]), TIMES[-1])
    return f"{seconds / size:.3g} {unit}"
