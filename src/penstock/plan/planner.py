"""From a logical plan to a physical one: how each node runs, decided here and nowhere else.

There are three lowerings. *In-process*, every node is an operator of the query graph. On Spark over *bounded*
DataFrames, nodes are Spark's own operators, unless one of them cannot be: then the query graph is hosted, once per
bucket of rows. On Spark as a *stream* the query graph is always hosted.

Spark's own operators cannot run an aggregate written in Python, a sum of decimals so wide that Spark may give up though
the result would fit, anything over rows with lives of their own, with times that were moved, or of streams of which
several attributes progress, and merges that need to know who said what: with a driver that is to be believed, with an
alarm that stops, or of floats that no key tells apart. And they answer differently under some settings of a session,
which the caller names. A condition of a join that may have no value is not asked natively, either, and which rows are
the latest is no question to Spark, where times may be equal; nor is which follow one another.

Where a checkpoint is taken up, what its state fixes is not chosen again: see `kept`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from penstock.errors import PlanError
from penstock.model.schema import DOUBLE, FLOAT
from penstock.plan.aggregates import record_of
from penstock.plan.catalog import Catalog
from penstock.plan.cost import WID, Choice, Volume, choose_aggregate, choose_spark
from penstock.plan.distribution import SINGLE, Distribution, Path, Routes, by_keys, equal_in, needed, routes
from penstock.plan.expressions import always_has_value
from penstock.plan.identity import Known
from penstock.plan.join_nodes import Latest
from penstock.plan.kept import Kept
from penstock.plan.nodes import (
    AlterLifetime,
    Conflate,
    Distinct,
    Ends,
    GroupAggregate,
    Join,
    Lookup,
    Merge,
    MultiJoin,
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
from penstock.plan.physical import Physical, Runs
from penstock.plan.progressing import Wanted, wanted_above, wanted_below
from penstock.plan.read_columns import read_below
from penstock.plan.rules.multiway import candidates
from penstock.plan.rules.narrow import narrowed
from penstock.plan.rules.recent import recent_as_joins
from penstock.plan.stages import Exchange, exchanges, why_uncut
from penstock.plan.update_nodes import window_queue_below
from penstock.plan.useful import EVERY, Useful, useful_below
from penstock.plan.windows import SlidingWindow

BY_ROW, BY_BATCH = "judged by row", "judged by batch"
"""How a source's rows are judged: in their order, or by the progress before their batch."""
_WAYS = {
    "slide": "native panes, then one total slides over the panes of each group, whatever RANGE/SLIDE is",
    "slide and differences": "as slide, and distinct counts as running sums of differences, whatever RANGE/SLIDE is",
    "copy panes": "native panes, whose partials are copied to their windows and aggregated again",
    "copy rows": "native, rows copied to their windows: partials of these functions cannot be joined",
}
_VOLUME = Volume()
_RUNS = "a page of state per run of rows"
NOTHING = Kept()
"""No checkpoint."""
TakenUp = Callable[[Choice], Choice]
"""The choice for a node, given the state that is there of it."""
WHOLE = "whole groups"
SORTED = "sorted windows"
MARKED = "marked windows"
OA_JOIN, AS_OF_JOIN, M_JOIN = "OA-Join", "As-of join", "MJoin"
SEQUENCE = "sequence"
HASH_LOOKUP, VERSION_LOOKUP = "hash lookup", "version lookup"


@dataclass(frozen=True)
class Decision:
    """What a lowering says of one node."""

    runs: Runs
    algorithm: str
    why: str = ""
    choice: Choice | None = None


def in_process(
    plan: Node, catalog: Catalog, *, aggregate: str | None = None, volume: Volume = _VOLUME, kept: Kept = NOTHING
) -> Physical:
    """Every node as an operator of the query graph.

    `aggregate` is the way that all window aggregates take; `kept` what a checkpoint has that is to be taken up.
    """

    def decide(node: Node, identity: str) -> Decision:
        return _local(node, catalog, aggregate, volume, partial(kept.chosen, identity=identity))

    return _narrowed(_planned(_joined(plan, kept), decide, needed, kept), frozenset(plan.schema.names))


def spark_batch(plan: Node, catalog: Catalog, setting: str | None = None, *, volume: Volume = _VOLUME) -> Physical:
    """Over bounded DataFrames; `setting` is one of the session under which Spark's own operators mean another thing."""
    if setting is not None or any(_needs_host(n, catalog) for n in plan.walk()):
        return spark_streaming(plan, catalog, volume=volume)

    def decide(node: Node, identity: str) -> Decision:
        return _native(node, catalog, volume)

    return _planned(plan, decide, needed, NOTHING)


