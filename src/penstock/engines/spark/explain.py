"""How Spark runs each node, in words for `explain`."""

from __future__ import annotations

from penstock.engines.spark.partitioning import routes
from penstock.model.schema import DOUBLE, FLOAT
from penstock.plan.cost import choose_aggregate, choose_spark
from penstock.plan.expressions import USER, AggregateCall
from penstock.plan.nodes import Distinct, Merge, Node, Project, Select, Source, Union, WindowAggregate
from penstock.plan.windows import SlidingWindow

_WAYS = {
    "slide": "native panes, then one total slides over the panes of each group, whatever RANGE/SLIDE is",
    "slide and differences": "as slide, and distinct counts as running sums of differences, whatever RANGE/SLIDE is",
    "copy panes": "native panes, whose partials are copied to their windows and aggregated again",
    "copy rows": "native, rows copied to their windows: partials of these functions cannot be joined",
}


EXACT_DIGITS = 28
"""Spark adds decimals with ten more digits and 38 at the most, so sums of more digits than these may fail half way."""


def needs_host(plan: Node) -> bool:
    """Whether there is something that Spark cannot run natively: an aggregate in Python, or some merges."""
    return any(
        (isinstance(n, Merge) and _hosted_merge(n))
        or (isinstance(n, WindowAggregate) and any(_in_python(a) for a in n.aggregates))
        for n in plan.walk()
    )


def _hosted_merge(node: Merge) -> bool:
    """Elements, a driver that is to be believed, an alarm that stops; and floats that no key tells apart."""
    floats = any(f.type in (FLOAT, DOUBLE) for f in node.schema.fields)
    keyless = node.key is None and node.algorithm != "R0"
    return node.elements or node.driver != "leading" or node.on_divergence == "stop" or (floats and keyless)


def _in_python(call: AggregateCall) -> bool:
    """A user's aggregate, or a sum that Spark may give up on though it would fit in the end."""
    type_ = call.argument_type
    wide = type_ is not None and type_.is_decimal and type_.precision > EXACT_DIGITS
    return call.function.startswith(USER) or (wide and call.function in ("sum", "avg"))


def how_batch(node: Node) -> str:
    """How a node runs over bounded DataFrames."""
    match node:
        case Source():
            return "Spark, native: a DataFrame has no order of arrival, so nothing in it is late"
        case WindowAggregate(window=SlidingWindow(range=r, slide=s)):
            if r == s:
                return "Spark, native: one aggregation per window"
            choice = choose_spark(node)
            return f"Spark: {choice}: {_WAYS[choice.name]}"
        case Merge():
            return (
                "Spark, native: of whole replicas, each row as often as the one has it that has it most often; no alarm"
            )
        case Select() | Project() | Union() | Distinct():
            return "Spark, native"
        case _:
            return ""


def how_streaming(plan: Node, buckets: int) -> str:
    """How a whole plan runs as a stream."""
    route = routes(plan)
    if route is None:
        return "hosted in one bucket: no key is grouped by everywhere"
    by = sorted({str(e) for expressions in route.values() for e in expressions})
    return f"hosted in {buckets} buckets by {', '.join(by)}"


def how_node(node: Node) -> str:
    """How a node runs inside the hosted graph."""
    match node:
        case Source():
            return "Spark, hosted: late rows judged by the progress before the micro-batch, which travels as rows"
        case WindowAggregate(window=SlidingWindow()):
            choice = choose_aggregate(node)
            return f"Spark, hosted: {choice}; a page of state per {'window' if choice.name == 'wid' else 'pane'}"
        case Merge(why=why):
            return f"Spark, hosted: {why}; spread by payload, a page of state per slice of time"
        case _:
            return "Spark, hosted"
