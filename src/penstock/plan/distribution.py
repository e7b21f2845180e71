"""How the rows of a plan may be spread over workers that share nothing.

Every operator with state works per group, so rows of one group must meet and other rows need not: it needs its input
spread *by keys*, a numbering needs it in one place (*single*), and what has no state takes it in *any* way. The keys of
the topmost operator with state are traced down to each source; those that every operator with state on the way also
groups by can be used. Where none is left the whole plan runs in one place, which is always right and never parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from penstock.model.schema import BIGINT, DOUBLE, FLOAT, TIMESTAMP, DataType, Schema
from penstock.plan.expressions import Column, Expression, columns_in, substitute, worded
from penstock.plan.join_nodes import Band
from penstock.plan.monotone import moved, stretches
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
    Node,
    NumberRows,
    Pattern,
    Project,
    RowNumber,
    Select,
    Settle,
    Source,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.windows import SlidingWindow

Routes = dict[str, tuple[Expression, ...]]
Path = tuple[int, ...]
"""Where a node is in a plan: which input to take at each step down from the top."""


@dataclass(frozen=True)
class Distribution:
    """Which rows must meet: any spreading will do, those that are equal in some keys, or all."""

    kind: Literal["any", "keys", "single"]
    keys: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        """For `explain`."""
        return f"by {', '.join(map(str, self.keys))}" if self.keys else self.kind

    def worded(self, schema: Schema) -> str:
        """In the query's words for columns that it does not name."""
        return f"by {', '.join(worded(key, schema) for key in self.keys)}" if self.keys else self.kind


ANY, SINGLE = Distribution("any"), Distribution("single")


def by_keys(keys: Iterable[Expression]) -> Distribution:
    """Rows that are equal in the keys meet; without keys all do."""
    made = tuple(keys)
    return Distribution("keys", made) if made else SINGLE


def needed(node: Node) -> Distribution:
    """What a node needs of the rows that it is given."""
    match node:
        case (
            WindowAggregate(input=below, keys=keys)
            | GroupAggregate(input=below, keys=keys)
            | RowNumber(input=below, keys=keys)
        ):
            return by_keys(Column(k, below.schema[k].type) for k in keys)
        case Distinct(input=below):
            return by_keys(Column(f.name, f.type) for f in below.schema.visible)
        case Conflate(input=below, key=key):
            return by_keys(Column(name, below.schema[name].type) for name in key)
        case Merge():
            return by_keys(_event(node))
        case Join():  # over its output, in which what is equal on both sides is in the left's columns
            return by_keys(Column(left, node.pairs[left].type) for left, _ in _equal(node))
        case MultiJoin():
            members = [(0, columns[0]) for columns in node.everywhere]
            return by_keys(Column(name, node.schema[name].type) for name in map(node.named, members))
        case Pattern():  # over its output, in which what is equal is in the last step's columns
            names = [node.named[node.last][columns[node.last]] for columns in node.equal]
            return by_keys(Column(name, node.schema[name].type) for name in names)
        case Settle():  # an insert and its adjusts are the same row
            return by_keys(_payload(node))
        case NumberRows():
            return SINGLE
        case _:
            return ANY


def needed_at(node: Node, port: int) -> Distribution:
    """What a node needs of the rows of one of its inputs, by columns of that input."""
    match node:
        case Join() | MultiJoin() | Pattern():
            return by_keys(same[port] for same in equal_in(node))
        case _:
            return needed(node)


def equal_columns(join: Join) -> list[tuple[Column, Column]]:
    """What is equal in rows that meet: a column of the left and one of the right."""
    left, right = join.left.schema, join.right.schema
    return [(Column(one, left[one].type), Column(other, right[other].type)) for one, other in join.equal]


def equal_in(join: Join | MultiJoin | Pattern) -> Sequence[tuple[Expression, ...]]:
    """What is equal in rows that meet, of each input.

    Where no columns of two are, times are if one is always as much later than the other, as the ends of windows may be.
    """
    if isinstance(join, Pattern):
        return [
            tuple(Column(name, step.schema[name].type) for name, step in zip(columns, join.steps, strict=True))
            for columns in join.equal
        ]
    if isinstance(join, MultiJoin):
        return [
            tuple(Column(same[port], below.schema[same[port]].type) for port, below in enumerate(join.streams))
            for same in join.everywhere
        ]
    columns = equal_columns(join)
    near, (left, right) = join.near, join.on
    if columns or not isinstance(near, Band) or near.low < near.high:
        return columns
    one, other = Column(left, join.left.schema[left].type), Column(right, join.right.schema[right].type)
    return [(one, moved(other, -near.low))] if one.type in (BIGINT, TIMESTAMP) else []


