"""Sub-plans that a plan has more than once: what it names once and reads twice, such as a view or a query of WITH.

Whoever runs the plan for itself alone may run such a sub-plan once, and give its output to all that read it. Two nodes
are the same if they say the same over the same inputs, by the same algorithm, and their consumers can use the same
bounds and read the same columns. Not every node may be run once for two. Where rows are numbered as they come, and
where replicas are merged, the order counts in which branches are given rows. And a node that may fail on a row tells of
it each time that the plan has the node.
"""

from __future__ import annotations

from penstock.plan.expressions import Expression, always_has_value
from penstock.plan.identity import canonical, digest
from penstock.plan.nodes import (
    Distinct,
    Join,
    Merge,
    Node,
    NumberRows,
    Pattern,
    Project,
    RowNumber,
    Select,
    Source,
    Union,
    WindowAggregate,
)
from penstock.plan.physical import Physical

_NEVER_FAIL = frozenset({"count", "min", "max"})


def repeated(planned: Physical) -> dict[int, str]:
    """What each physical node is known by, by its `id`, if it may be run once for all that are the same."""
    if any(_counts_arrival(each.node) for each in planned.walk()):
        return {}
    found: dict[int, str] = {}
    _known(planned, found)
    return found


def _known(planned: Physical, found: dict[int, str]) -> str | None:
    below = [_known(each, found) for each in planned.inputs]
    if None in below or _may_fail(planned.node):
        return None
    said = [planned.algorithm, list(planned.useful), [list(each) for each in planned.wanted]]
    unread = sorted(planned.unread) if isinstance(planned.node, Select) else []
    found[id(planned)] = key = digest([canonical(planned.node), said, unread, below])
    return key


def _counts_arrival(node: Node) -> bool:
    return isinstance(node, NumberRows | Merge) or (isinstance(node, Source) and node.by_arrival)


def _may_fail(node: Node) -> bool:
    match node:
        case Source() | Union() | Distinct() | RowNumber() | Pattern():
            return False
        case Select(predicate=predicate):
            return not always_has_value(predicate)
        case Project(columns=columns):
            return not all(always_has_value(expression) for _, expression in columns)
        case Join(condition=condition):
            return not _holds_or_not(condition)
        case WindowAggregate(aggregates=aggregates):
            return not all(call.function in _NEVER_FAIL for call in aggregates)
        case _:
            return True


def _holds_or_not(condition: Expression | None) -> bool:
    return condition is None or always_has_value(condition)
