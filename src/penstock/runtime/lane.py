"""A lane: single rows from a stream's entrance to the first operator with state, in one compiled function.

Handing a row from operator to operator costs far more than the operators do. So the steps that a row takes alone, the
judgement of its lateness, the selections and projections, and its place in the table of an aggregate, are written out
as one Python function. The function keeps what changes with every row in its own variables: the greatest time, the
bound, how many rows passed each step. `store` writes these to the operators' pages and statistics, `load` reads them
back; whenever anything else touches the graph, the lane is stored before and loaded after it.

A row on which a selection or projection fails leaves the lane as a dead letter; which step it was is found out then, so
that rows without fault pay nothing for it.

Where several take the output of one step, the lane ends there, and each is given the row.

A row that moves the bound, or the row number, past the next useful one is the exception: the punctuation that follows
goes through the graph as always. So do rows that are punctuation themselves. What has no lane of this kind (a stream
that the plan reads twice, that has a limit on rows from the future, or whose rows have lives) goes row by row through
the graph, with the same results; rows with lives are pushed as elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.model.batch import Batch, Row
from penstock.model.conform import DeadLetter, conform_row, fits_text
from penstock.model.convert import encodable
from penstock.model.element_rows import Elements
from penstock.model.elements import Adjust, Insert
from penstock.model.schema import Field, Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical
from penstock.operators.aggregates.columnar import ColumnarAggregate
from penstock.operators.operator import Rejected
from penstock.operators.progress.ingest import RowIngest
from penstock.operators.progress.marks import SourceMarks
from penstock.operators.progress.trackers import DelayTracker
from penstock.operators.relational.attempt import by_row
from penstock.operators.relational.number import NumberOperator
from penstock.operators.relational.project import ProjectOperator
from penstock.operators.relational.select import SelectOperator
from penstock.plan.nodes import NumberRows, Project, Select, Source
from penstock.runtime.gate import Gate
from penstock.runtime.row_functions import Functions, RowCode

if TYPE_CHECKING:
    from penstock.runtime.graph import Graph, GraphNode

Push = Callable[[Row], None]
Bury = Callable[[DeadLetter], None]


@dataclass(frozen=True)
class Lane:
    """How to push a row, and how to bring the lane and the graph to the same state."""

    push: Push
    store: Callable[[], None]
    load: Callable[[], None]
    read: Callable[[], int]
    """How many rows were pushed, as far as they are stored."""
    retire: Callable[[], None] = lambda: None
    """The graph has changed: from now on rows go to the lane that took this one's place."""


def lane_of(graph: Graph, stream: str, functions: Functions, bury: Bury, gate: Gate, again: Push | None = None) -> Lane:
    """The lane of a stream; `bury` is given rows that are none of its schema, `gate` is held while a row is pushed.

    Where the graph may change, `again` is given rows that are pushed after the lane has been retired.
    """
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

    return Lane(push, _nothing, _nothing, lambda: pushed, lambda: retired.append(True))


def _nothing(*_: object) -> None:
    pass


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
    retired: list[bool] = []
    code.names |= {"retired": retired, "again": again}
    code.names["encodable"] = encodable
    code.names["canonical"] = canonical
    chain, steps, last = _chain(entrance, code)
    consumers = _absorbing(last)
    deliveries = [f"deliver{at}(row)" for at in range(len(consumers))] if consumers else ["deliver(row)"]
    code.names["deliver"] = _deliver(graph, last)
    code.names |= {f"deliver{at}": operator.absorb for at, (_, operator) in enumerate(consumers)}
    selections = sum(isinstance(node.plan, Select) for node in chain)
    counters = ["r", "c", "late", "skipped", *[f"c{i}" for i in range(selections)]]
    names = ", ".join(["greatest", "bound", "edge", "n", *counters])
    fields = ingest.schema.fields
    unpack = "".join(f"v{i}, " for i in range(len(fields)))
    fits = ["row.__class__ is tuple", *[_fits(f"v{i}", f, ingest.schema) for i, f in enumerate(fields)]]
    lines = [
        "def make(held, pause, mend, condemn, blame, aside, step, follow, numbered, read, write):",
        f"    {' = '.join(counters)} = 0",
        "    greatest, bound, edge, needed, n, following = read()",
        "    def push(row):",
        f"        nonlocal {names}",
        "        while held[0]: pause()",
        "        held[0] = True",
        *_forwarding(again),
        "        try:",
        "            r += 1",
        "            try:",
        f"                {unpack} = row",
        f"                if not ({' and '.join(fits)}): raise TypeError",
        "            except (TypeError, ValueError):",
        "                row = mend(row)",
        "                if row is None: return",
        f"                {unpack} = row",
        f"            time = v{ingest.schema.time_index}",
        *_aside(graph, entrance, ingest, code),
        "            if time < bound:",
        "                late += 1",
        "                condemn(row, bound)",
        "            elif time >= needed:",
        "                c += 1",
        "                try:",
        "                    while True:",  # once: a row that a selection leaves out breaks off
        *[f"                        {step}" for step in steps],
        *[f"                        {delivery}" for delivery in deliveries],
        "                        break",
        f"                except Exception as error: blame(({unpack}), error, n - 1)",
        "            else: skipped += 1",
        *_progress(ingest),
        *(["            if n >= following: numbered()"] if any(isinstance(c.plan, NumberRows) for c in chain) else []),
        "        finally:",
        "            held[0] = False",
        "    def store():",
        f"        nonlocal {', '.join(counters)}",
        f"        write(greatest, n, [{', '.join(counters)}])",
        f"        {' = '.join(counters)} = 0",
        "    def load():",
        "        nonlocal greatest, bound, edge, needed, n, following",
        "        greatest, bound, edge, needed, n, following = read()",
        "    return push, store, load",
    ]
    books = _Books(graph, entrance, ingest, chain, [node for node, _ in consumers], bury)
    exec(compile("\n".join(lines), "<penstock lane>", "exec"), code.names)
    own = (books.mend, books.condemn, books.blame, books.aside, books.step, books.follow, books.numbered)
    made = code.names["make"](gate.held, gate.pause, *own, books.read, books.write)
    push, store, load = made
    books.lane = Lane(push, store, load, lambda: books.pushed, lambda: retired.append(True))
    return books.lane