def routes(plan: Node) -> Routes | None:
    """For each source the expressions by which its rows are spread, or None if everything must go to one place."""
    top = _topmost_stateful(plan)
    if top is None:
        # Nothing has state: any spreading is right, and time spreads well.
        return {n.name: (_time(n),) for n in plan.walk() if isinstance(n, Source)}
    traced = [t for paths in _traced(top) if (t := _by_source(top, paths)) is not None]
    if not traced:
        return None
    return {source: tuple(t[source] for t in traced) for source in traced[0]}


def _traced(top: Node) -> Iterator[dict[Path, Expression] | None]:
    """What each of the keys of a node is at the sources below it."""
    if isinstance(top, Join):
        for pair in equal_columns(top):
            sides = [
                follow(below, key, path=(port,)) for port, (below, key) in enumerate(zip(top.inputs, pair, strict=True))
            ]
            yield None if None in sides else {path: e for side in sides if side is not None for path, e in side.items()}
        return
    below, path = (top, ()) if isinstance(top, Merge | MultiJoin | Pattern) else (top.inputs[0], (0,))
    for key in needed(top).keys:
        yield follow(below, key, path=path)


def _by_source(plan: Node, traced: dict[Path, Expression] | None) -> dict[str, Expression] | None:
    """What an expression is at each source, if it is the same wherever the plan reads that source."""
    found: dict[str, Expression] = {}
    for path, expression in (traced or {}).items():
        source = at_path(plan, path)
        assert isinstance(source, Source)
        if found.setdefault(source.name, expression) != expression:
            return None
    return None if traced is None else found


def at_path(plan: Node, path: Path) -> Node:
    """The node at a place of a plan."""
    for step in path:
        plan = plan.inputs[step]
    return plan


def _topmost_stateful(plan: Node) -> Node | None:
    """The first operator with state on the way down; a union above operators with state counts as one."""
    node = plan
    while isinstance(node, Select | Project | Lookup | Unnest | Ends | AlterLifetime):
        (node,) = node.inputs
    if isinstance(node, Source):
        return None
    if isinstance(node, Union) and all(needed(n) == ANY for n in node.walk()):
        return None
    return node


def _event(merge: Merge) -> list[Column]:
    """The columns by which rows of one event meet: the key and the time, where they are known, or all exact ones.

    R0 tells events apart by the time alone.
    """
    schema = merge.schema
    if merge.algorithm == "R0":
        names = {schema.time}
    elif merge.key is not None:
        names = {schema.time, *(schema.names[i] for i in merge.key)}
    else:
        return _payload(merge)
    return [Column(f.name, f.type) for f in schema.fields if f.name in names]


def _payload(node: Merge | Settle) -> list[Column]:
    """The columns in which rows of one event are equal: the exact ones.

    Replicas, as an insert and its adjusts, may differ in the last bits of floats, so these do not say where rows go.
    """
    return [Column(f.name, f.type) for f in node.schema.fields if not _is_float(f.type)]


def _is_float(type_: DataType) -> bool:
    return type_ in (FLOAT, DOUBLE)


def _time(source: Source) -> Column:
    time = source.schema[source.schema.time]
    return Column(time.name, time.type)


def follow(
    node: Node,
    wanted: Expression,
    leaves: Container[Path] = (),
    path: Path = (),
    *,
    plainly: bool = False,
    instants: bool = False,
) -> dict[Path, Expression] | None:
    """What an expression over the output of a node is at each source below it, or at a leaf before that.

    None where rows that are equal in it need not have been equal in anything there. With `plainly`, only columns go
    through what groups or joins rows: rows that are equal to it may differ to a function, such as 0.0 and -0.0 to one
    of a user's, or may be given other answers each time. With `instants`, the ends of windows of one tick are followed
    to the times that these are of.
    """
    if isinstance(node, Source) or path in leaves:
        return {path: wanted}
    down = partial(follow, leaves=leaves, plainly=plainly, instants=instants)
    match node:
        case WindowAggregate(input=below) if instants and (at := _instant(node, wanted)) is not None:
            return down(below, at, path=(*path, 0))
        case (
            WindowAggregate()
            | GroupAggregate()
            | Distinct()
            | Join()
            | MultiJoin()
            | RowNumber()
            | Conflate()
            | Pattern()
        ) if plainly and not isinstance(wanted, Column):
            return None
        case Conflate(key=key) if not columns_in(wanted) <= set(key):
            return None  # rows of one key must meet
        case Ends(name=name) if name in columns_in(wanted):
            return None  # an insert and its adjusts must meet
        case Merge() | Settle() if not columns_in(wanted) <= {c.name for c in _payload(node)}:
            return None  # an insert and its adjusts must meet
        case AlterLifetime(input=below, shift=shift) if shift and below.schema.time in columns_in(wanted):
            return None  # rows of streams that were moved by different lengths must meet by the time after
        case (
            AlterLifetime(input=below)
            | Ends(input=below)
            | Select(input=below)
            | Distinct(input=below)
            | Settle(input=below)
            | Conflate(input=below)
        ):
            return down(below, wanted, path=(*path, 0))
        case Project(input=below, columns=columns):
            return down(below, substitute(wanted, dict(columns)), path=(*path, 0))
        case Union(branches=branches) | Merge(branches=branches):
            result: dict[Path, Expression] = {}
            for port, branch in enumerate(branches):
                traced = down(branch, _rename(wanted, node, branch), path=(*path, port))
                if traced is None:
                    return None
                result.update(traced)
            return result
        case Unnest(input=below):  # an element says nothing of where its row was
            of_row = columns_in(wanted) <= set(below.schema.names)
            return down(below, wanted, path=(*path, 0)) if of_row else None
        case Lookup(input=below, called=called):  # what comes of the table says nothing of where a row was
            own: dict[str, Expression] = {name: Column(o, below.schema[o].type) for o, name in called.items()}
            of_stream = columns_in(wanted) <= own.keys()
            return down(below, substitute(wanted, own), path=(*path, 0)) if of_stream else None
        case Join():
            return _at_both(node, wanted, down, path)
        case MultiJoin() | Pattern():
            return _at_all(node, wanted, down, path)
        case WindowAggregate(input=below, keys=keys) | GroupAggregate(input=below, keys=keys):
            if not columns_in(wanted) or not columns_in(wanted) <= set(keys):
                return None
            return down(below, wanted, path=(*path, 0))
        case _:
            return None


