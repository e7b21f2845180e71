"""A SELECT with aggregates whose GROUP BY has one or more sets of keys.

ROLLUP, CUBE and GROUPING SETS are a bag union of one aggregation per set: right on every engine and for every kind of
window, also for those that count rows, of which there must not be more. GROUP BY ALL groups by the items of the select
list that have no aggregate in them.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Node, Union
from penstock.sql.aggregate_names import aggregate_name
from penstock.sql.bind_expression import ExpressionBinder
from penstock.sql.bind_grouping import GroupingBinder
from penstock.sql.bind_window import WindowBinder, is_of_window
from penstock.sql.grouping_sets import GroupingSets, Keys, grouping_sets
from penstock.sql.scope import Scope


def bind_grouping(
    catalog: Catalog,
    scope: Scope,
    items: list[exp.Expr],
    window: WindowBinder | None,
    below: ExpressionBinder,
    tree: exp.Select,
) -> Node:
    """The plan of a SELECT that aggregates: of one grouping, or the union of those of several sets of keys."""
    reading = scope.reading
    group, having = reading.part(tree, "group"), reading.part(tree, "having")
    if group is not None and reading.flag(group, "all"):
        keys = _all_keys(items, scope, catalog)
        sets = GroupingSets((keys,), keys, are_said=False)
    else:
        sets = grouping_sets(group, reading)
    made = [GroupingBinder(catalog, scope, items, window, below, sets).bind(tree, own, having) for own in sets.sets]
    return made[0] if len(made) == 1 else Union(tuple(made))


def _all_keys(items: list[exp.Expr], scope: Scope, catalog: Catalog) -> Keys:
    """What GROUP BY ALL groups by: what the select list has of the input outside of aggregates."""
    found = []
    for item in items:
        inner = item.this if isinstance(item, exp.Alias) else item
        if any(aggregate_name(n, catalog) for n in inner.walk()):
            continue
        columns = list(inner.find_all(exp.Column))
        if columns and not all(is_of_window(c) and not scope.has(c) for c in columns):
            found.append(inner)
    return tuple(found)