def spark_streaming(
    plan: Node, catalog: Catalog, *, volume: Volume = _VOLUME, kept: Kept = NOTHING, staged: bool = False
) -> Physical:
    """The query graph in Spark's workers.

    If it is `staged`, and can be, rows are judged where they are read and change places as often as operators ask for
    it (`stages`), and joins are given the columns that are read of them (`rules.narrow`); otherwise they are spread
    once, by what every operator with state groups by. `kept` is what a checkpoint has that is to be taken up.
    """
    plan = _joined(plan, kept, staged=staged)
    cuts = exchanges(plan) if staged else None
    spread = routes(plan)

    def distribution(node: Node) -> Distribution:
        return _spread(node, spread) if isinstance(node, Source) else needed(node)

    def decide(node: Node, identity: str) -> Decision:
        return _hosted(node, catalog, volume, partial(kept.chosen, identity=identity), staged=cuts is not None)

    planned = _planned(plan, decide, distribution, kept, cuts or {})
    return planned if cuts is None else _narrowed(planned, frozenset(plan.schema.names))


def _joined(plan: Node, kept: Kept, *, staged: bool = False) -> Node:
    """The plan with joins as a tree or as one operator: what costs less, or what most of the state is of.

    Patterns that are joins are among them (`rules.recent`).

    If it is `staged`, one operator in which nothing is equal in all would have all rows in one place; a tree has not.
    """
    able = candidates(recent_as_joins(plan))
    if staged and not all(n.everywhere for n in able[0].walk() if isinstance(n, MultiJoin)) and not _is_asked_for(plan):
        able = [able[-1], *able[:-1]]
    if staged:  # joins of earlier releases were given columns in the order of their streams
        forms = (narrowed, partial(narrowed, by_name=False)) if kept.kinds else (narrowed,)
        able = [form(each) if why_uncut(each) is None else each for each in able for form in forms]
    return max(map(kept.as_it_was, able), key=kept.has_of)  # the first of equals


def _is_asked_for(plan: Node) -> bool:
    """Whether the query says that joins are to be one operator."""
    return any(isinstance(node, Join) and node.as_one for node in plan.walk())


def _spread(source: Source, spread: Routes | None) -> Distribution:
    return SINGLE if spread is None else by_keys(spread[source.name])


def _planned(
    plan: Node,
    decide: Callable[[Node, str], Decision],
    distribution: Callable[[Node], Distribution],
    kept: Kept,
    cuts: Mapping[Path, Exchange] | None = None,
) -> Physical:
    """The tree, each node with its identity; identities come in the order in which a plan walks."""
    known, cuts = iter(kept.identities(plan)), cuts or {}

    def visit(node: Node, useful: Useful, above: Wanted, path: Path = ()) -> Physical:
        own: Known = next(known)
        said = decide(node, own.identity)
        inputs = tuple(
            visit(below, useful_below(node, useful), wanted_below(node, port, above), (*path, port))
            for port, below in enumerate(node.inputs)
        )
        stage = max((below.stage if below.exchange is None else below.exchange.stage for below in inputs), default=0)
        wanted = tuple(above.items()) if isinstance(node, Source) and node.schema.attributes else ()
        return Physical(
            node, own.identity, inputs, said.runs, said.algorithm, said.why, said.choice, distribution(node), useful,
            wanted, stage, cuts.get(path),
        )  # fmt: skip

    return visit(plan, EVERY, wanted_above(plan))


# In-process


def _narrowed(planned: Physical, read: frozenset[str]) -> Physical:
    """The plan, with what nobody reads of each node's output, of which `read` is read."""
    names = frozenset(planned.node.schema.names)
    below = read_below(planned.node, read)
    return replace(planned, inputs=tuple(_narrowed(each, below) for each in planned.inputs), unread=names - read)


