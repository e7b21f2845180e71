"""A lane: single rows from a stream's entrance to the first operator with state, in one compiled function.

Handing a row from operator to operator costs far more than the operators do. So the steps that a row takes alone, the
judgement of its lateness, the selections and projections, and its place in the table of an aggregate, are written out
as one Python function. The function keeps what changes with every row in its own variables: the greatest time, the
bound, how many rows passed each step. `store` writes these to the operators' pages and statistics, `load` reads them
back; whenever anything else touches the graph, the lane is stored before and loaded after it.

A row that moves the bound past the next useful one is the exception: the punctuation that follows goes through the
graph as always. What has no lane of this kind (a stream that the plan reads twice, progress by source or by row count)
goes row by row through the graph, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.algorithms.aggregates.columnar import ColumnarAggregate
from penstock.algorithms.progress.ingest import RowIngest
from penstock.algorithms.progress.trackers import DelayTracker
from penstock.engines.local.row_functions import Functions, RowCode
from penstock.model.batch import Batch, Row
from penstock.model.conform import DeadLetter, conform_row, fits_text
from penstock.model.convert import encodable
from penstock.model.schema import Field, Schema
from penstock.model.time import MIN_TICK
from penstock.query.nodes import Project, Select

if TYPE_CHECKING:
    from penstock.engines.local.graph import GraphNode, QueryGraph

Push = Callable[[Row], None]
Bury = Callable[[DeadLetter], None]


@dataclass(frozen=True)
class Lane:
    """How to push a row, and how to bring the lane and the graph to the same state."""

    push: Push
    store: Callable[[], None]
    load: Callable[[], None]


def lane_of(graph: QueryGraph, stream: str, functions: Functions, bury: Bury) -> Lane:
    """The lane of a stream; `bury` is given the rows that are none of its schema."""
    entrances = graph.sources[stream.lower()]
    entrance = entrances[0]
    ingest = entrance.operator
    is_plain = isinstance(ingest, RowIngest) and isinstance(ingest.tracker, DelayTracker) and not ingest.by_arrival
    if len(entrances) == 1 and is_plain:
        assert isinstance(ingest, RowIngest)
        assert isinstance(ingest.tracker, DelayTracker)
        return _compiled(graph, entrance, ingest, ingest.tracker.delay, functions, bury)

    def push(row: Row) -> None:
        checked = conform_row(ingest.schema, row)
        if isinstance(checked, DeadLetter):
            bury(checked)
        else:
            graph.push(stream, Batch(ingest.schema, [checked]))

    return Lane(push, _nothing, _nothing)


def _nothing(*_: object) -> None:
    pass


def _compiled(
    graph: QueryGraph, entrance: GraphNode, ingest: RowIngest, delay: int, functions: Functions, bury: Bury
) -> Lane:
    code = RowCode(functions)
    code.names["encodable"] = encodable
    passed: list[GraphNode] = []  # the selections, each with a counter of its own
    chain: list[GraphNode] = []
    steps: list[str] = []
    indent = " " * 12
    last = entrance
    while last.consumer is not None and isinstance(last.consumer[0].plan, Select | Project):
        node = last.consumer[0]
        chain.append(node)
        schema = node.plan.inputs[0].schema
        if isinstance(node.plan, Select):
            steps.append(f"{indent}if {code.text(node.plan.predicate, schema)}:")
            indent += " " * 4
            steps.append(f"{indent}c{len(passed)} += 1")
            passed.append(node)
        elif isinstance(node.plan, Project):
            columns = [code.text(e, schema) for _, e in node.plan.columns]
            steps.append(f"{indent}row = ({', '.join(columns)},)")
        last = node
    consumer = last.consumer[0] if last.consumer is not None else None
    target = consumer.operator if consumer is not None else None
    code.names["deliver"] = target.absorb if isinstance(target, ColumnarAggregate) else _deliver(graph, last)
    counters = ["c", "late", "skipped", *[f"c{i}" for i in range(len(passed))]]
    names = ", ".join(["greatest", "bound", "edge", *counters])
    fields = ingest.schema.fields
    unpack = "".join(f"v{i}, " for i in range(len(fields)))
    fits = ["row.__class__ is tuple", *[_fits(f"v{i}", f, ingest.schema) for i, f in enumerate(fields)]]
    lines = [
        "def make(mend, condemn, follow, read, write):",
        f"    {' = '.join(counters)} = 0",
        "    greatest, bound, edge, needed = read()",
        "    def push(row):",
        f"        nonlocal {names}",
        "        try:",
        f"            {unpack} = row",
        f"            good = {' and '.join(fits)}",
        "        except (TypeError, ValueError):",
        "            good = False",
        "        if not good:",
        "            row = mend(row)",
        "            if row is None: return",
        f"            {unpack} = row",
        f"        time = v{ingest.schema.time_index}",
        "        c += 1",
        "        if time < bound:",
        "            late += 1",
        "            return condemn(row, bound)",
        "        if time >= needed:",
        *steps,
        f"{indent}deliver(row)",
        "        else: skipped += 1",
        "        if time > greatest:",
        "            greatest = time",
        f"            if time - {delay} > bound: bound = time - {delay}",
        "            if time >= edge: follow()",
        "    def store():",
        f"        nonlocal {', '.join(counters)}",
        f"        write(greatest, [{', '.join(counters)}])",
        f"        {' = '.join(counters)} = 0",
        "    def load():",
        "        nonlocal greatest, bound, edge, needed",
        "        greatest, bound, edge, needed = read()",
        "    return push, store, load",
    ]
    books = _Books(graph, entrance, ingest, delay, chain, consumer, bury)
    exec(compile("\n".join(lines), "<penstock lane>", "exec"), code.names)
    books.lane = Lane(*code.names["make"](books.mend, books.condemn, books.follow, books.read, books.write))
    return books.lane


def _fits(name: str, field: Field, schema: Schema) -> str:
    """Whether a value is one of its column's as it is; a time is never null."""
    if field.name == schema.time:
        return fits_text(name, field.type, schema)
    return f"({name} is None or {fits_text(name, field.type)})"


