"""The TDB of a query, node by node, over everything that ever arrives.

`arrivals` is the global sequence of rows; those that are `late` are left out, except that they get a row number like
every other, and count where rows are taken by number (`by_arrival`). Each row keeps its place in the sequence, so that
numbering by arrival means the same after a selection, a projection or a union. The results of an aggregation are placed
by their windows' ends; between two aggregations that meet in a union, and in what order groups of one window come,
nothing is defined by arrival, and nothing should be made of it.

A stream may have lives: its arrivals are inserts and adjusts, whose payloads are rows. Selections, projections, lookups
and unions are of elements, since an insert and its adjusts are the same row. A settle, a merge, what alters lives and
the result are of the events that the elements come to: each where its insert was, with its last end. An adjust of an
event that is not there changes nothing; a settle says so. Windows count settled events by their start.

A join is of rows that were on time, in whatever order they came: each pair is where the later of its rows is.

DISTINCT over plain rows keeps one row of those with the same visible values at the same time: per instant, since all
rows of a stream live equally long (where lifetimes only overlap, as in a union of windows with two origins, both stay).
Over events with lives it is one event for each longest stretch of time in which there is one.

A row for which an operator's expression has no value goes no further and is dead, with the operator, the reason and the
row as the operator was given it; each operator that fails on it says so. A group whose aggregate has no value in a
window is dead for that window: the window and the keys stand for the row. Without windows a group is all of its rows
that were on time, whatever was promised when, and what comes of it starts at the greatest time of them; if it has no
value, that time and the keys stand for the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from penstock.errors import EvaluationError, UnsupportedError, reason_of
from penstock.model.batch import Row, rows_of
from penstock.model.elements import Adjust, Insert
from penstock.model.letters import plain_text, row_text
from penstock.model.lives import UNKNOWN_EVENT
from penstock.model.schema import Schema
from penstock.model.tdb import TDB, Event
from penstock.model.time import END_OF_TIME
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
from penstock.reference.aggregates import aggregate
from penstock.reference.events import Life, Placed, altered, come_to, end_of, most, start_of, stretches, visible
from penstock.reference.joins import join, looked_up
from penstock.reference.patterns import patterns
from penstock.reference.ranks import row_numbers
from penstock.reference.scalars import Functions, same_row, value_of
from penstock.reference.updates import conflated, newest
from penstock.reference.windows import extents

Arrival = tuple[str, Row | Insert | Adjust]
"""A stream, and a row or an element of it."""


def evaluate(
    plan: Node,
    arrivals: Sequence[Arrival],
    *,
    late: Collection[int] = (),
    functions: Mapping[str, Callable[..., object]] | None = None,
    aggregates: Mapping[str, object] | None = None,
) -> TDB:
    """What the query's output comes to once every row has arrived and the streams have ended.

    Args:
        plan: The bound query.
        arrivals: The rows as (stream, row in the order of the stream's schema), in the order they arrive: those on
            time, and where the query counts rows by arrival the late ones too. Of a stream with lives, elements.
        late: The places in `arrivals` of the rows that came late for their stream's time.
        functions: User functions by lower-case name; they get None for null.
        aggregates: User aggregates by lower-case name: objects with `lift`, `combine` and `lower`. They never see
            nulls.

    Returns:
        The events: visible values, the row's time, and its end: where it has no life of its own, the time plus the
        lifetime of the plan's schema.
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
    arrivals: Sequence[Arrival],
    *,
    late: Collection[int] = (),
    functions: Mapping[str, Callable[..., object]] | None = None,
    aggregates: Mapping[str, object] | None = None,
) -> Outcome:
    """The result as `evaluate` gives it, and what died on the way."""
    evaluator = _Evaluator(arrivals, frozenset(late), functions or {}, aggregates or {})
    schema = plan.schema
    events: list[Event] = []
    found = evaluator.rows(plan)
    for item in found if schema.lives is None else come_to(found, schema)[0]:
        vs = start_of(item, schema)
        events.append((visible(item.row, schema), vs, end_of(item, schema)))
    return Outcome(TDB(events), evaluator.dead)


