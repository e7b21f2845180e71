"""Window aggregates of several queries that differ in their functions alone: faces of one family.

A family keeps the numbers that any of its members needs, once (`operators.aggregates.family`); a *face* makes the
results of one aggregate of them. Aggregates belong to one family if they are over the same windows and groups of the
same input. A query that comes takes a family at work that has all its measures, the first that was made. Else a new one
is made with what all queries want that come together: a family at work has not seen what another measure would need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.operators.aggregates.catalogue import array_form
from penstock.operators.aggregates.family import FaceOperator, FamilyAggregate
from penstock.operators.aggregates.measures import Measure, Result
from penstock.operators.windows.sliding import Sliding
from penstock.plan import cost
from penstock.plan.aggregates import record_of
from penstock.plan.catalog import Catalog
from penstock.plan.completeness import last_incomplete
from penstock.plan.identity import canonical, digest
from penstock.plan.nodes import WindowAggregate, window_fields
from penstock.plan.physical import Physical
from penstock.plan.windows import SlidingWindow

if TYPE_CHECKING:
    from penstock.runtime.graph import GraphNode
    from penstock.runtime.shared_graph import SharedGraph


@dataclass(frozen=True)
class WantedMeasures:
    """What an aggregate of a query wants of a family."""

    measures: tuple[Measure, ...]
    results: tuple[Result, ...]


class Families:
    """The families of a graph."""

    def __init__(self, graph: SharedGraph) -> None:
        """None yet."""
        self._graph = graph
        self._by_base: dict[str, list[GraphNode]] = {}
        self._wanted: dict[str, list[Measure]] = {}
        """By the key of what families have in common: the measures of the next one."""
        self._former: Mapping[str, list[list[Any]]] = {}
        self._former_faces: Mapping[str, str] = {}
        """Of a graph that is taken up: the measures of each family, and the family of each face."""

    def want(self, aggregates: Iterable[Physical]) -> None:
        """What comes together: a family that is made for one of these is made for all of them."""
        self._wanted = {}
        for planned in aggregates:
            wanted = self._graph._wants(planned)
            if wanted is None or self._graph._key(planned) in self._graph._known or self.serving(planned) is not None:
                continue
            held = self._wanted.setdefault(self._base(planned), [])
            held += [measure for measure in wanted.measures if measure not in held]

    @contextmanager
    def as_they_were(self, families: Mapping[str, list[list[Any]]], faces: Mapping[str, str]) -> Iterator[None]:
        """Inside, families are made as there were some: the measures of each, and whose face each aggregate was."""
        self._former, self._former_faces = families, faces
        yield
        self._former, self._former_faces = {}, {}

    def leave(self, node: GraphNode) -> None:
        """Nobody takes from a node any more, which may be a family."""
        self._by_base = {
            base: left for base, held in self._by_base.items() if (left := [n for n in held if n is not node])
        }

    def serving(self, planned: Physical) -> GraphNode | None:
        """The family at work that has all the measures of an aggregate."""
        wanted = self._graph._wants(planned)
        if wanted is None:
            return None
        for node in self._by_base.get(self._base(planned), ()):
            assert isinstance(node.operator, FamilyAggregate)
            if set(wanted.measures) <= set(node.operator.measures):
                return node
        return None

    def face(self, planned: Physical, key: str, wanted: WantedMeasures) -> GraphNode:
        """The aggregate of a query as a face of a family, which is made if there is none."""
        node = planned.node
        assert isinstance(node, WindowAggregate)
        family = self._former_family(planned, node, key) if self._former else self.serving(planned)
        if family is None:
            family = self._family(planned, node, tuple(self._wanted[self._base(planned)]))
        operator = family.operator
        assert isinstance(operator, FamilyAggregate)
        places = [operator.measures.index(measure) for measure in wanted.measures]
        face = FaceOperator(node.schema, operator.window, len(node.keys), wanted.results, places)
        made = self._graph._add(planned, face, key)
        made.how = f"{planned.runs.value}: a face of the family below, made of its numbers"
        self._graph.join(family, made, 0)
        return made

    def _former_family(self, planned: Physical, node: WindowAggregate, key: str) -> GraphNode:
        """The family of which an aggregate was a face."""
        identity = self._former_faces[key]
        for family in self._by_base.get(self._base(planned), ()):
            if family.identity == identity:
                return family
        columns = node.input.schema
        measures = [
            Measure(k, None if c is None else columns.index(c), f, columns[c].type if k == "distinct" else None)
            for k, c, f in self._former[identity]
        ]
        return self._family(planned, node, tuple(measures))

    def _family(self, planned: Physical, node: WindowAggregate, measures: tuple[Measure, ...]) -> GraphNode:
        base, last = self._base(planned), last_incomplete(planned, self._graph._seen)
        window, below = node.window, node.input.schema
        assert isinstance(window, SlidingWindow)
        keys = tuple(below.index(k) for k in node.keys)
        key_schema = Schema(tuple(below.fields[i] for i in keys))
        schema = Schema((*window_fields(window), *key_schema.fields), "window_end", window.slide)
        operator = FamilyAggregate(
            schema,
            Sliding(window.range, window.slide, window.origin),
            below.time_index,
            keys,
            key_schema,
            measures,
            lifetime=below.lifetime,
            attribute=str(below.time),
        )
        alike = replace(planned, node=replace(node, aggregates=()))
        made = self._graph._add(alike, operator, digest([base, _named(measures, below)]))
        made.does = _in_words(node, measures)
        self._graph.join(self._graph._grown(planned.inputs[0]), made, 0)
        made.keeps_last, made.last_given = True, MIN_TICK if last is None else last
        self._by_base.setdefault(base, []).append(made)
        return made

    def _base(self, planned: Physical) -> str:
        """What the aggregates of a family have in common: windows, groups and input."""
        node = planned.node
        assert isinstance(node, WindowAggregate)
        return digest([canonical(node.window), list(node.keys), self._graph._key(planned.inputs[0])])


def named_measures(family: GraphNode) -> list[list[Any]]:
    """The measures of a family, by the names of columns."""
    assert isinstance(family.operator, FamilyAggregate)
    return _named(family.operator.measures, family.plan.inputs[0].schema)


def _named(measures: Sequence[Measure], schema: Schema) -> list[list[Any]]:
    return [[m.kind, None if m.column is None else schema.fields[m.column].name, m.is_float] for m in measures]


def _in_words(node: WindowAggregate, measures: Sequence[Measure]) -> str:
    """What a family does: its measures, which any of its members needs, its windows and its groups."""
    names = node.input.schema.shown_names
    said = ["count(*)" if m.column is None else f"{m.kind}({names[m.column]})" for m in measures]
    by = ", ".join(names[node.input.schema.index(key)] for key in node.keys)
    return f"Aggregate family {', '.join(said)} {node.window}{f' by {by}' if by else ''}"


def wanted_of(planned: Physical, catalog: Catalog) -> WantedMeasures | None:
    """What an aggregate wants of a family; None if it cannot be a member of one."""
    node = planned.node
    if not isinstance(node, WindowAggregate) or planned.algorithm != cost.COLUMNAR:
        return None
    below = node.input.schema
    calls = [
        (record_of(a, catalog), None if a.argument is None else below.index(a.argument), a.type)
        for a in node.aggregates
    ]
    form = array_form(calls, below)
    return None if form is None else WantedMeasures(*form)