def _local(node: Node, catalog: Catalog, aggregate: str | None, volume: Volume, taken_up: TakenUp) -> Decision:
    runs = Runs.IN_PROCESS
    match node:
        case Source():
            return Decision(runs, BY_ROW, "late rows judged one by one as they arrive")
        case WindowAggregate() if window_queue_below(node) is not None:
            return Decision(runs, MARKED, "windows that the queue below opens and closes, whole ones alone")
        case WindowAggregate(window=SlidingWindow()):
            choice = taken_up(_chosen(choose_aggregate(node, catalog, volume), aggregate, node))
            return Decision(runs, choice.name, _holistic(node, catalog), choice)
        case GroupAggregate():
            waits = "groups held until it is promised that nothing more of them comes"
            return Decision(runs, WHOLE, "; ".join(filter(None, [waits, _holistic(node, catalog)])))
        case Stamp():
            return Decision(runs, "Stamp", "the clock when rows come here, never going back; no input is waited for")
        case Settle():
            return Decision(runs, "Settle", "events by slices of time, given out in order of start when they are final")
        case Distinct() if node.schema.lives is not None:
            return Decision(runs, "DupElim", "longest stretches of time, given out when a bound has passed them")
        case Distinct():
            return Decision(runs, "DupElim", "hash table per instant, purged by punctuation")
        case Merge(why=why, algorithm=algorithm):
            return Decision(runs, algorithm, f"{why}; events by slices of time, given up when they are final")
        case Union():
            return Decision(runs, "Meld", "Meld, rows pass at once")
        case Newest():
            kept = "the newest row of each key is kept" if node.lives else "of each key the newest time is kept"
            return Decision(runs, "Newest", f"{kept}; rows pass at once unless they are older")
        case Conflate():
            return Decision(runs, "update queue", _drained(node))
        case RowNumber():
            return Decision(runs, SORTED, "rows held until their window is complete, then sorted as columns")
        case Join(near=Latest()):
            kept = "of the right the latest rows of each key, of the left those that wait for the right's promise"
            return Decision(runs, AS_OF_JOIN, "; ".join(filter(None, [node.why, kept])))
        case Join():
            why = "rows by key and time on both sides, given up when punctuation allows"
            return Decision(runs, OA_JOIN, "; ".join(filter(None, [node.why, why, *_more(node)])))
        case MultiJoin(why=why):
            return Decision(runs, M_JOIN, f"{why}; rows of each stream, which look into the others, and no pairs")
        case Pattern():
            return Decision(runs, SEQUENCE, _sequences(node))
        case Lookup():
            return _looked_up(node, runs)
        case Unnest():
            return Decision(runs, "Unnest", "each row repeated for its elements, rows or Arrow")
        case Select() | Project() | Ends() | AlterLifetime() | NumberRows():
            return Decision(runs, type(node).__name__, "pipelined, rows or Arrow")
        case _:
            return Decision(runs, type(node).__name__)


def _drained(node: Conflate) -> str:
    """Who decides how many rows come out of an update queue."""
    if node.budget is not None:
        return f"{node.budget} rows at a time"
    return "as many rows at a time as their cost allows, which is measured"


def _sequences(node: Pattern) -> str:
    """What is kept of a pattern, and for how long."""
    if len(node.places) == 1:
        return "rows, and times of rows that must not come, until a bound has passed the time that is watched"
    kept = {
        "recent": "of each key the most recent sequence up to each step, as of the times that may still be asked for",
        "chronicle": "sequences that wait for their next step, in order",
        "continuous": "sequences that wait for their next step",
        "cumulative": "rows of all steps since the last result",
    }[node.context]
    ends = "given up when the bound on the time has passed" if node.within is not None else "for as long as they wait"
    if node.context == "recent" and node.within is None:
        ends = "one of each key for ever"
    watched = "; then until a bound has passed the time that is watched" if node.ends_with_nothing else ""
    return f"rows in order of time once their steps have promised it; {kept}, {ends}{watched}"


def _more(node: Join) -> Iterator[str]:
    """What is said of sides whose rows meet one row at most, and so are kept no longer than until they do.

    And of how many rows without a partner come out at a time.
    """
    if node.max_burst is not None:
        yield f"rows without a partner come out {node.max_burst} at a time"
    for side, name in enumerate(("left", "right")):
        if node.once[side]:
            other = node.inputs[1 - side]
            shown = dict(zip(other.schema.names, other.schema.shown_names, strict=True))
            unique = ", ".join(sorted(shown[column] for column in other.properties.unique or ()))
            yield f"those of the {name} once they have met one, since {unique} is unique on the other side"


def _looked_up(node: Lookup, runs: Runs) -> Decision:
    """How rows find those of a table: whoever runs it, no state is kept."""
    if node.as_of is not None:
        return Decision(runs, VERSION_LOOKUP, "of each key the version that is valid; no state")
    if not node.equal:
        return Decision(runs, "all pairs", "with every row of the table; no state")
    return Decision(runs, HASH_LOOKUP, "by what is equal; no state")


def _holistic(node: WindowAggregate | GroupAggregate, catalog: Catalog) -> str:
    """What is said of aggregates whose state grows with the values in it (thesis 6.2.2)."""
    unbounded = [a.worded(node.input.schema) for a in node.aggregates if not record_of(a, catalog).bounded]
    return f"{', '.join(unbounded)} may take more room the more values there are" if unbounded else ""


def _chosen(choice: Choice, forced: str | None, node: Node) -> Choice:
    """The cheapest algorithm, or the one that was asked for if it is one that can do it."""
    if forced is None or forced == choice.name:
        return choice
    if forced not in choice.costs:
        raise PlanError(
            "This algorithm cannot run the aggregate.",
            where=node.label,
            got=forced,
            hint=f"use one of {', '.join(choice.costs)}",
        )
    return Choice(forced, choice.costs)