class _Evaluator:
    def __init__(
        self,
        arrivals: Sequence[Arrival],
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
                return [_placed(i, row) for i, row in named if late_too or node.by_arrival or i not in self.late]
            case NumberRows():
                return self._numbered(node)
            case Select():
                return list(self._each(node, lambda row: row if self._holds(node, row) else None, late_too))
            case Project():
                return list(self._each(node, lambda row: self._projected(node, row), late_too))
            case Unnest():
                return list(self._unnested(node, late_too))
            case Union():
                both = [item for branch in node.branches for item in self.rows(branch, late_too=late_too)]
                return sorted(both, key=lambda item: item.place)  # stable: one row in two branches comes in their order
            case Newest():
                return newest(node, [self.rows(branch, late_too=late_too) for branch in node.branches])
            case Conflate():
                return conflated(node, self.rows(node.input, late_too=late_too))
            case Merge():
                return self._merged(node)
            case Settle():
                return self._settled(node)
            case Stamp():  # the arrivals were given with their stamps (`reference.stamps`)
                return self.rows(node.input)
            case AlterLifetime():
                events = come_to(self.rows(node.input, late_too=late_too), node.input.schema)[0]
                return [altered(node, event) for event in events]
            case Ends():
                ends = [(item, end_of(item, node.input.schema)) for item in self.rows(node.input)]
                return [item._replace(row=(*item.row, None if end == END_OF_TIME else end)) for item, end in ends]
            case Distinct():
                return self._distinct(node)
            case Join():
                return self._joined(node)
            case Lookup():
                return list(self._looked_up(node, late_too))
            case WindowAggregate():
                return [Placed(i, row) for i, row in enumerate(self._aggregated(node))]
            case RowNumber():
                numbered = row_numbers(node, [item.row for item in self.rows(node.input)])
                return [Placed(i, row) for i, row in enumerate(numbered)]
            case Pattern():
                found = patterns(node, [[item.row for item in self.rows(step)] for step in node.steps])
                return [Placed(i, row) for i, row in enumerate(found)]
            case GroupAggregate():
                return [Placed(i, row) for i, row in enumerate(self._whole_groups(node))]
            case _:
                raise UnsupportedError("The reference does not know this node.", got=node.label)

    def _numbered(self, node: NumberRows) -> list[Placed]:
        """Every row that arrives gets a number; where rows keep their time, late ones are left out after that."""
        found = self.rows(node.input, late_too=node.keeps_time)
        if not node.keeps_time:
            return [Placed(item.place, (*item.row, n)) for n, item in enumerate(found)]
        numbered = [item._replace(row=(*item.row, n)) for n, item in enumerate(found)]
        dead = self.dead.copy()
        on_time = {item.place for item in self.rows(node.input)}
        self.dead = dead  # the same rows a second time
        return [item for item in numbered if item.place in on_time]

    def _each(self, node: Select | Project, made: Callable[[Row], Row | None], late_too: bool) -> Iterator[Placed]:
        """What comes of each row; one that has no value is dead."""
        lived = node.schema.lives is not None
        for place, row, life in self.rows(node.input, late_too=late_too):
            try:
                result = made(row)
            except EvaluationError as error:
                self._bury(node, plain_text(reason_of(error)), row_text(node.input.schema, row, life))
            else:
                if result is not None:
                    yield Placed(place, result, life if lived else None)

    def _unnested(self, node: Unnest, late_too: bool) -> Iterator[Placed]:
        """Each row once for every element of its array, or every entry of its map, in their order."""
        at, nothing = node.input.schema.index(node.column), (None,) * len(node.parts)
        of_map = node.input.schema[node.column].type.name == "map"
        for place, row, life in self.rows(node.input, late_too=late_too):
            own = tuple(row[i] for i in node.kept)
            elements = cast("tuple[Any, ...]", row[at] or ())
            for number, element in enumerate(elements):
                told = (number,) if node.place else ()
                yield Placed(place, (*own, *told, *(element if of_map else (element,))), life)
            if not elements and node.outer:
                yield Placed(place, (*own, *nothing), life)

    def _bury(self, node: Node, reason: str, row: str) -> None:
        streams = dict.fromkeys(n.name for n in node.walk() if isinstance(n, Source))
        self.dead[Dead(", ".join(streams), node.label, reason, row)] += 1

    def _holds(self, node: Select, row: Row) -> bool:
        return value_of(node.predicate, row, node.input.schema, self.functions) is True  # not null

    def _projected(self, node: Project, row: Row) -> Row:
        return tuple(value_of(e, row, node.input.schema, self.functions) for _, e in node.columns)

    def _merged(self, node: Merge) -> list[Placed]:
        """Complete replicas: each event as often as the replica has it that has it most often."""
        return most([come_to(self.rows(branch), branch.schema)[0] for branch in node.branches])

    def _settled(self, node: Settle) -> list[Placed]:
        """The events that inserts and adjusts come to; an adjust of an event that is not there is dead."""
        events, unknown = come_to(self.rows(node.input), node.schema)
        for _, row, life in unknown:
            self._bury(node, UNKNOWN_EVENT, row_text(node.schema, row, life))
        return events

    def _distinct(self, node: Distinct) -> list[Placed]:
        schema = node.schema
        if schema.lives is not None:
            return stretches(self.rows(node.input), schema)
        kept: dict[object, Placed] = {}
        for item in self.rows(node.input):
            kept.setdefault((same_row(visible(item.row, schema)), item.row[schema.time_index]), item)
        return list(kept.values())

    def _joined(self, node: Join) -> list[Placed]:
        left, right = ([(item.place, item.row) for item in self.rows(side)] for side in node.inputs)
        return [Placed(place, row) for place, row in join(node, left, right, partial(self._are_pair, node))]

    def _looked_up(self, node: Lookup, late_too: bool) -> Iterator[Placed]:
        table = rows_of(node.table.rows)
        for place, row, life in self.rows(node.input, late_too=late_too):
            holds = partial(self._are_pair, node, life=life)
            yield from (Placed(place, made, life) for made in looked_up(node, row, table, holds))

    def _are_pair(self, node: Join | Lookup, pair: Row, life: Life | None = None) -> bool:
        """Whether the condition holds; a pair for which it has no value is none, and is dead."""
        assert node.condition is not None
        try:
            return value_of(node.condition, pair, node.pairs, self.functions) is True
        except EvaluationError as error:
            self._bury(node, plain_text(reason_of(error)), row_text(node.pairs, pair, life))
            return False

    def _aggregated(self, node: WindowAggregate) -> list[Row]:
        schema = node.input.schema
        results: list[Row] = []
        for extent in extents(node.window, [item.row for item in self.rows(node.input)], schema):
            for keys, members in _groups(node, extent.rows):
                results += self._result(node, (extent.wid, extent.start, extent.end, *keys), members)
        return results

    def _whole_groups(self, node: GroupAggregate) -> list[Row]:
        time = node.input.schema.time_index
        results: list[Row] = []
        for keys, members in _groups(node, [item.row for item in self.rows(node.input)]):
            greatest = max(row[time] for row in members)  # type: ignore[type-var]
            results += self._result(node, (greatest, *keys), members)
        return sorted(results, key=lambda row: row[0])  # type: ignore[arg-type,return-value]

    def _result(self, node: WindowAggregate | GroupAggregate, lead: Row, members: list[Row]) -> list[Row]:
        """The row of a group, which begins with `lead`; none, and a dead letter, where an aggregate has no value."""
        try:
            return [(*lead, *self._results(node, members, node.input.schema))]
        except EvaluationError as error:
            shown = Schema(node.schema.fields[: len(lead)])
            self._bury(node, plain_text(reason_of(error)), row_text(shown, lead))
            return []

    def _results(self, node: WindowAggregate | GroupAggregate, members: list[Row], schema: Schema) -> list[object]:
        results = []
        for call in node.aggregates:
            places = [schema.index(name) for name in call.columns]
            read = [tuple(row[i] for i in places) for row in members]
            values = [row[0] for row in read] if len(places) == 1 else read
            results.append(aggregate(call, values, self.aggregates))
        return results


def _groups(node: WindowAggregate | GroupAggregate, rows: Sequence[Row]) -> list[tuple[Row, list[Row]]]:
    """The groups of some rows, each with the keys as its first row has them."""
    places = [node.input.schema.index(k) for k in node.keys]
    groups: dict[object, list[Row]] = {}
    for row in rows:
        groups.setdefault(same_row(tuple(row[i] for i in places)), []).append(row)
    return [(tuple(members[0][i] for i in places), members) for members in groups.values()]


def _placed(place: int, arrived: Row | Insert | Adjust) -> Placed:
    if isinstance(arrived, Insert):
        return Placed(place, arrived.payload, (arrived.ve, None))
    if isinstance(arrived, Adjust):
        return Placed(place, arrived.payload, (arrived.ve, arrived.v_old))
    return Placed(place, arrived)
