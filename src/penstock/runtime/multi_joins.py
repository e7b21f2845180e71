"""The operator of a join of several streams, from its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema
from penstock.operators.joins.forms import Side
from penstock.operators.joins.multi_forms import MultiCondition, MultiForms
from penstock.operators.joins.multi_join import MultiJoinOperator
from penstock.operators.joins.probing import Probing
from penstock.operators.joins.reach import MultiPromised, Reach, reach_of
from penstock.plan.expressions import Expression, columns_in
from penstock.plan.nodes import MultiJoin

RowFunction = Callable[[Expression, Schema], Callable[[Row], Any]]
MaskFunction = Callable[[Expression, Schema], Callable[[Batch], pa.ChunkedArray | None]]


def multi_join(node: MultiJoin, row_function: RowFunction, mask_function: MaskFunction) -> MultiJoinOperator:
    """The operator; the functions make functions of a row and of a batch."""
    compared: list[set[int]] = [set() for _ in node.streams]
    classes = []
    for members in node.equal:
        placed = tuple((at, node.streams[at].schema.index(name)) for at, name in members)
        classes.append(placed)
        for at, place in placed:
            compared[at].add(place)
    sides = tuple(
        Side(below.schema, name, tuple(sorted(keys)), keeps=False)
        for below, name, keys in zip(node.streams, node.on, compared, strict=True)
    )
    conditions = [_condition(node, condition, row_function, mask_function) for condition in node.conditions]
    origins = [(taken.inputs, taken.place) for taken in node.columns]
    apart = [(each.first, each.second, each.low, each.high) for each in node.apart]
    reach = Reach(reach_of(len(sides), apart), tuple(side.on_time for side in sides))
    promised = MultiPromised(node.attributes, str(node.schema.time), node.last)
    probing = Probing(len(sides), tuple(classes))
    return MultiJoinOperator(MultiForms(node.schema, sides, origins, conditions), sides, probing, reach, promised)


def _condition(
    node: MultiJoin, condition: Expression, row_function: RowFunction, mask_function: MaskFunction
) -> MultiCondition:
    names = sorted(columns_in(condition))
    taken = [node.columns[node.schema.index(name)] for name in names]
    schema = Schema(tuple(node.schema[name] for name in names))
    origins = tuple((each.inputs[0], each.place) for each in taken)
    inputs = frozenset(at for at, _ in origins)
    return MultiCondition(inputs, schema, origins, mask_function(condition, schema), row_function(condition, schema))
