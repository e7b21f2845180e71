"""From a physical plan to operators: each node's algorithm, with the functions it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.errors import EvaluationError, UnsupportedError
from penstock.model.batch import Batch, Row
from penstock.model.nested import column_of
from penstock.model.progress import PerSource, Punctuated, Several, Single
from penstock.model.schema import DataType, Schema
from penstock.model.time import Domain
from penstock.operators.joins.forms import Condition
from penstock.operators.joins.lookup import LookupOperator
from penstock.operators.joins.table_index import TableIndex, Versions
from penstock.operators.merge.operator import MergeOperator
from penstock.operators.operator import Operator
from penstock.operators.progress.ingest import BatchIngest, RowIngest
from penstock.operators.progress.marks import PunctuationMarks, SourceMarks
from penstock.operators.progress.promises import GroupPromises
from penstock.operators.progress.several import AttributeEntry, SeveralTracker
from penstock.operators.progress.several_ingest import SeveralByBatch, SeveralByRow
from penstock.operators.progress.stamping import StampOperator
from penstock.operators.progress.trackers import tracker_for
from penstock.operators.queues.conflate import ConflateOperator
from penstock.operators.relational.alter import AlterOperator, Lifetime
from penstock.operators.relational.distinct import DistinctOperator
from penstock.operators.relational.ends import EndsOperator
from penstock.operators.relational.mapped import Mapped
from penstock.operators.relational.meld import MeldOperator
from penstock.operators.relational.newest import NewestOperator
from penstock.operators.relational.number import NumberOperator
from penstock.operators.relational.project import ProjectBySeveral, ProjectOperator
from penstock.operators.relational.select import SelectOperator
from penstock.operators.relational.settle import SettleOperator
from penstock.operators.relational.stretches import StretchesOperator
from penstock.operators.relational.unnest import UnnestOperator
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import Column, Expression, always_has_value
from penstock.plan.monotone import rises_with_all
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
from penstock.plan.physical import Physical
from penstock.plan.planner import BY_BATCH
from penstock.plan.progressing import firsts
from penstock.runtime.aggregate_building import group_aggregate, window_aggregate
from penstock.runtime.column_functions import column_function, made_column
from penstock.runtime.column_scalars import ColumnFunction, NotColumnar
from penstock.runtime.join_building import build_join
from penstock.runtime.multi_joins import multi_join
from penstock.runtime.pattern_building import pattern_operator
from penstock.runtime.queue_building import queue_of
from penstock.runtime.ranking import row_number_operator
from penstock.runtime.row_functions import Functions, filter_function, project_function, row_function


class Builder:
    """Builds operators for the nodes of one plan."""

    def __init__(self, catalog: Catalog, made: Sequence[Expression] = (), *, bounds_in_place: bool = True) -> None:
        """The catalog has the users' functions; `made` is what has been computed beside the rows (`model.made`).

        Without `bounds_in_place` the results of a batch come together, and what is promised among its rows after them.
        """
        self.catalog, self._bounds_in_place = catalog, bounds_in_place
        self._made = {expression: at for at, expression in enumerate(made)}
        self.functions: Functions = {name: f.function for name, f in catalog.functions.items()}

    def operator(self, planned: Physical) -> Operator:
        """The operator of a physical node."""
        node = planned.node
        match node:
            case Source():
                return self._ingest(node, planned)
            case NumberRows():
                return NumberOperator(node.schema, planned.useful)
            case Select(predicate=predicate):
                below = node.input.schema
                by_rows = filter_function(predicate, below, self.functions)
                return SelectOperator(node.schema, by_rows, _mask(self._by_column(predicate, below)), planned.unread)
            case Project():
                return self._project(node)
            case Unnest():
                column = node.input.schema.index(node.column)
                return UnnestOperator(node.schema, column, node.kept, outer=node.outer, place=node.place)
            case Union(branches=branches):
                return MeldOperator(node.schema, len(branches), [b.schema for b in branches])
            case Newest(branches=branches):
                schemas = [b.schema for b in branches]
                return NewestOperator(node.schema, len(branches), schemas, node.key, node.ties)
            case Conflate():
                return ConflateOperator(node.schema, partial(queue_of, node))
            case Merge():
                return self._merge(node)
            case Ends():
                return EndsOperator(node.schema)
            case AlterLifetime():
                altered = Lifetime(node.shift, node.duration, node.extend, node.at_most)
                return AlterOperator(node.schema, altered)
            case Settle():
                return SettleOperator(node.schema)
            case Stamp():
                return StampOperator(node.schema, planned.useful)
            case Distinct():
                return DistinctOperator(node.schema) if node.schema.lives is None else StretchesOperator(node.schema)
            case Join():
                return build_join(node, self._condition(node))
            case MultiJoin():
                return multi_join(node, self.row, lambda e, schema: _mask(column_function(e, schema)))
            case Pattern():
                return pattern_operator(node)
            case Lookup():
                return self._lookup(node)
            case WindowAggregate():
                return window_aggregate(node, planned.algorithm, self.catalog)
            case GroupAggregate():
                return group_aggregate(node, self.catalog, planned.useful)
            case RowNumber():
                return row_number_operator(node)
            case _:
                raise UnsupportedError("There is no operator for this.", where=node.label)

    def row(self, expression: Expression, schema: Schema) -> Callable[[Row], Any]:
        """An expression as a function of a row."""
        return row_function(expression, schema, self.functions)

    def _ingest(self, node: Source, planned: Physical) -> Operator:
        if isinstance(node.progress, Several):
            form = SeveralByBatch if planned.algorithm == BY_BATCH else SeveralByRow
            return form(node.schema, self.tracker_of_several(node), dict(planned.wanted), by_arrival=node.by_arrival)
        tracker = tracker_for(node.progress, node.schema.domain, node.max_ahead)
        ingest = BatchIngest if planned.algorithm == BY_BATCH else RowIngest
        return ingest(
            node.schema,
            tracker,
            self.marks_of(node),
            planned.useful,
            by_arrival=node.by_arrival,
            groups=promises_of(node),
            is_in_place=self._bounds_in_place,
        )

    def marks_of(self, node: Source) -> SourceMarks | PunctuationMarks | None:
        """What the stream's progress needs of each row besides its time."""
        assert not isinstance(node.progress, Several)
        return self._marks(node.schema, node.progress, node.punctuation, node.silent, node.per)

    def _marks(
        self,
        schema: Schema,
        progress: Single,
        punctuation: Expression | None,
        silent: tuple[int, ...],
        per: tuple[int, ...] = (),
    ) -> SourceMarks | PunctuationMarks | None:
        if isinstance(progress, PerSource):
            return SourceMarks(schema.index(progress.column))
        if punctuation is not None:
            by_row, mask = self.row(punctuation, schema), _mask(self._by_column(punctuation, schema))
            return PunctuationMarks(by_row, mask, silent, per)
        return None

    def tracker_of_several(self, node: Source) -> SeveralTracker:
        """The trackers of a stream of which several attributes progress."""
        assert isinstance(node.progress, Several)
        schema, made = node.schema, []
        for (names, how), punctuation, silent in zip(
            node.progress.entries, node.punctuations, node.silent_in, strict=True
        ):
            places = tuple(schema.attributes.index(name) for name in names)
            domain = schema[names[0]].type.domain or Domain.INTEGER
            tracker = tracker_for(how, domain) if len(names) == 1 else None
            made.append(AttributeEntry(places, tracker, self._marks(schema, how, punctuation, silent)))
        return SeveralTracker(schema, tuple(made))

    def _by_column(self, expression: Expression, schema: Schema) -> ColumnFunction | None:
        at = self._made.get(expression)
        return column_function(expression, schema) if at is None else made_column(at)

    def _project(self, node: Project) -> Operator:
        schema = node.input.schema
        by_row = [self.row(e, schema) for _, e in node.columns]
        by_rows = project_function([e for _, e in node.columns], schema, self.functions)
        by_column = [self._by_column(e, schema) for _, e in node.columns]
        types = [f.type for f in node.schema.fields]

        def columns(batch: Batch) -> pa.Table:
            arrays = [_column(batch, c, r, t) for c, r, t in zip(by_column, by_row, types, strict=True)]
            return pa.Table.from_arrays(arrays, schema=node.schema.arrow)

        mapped = [self._mapped(node, name, of) for name, of in firsts(node).items()]
        if node.maps_time:
            mapped.append(self._mapped(node, node.time, rises_with_all(dict(node.columns)[node.time])))
        moves = node.moves_time or node.maps_time
        several = any(len(each.attributes) > 1 for each in mapped)
        made = ProjectBySeveral if several else ProjectOperator
        return made(node.schema, by_rows, columns, survivors(node), moves_time=moves, mapped=mapped)

    def _mapped(self, node: Project, name: str, attributes: tuple[str, ...]) -> Mapped:
        """A column that rises with attributes, and what bounds on these come to."""
        schema = Schema(tuple(node.input.schema[attribute] for attribute in attributes))
        value = self.row(dict(node.columns)[name], schema)

        def reached(bounds: Sequence[int]) -> int | None:
            try:
                found: int | None = value(tuple(bounds))
            except EvaluationError:
                return None
            return found

        return Mapped(name, attributes, reached)

    @staticmethod
    def _merge(node: Merge) -> Operator:
        options: dict[str, Any] = {"on_divergence": node.on_divergence}
        if node.algorithm in ("R3", "R4"):
            options |= {"policy": node.policy, "lag": node.lag, "driver": node.driver}
        if node.algorithm in ("R2", "R3"):
            options["key"] = node.key
        branches = [b.schema for b in node.branches]
        return MergeOperator(node.schema, node.names, node.algorithm, branches=branches, **options)

    def _condition(self, node: Join | Lookup) -> Condition | None:
        if node.condition is None:
            return None
        mask = _mask(column_function(node.condition, node.pairs))
        may_fail = not always_has_value(node.condition)
        return Condition(node.pairs, mask, self.row(node.condition, node.pairs), may_fail)

    def _lookup(self, node: Lookup) -> Operator:
        table, below, own = node.table.rows, node.input.schema, node.table.schema
        whole = Batch(own, table=table)
        keys = [_column(whole, column_function(e, own), self.row(e, own), e.type) for _, e in node.equal]
        versions = None
        if node.as_of is not None:
            versions = Versions.of(table, str(node.table.valid_from), node.table.valid_to)
        return LookupOperator(
            node.schema,
            table,
            TableIndex(keys, table.num_rows, versions),
            node.kind,
            [below.index(name) for name, _ in node.equal],
            {name: (called,) for name, called in node.called.items()},
            self._condition(node),
            None if node.as_of is None else below.index(node.as_of),
        )


