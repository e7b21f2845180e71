"""How the state of a hosted plan is spread over Spark's partitions.

Every stateful operator works per group, so rows of one group must meet and other rows need not. The keys of the topmost
stateful operator are traced down to each source; those that every stateful operator on the way also groups by can be
used. Where none is left the whole plan runs in one bucket, which is always right and never parallel.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from penstock.model.schema import DOUBLE, FLOAT, DataType
from penstock.plan.expressions import Call, Column, Expression
from penstock.plan.nodes import Distinct, Merge, Node, NumberRows, Project, Select, Source, Union, WindowAggregate

Routes = dict[str, tuple[Expression, ...]]


def routes(plan: Node) -> Routes | None:
    """For each source the expressions by which its rows are spread, or None if everything must go to one bucket."""
    top = _topmost_stateful(plan)
    if top is None:
        # Nothing has state: any spreading is right, and time spreads well.
        return {n.name: (_time(n),) for n in plan.walk() if isinstance(n, Source)}
    match top:
        case WindowAggregate(input=below, keys=keys):
            candidates = [Column(k, below.schema[k].type) for k in keys]
        case Distinct(input=below):
            candidates = [Column(f.name, f.type) for f in below.schema.visible]
        case Merge():
            below, candidates = top, _event(top)
        case _:
            return None
    traced = [t for c in candidates if (t := _follow(below, c)) is not None]
    if not traced:
        return None
    return {source: tuple(t[source] for t in traced) for source in traced[0]}


def _topmost_stateful(plan: Node) -> Node | None:
    """The first operator with state on the way down; a union above operators with state counts as one."""
    node = plan
    while isinstance(node, Select | Project):
        (node,) = node.inputs
    if isinstance(node, Source):
        return None
    stateful = (WindowAggregate, Distinct, NumberRows, Merge)
    if isinstance(node, Union) and not any(isinstance(n, stateful) for n in node.walk()):
        return None
    return node


def _event(merge: Merge) -> list[Column]:
    """The columns by which rows of one event meet: the key and the time, where they are known, or all exact ones.

    R0 tells events apart by the time alone.
    """
    schema = merge.schema
    if merge.algorithm == "R0":
        names = {schema.time}
    elif merge.key is not None and not merge.elements:
        names = {schema.time, *(schema.names[i] for i in merge.key)}
    else:
        return _payload(merge)
    return [Column(f.name, f.type) for f in schema.fields if f.name in names]


def _payload(merge: Merge) -> list[Column]:
    """The columns in which rows of one event are equal: the exact ones of a plain row; of an element also its start.

    Replicas may differ in the last bits of floats, so these do not say where a row goes.
    """
    fields = merge.schema.fields
    if merge.elements:
        fields = (fields[1], *fields[4:])
    return [Column(f.name, f.type) for f in fields if not _is_float(f.type)]


def _is_float(type_: DataType) -> bool:
    return type_ in (FLOAT, DOUBLE)


def _time(source: Source) -> Column:
    time = source.schema[source.schema.time]
    return Column(time.name, time.type)


def _follow(node: Node, wanted: Expression) -> dict[str, Expression] | None:
    match node:
        case Source(name=name):
            return {name: wanted}
        case Select(input=below) | Distinct(input=below):
            return _follow(below, wanted)
        case Project(input=below, columns=columns):
            replaced = _substitute(wanted, dict(columns))
            return _follow(below, replaced)
        case Merge() if not _columns(wanted) <= {c.name for c in _payload(node)}:
            return None  # an insert and its adjusts must meet
        case Union(branches=branches) | Merge(branches=branches):
            result: dict[str, Expression] = {}
            for branch in branches:
                traced = _follow(branch, _rename(wanted, node, branch))
                if traced is None or any(k in result and result[k] != v for k, v in traced.items()):
                    return None
                result.update(traced)
            return result
        case WindowAggregate(input=below, keys=keys):
            return _follow(below, wanted) if _columns(wanted) <= set(keys) and _columns(wanted) else None
        case NumberRows():
            return None
        case _:
            return None


def _columns(expression: Expression) -> set[str]:
    if isinstance(expression, Column):
        return {expression.name}
    return {n for a in expression.args for n in _columns(a)} if isinstance(expression, Call) else set()


def _substitute(expression: Expression, columns: dict[str, Expression]) -> Expression:
    match expression:
        case Column(name=name):
            return columns[name]
        case Call(name=name, args=args, type=type_):
            return Call(name, tuple(_substitute(a, columns) for a in args), type_)
        case _:
            return expression


def _rename(expression: Expression, union: Node, branch: Node) -> Expression:
    """Branches of a union line up by position."""
    names = dict(zip(union.schema.names, branch.schema.fields, strict=True))
    return _substitute(expression, {old: Column(f.name, f.type) for old, f in names.items()})


def bucket_of(hashes: Iterable[np.ndarray], rows: int, buckets: int) -> np.ndarray:
    """The bucket of each row, from the hashes of its routing values."""
    total = np.zeros(rows, np.uint64)
    for values in hashes:
        total = total * np.uint64(31) + values
    return (total % np.uint64(buckets)).astype(np.int64)
