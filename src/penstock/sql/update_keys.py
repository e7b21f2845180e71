"""Queries over update streams: what keeps the update key, and what is refused because it would be wrong.

The key goes through a query as a property of its nodes (`plan.update_nodes`). What loses it is refused where it is
written: from then on nobody could tell which row a result takes the place of. So is what counts every row of a stream
of which some were passed over: windows with parts missing, and rows that are owed an answer as of their own time.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.errors import PlanError, QueryError
from penstock.plan.expressions import Column
from penstock.plan.join_nodes import Join, Latest
from penstock.plan.nodes import (
    Conflate,
    GroupAggregate,
    Lookup,
    Newest,
    Node,
    NumberRows,
    Pattern,
    RowNumber,
    Select,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.update_marks import marks_of
from penstock.plan.update_nodes import is_lossy
from penstock.sql.reading import Reading, shown

_WHOLE = "windows whose rows were partly passed over would be wrong"
_INSTEAD = "or declare the stream once more under another name, without an update key, where all of its rows matter"


def united(sides: Sequence[Node], tree: exp.Expr, reading: Reading) -> Node:
    """The union of some streams; of update streams what is newest, with the one that is named first believed."""
    branches = [branch for side in sides for branch in _branches(side)]
    keys = [branch.properties.update_key for branch in branches]
    if all(key is None for key in keys):
        return Union(tuple(branches))
    if len(set(keys)) > 1:
        told = [_worded(key) for key in keys]
        raise reading.error(
            "The sides of a UNION are updated by different keys.",
            tree,
            got=" and ".join(dict.fromkeys(told)),
            hint=f"give all of them the same update key, {_INSTEAD}",
        )
    lived = next((branch for branch in branches if branch.schema.lives is not None), None)
    if lived is not None:
        raise reading.error(
            "The sides of a UNION of update streams have lives, which the next update of another side would not end.",
            tree,
            got=lived.label,
            hint="unite the streams themselves in a view, and give lives to that: flow.latest(…), or lives=True",
        )
    return Newest(tuple(branches), _ordered(branches[0], keys[0] or frozenset()))


def _branches(side: Node) -> tuple[Node, ...]:
    """What a union of a union is of."""
    is_union = isinstance(side, Union) or (isinstance(side, Newest) and not side.lives)
    return side.inputs if is_union and len(side.inputs) > 1 else (side,)


def newest_match(joined: Node) -> Node:
    """What a join of update streams comes to: of several matches of a key the most recent one."""
    join = joined
    while isinstance(join, Select):
        join = join.input
    key = joined.properties.update_key
    if not isinstance(join, Join) or key is None or not join.is_of_pairs:
        return joined
    if isinstance(join.near, Latest) and join.near.rows == 1:
        return joined
    return Newest((joined,), _ordered(joined, key), ties=join.named_times)


def check_updates(node: Node, tree: exp.Select, reading: Reading) -> Node:
    """The plan of a SELECT, if it keeps the update keys of what it reads, and what is below was not passed over."""
    for each in node.walk():
        if any(below.properties.update_key is not None for below in each.inputs):
            _check_node(each, node, tree, reading)
    return node


def _check_node(node: Node, result: Node, tree: exp.Select, reading: Reading) -> None:
    lossy = any(map(is_lossy, node.inputs))
    items, joins = tree.args["expressions"], tree.args.get("joins") or [tree]
    match node:
        case WindowAggregate() if node.properties.update_key is not None and _queues_windows(node):
            _check_marks(node, tree.args.get("group") or items[0], reading)
        case WindowAggregate() | GroupAggregate() | RowNumber() | NumberRows() if lossy and not _queues_windows(node):
            raise reading.error(
                "Rows of a conflated stream are not all there, and this counts every row.",
                tree.args.get("group") or items[0],
                got=_WHOLE,
                hint="aggregate the stream itself, and conflate the result; or conflate it by windows, windows='lazy'",
            )
        case Join() if node.properties.update_key is None:
            _check_join(node, joins[0], reading, lossy=lossy)
        case Pattern():
            raise reading.error(
                "What follows what goes by every row, and rows of an update stream take the place of others.",
                tree.args["from_"].this,
                got=", ".join(dict.fromkeys(_worded(below.properties.update_key) for below in node.inputs)),
                hint=_INSTEAD.removeprefix("or "),
            )
        case Lookup():
            _check_lookup(node, joins[0], reading)
        case RowNumber() | Unnest():
            raise _lost(node, items[0], reading, "number or take apart rows of a stream without an update key")
        case _ if node.properties.update_key is None:
            raise _lost_in(node, result, tree, reading)


def _queues_windows(node: Node) -> bool:
    """Whether an aggregate is over queues, and what waits in all of them are windows."""
    queues = [each for each in node.walk() if isinstance(each, Conflate)]
    return isinstance(node, WindowAggregate) and bool(queues) and all(each.windows is not None for each in queues)


def _check_marks(node: WindowAggregate, at: exp.Expr, reading: Reading) -> None:
    """Over a queue of windows, every aggregate sees whole windows."""
    for queue in [each for each in node.walk() if isinstance(each, Conflate)]:
        try:
            marks_of(node, queue, queue.key)
        except PlanError as error:
            raise reading.error(error.what, at, got=error.got, hint=error.hint) from None


def with_aggregates(plan: Node, sql: str) -> Node:
    """A plan in which every queue of windows has an aggregate above it; otherwise there is nothing to be whole."""
    for node in plan.walk():
        for below in node.inputs if not isinstance(node, WindowAggregate) else ():
            if isinstance(below, Conflate) and below.windows is not None:
                raise _without_windows(below, sql)
    if isinstance(plan, Conflate) and plan.windows is not None:
        raise _without_windows(plan, sql)
    return plan


def _without_windows(queue: Conflate, sql: str) -> QueryError:
    return QueryError(
        "A stream that is conflated by windows is read by an aggregate.",
        sql=sql,
        line=1,
        column=1,
        got=queue.label,
        hint="add [RANGE …, SLIDE …] and GROUP BY, or conflate it without windows=…",
    )


def _lost_in(node: Node, result: Node, tree: exp.Select, reading: Reading) -> QueryError:
    """The select list, or what is grouped by, does not keep the key."""
    items, group = tree.args["expressions"], tree.args.get("group")
    missing = _missing(node)
    grouped = isinstance(node, WindowAggregate | GroupAggregate) or any(
        isinstance(above, WindowAggregate | GroupAggregate) and any(node is each for each in above.walk())
        for above in result.walk()
    )
    if grouped:
        hint = f"GROUP BY {', '.join(missing)} and whatever else, {_INSTEAD}"
        named = "nothing" if group is None else ", ".join(shown(each) for each in group.expressions)
        got = f"GROUP BY {named}; {_worded(node.inputs[0].properties.update_key)}"
        return reading.error("GROUP BY does not keep the update key.", group or items[0], got=got, hint=hint)
    at = next((item for item in items if _touches(item, missing)), items[0])
    changed = isinstance(at, exp.Alias) and at.alias.lower() in {name.lower() for name in missing}
    what = "The select list changes the update key." if changed else "The select list loses the update key."
    hint = f"select {', '.join(missing)} as it is, under any name; {_INSTEAD}"
    return _lost(node, at, reading, hint, what)


def _lost(node: Node, at: exp.Expr, reading: Reading, hint: str, what: str = "") -> QueryError:
    keys = [_worded(below.properties.update_key) for below in node.inputs]
    said = what or "What comes out could not be told apart by the update key."
    return reading.error(said, at, got=f"{shown(at)}; {', '.join(dict.fromkeys(keys))}", hint=hint)


def _check_join(node: Join, tree: exp.Expr, reading: Reading, *, lossy: bool) -> None:
    """One update stream meets another by its key; rows that all matter meet one that is whole."""
    left, right = (side.properties.update_key for side in node.inputs)
    is_asked = isinstance(node.near, Latest) or not node.is_of_pairs
    if left is None and is_asked:
        if lossy:
            raise reading.error(
                "Every row of the first stream is owed an answer, and rows of the second were passed over.",
                tree,
                got="a join with a conflated stream",
                hint="join the stream itself, and conflate the result",
            )
        return
    if left is None or right is None:
        raise reading.error(
            "An update stream is joined with one of which every row matters.",
            tree,
            got=f"{_worded(left)} and {_worded(right)}",
            hint="ASOF JOIN gives each row of the first with the latest of the second; or give both an update key",
        )
    if node.keeps_right:
        raise reading.error(
            "A row of the second stream alone would lack the update key.",
            tree,
            got=node.kind.upper(),
            hint="use INNER or LEFT, and write the stream that is kept first",
        )
    raise reading.error(
        "Update streams are joined by equal update keys.",
        tree,
        got=f"{_worded(left)} and {_worded(right)}",
        hint=f"add ON a.k = b.k for every column of both keys; {_INSTEAD}",
    )


def _check_lookup(node: Lookup, tree: exp.Expr, reading: Reading) -> None:
    """A row of an update stream meets one row of a table at most, or results of one key and time would be several."""
    table = node.table.content
    if not node.is_of_pairs or table is None or node.as_of is not None:
        return
    names = [e.name for _, e in node.equal if isinstance(e, Column)]
    if not names and table.num_rows <= 1:
        return
    columns = pa.table({str(at): table.column(name) for at, name in enumerate(names)})
    counted = columns.group_by(columns.column_names).aggregate([([], "count_all")]) if names else None
    if counted is None or (pc.max(counted.column("count_all")).as_py() or 0) > 1:
        raise reading.error(
            "A row of an update stream would meet several rows of the table, which its key cannot tell apart.",
            tree,
            got=f"table {node.table.name} by {', '.join(names) or 'nothing'}",
            hint="join by what is unique in the table, or as of a time: FOR SYSTEM_TIME AS OF",
        )


def _missing(node: Node) -> list[str]:
    """The columns of an input's key that do not come out of a node as they are, by what people call them."""
    found: dict[str, None] = {}
    for below in node.inputs:
        shown_as = dict(zip(below.schema.names, below.schema.shown_names, strict=True))
        kept = {e.name for _, e in getattr(node, "columns", ()) if isinstance(e, Column)} | {*getattr(node, "keys", ())}
        key = below.properties.update_key or frozenset()
        found |= dict.fromkeys(shown_as[name] for name in sorted(key - kept))
    return list(found)


def _touches(item: exp.Expr, missing: Sequence[str]) -> bool:
    lower = {name.lower() for name in missing}
    named = isinstance(item, exp.Alias) and item.alias.lower() in lower
    return named or any(column.name.lower() in lower for column in item.find_all(exp.Column))


def _ordered(node: Node, key: frozenset[str]) -> tuple[str, ...]:
    """A key in the order of the columns."""
    return tuple(name for name in node.schema.names if name in key)


def _worded(key: frozenset[str] | None) -> str:
    if key is None:
        return "no update key"
    return f"update key ({', '.join(sorted(key))})" if key else "each row updates the one before"
