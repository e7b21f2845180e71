"""A lane: single rows from a stream's entrance to the first operator with state, in one compiled function.

Handing a row from operator to operator costs far more than the operators do. So the steps that a row takes alone, the
judgement of its lateness, the selections and projections, and its place in the table of an aggregate, are written out
as one Python function. The function keeps what changes with every row in its own variables: the greatest time, the
bound, how many rows passed each step. `store` writes these to the operators' pages and statistics, `load` reads them
back; whenever anything else touches the graph, the lane is stored before and loaded after it. Of the same code there is
a second function for the rows that are timed (`lane_sampling`).

A row on which a selection or projection fails leaves the lane as a dead letter; which step it was is found out then, so
that rows without fault pay nothing for it.

A lane is the compiled form of the rules of a path: where several take the output of one step, and at a break node, it
ends, each consumer is given the row, and the state table says which runs first. When the table changes it is made anew.

Of a row that moves the bound past the next useful one, or says it, punctuation follows: it passes what the rows pass in
the lane as well, and goes on through the graph. A row that moves the row number past a useful one leaves the lane for
that, and so do punctuation rows with which something is wrong. What has no lane of this kind (a stream
that the plan reads twice, that has a limit on rows from the future, or whose rows have lives) goes row by row through
the graph, with the same results; rows with lives are pushed as elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.model.batch import Batch, Row
from penstock.model.conform import DeadLetter, conform_row, fits_text
from penstock.model.convert import encodable
from penstock.model.element_rows import Elements
from penstock.model.elements import Adjust, Insert
from penstock.model.schema import Field, Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical
from penstock.operators.aggregates.columnar import ColumnarAggregate
from penstock.operators.progress.estimates import EstimateTracker
from penstock.operators.progress.ingest import RowIngest
from penstock.operators.progress.lateness import is_late_text
from penstock.operators.progress.marks import SourceMarks
from penstock.operators.progress.sources import SourcesTracker
from penstock.operators.progress.timers import TimerTracker
from penstock.operators.progress.trackers import DelayTracker
from penstock.plan.nodes import NumberRows, Project, Select, Source
from penstock.runtime.gate import Gate
from penstock.runtime.lane_books import Books, Bury, Lane, Push, nothing
from penstock.runtime.lane_sampling import READ, TOOK, TRACE, LaneSample, untimed
from penstock.runtime.row_functions import Functions, RowCode

if TYPE_CHECKING:
    from penstock.runtime.graph import Graph, GraphNode


def lane_of(graph: Graph, stream: str, functions: Functions, bury: Bury, gate: Gate, again: Push | None = None) -> Lane:
    """The lane of a stream; `bury` is given rows that are none of its schema, `gate` is held while a row is pushed.

    Where the graph may change, `again` is given rows that are pushed after the lane has been retired.
    """
    graph.tabulate()
    entrances = graph.sources[stream.lower()]
    entrance = entrances[0]
    ingest = entrance.operator
    plain = ingest.schema.lives is None and not ingest.schema.attributes and len(entrances) == 1
    if plain and isinstance(ingest, RowIngest) and ingest.guard is None and ingest.groups is None:
        return _compiled(graph, entrance, ingest, functions, bury, gate, again)

    pushed = 0
    retired: list[bool] = []
    form = Elements(ingest.schema)

    def made(row: object) -> Batch | DeadLetter:
        if isinstance(row, Insert | Adjust):
            return form.batch(row)
        checked = conform_row(ingest.schema, row)
        return checked if isinstance(checked, DeadLetter) else Batch(ingest.schema, [checked])

    def push(row: Row) -> None:
        nonlocal pushed
        with gate.alone():
            if not retired:
                pushed += 1
                batch = made(row)
                if isinstance(batch, DeadLetter):
                    bury(batch)
                else:
                    graph.push(stream, batch)
                return
        assert again is not None
        again(row)

    return Lane(push, nothing, nothing, lambda: pushed, lambda: retired.append(True))


def _compiled(
    graph: Graph,
    entrance: GraphNode,
    ingest: RowIngest,
    functions: Functions,
    bury: Bury,
    gate: Gate,
    again: Push | None,
) -> Lane:
    code = RowCode(functions)
    chain, steps, last = _chain(entrance, code)
    consumers = _absorbing(last)
    retired: list[bool] = []
    code.names |= {"retired": retired, "again": again, "encodable": encodable, "canonical": canonical}
    code.names |= {f"deliver{at}": operator.absorb for at, (_, operator) in enumerate(consumers)}
    code.names["deliver"] = _deliver(graph, last)
    for at in range(len(consumers)):
        steps += [READ, f"deliver{at}(row)"]
    steps += [] if consumers else [READ, TRACE, "deliver(row)"]
    aside = _aside(entrance, ingest, code)
    exec(compile("\n".join(_made(ingest, chain, aside, steps, again)), "<penstock lane>", "exec"), code.names)
    books = Books(graph, entrance, ingest, chain, [node for node, _ in consumers], bury)
    own = (books.mend, books.condemn, books.blame, books.aside, books.step, books.hear, books.count, books.estimate)
    moved = (books.said, books.follow, books.numbered)
    sampled = LaneSample(graph.clocks, [entrance, *chain, *[node for node, _ in consumers]], last)
    how = (sampled.processor, sampled.gap, sampled.begin, sampled.took, sampled.trace)
    push, store, load = code.names["make"](gate.held, gate.pause, *own, *moved, *how, books.read, books.write)
    books.lane = Lane(push, store, load, lambda: books.pushed, lambda: retired.append(True))
    return books.lane


def _made(
    ingest: RowIngest, chain: list[GraphNode], aside: list[str], steps: list[str], again: Push | None
) -> list[str]:
    """The code that makes a lane: what changes with every row is in variables of `make`, which its functions share."""
    selections = sum(isinstance(node.plan, Select) for node in chain)
    counters = ["r", "c", "late", "skipped", "spoken", *[f"c{i}" for i in range(selections)]]
    is_numbered = any(isinstance(node.plan, NumberRows) for node in chain)
    variables = ["greatest", "bound", "edge", "least", "counted", "recent", "n", "due", *counters]
    body = [
        *_entering(ingest.schema),
        *aside,
        *_going_through(ingest.schema, steps),
        *_progress(ingest),
        *(["            if n >= following: numbered()"] if is_numbered else []),
    ]
    inside = ["        while held[0]: pause()", "        held[0] = True", *_forwarding(again), "        try:"]
    return [
        "def make(held, pause, mend, condemn, blame, aside, step, hear, count, estimate, said, follow,",
        "         numbered, clock, gap, begin, took, trace, read, write):",
        f"    {' = '.join(counters)} = 0",
        "    greatest, bound, edge, needed, n, following, heard = read()",
        f"    least, counted, recent = {END_OF_TIME}, {MIN_TICK}, None",
        "    due = gap()",
        "    def push(row):",
        f"        nonlocal {', '.join(variables)}",
        "        if r >= due: return sampled(row)",
        *inside,
        *untimed(body),
        "        finally:",
        "            held[0] = False",
        "    def sampled(row):",
        f"        nonlocal {', '.join(variables)}",
        *inside,
        "            due = r + gap()",
        "            came, times = begin(), [clock()]",
        *body,
        "        finally:",
        "            held[0] = False",
        "    def store():",
        f"        nonlocal {', '.join(['due', *counters])}",
        "        due -= r",
        f"        write(greatest, n, [{', '.join(counters)}])",
        f"        {' = '.join(counters)} = 0",
        "    def load():",
        "        nonlocal greatest, bound, edge, needed, n, following, heard, least, recent",
        "        greatest, bound, edge, needed, n, following, heard = read()",
        f"        least, recent = {END_OF_TIME}, None",
        "    return push, store, load",
    ]


def _entering(schema: Schema) -> list[str]:
    """A row's values, each in a variable, after those that do not fit their columns were mended."""
    fits = ["row.__class__ is tuple", *[_fits(f"v{i}", f, schema) for i, f in enumerate(schema.fields)]]
    return [
        "            r += 1",
        "            try:",
        f"                {_values(schema)} = row",
        f"                if not ({' and '.join(fits)}): raise TypeError",
        "            except (TypeError, ValueError):",
        "                row = mend(row)",
        "                if row is None: return",
        f"                {_values(schema)} = row",
        f"            time = v{schema.time_index}",
    ]


