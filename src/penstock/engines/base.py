"""What an engine supports, feature by feature, and the check that refuses a plan before anything runs.

A plan is brought down to the features it uses. Each engine has a table from feature to `Support`; what is not in the
table is not supported. The support matrix in the docs is made from these tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from penstock.errors import UnsupportedError
from penstock.model.estimated import Estimated
from penstock.model.progress import Bounded, Ordered, PerSource, Punctuated, Several, Single
from penstock.model.timer import Timer
from penstock.plan.expressions import USER, AggregateCall, calls_users_code
from penstock.plan.join_nodes import Latest
from penstock.plan.nodes import (
    AlterLifetime,
    Conflate,
    Distinct,
    Ends,
    GroupAggregate,
    Join,
    Lookup,
    Merge,
    Newest,
    Node,
    NumberRows,
    Pattern,
    Project,
    RowNumber,
    Select,
    Settle,
    Source,
    Stamp,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.windows import LandmarkWindow, PartitionedWindow, SlideByTupleWindow, SlidingWindow

FEATURES = {
    "select": "WHERE and HAVING",
    "project": "expressions and renaming",
    "user function": "Python functions of single values",
    "explode": "one row for each element of an array or a map: explode, LATERAL VIEW, UNNEST",
    "union": "bag union of streams (Meld)",
    "join": "joins of two streams by times that are near each other: inner, outer, semi and anti (OA-Join)",
    "as-of join": "ASOF JOIN, and [RANGE n ROWS] after a stream that is joined: the latest rows as of a row's time",
    "pattern": "SEQ(a, b, …): rows that follow one another, RECENT, CHRONICLE, CONTINUOUS, CUMULATIVE; and NOT",
    "lookup": "joins of a stream with a table, flow.table: inner, left, semi and anti",
    "versioned lookup": "FOR SYSTEM_TIME AS OF a column of the stream: the version of a table's row that is valid then",
    "merge": "logical merge of replicas (LMerge)",
    "lives": "streams whose rows have ends of their own, and may be revised",
    "settle": "events once they can no longer change (Cleanse), for what takes inserts only",
    "altered lifetimes": "flow.alter, and [RANGE …] after a stream without aggregates (AlterEventLifetime)",
    "newest": "update streams, update_key: unions and joins of them, of each key what is newest; flow.latest",
    "conflate": "update queues: pk.conflate and flow.conflate, the newest of each key as fast as the consumer takes it",
    "paced conflation": "an update queue with every=… or access=…: some keys are wanted less often than others",
    "queue of all rows": "policy='append' or 'shedding', and adaptive=True: all rows wait, not only the newest",
    "conflated windows": "flow.conflate(…, windows='lazy' or 'eager'): windows of aggregates, whole or not at all",
    "distinct": "duplicate elimination",
    "top-n": "ROW_NUMBER() OVER (PARTITION BY window_start, window_end, … ORDER BY …) in tumbling windows",
    "row numbers": "WA row-num without a sequence column: rows numbered by arrival",
    "sliding window": "sliding and tumbling windows on time, integers and sequence columns",
    "landmark window": "RANGE ALL",
    "partitioned window": "row windows per partition (PA)",
    "slide-by-tuple window": "RATTR and SATTR",
    "whole groups": "GROUP BY without a window, of columns of which punctuation says when a group is complete",
    "user aggregate": "Python aggregates with lift, combine, lower",
    "nested aggregate": "an aggregate over the result of another",
    "progress: ordered": "pk.ordered()",
    "progress: bounded": "pk.bounded('5 seconds')",
    "progress: bounded rows": "pk.bounded(rows=100)",
    "progress: punctuated": "pk.punctuated(\"kind = 'punct'\")",
    "progress: per source": "pk.per_source('router', idle='30 seconds')",
    "progress: estimated": "pk.estimated('0.1%')",
    "progress: timer": "pk.timer('1 second')",
    "internal timestamps": "timestamps=pk.internal(): rows are stamped with the clock as they enter",
    "latent timestamps": "timestamps=pk.latent(): rows have no time until an operator needs one",
    "stamps": "a time given to rows of a latent stream, where an operator needs one",
    "several attributes": "{'ts': pk.bounded('5 seconds'), 'seq': pk.ordered()}; windows on any, joint punctuation",
    "late output": "rows that contradict a punctuation, with the bound",
    "dead letters": "rows that cannot be read, or for which an expression has no value, with the reason",
    "snapshot and restore": "state saved and taken up again",
    "replace": "run.replace(sql): another query takes the place of one that runs",
}


@dataclass(frozen=True)
class Support:
    """How an engine does a feature, or what to do instead."""

    how: str
    supported: bool = True


def no(instead: str) -> Support:
    """Not supported, and what to do instead."""
    return Support(instead, supported=False)


_WINDOWS: dict[type, str] = {
    SlidingWindow: "sliding window",
    LandmarkWindow: "landmark window",
    PartitionedWindow: "partitioned window",
    SlideByTupleWindow: "slide-by-tuple window",
}


def _progress(progress: Single) -> str:
    match progress:
        case Ordered():
            return "progress: ordered"
        case Bounded(rows=None):
            return "progress: bounded"
        case Bounded():
            return "progress: bounded rows"
        case Punctuated():
            return "progress: punctuated"
        case PerSource():
            return "progress: per source"
        case Estimated():
            return "progress: estimated"
        case Timer():
            return "progress: timer"


def features(plan: Node) -> Iterator[tuple[str, Node]]:
    """The features that a plan uses, with the node that uses each."""
    for node in plan.walk():
        match node:
            case Source(progress=progress):
                if node.schema.lives is not None:
                    yield "lives", node
                if node.stamped:
                    yield ("latent timestamps" if node.latent else "internal timestamps"), node
                if isinstance(progress, Several):
                    yield "several attributes", node
                entries = [how for _, how in progress.entries] if isinstance(progress, Several) else [progress]
                yield from ((_progress(how), node) for how in entries)
            case NumberRows():
                yield "row numbers", node
            case Select(predicate=predicate):
                yield "select", node
                if calls_users_code(predicate):
                    yield "user function", node
            case Project(columns=columns):
                yield "project", node
                if any(calls_users_code(e) for _, e in columns):
                    yield "user function", node
            case Unnest():
                yield "explode", node
            case Union():
                yield "union", node
            case Join(condition=condition, near=near):
                yield ("as-of join" if isinstance(near, Latest) else "join"), node
                if condition is not None and calls_users_code(condition):
                    yield "user function", node
            case Lookup(condition=condition, as_of=as_of):
                yield ("lookup" if as_of is None else "versioned lookup"), node
                if condition is not None and calls_users_code(condition):
                    yield "user function", node
            case Merge():
                yield "merge", node
            case Ends():
                yield "lives", node
            case AlterLifetime():
                yield "altered lifetimes", node
            case Settle():
                yield "settle", node
            case Stamp():
                yield "stamps", node
            case Newest():
                yield "newest", node
            case Conflate(windows=windows):
                yield ("conflate" if windows is None else "conflated windows"), node
                if node.every is not None or node.pace:
                    yield "paced conflation", node
                if node.adaptive or node.policy in ("append", "shedding"):
                    yield "queue of all rows", node
            case Pattern():
                yield "pattern", node
            case Distinct():
                yield "distinct", node
            case RowNumber():
                yield "top-n", node
            case WindowAggregate(window=window, aggregates=aggregates):
                yield _WINDOWS[type(window)], node
                yield from _of_aggregate(node, aggregates)
            case GroupAggregate(aggregates=aggregates):
                yield "whole groups", node
                yield from _of_aggregate(node, aggregates)
            case _:
                yield type(node).__name__, node


def _of_aggregate(node: Node, aggregates: Iterable[AggregateCall]) -> Iterator[tuple[str, Node]]:
    if any(a.function.startswith(USER) for a in aggregates):
        yield "user aggregate", node
    if any(isinstance(below, WindowAggregate | GroupAggregate) for i in node.inputs for below in i.walk()):
        yield "nested aggregate", node


def check(plan: Node, engine: str, supported: Mapping[str, Support]) -> None:
    """Refuse a plan that uses what the engine has not."""
    for feature, node in features(plan):
        support = supported.get(feature)
        if support is None or not support.supported:
            raise UnsupportedError(
                f"The {engine} engine does not support this: {FEATURES.get(feature, feature)}.",
                where=node.label,
                hint=support.how if support is not None else "",
            )
