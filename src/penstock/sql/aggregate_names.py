"""What aggregates are called in SQL, which nodes of a syntax tree call one, and those that are refused by name.

A few names have nodes of their own in sqlglot. All others are read as plain calls: first those of the catalogue, then
those that say with another word what an aggregate of the catalogue says (`bind_aggregate`). A name that is refused is
free for an aggregate of the user's.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.operators.aggregates.catalogue import RECORDS
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import USER

OWN_NODES = (
    "count", "sum", "avg", "min", "max", "var_samp", "variance", "var_pop", "stddev_samp", "stddev", "stddev_pop",
)  # fmt: skip
"""The names that sqlglot has nodes for which are read here."""
RECORD_NAMES = {name: record.name for record in RECORDS for name in record.names}
AGGREGATES: dict[type[exp.Expr], str] = {exp.FUNCTION_BY_NAME[n.upper()]: RECORD_NAMES[n] for n in OWN_NODES}
"""The nodes that sqlglot makes of names that aggregates have."""
SAID_OTHERWISE = frozenset({
    "count_if", "bool_and", "every", "bool_or", "any", "some", "any_value", "first", "first_value", "last",
    "last_value", "median", "percentile_cont",
})  # fmt: skip
CALLED = (RECORD_NAMES.keys() - set(OWN_NODES)) | SAID_OTHERWISE
"""The names that are read as plain calls."""
WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
"""What may stand after an aggregate."""

_EXACT = "every engine must give the same answer, so it is exact: write "
REFUSED: dict[str, str] = {
    **dict.fromkeys(("percentile_approx", "approx_percentile"), f"{_EXACT}percentile(x, share)"),
    "approx_count_distinct": f"{_EXACT}count(DISTINCT x)",
    "percentile_disc": "write percentile(x, share), which goes in a straight line between two values",
    **dict.fromkeys(("string_agg", "listagg"), "write array_join(collect_list(text), separator)"),
    **dict.fromkeys(("skewness", "kurtosis"), "write variance, or register an aggregate with flow.aggregate(…)"),
    **dict.fromkeys(
        ("grouping", "grouping_id"), "it stands in a SELECT with GROUP BY ROLLUP(…), CUBE(…) or GROUPING SETS (…)"
    ),
}
"""Names of Spark's that have no meaning here, with what to write instead."""


def aggregate_name(node: exp.Expr, catalog: Catalog) -> str | None:
    """The name of the aggregate that a node calls, if it does: of the catalogue, said otherwise, or the user's."""
    if type(node) in AGGREGATES:
        return AGGREGATES[type(node)]
    if isinstance(node, exp.Any) and isinstance(node.this, exp.Paren):  # with several, it is one of a list
        return "any"
    if not isinstance(node, exp.Anonymous):
        return None
    name = node.name.lower()
    if name in catalog.aggregates:
        return USER + name
    return RECORD_NAMES.get(name, name) if name in CALLED else None


def inner_call(node: exp.Expr) -> exp.Expr:
    """The call that FILTER, WITHIN GROUP and the like stand after."""
    while isinstance(node, WRAPPERS) and isinstance(node.this, exp.Expr):
        node = node.this
    return node
