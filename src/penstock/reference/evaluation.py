"""The TDB of a query, node by node, over everything that ever arrives.

`arrivals` is the global sequence of rows; those that are `late` are left out, except that they get a row number like
every other, and count where rows are taken by number (`by_arrival`). Each row keeps its place in the sequence, so that
numbering by arrival means the same after a selection, a projection or a union. The results of an aggregation are placed
by their windows' ends; between two aggregations that meet in a union, and in what order groups of one window come,
nothing is defined by arrival, and nothing should be made of it.

DISTINCT keeps one row of those with the same visible values at the same time: per instant, since all rows of a stream
live equally long (where lifetimes only overlap, as in a union of windows with two origins, both stay).

A row for which an operator's expression has no value goes no further and is dead, with the operator, the reason and the
row as the operator was given it; each operator that fails on it says so. A group whose aggregate has no value in a
window is dead for that window: the window and the keys stand for the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import EvaluationError, UnsupportedError, reason_of
from penstock.model.batch import Row
from penstock.model.letters import plain_text, row_text
from penstock.model.likeness import Likeness
from penstock.model.schema import Schema
from penstock.model.tdb import TDB, Event
from penstock.model.values import canonical_row
from penstock.plan.nodes import Distinct, Merge, Node, NumberRows, Project, Select, Source, Union, WindowAggregate
from penstock.reference.aggregates import aggregate
from penstock.reference.scalars import Functions, same_row, value_of
from penstock.reference.windows import extents

Placed = tuple[int, Row]
"""A row and its place in the order of arrival."""


def evaluate(
    plan: Node,
    arrivals: Sequence[tuple[str, Row]],
    *,
    late: Collection[int] = (),
    functions: Mapping[str, Callable[..., object]] | None = None,
    aggregates: Mapping[str, object] | None = None,
) -> TDB:
    """What the query's output comes to once every row has arrived and the streams have ended.

    Args:
        plan: The bound query.
        arrivals: The rows as (stream, row in the order of the stream's schema), in the order they arrive: those on
            time, and where the query counts rows by arrival the late ones too.
        late: The places in `arrivals` of the rows that came late for their stream's time.
        functions: User functions by lower-case name; they get None for null.
        aggregates: User aggregates by lower-case name: objects with `lift`, `combine` and `lower`. They never see
            nulls.

    Returns:
        The events: visible values, the row's time, and that plus the lifetime of the plan's schema.
    """
    return outcome(plan, arrivals, late=late, functions=functions, aggregates=aggregates).result


@dataclass(frozen=True)
class Dead:
    """What an operator found no value for."""

    streams: str
    operator: str
    reason: str
    row: str


@dataclass(frozen=True)
class Outcome:
    """What a query comes to: its result, and the dead letters of its operators."""

    result: TDB
    dead: Counter[Dead]


def outcome(
    plan: Node,
    arrivals: Sequence[tuple[str, Row]],
    *,
    late: Collection[int] = (),
    functions: Mapping[str, Callable[..., object]] | None = None,
    aggregates: Mapping[str, object] | None = None,
) -> Outcome:
    """The result as `evaluate` gives it, and what died on the way."""
    evaluator = _Evaluator(arrivals, frozenset(late), functions or {}, aggregates or {})
    schema = plan.schema
    events: list[Event] = []
    for _, row in evaluator.rows(plan):
        vs = row[schema.time_index]
        assert isinstance(vs, int)
        events.append((_visible(row, schema), vs, vs + schema.lifetime))
    return Outcome(TDB(events), evaluator.dead)


class _Evaluator:
    def __init__(
        self,
        arrivals: Sequence[tuple[str, Row]],
        late: frozenset[int],
        functions: Functions,
        aggregates: Mapping[str, object],
    ) -> None:
        self.arrivals, self.late, self.functions, self.aggregates = arrivals, late, functions, aggregates
        self.dead: Counter[Dead] = Counter()

    def rows(self, node: Node, *, late_too: bool = False) -> list[Placed]:
        """All rows that ever come out of a node, by place; `late_too` with those that come of late rows."""
        match node:
            case Source():
                named = [(i, row) for i, (name, row) in enumerate(self.arrivals) if name.lower() == node.name.lower()]
                return [(i, row) for i, row in named if late_too or node.by_arrival or i not in self.late]
            case NumberRows():
                return self._numbered(node)
            case Select():
                return list(self._each(node, lambda row: row if self._holds(node, row) else None, late_too))
            case Project():
                return list(self._each(node, lambda row: self._projected(node, row), late_too))
            case Union():
                both = [item for branch in node.branches for item in self.rows(branch, late_too=late_too)]
                return sorted(both, key=lambda item: item[0])  # stable: one row in two branches comes in their order
            case Merge(elements=False):
                return self._merged(node)
            case Merge(policy="conservative"):
                return self._settled(node)
            case Distinct():
                return self._distinct(node)
            case WindowAggregate():
                return list(enumerate(self._aggregated(node)))
            case _:
                raise UnsupportedError("The reference does not know this node.", got=node.label)

    def _numbered(self, node: NumberRows) -> list[Placed]:
        """Every row that arrives gets a number; where rows keep their time, late ones are left out after that."""
        numbered = [(p, (*row, n)) for n, (p, row) in enumerate(self.rows(node.input, late_too=node.keeps_time))]
        if not node.keeps_time:
            return numbered
        dead = self.dead.copy()
        on_time = {place for place, _ in self.rows(node.input)}
        self.dead = dead  # the same rows a second time
        return [(place, row) for place, row in numbered if place in on_time]

    def _each(self, node: Select | Project, made: Callable[[Row], Row | None], late_too: bool) -> Iterator[Placed]:
        """What comes of each row; one that has no value is dead."""
        for place, row in self.rows(node.input, late_too=late_too):
            try:
                result = made(row)
            except EvaluationError as error:
                self._bury(node, error, row_text(node.input.schema, row))
            else:
                if result is not None:
                    yield place, result

    def _bury(self, node: Node, error: EvaluationError, row: str) -> None:
        streams = dict.fromkeys(n.name for n in node.walk() if isinstance(n, Source))
        self.dead[Dead(", ".join(streams), node.label, plain_text(reason_of(error)), row)] += 1

    def _holds(self, node: Select, row: Row) -> bool:
        return value_of(node.predicate, row, node.input.schema, self.functions) is True  # not null

    def _projected(self, node: Project, row: Row) -> Row:
        return tuple(value_of(e, row, node.input.schema, self.functions) for _, e in node.columns)

    def _merged(self, node: Merge) -> list[Placed]:
        """Complete replicas: each row as often as the replica has it that has it most often."""
        return _most([[(place, row) for place, row in self.rows(branch)] for branch in node.branches])

    def _settled(self, node: Merge) -> list[Placed]:
        """The events that each replica's inserts and adjusts come to, as rows of inserts."""
        replicas = []
        for branch in node.branches:
            events: list[Placed] = []
            for place, (_, vs, ve, old, *payload) in self.rows(branch):
                if old is not None:
                    was = (vs, vs, old, None, *payload)
                    before = next(i for i, (_, row) in enumerate(events) if same_row(row) == same_row(was))
                    place, _ = events.pop(before)  # noqa: PLW2901 - an event is where its insert was
                if ve != vs:
                    events.append((place, (vs, vs, ve, None, *payload)))
            replicas.append(events)
        return _most(replicas)

    def _distinct(self, node: Distinct) -> list[Placed]:
        schema = node.schema
        kept: dict[object, Placed] = {}
        for place, row in self.rows(node.input):
            kept.setdefault((same_row(_visible(row, schema)), row[schema.time_index]), (place, row))
        return list(kept.values())

    def _aggregated(self, node: WindowAggregate) -> list[Row]:
        schema = node.input.schema
        keys = [schema.index(k) for k in node.keys]
        results: list[Row] = []
        for extent in extents(node.window, [row for _, row in self.rows(node.input)], schema):
            groups: dict[object, list[Row]] = {}
            for row in extent.rows:
                groups.setdefault(same_row(tuple(row[i] for i in keys)), []).append(row)
            for members in groups.values():
                window = (extent.wid, extent.start, extent.end, *(members[0][i] for i in keys))
                try:
                    results.append((*window, *self._results(node, members, schema)))
                except EvaluationError as error:
                    shown = Schema(node.schema.fields[: len(window)])
                    self._bury(node, error, row_text(shown, window))
        return results

    def _results(self, node: WindowAggregate, members: list[Row], schema: Schema) -> list[object]:
        results = []
        for call in node.aggregates:
            place = None if call.argument is None else schema.index(call.argument)
            values = [None if place is None else row[place] for row in members]
            results.append(aggregate(call, values, self.aggregates))
        return results


def _most(replicas: list[list[Placed]]) -> list[Placed]:
    """Each row as often as the replica has it that has it most often; floats within the tolerance of `likeness`."""
    best: dict[object, list[Placed]] = {}
    likeness = Likeness()
    for rows in replicas:
        by_row: dict[Row, list[Placed]] = {}
        for place, row in rows:
            by_row.setdefault(likeness.find(0, canonical_row(row)), []).append((place, row))
        for key, placed in by_row.items():
            if key not in best:
                likeness.add(0, key)
            if len(placed) > len(best.get(key, ())):
                best[key] = placed
    return sorted((p for placed in best.values() for p in placed), key=lambda item: item[0])


def _visible(row: Row, schema: Schema) -> Row:
    return tuple(value for value, field in zip(row, schema.fields, strict=True) if not field.hidden)