def _forwarding(again: Push | None) -> list[str]:
    """Rows that reach a lane whose graph has changed are handed to the next one."""
    if again is None:
        return []
    return ["        if retired:", "            held[0] = False", "            return again(row)"]


def _aside(graph: Graph, entrance: GraphNode, ingest: RowIngest, code: RowCode) -> list[str]:
    """Rows that are punctuation, or of which that cannot be told, leave the lane."""
    source = entrance.plan
    if not ingest.is_punctuated:
        return []
    assert isinstance(source, Source)
    assert source.punctuation is not None
    return [
        f"            try: special = {code.text(source.punctuation, source.schema)}",
        "            except Exception: special = True",
        "            if special: return aside(row)",
    ]


def _progress(ingest: RowIngest) -> list[str]:
    """What follows from a row's time, late or not: a bound may move, and may be of use."""
    if ingest.by_arrival or ingest.is_punctuated:
        return ["            if time > greatest: greatest = time"]
    if isinstance(ingest.tracker, DelayTracker):
        return [
            "            if time > greatest:",
            "                greatest = time",
            f"                if (reached := time - {ingest.tracker.delay}) > bound: bound = reached",
            "                if time >= edge: follow()",
        ]
    mark = "None"
    if isinstance(ingest.marks_of, SourceMarks):
        at = ingest.marks_of.index
        mark = f"canonical(v{at})" if ingest.schema.fields[at].type.is_fractional else f"v{at}"
    return [
        f"            if (reached := step(time, {mark})) > bound:",
        "                bound = reached",
        "                if reached >= edge: follow()",
    ]


def _chain(entrance: GraphNode, code: RowCode) -> tuple[list[GraphNode], list[str], GraphNode]:
    """What a row goes through after an entrance (selections, projections, numbering), as code, and the last of them."""
    chain: list[GraphNode] = []
    steps: list[str] = []
    last = entrance
    selections = 0
    while last.consumer is not None and isinstance(last.consumer[0].plan, Select | Project | NumberRows):
        node = last.consumer[0]
        chain.append(node)
        schema = node.plan.inputs[0].schema
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
        if arc.consumer is None or not isinstance(operator, ColumnarAggregate):
            return []
        found.append((arc.consumer, operator))
    return found


def _deliver(graph: Graph, node: GraphNode) -> Push:
    """Hand a row to whatever follows a node, as a batch of one."""
    schema = node.operator.schema

    def deliver(row: Row) -> None:
        graph.hand_on(node, Batch(schema, [row]))

    return deliver