def _mask(by_column: ColumnFunction | None) -> Callable[[Batch], pa.ChunkedArray | None]:
    """Which rows of a batch a condition holds for; None where these values have no columnar answer."""

    def mask(batch: Batch) -> pa.ChunkedArray | None:
        if by_column is None:
            return None
        try:
            result = by_column(batch.table)
        except NotColumnar:
            return None
        return None if isinstance(result, pa.Scalar) else result

    return mask


def survivors(node: Project) -> dict[str, list[str]]:
    """The names under which columns of the input come out of a projection as they are."""
    names: dict[str, list[str]] = {}
    for name, expression in node.columns:
        if isinstance(expression, Column):
            names.setdefault(expression.name, []).append(name)
    if node.moves_time or node.maps_time:
        return names
    time = str(node.input.schema.time)
    return {**names, time: [node.time, *(name for name in names.get(time, ()) if name != node.time)]}


def promises_of(node: Source) -> GroupPromises | None:
    """How the stream's punctuation speaks for some rows alone, where it does."""
    if not isinstance(node.progress, Punctuated) or not node.per:
        return None
    return GroupPromises(node.schema, node.per, node.progress.final)


def _column(
    batch: Batch, by_column: ColumnFunction | None, by_row: Callable[[Row], Any], type_: DataType
) -> pa.ChunkedArray:
    """One output column, by column if that is possible, else by rows."""
    if by_column is not None:
        try:
            result = by_column(batch.table)
        except NotColumnar:
            result = None
        if isinstance(result, pa.Scalar):
            return pa.chunked_array([pa.repeat(result, len(batch))])
        if result is not None:
            return result if isinstance(result, pa.ChunkedArray) else pa.chunked_array([result])
    values = [by_row(row) for row in batch.rows]
    return pa.chunked_array([column_of(values, type_)])