def _instant(node: WindowAggregate, wanted: Expression) -> Expression | None:
    """What the end of a window of one tick is below it: the instant that rows are grouped by, and a tick."""
    window, found = node.window, stretches(wanted)
    if found is None or found.length > 1 or found.attribute != node.schema.time:
        return None
    if not isinstance(window, SlidingWindow) or not window.range == window.slide == 1:
        return None
    time = node.input.schema[window.attribute]
    is_key = time.name in node.keys and time.type in (BIGINT, TIMESTAMP)
    return moved(Column(time.name, time.type), found.shift + 1) if is_key else None


def _equal(join: Join) -> list[tuple[str, str]]:
    """What is equal on both sides, by the names in the output of pairs."""
    half = len(join.left.schema.fields)
    return [
        (join.names[join.left.schema.index(left)], join.names[half + join.right.schema.index(right)])
        for left, right in join.equal
    ]


def _at_both(
    join: Join, wanted: Expression, down: Callable[..., dict[Path, Expression] | None], path: Path
) -> dict[Path, Expression] | None:
    """What an expression over what is equal on both sides of a join is below both of them.

    A column of a side that may be missing is null in rows without a partner, wherever they are.
    """
    columns = columns_in(wanted)
    there = not join.keeps_right, not join.keeps_left or not join.is_of_pairs
    own: list[dict[str, Expression]] = [{}, {}]
    for called, pair in zip(_equal(join), equal_columns(join), strict=True):
        for name, is_there in zip(called, there, strict=True):
            for side, column in enumerate(pair) if is_there else ():
                own[side][name] = column
    if not columns or not columns <= own[0].keys():
        return None
    result: dict[Path, Expression] = {}
    for port, below in enumerate(join.inputs):
        traced = down(below, substitute(wanted, own[port]), path=(*path, port))
        if traced is None:
            return None
        result.update(traced)
    return result


def _at_all(
    join: MultiJoin | Pattern, wanted: Expression, down: Callable[..., dict[Path, Expression] | None], path: Path
) -> dict[Path, Expression] | None:
    """What an expression over what is equal in all inputs of a join is below each of them."""
    own: list[dict[str, Expression]] = [{} for _ in join.inputs]
    for names, columns in _called_in_all(join):
        for name in names:
            for port, column in columns.items():
                own[port][name] = Column(column, join.inputs[port].schema[column].type)
    if not columns_in(wanted) or not columns_in(wanted) <= own[0].keys():
        return None
    result: dict[Path, Expression] = {}
    for port, below in enumerate(join.inputs):
        traced = down(below, substitute(wanted, own[port]), path=(*path, port))
        if traced is None:
            return None
        result.update(traced)
    return result


def _called_in_all(join: MultiJoin | Pattern) -> Iterator[tuple[list[str], dict[int, str]]]:
    """Of columns that are equal in all inputs, what they are called in the output, and in each input."""
    if isinstance(join, Pattern):
        single = [at for at in join.places if not join.collects(at)]
        for each in join.equal:
            yield [join.named[at][each[at]] for at in single], dict(enumerate(each))
        return
    for members in join.equal:
        columns = dict(members)
        if len(columns) == len(join.streams):
            yield [join.named(member) for member in members], columns


def _rename(expression: Expression, union: Node, branch: Node) -> Expression:
    """Branches of a union line up by position."""
    names = dict(zip(union.schema.names, branch.schema.fields, strict=True))
    return substitute(expression, {old: Column(f.name, f.type) for old, f in names.items()})