def _deliver(graph: QueryGraph, node: GraphNode) -> Push:
    """Hand a row to whatever follows a node, as a batch of one."""
    schema = node.operator.schema

    def deliver(row: Row) -> None:
        graph.hand_on(node, Batch(schema, [row]))

    return deliver


class _Books:
    """What a lane's variables stand for in the operators' pages and statistics."""

    def __init__(
        self,
        graph: QueryGraph,
        entrance: GraphNode,
        ingest: RowIngest,
        delay: int,
        chain: list[GraphNode],
        consumer: GraphNode | None,
        bury: Bury,
    ) -> None:
        self.bury = bury
        self.graph, self.entrance, self.ingest, self.delay = graph, entrance, ingest, delay
        self.chain, self.consumer = chain, consumer
        self.lane = Lane(_nothing, _nothing, _nothing)

    def read(self) -> tuple[int, int, int, int]:
        """The greatest time, the bound that condemns, from when on a new bound is of use, and from when on rows are."""
        ingest = self.ingest
        state: int | None = ingest.pages.get("progress")
        bound = max(ingest.tracker.bound(state), ingest.outside())
        told: int | None = ingest.pages.get(ingest.passed_on.key)
        edge = MIN_TICK if told is None else (told + 1) * ingest.step + ingest.origin + self.delay
        return MIN_TICK if state is None else state, bound, edge, ingest.needed()

    def write(self, greatest: int, counters: list[int]) -> None:
        """Keep the greatest time, and count the rows that each step saw."""
        read, late, skipped, *selected = counters
        if not read:
            return
        self.ingest.pages.put("progress", greatest)
        self.entrance.statistics.rows_in += read
        self.ingest.count_skipped(skipped)
        count = read - late - skipped
        self.entrance.statistics.rows_out += count
        for node in self.chain:
            node.statistics.rows_in += count
            if isinstance(node.plan, Select):
                count = selected.pop(0)
            node.statistics.rows_out += count
        if self.consumer is not None and isinstance(self.consumer.operator, ColumnarAggregate):
            self.consumer.statistics.rows_in += count

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

    def follow(self) -> None:
        """The row moved the bound past the next useful one: punctuation follows it."""
        self.lane.store()
        bound = self.ingest.tracker.bound(self.ingest.pages.get("progress"))
        self.graph.emit(self.entrance, self.ingest.pass_on(bound))
        self.lane.load()


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