def _going_through(schema: Schema, steps: list[str]) -> list[str]:
    """The judgement of a row, and what it goes through if it is on time and anybody needs it."""
    return [
        f"            if {is_late_text('time', 'bound')}:",
        "                late += 1",
        "                condemn(row, bound)",
        "            elif time >= needed:",
        "                c += 1",
        "                try:",
        "                    while True:",  # once: a row that a selection leaves out breaks off
        *[f"                        {step}" for step in steps],
        "                        break",
        f"                    {READ}",
        f"                    {TOOK}",
        f"                except Exception as error: blame(({_values(schema)}), error, n - 1)",
        "            else: skipped += 1",
    ]


def _values(schema: Schema) -> str:
    return "".join(f"v{i}, " for i in range(len(schema.fields)))


def _forwarding(again: Push | None) -> list[str]:
    """Rows that reach a lane whose graph has changed are handed to the next one."""
    if again is None:
        return []
    return ["        if retired:", "            held[0] = False", "            return again(row)"]


def _aside(entrance: GraphNode, ingest: RowIngest, code: RowCode) -> list[str]:
    """Rows that are punctuation, or of which that cannot be told; what is wrong with one is found outside the lane."""
    source = entrance.plan
    if not ingest.is_punctuated:
        return []
    assert isinstance(source, Source)
    assert source.punctuation is not None
    wrong = ["time < bound", *[f"v{at} is not None" for at in source.silent]]
    if ingest.by_arrival:
        wrong = ["True"]
    return [
        f"            try: special = {code.text(source.punctuation, source.schema)}",
        "            except Exception as error: return aside(row, error)",
        "            if special:",
        f"                if {' or '.join(wrong)}: return aside(row)",
        "                spoken += 1",
        "                bound = time",
        "                return said(time)",
    ]


