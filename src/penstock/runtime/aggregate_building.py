"""From the nodes of aggregates to their operators: windows by the algorithm that was chosen, and whole groups."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import UnsupportedError
from penstock.model.schema import Schema
from penstock.operators.aggregates.catalogue import array_form
from penstock.operators.aggregates.columnar import ColumnarAggregate
from penstock.operators.aggregates.functions import max_of
from penstock.operators.aggregates.paned import PanedAggregate
from penstock.operators.aggregates.partials import Grouping, Places
from penstock.operators.aggregates.whole_groups import GroupAggregateOperator
from penstock.operators.aggregates.wid import WidAggregate
from penstock.operators.operator import Operator
from penstock.operators.windows.sliding import Sliding
from penstock.plan import cost
from penstock.plan.aggregates import record_of
from penstock.plan.catalog import Catalog
from penstock.plan.complete import completing
from penstock.plan.expressions import AggregateCall
from penstock.plan.nodes import GroupAggregate, WindowAggregate
from penstock.plan.progressing import progressing
from penstock.plan.useful import EVERY
from penstock.plan.windows import SlidingWindow


def window_aggregate(node: WindowAggregate, algorithm: str, catalog: Catalog) -> Operator:
    """The operator of a window aggregate by an algorithm, see `plan.cost`."""
    window = node.window
    if not isinstance(window, SlidingWindow):
        raise UnsupportedError("There is no operator for this kind of window.", where=node.label)
    grouping = grouping_of(node, catalog)
    sliding = Sliding(window.range, window.slide, window.origin)
    match algorithm:
        case cost.WID:
            return WidAggregate(node.schema, sliding, grouping)
        case cost.PANED | cost.DIFFERENTIAL:
            differential = algorithm == cost.DIFFERENTIAL
            return PanedAggregate(node.schema, sliding, grouping, differential=differential)
        case cost.COLUMNAR:
            return _columnar(node, sliding, grouping, catalog)
        case _:
            raise UnsupportedError("There is no such algorithm for aggregates.", where=node.label, got=algorithm)


def group_aggregate(node: GroupAggregate, catalog: Catalog, useful: tuple[int, int] = EVERY) -> GroupAggregateOperator:
    """The operator of an aggregate of whole groups, whose greatest time is one more aggregate."""
    grouping, schema = grouping_of(node, catalog), node.input.schema
    time = schema[schema.time].type
    timed = replace(
        grouping,
        arguments=(*grouping.arguments, schema.time_index),
        functions=(*grouping.functions, max_of(time, time)),
    )
    about = completing(node.input, node.keys) or ()
    lead = tuple(at for at, key in enumerate(node.keys) if key in about)
    known = progressing(node.input)
    passing = {key: at for at, key in enumerate(node.keys) if key in known}
    return GroupAggregateOperator(node.schema, timed, lead, useful, passing)


def grouping_of(node: WindowAggregate | GroupAggregate, catalog: Catalog) -> Grouping:
    """Its keys and arguments among the columns of its input, and what is computed of them."""
    schema = node.input.schema
    return Grouping(
        schema,
        tuple(schema.index(k) for k in node.keys),
        tuple(_places(a, schema) for a in node.aggregates),
        tuple(record_of(a, catalog).row_form(a.argument_type, a.type) for a in node.aggregates),
    )


def _columnar(node: WindowAggregate, sliding: Sliding, grouping: Grouping, catalog: Catalog) -> Operator:
    schema = node.input.schema
    records = [record_of(a, catalog) for a in node.aggregates]
    types = [a.type for a in node.aggregates]
    columns = [None if a.argument is None else schema.index(a.argument) for a in node.aggregates]
    form = array_form(list(zip(records, columns, types, strict=True)), schema)
    if form is None:
        raise UnsupportedError("These aggregates are not a matter of numbers.", where=node.label)
    key_schema = Schema(tuple(schema.fields[i] for i in grouping.keys))
    return ColumnarAggregate(
        node.schema,
        sliding,
        schema.time_index,
        grouping.keys,
        key_schema,
        *form,
        lifetime=schema.lifetime,
        attribute=str(schema.time),
    )


def _places(call: AggregateCall, schema: Schema) -> Places:
    places = tuple(schema.index(name) for name in call.columns)
    return places if len(places) > 1 else places[0] if places else None