# On Spark


def _native(node: Node, catalog: Catalog, volume: Volume) -> Decision:
    match node:
        case Source():
            why = "a DataFrame has no order of arrival, so nothing in it is late"
            return Decision(Runs.NATIVE, BY_ROW, why)
        case WindowAggregate(window=SlidingWindow() as window):
            choice = choose_spark(node, catalog, volume)
            if window.is_tumbling and choice.name == "copy rows":
                return Decision(Runs.NATIVE, choice.name, "one aggregation per window")
            return Decision(Runs.SLIDING, choice.name, _WAYS[choice.name], choice)
        case GroupAggregate():
            return Decision(Runs.NATIVE, WHOLE, "one aggregation per group: over bounded input every group is complete")
        case Join(near=near):
            why = "a join by equal columns and near times" if node.equal else "a join by near times alone"
            return Decision(Runs.NATIVE, OA_JOIN, f"{why}, {type(near).__name__}")
        case Lookup():
            return _looked_up(node, Runs.NATIVE)
        case Merge(algorithm=algorithm):
            why = "of whole replicas, each row as often as the one has it that has it most often; no alarm"
            return Decision(Runs.NATIVE, algorithm, why)
        case _:
            return Decision(Runs.NATIVE, type(node).__name__)


def _hosted(node: Node, catalog: Catalog, volume: Volume, taken_up: TakenUp, *, staged: bool = False) -> Decision:
    runs = Runs.HOSTED
    match node:
        case Source():
            why = "late rows judged by the progress before the micro-batch, which travels as rows"
            if staged:
                why = "late rows judged where they are read, by the progress in the record of the micro-batch before"
            return Decision(runs, BY_BATCH, why)
        case WindowAggregate() if window_queue_below(node) is not None:
            return Decision(runs, MARKED, "windows that the queue below opens and closes, a page of state for each")
        case WindowAggregate(window=SlidingWindow()):
            choice = taken_up(choose_aggregate(node, catalog, volume))
            pages = f"a page of state per {'window' if choice.name == WID else 'pane'}"
            return Decision(runs, choice.name, "; ".join(filter(None, [pages, _holistic(node, catalog)])), choice)
        case GroupAggregate():
            pages = "pages of groups held until it is promised that nothing more of them comes"
            return Decision(runs, WHOLE, "; ".join(filter(None, [pages, _holistic(node, catalog)])))
        case Merge(why=why, algorithm=algorithm):
            return Decision(runs, algorithm, f"{why}; spread by payload, a page of state per slice of time")
        case Lookup():
            return _looked_up(node, runs)
        case Join(equal=equal):
            is_spread = equal or (staged and equal_in(node))
            spread = "spread by what is equal" if is_spread else "in one place, since nothing is to be equal"
            name = AS_OF_JOIN if isinstance(node.near, Latest) else OA_JOIN
            return Decision(runs, name, "; ".join(filter(None, [node.why, spread, _RUNS, *_more(node)])))
        case Conflate():
            most = "measured micro-batches allow" if node.budget is None else f"a budget of {node.budget}"
            return Decision(runs, "update queue", f"as many rows with a micro-batch as {most}; the rest waits in state")
        case Pattern():
            spread = "spread by the keys" if node.keys else "in one place, since nothing is to be equal"
            return Decision(runs, SEQUENCE, f"{_sequences(node)}; {spread}")
        case MultiJoin(why=why):
            spread = "spread by what is equal in all" if node.everywhere else "in one place, as nothing is equal in all"
            return Decision(runs, M_JOIN, f"{why}; {spread}; {_RUNS}")
        case _:
            return Decision(runs, type(node).__name__)


def _needs_host(node: Node, catalog: Catalog) -> bool:
    """Whether Spark's own operators cannot run a node."""
    if node.schema.lives is not None or (isinstance(node, Source) and node.schema.attributes):
        return True
    match node:
        case AlterLifetime() | RowNumber() | Conflate() | Pattern():
            return True
        case Join(near=Latest()):  # which of the rows of one time is the latest is ours to say
            return True
        case Join(condition=condition) | Lookup(condition=condition):
            return condition is not None and not always_has_value(condition)
        case Merge():
            floats = any(f.type in (FLOAT, DOUBLE) for f in node.schema.fields)
            keyless = node.key is None and node.algorithm != "R0"
            return node.driver != "leading" or node.on_divergence == "stop" or (floats and keyless)
        case WindowAggregate() | GroupAggregate():
            return not all(record_of(a, catalog).is_native(a.argument_type) for a in node.aggregates)
        case _:
            return False