def _progress(ingest: RowIngest) -> list[str]:
    """What follows from a row's time, late or not: a bound may move, and may be of use."""
    if ingest.by_arrival or ingest.is_punctuated or isinstance(ingest.tracker, TimerTracker):
        return ["            if time > greatest: greatest = time"]
    if isinstance(ingest.tracker, DelayTracker):
        return [
            "            if time > greatest:",
            "                greatest = time",
            f"                if (reached := time - {ingest.tracker.delay}) > bound: bound = reached",
            "                if time >= edge: edge = follow(bound)",
        ]
    if isinstance(ingest.tracker, SourcesTracker):
        return _progress_by_source(ingest, ingest.tracker)
    if isinstance(ingest.tracker, EstimateTracker):
        return [
            "            if time > greatest: greatest = time",
            "            if (reached := estimate(time)) > bound:",
            "                bound = reached",
            "                if reached >= edge: edge = follow(bound)",
        ]
    return [
        "            if time > greatest: greatest = time",
        "            if recent is not None:",  # as many as are not counted yet: one comes, one goes
        "                recent.append((1, time))",
        "                if (left := recent.pop(0)[1]) > counted: counted = count(left)",
        "            else: counted, recent = step(time)",
        "            if counted > bound:",
        "                bound = counted",
        "                if counted >= edge: edge = follow(bound)",
    ]


def _progress_by_source(ingest: RowIngest, tracker: SourcesTracker) -> list[str]:
    """The same by source: a row that is not the newest of its source, or is of one above the least, moves nothing."""
    assert isinstance(ingest.marks_of, SourceMarks)
    at = ingest.marks_of.index
    source = f"canonical(v{at})" if ingest.schema.fields[at].type.is_fractional else f"v{at}"
    reach = END_OF_TIME if tracker.idle is None else tracker.idle
    return [
        f"            source = {source}",
        f"            if time > (own := heard.get(source, {MIN_TICK - 1})):",
        f"                if own > least and time - least <= {reach} and time >= bound:",
        "                    heard[source] = time",
        "                    if time > greatest: greatest = time",
        "                else:",
        "                    reached, least = hear(time, source, greatest)",
        "                    if time > greatest: greatest = time",
        "                    if reached > bound:",
        "                        bound = reached",
        "                        if reached >= edge: edge = follow(bound)",
    ]


def _chain(entrance: GraphNode, code: RowCode) -> tuple[list[GraphNode], list[str], GraphNode]:
    """What a row goes through after an entrance (selections, projections, numbering), as code, and the last of them."""
    chain: list[GraphNode] = []
    steps: list[str] = []
    last = entrance
    selections = 0
    while (node := last.follower) is not None and isinstance(node.plan, Select | Project | NumberRows):
        chain.append(node)
        schema = node.plan.inputs[0].schema
        steps.append(READ)
        if isinstance(node.plan, Select):
            steps += [f"if not {code.text(node.plan.predicate, schema)}: break", f"c{selections} += 1"]
            selections += 1
        elif isinstance(node.plan, NumberRows):
            steps += ["row = (*row, n)", "n += 1"]
        elif isinstance(node.plan, Project):
            columns = [code.text(e, schema) for _, e in node.plan.columns]
            steps.append(f"row = ({', '.join(columns)},)")
        last = node
    return chain, steps, last


def _fits(name: str, field: Field, schema: Schema) -> str:
    """Whether a value is one of its column's as it is; a time is never null."""
    if field.name == schema.time:
        return fits_text(name, field.type, schema)
    return f"({name} is None or {fits_text(name, field.type)})"


def _absorbing(last: GraphNode) -> list[tuple[GraphNode, ColumnarAggregate]]:
    """Those that take the output of a node, if all of them take single rows by a function of their own."""
    found = []
    for arc in last.arcs:
        operator = None if arc.consumer is None else arc.consumer.operator
        if arc.consumer is None or arc not in last.forward or not isinstance(operator, ColumnarAggregate):
            return []
        found.append((arc.consumer, operator))
    return found


def _deliver(graph: Graph, node: GraphNode) -> Push:
    """Hand a row to whatever follows a node, as a batch of one."""
    schema = node.operator.schema

    def deliver(row: Row) -> None:
        graph.hand_on(node, Batch(schema, [row]))

    return deliver


@contextmanager
def at_rest(lanes: Iterable[Lane]) -> Iterator[None]:
    """While the graph is touched by others: every lane is stored before and loaded after."""
    for lane in lanes:
        lane.store()
    try:
        yield
    finally:
        for lane in lanes:
            lane.load()