class _Books:
    """What a lane's variables stand for in the operators' pages and statistics."""

    def __init__(
        self,
        graph: Graph,
        entrance: GraphNode,
        ingest: RowIngest,
        chain: list[GraphNode],
        consumers: list[GraphNode],
        bury: Bury,
    ) -> None:
        self.bury = bury
        self.graph, self.entrance, self.ingest, self.tracker = graph, entrance, ingest, ingest.tracker
        self.state: Any = None
        """The tracker's state, where it is more than the greatest time."""
        self.numbers = next((node for node in chain if isinstance(node.operator, NumberOperator)), None)
        self.chain, self.consumers = chain, consumers
        self.lane = Lane(_nothing, _nothing, _nothing, lambda: 0)
        self.pushed = 0
        """How many rows were pushed, whatever became of them."""
        self.failed = dict.fromkeys(range(len(chain)), 0)
        """How many rows failed at each step since they were last counted."""

    def read(self) -> tuple[int, int, int, int, int, int]:
        """What the lane starts from.

        The greatest time, the bound that condemns, from when on a new bound is of use, from when on rows are, the next
        row number, and from which one on numbers are of use.
        """
        ingest = self.ingest
        state = self.state = ingest.pages.get("progress")
        bound = max(self.tracker.bound(state), ingest.outside())
        if ingest.by_arrival and not ingest.has_ended:
            bound = MIN_TICK
        delay = self.tracker.delay if isinstance(self.tracker, DelayTracker) else 0
        greatest = state if isinstance(self.tracker, DelayTracker) and state is not None else MIN_TICK
        return greatest, bound, _edge(ingest) + delay, ingest.needed(), *self._counting()

    def _counting(self) -> tuple[int, int]:
        """The next row number, and the next that is of use."""
        if self.numbers is None:
            return 0, END_OF_TIME
        operator = self.numbers.operator
        assert isinstance(operator, NumberOperator)
        number = operator.pages.get("next") or 0
        return number, max(_edge(operator), number + 1)

    def write(self, greatest: int, number: int, counters: list[int]) -> None:
        """Keep how far the stream has come, and count the rows that each step saw."""
        read, count, late, skipped, *selected = counters
        self.pushed += read
        if not count + late + skipped:
            return
        if self.numbers is not None:
            self.numbers.operator.pages.put("next", number)
        if greatest > MIN_TICK:
            self.ingest.reach(greatest)
        if isinstance(self.tracker, DelayTracker) and not self.ingest.by_arrival:
            self.ingest.pages.put("progress", greatest)
        elif self.state is not None:
            self.ingest.pages.put("progress", self.state)
        self.entrance.statistics.rows_in += count + late + skipped
        self.ingest.skipped += skipped
        self.entrance.statistics.rows_out += count
        for at, node in enumerate(self.chain):
            node.statistics.rows_in += count
            count = selected.pop(0) if isinstance(node.plan, Select) else count - self.failed[at]
            self.failed[at] = 0
            node.statistics.rows_out += count
        for consumer in self.consumers:
            consumer.statistics.rows_in += count

    def mend(self, row: object) -> Row | None:
        """The row with its values brought into their types; None if that cannot be done."""
        mended = conform_row(self.ingest.schema, row)
        if isinstance(mended, DeadLetter):
            self.bury(mended)
            return None
        return mended

    def condemn(self, row: Row, bound: int) -> None:
        """A late row."""
        self.graph.reject(self.entrance, self.ingest.late(Batch(self.ingest.schema, [row]), [bound]))

    def aside(self, row: Row) -> None:
        """A row that is punctuation, or of which that cannot be told: it goes through the graph."""
        self.lane.store()
        self.graph.push(str(self.entrance.stream), Batch(self.ingest.schema, [row]))
        self.lane.load()

    def step(self, time: int, mark: object) -> int:
        """The bound after one more row, where it does not follow from the greatest time alone."""
        self.ingest.reach(time)
        self.state = self.tracker.observe(self.state, time, mark)
        return self.tracker.bound(self.state)

    def blame(self, row: Row, error: Exception, number: int) -> None:
        """Something failed on the way of a row: the step that fails on it says so; if none does it was not the row."""
        for at, node in enumerate(self.chain):
            if isinstance(node.operator, NumberOperator):
                row = (*row, number)
                continue
            assert isinstance(node.operator, SelectOperator | ProjectOperator)
            good, failed = by_row([row], node.operator.single)
            if failed:
                self.failed[at] += 1
                batch = Batch(node.plan.inputs[0].schema, [row])
                self.graph.reject(node, Rejected("failed", batch, (), [failed[0][1]]))
                return
            if not good:
                break
            row = good[0][1]
        raise error

    def follow(self) -> None:
        """The row moved the bound past the next useful one: punctuation follows it."""
        self.lane.store()
        bound = self.tracker.bound(self.ingest.pages.get("progress"))
        self.graph.emit(self.entrance, self.ingest.pass_on(bound))
        self.lane.load()

    def numbered(self) -> None:
        """The row number passed the next useful one: punctuation follows the row."""
        assert self.numbers is not None
        assert isinstance(self.numbers.operator, NumberOperator)
        self.lane.store()
        self.graph.emit(self.numbers, self.numbers.operator.pass_on())
        self.lane.load()


def _edge(operator: RowIngest | NumberOperator) -> int:
    """The next bound of an operator that is of use to its consumer."""
    told: int | None = operator.pages.get(operator.passed_on.key)
    return MIN_TICK if told is None else (told + 1) * operator.step + operator.origin


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
