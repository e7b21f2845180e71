"""`explode` and its kin: in the select list, after FROM as `LATERAL VIEW`, and joined as `UNNEST` or `LATERAL`.

What is taken apart is a column, or is made one first, so that an expression without a value is found where expressions
are. `LATERAL VIEW` and `UNNEST` are a part of FROM, so WHERE sees their columns; in the select list rows are taken
apart after WHERE, as in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.plan.catalog import Catalog
from penstock.plan.expressions import Column, Expression
from penstock.plan.nodes import Node, Project, Unnest
from penstock.sql.bind_expression import ExpressionBinder
from penstock.sql.naming import fresh
from penstock.sql.paths import parts_of, untangle
from penstock.sql.reading import Reading, shown
from penstock.sql.scope import Relation, Scope

GENERATORS = {f"{place}explode{outer}": (bool(place), bool(outer)) for place in ("", "pos") for outer in ("", "_outer")}
"""Names, and whether the place and rows without elements are wanted."""
_OWN = "\0each"
_BESIDE_JOINS = "join in a sub-query with a name, and take its rows apart"


@dataclass(frozen=True)
class _Call:
    """What is taken apart, and how."""

    node: exp.Expr
    argument: exp.Expr
    place: bool = False
    outer: bool = False


def is_lateral(join: exp.Expr) -> bool:
    """Whether what is joined are elements of the rows before."""
    joined = join.this
    return isinstance(joined, exp.Unnest) or (isinstance(joined, exp.Lateral) and isinstance(joined.this, exp.Func))


def with_laterals(tree: exp.Select, scope: Scope, catalog: Catalog, *, alone: bool) -> None:
    """Put the elements of arrays beside the rows, as FROM says; they are taken of a relation that stands `alone`."""
    reading = scope.reading
    joined = [join for join in reading.parts(tree, "joins") if is_lateral(join)]
    laterals = [*joined, *reading.parts(tree, "laterals")]
    if laterals and (not alone or len(joined) < len(tree.args.get("joins") or ())):
        raise reading.error("Rows of a join cannot be taken apart here.", laterals[0], hint=_BESIDE_JOINS)
    for lateral in laterals:
        _with_elements(scope, lateral, catalog)
    if laterals:
        untangle(parts_of(tree), [scope])


def _with_elements(scope: Scope, lateral: exp.Expr, catalog: Catalog) -> None:
    """The rows of FROM with the elements of an array; `lateral` is a LATERAL VIEW, or a join with elements."""
    reading = scope.reading
    if isinstance(lateral, exp.Join):
        kind = str(reading.value(lateral, "kind") or reading.value(lateral, "side") or "").upper()
        if kind not in ("", "CROSS"):
            raise reading.error(
                "Elements are joined by CROSS JOIN.",
                lateral,
                got=kind,
                hint="LATERAL VIEW OUTER explode(…) keeps all rows",
            )
        lateral = reading.need(lateral, "this")
    alias = reading.part(lateral, "alias")
    name = reading.name(alias) if alias is not None else ""
    wanted = [] if alias is None else _names(reading.parts(alias, "columns"), reading)
    untangle([lateral], [scope])
    call = _lateral_call(lateral, reading)
    binder = ExpressionBinder(catalog, reading, lambda n: scope.column(n) if isinstance(n, exp.Column) else None)
    made = _unnested(scope, call, wanted, binder)
    kept = tuple(Relation(r.qualifiers, dict(scope.columns_of(r)), r.merged) for r in scope.relations)
    scope.node = made[0]
    scope.relations = (*kept, Relation(frozenset({name.lower()} if name else ()), made[1]))


def _lateral_call(lateral: exp.Expr, reading: Reading) -> _Call:
    if isinstance(lateral, exp.Unnest):
        arguments = reading.parts(lateral, "expressions")
        if len(arguments) != 1:
            raise reading.error("UNNEST takes one array.", lateral, got=f"{len(arguments)} of them")
        return _Call(lateral, arguments[0])
    outer = reading.flag(lateral, "outer")
    reading.value(lateral, "view")
    inner = reading.need(lateral, "this")
    call = _generator(inner, reading)
    if call is None:
        hint = f"{', '.join(GENERATORS)} can; a sub-query is joined: JOIN (SELECT …) AS x ON …"
        raise reading.error("This cannot stand after LATERAL.", inner, got=shown(inner), hint=hint)
    return _Call(call.node, call.argument, call.place, call.outer or outer)


def _generator(node: exp.Expr, reading: Reading) -> _Call | None:
    if not isinstance(node, exp.Anonymous) or node.name.lower() not in GENERATORS:
        return None
    name = reading.name(node).lower()
    arguments = reading.parts(node, "expressions")
    if len(arguments) != 1:
        raise reading.error(f"{name} takes one array or map.", node, got=f"{len(arguments)} of them")
    return _Call(node, arguments[0], *GENERATORS[name])


def _names(identifiers: list[exp.Expr], reading: Reading) -> list[str]:
    for each in identifiers:
        reading.whole(each)
    return [str(each.name) for each in identifiers]


def _unnested(scope: Scope, call: _Call, wanted: list[str], binder: ExpressionBinder) -> tuple[Node, dict[str, str]]:
    """The rows taken apart, and what the new columns are called, by their own names."""
    bound = binder.bind(call.argument)
    if bound.type.name not in ("array", "map"):
        raise binder.error(
            "An array or a map is expected.",
            call.argument,
            got=f"{shown(call.argument)} of type {bound.type}",
            hint="split(text, ',') makes an array of a text",
        )
    usual = ["key", "value"] if bound.type.name == "map" else ["col"]
    names = [*(["pos"] if call.place else []), *usual]
    if wanted and len(wanted) != len(names):
        raise binder.error(
            "The columns have as many names as there are columns.",
            call.node,
            got=f"{', '.join(wanted)} for {', '.join(names)}",
        )
    own = wanted or names
    double = next((n for n in own if [o.lower() for o in own].count(n.lower()) > 1), None)
    if double is not None:
        raise binder.error("Two columns have the same name.", call.node, got=double, hint="rename one")
    below, column = _as_column(scope.node, bound)
    called: dict[str, str] = {}
    for name in own:
        called[name] = fresh(name, [*below.schema.names, *called.values()])
    return Unnest(below, column, tuple(called.values()), call.outer, call.place), called


def _as_column(node: Node, bound: Expression) -> tuple[Node, str]:
    """The rows with a column that is taken apart, and its name."""
    if isinstance(bound, Column):
        return node, bound.name
    schema = node.schema
    name = fresh("__each", schema.names)
    kept = [(f.name, Column(f.name, f.type)) for f in schema.fields]
    hidden = frozenset({name, *(f.name for f in schema.fields if f.hidden)})
    return Project(node, (*kept, (name, bound)), str(schema.time), hidden), name


def taken_apart(items: list[exp.Expr], scope: Scope, binder: ExpressionBinder) -> list[exp.Expr]:
    """A select list in which columns stand for an `explode` that stands in it by itself; the rows are taken apart."""
    reading = scope.reading
    found = [(at, call) for at, item in enumerate(items) if (call := _generator(_inner(item), reading)) is not None]
    if not found:
        return items
    if len(found) > 1:
        raise reading.error(
            "Only one array can be taken apart in a select list.", found[1][1].node, hint="use LATERAL VIEW for others"
        )
    ((at, call),) = found
    names = _names_of_item(items[at], reading)
    kept = tuple(Relation(r.qualifiers, dict(scope.columns_of(r)), r.merged) for r in scope.relations)
    scope.node, called = _unnested(scope, call, names, binder)
    # A star does not stand for them, so they are found by a qualifier alone, and no query can write this one.
    own = Relation(frozenset({_OWN}), called, frozenset(name.lower() for name in called))
    scope.relations = (*kept, own)
    made = [exp.alias_(exp.column(exp.to_identifier(name, quoted=True), _OWN), name) for name in called]
    return [*items[:at], *made, *items[at + 1 :]]


def _inner(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias | exp.Aliases) else item


def _names_of_item(item: exp.Expr, reading: Reading) -> list[str]:
    if isinstance(item, exp.Aliases):
        reading.need(item, "this")
        return _names(reading.parts(item, "expressions"), reading)
    if isinstance(item, exp.Alias):
        reading.need(item, "this")
        return [reading.name(item, "alias")]
    return []


def has_generator(items: list[exp.Expr]) -> exp.Expr | None:
    """The item of a select list that takes an array apart, if there is one."""
    return next((i for i in items if isinstance(c := _inner(i), exp.Anonymous) and c.name.lower() in GENERATORS), None)
