"""From SQL text to a logical plan.

Names are checked against the catalog, types are derived, window clauses are given their meaning. `FROM a UNION b` is
bag union; `SELECT … UNION SELECT …` removes duplicates, `UNION ALL` does not. ORDER BY and LIMIT have no meaning on a
stream without end and are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.errors import QueryError, UnsupportedError
from penstock.model.schema import DataType, Schema
from penstock.model.time import Domain
from penstock.query.bind_expression import ExpressionBinder, position
from penstock.query.bind_window import WindowBinder, tick_window
from penstock.query.catalog import Catalog, closest
from penstock.query.clause import WindowClause
from penstock.query.expressions import USER, AggregateCall, Call, Column, Expression
from penstock.query.nodes import (
    WINDOW_FIELDS,
    AnyWindow,
    Distinct,
    Node,
    NumberRows,
    PartitionedWindow,
    Project,
    Select,
    Union,
    WindowAggregate,
)
from penstock.query.tokens import MARKER, parse
from penstock.query.typing import aggregate_type, common_type

HIDDEN_TIME = "__time"

_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.Variance: "var_samp",
    exp.VariancePop: "var_pop", exp.Stddev: "stddev_samp", exp.StddevSamp: "stddev_samp", exp.StddevPop: "stddev_pop",
}  # fmt: skip
_REFUSED = {
    "order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET", "laterals": "LATERAL VIEW", "qualify": "QUALIFY",
    "windows": "WINDOW", "distribute": "DISTRIBUTE BY", "sort": "SORT BY", "cluster": "CLUSTER BY",
}  # fmt: skip


def bind(sql: str, catalog: Catalog) -> Node:
    """The logical plan of a query."""
    tree, clauses = parse(sql)
    return _Binder(sql, catalog, clauses).query(tree, {})


@dataclass
class _Scope:
    """What column names mean inside one SELECT."""

    node: Node
    qualifiers: frozenset[str]

    def column(self, column: exp.Column, binder: ExpressionBinder) -> Column:
        schema = self.node.schema
        if column.table and column.table.lower() not in self.qualifiers:
            raise binder.error("Unknown stream.", column, got=column.table, hint=closest(column.table, self.qualifiers))
        if column.name not in schema or schema[column.name].hidden:
            names = [f.name for f in schema.visible]
            raise binder.error("Unknown column.", column, got=column.name, hint=closest(column.name, names))
        found = schema[column.name]
        return Column(found.name, found.type)


@dataclass
class _Grouping:
    """The aggregation that a SELECT is being turned into: keys and arguments below, results above."""

    keys: dict[str, tuple[exp.Expr, Expression]] = field(default_factory=dict)
    arguments: dict[Expression, str] = field(default_factory=dict)
    calls: dict[tuple[str, Expression | None, bool], AggregateCall] = field(default_factory=dict)


class _Binder:
    def __init__(self, sql: str, catalog: Catalog, clauses: list[WindowClause]) -> None:
        self.sql, self.catalog, self.clauses = sql, catalog, clauses

    def error(self, what: str, node: exp.Expr, got: str = "", hint: str = "") -> QueryError:
        line, column = position(node)
        return QueryError(what, sql=self.sql, line=line, column=column, got=got, hint=hint)

    def query(self, tree: exp.Expr, named: dict[str, Node]) -> Node:
        with_ = tree.args.get("with_")
        if with_ is not None:
            named = dict(named)
            for cte in with_.expressions:
                named[cte.alias.lower()] = self.query(cte.this, named)
        if isinstance(tree, exp.Subquery):
            return self.query(tree.this, named)
        if isinstance(tree, exp.Union):
            return self._union(tree, named)
        if isinstance(tree, exp.Select):
            return self._select(tree, named)
        raise self.error(
            "This kind of query is not supported.", tree, got=type(tree).__name__.upper(), hint="use SELECT and UNION"
        )

    def _union(self, tree: exp.Union, named: dict[str, Node]) -> Node:
        self._refuse(tree)
        branches = [self.query(tree.left, named), self.query(tree.right, named)]
        first, second = (b.schema for b in branches)
        left, right = first.visible, second.visible
        if len(left) != len(right):
            raise self.error(
                "The sides of a UNION have different numbers of columns.", tree, got=f"{len(left)} and {len(right)}"
            )
        if first.domain is not second.domain or first.lifetime != second.lifetime:
            raise self.error(
                "The sides of a UNION live on different time scales.",
                tree,
                hint="union streams of one kind of time and one SLIDE",
            )
        types = []
        for a, b in zip(left, right, strict=True):
            type_ = common_type(a.type, b.type)
            if type_ is None:
                raise self.error(
                    "The sides of a UNION have columns of different types.",
                    tree,
                    got=f"{a} and {b}",
                    hint="CAST one of them",
                )
            types.append(type_)
        names = [f.name for f in left]
        positions = [
            [f.name for f in s.visible].index(s.time) if s.time in [f.name for f in s.visible] else -1
            for s in (first, second)
        ]
        shared = positions[0] if positions[0] == positions[1] and positions[0] >= 0 else -1
        aligned = [self._align(b, names, [f.name for f in b.schema.visible], types, shared) for b in branches]
        flat = [x for b in aligned for x in (b.branches if isinstance(b, Union) else (b,))]
        union: Node = Union(tuple(flat))
        return Distinct(union) if tree.args.get("distinct") else union

    def _align(self, node: Node, names: list[str], own: list[str], types: list[DataType], shared: int) -> Node:
        schema = node.schema
        same = [schema[n].type for n in own] == types and own == names
        if same and shared >= 0 and not any(f.hidden for f in schema.fields):
            return node
        columns: list[tuple[str, Expression]] = []
        for name, source, type_ in zip(names, own, types, strict=True):
            column = Column(source, schema[source].type)
            columns.append((name, column if column.type == type_ else Call("cast", (column,), type_)))
        if shared >= 0:
            return Project(node, tuple(columns), names[shared])
        assert schema.time is not None
        columns.append((HIDDEN_TIME, Column(schema.time, schema[schema.time].type)))
        return Project(node, tuple(columns), HIDDEN_TIME, frozenset({HIDDEN_TIME}))

    def _refuse(self, tree: exp.Expr) -> None:
        for arg, name in _REFUSED.items():
            value = tree.args.get(arg)
            if value:
                node = value[0] if isinstance(value, list) else value
                raise self.error(
                    f"{name} has no meaning on a stream.",
                    node,
                    got=name,
                    hint="sort or cut the collected result instead",
                )

    def _relation(self, node: exp.Expr, named: dict[str, Node]) -> _Scope:
        if isinstance(node, exp.Subquery):
            inner = self.query(node.this, named)
            return _Scope(inner, frozenset({node.alias.lower()} if node.alias else ()))
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.error("A stream's name or a sub-query is expected after FROM.", node, got=node.sql("spark"))
        name = node.name
        qualifiers = frozenset({(node.alias or name).lower()})
        if name.lower() in named:
            return _Scope(named[name.lower()], qualifiers)
        source = self.catalog.source(name)
        if source is None:
            raise self.error("Unknown stream.", node, got=name, hint=closest(name, self.catalog.names))
        return _Scope(source, qualifiers)

    def _select(self, tree: exp.Select, named: dict[str, Node]) -> Node:
        self._refuse(tree)
        from_ = tree.args.get("from_")
        if from_ is None:
            raise self.error("FROM is missing.", tree, hint="name the stream to read")
        if tree.args.get("joins"):
            line, column = position(tree.args["joins"][0])
            raise UnsupportedError(
                "Joins between streams are not supported yet.",
                where=f"line {line}, column {column}",
                got=tree.sql("spark")[:80],
                hint="union streams, or aggregate each by itself",
            )
        scope = self._relation(from_.this, named)
        items, clause = self._take_marker(tree)
        window_binder = WindowBinder(clause, scope.node.schema, self.sql) if clause is not None else None
        if window_binder is not None and window_binder.counts_arrivals:
            scope.node = NumberRows(scope.node)
            window_binder = WindowBinder(window_binder.clause, scope.node.schema, self.sql)
        binder = ExpressionBinder(self.catalog, self.sql, lambda n: self._plain(n, scope, binder))
        where = tree.args.get("where")
        if where is not None:
            scope.node = Select(scope.node, binder.predicate(where.this))
        grouped = tree.args.get("group") is not None or window_binder is not None
        if grouped or any(self._aggregate_name(n) for item in items for n in item.walk()) or tree.args.get("having"):
            result = self._aggregation(tree, items, scope, window_binder, binder)
        else:
            result = self._projection(items, scope.node, binder)
        return Distinct(result) if tree.args.get("distinct") else result

    def _take_marker(self, tree: exp.Select) -> tuple[list[exp.Expr], WindowClause | None]:
        """The select list without markers, and the clause they stood for."""
        items, found = [], []
        for item in tree.expressions:
            if isinstance(item, exp.Anonymous) and item.name.lower() == MARKER:
                found.append(self.clauses[int(item.expressions[0].name)])
            else:
                items.append(item)
        found.sort(key=lambda c: (c.line, c.column))
        if not items:
            raise self.error("The select list is empty.", tree, hint="name columns, aggregates or *")
        for other in found[1:]:
            first = found[0]
            parameters = (
                "range",
                "range_all",
                "tumbling",
                "slide",
                "wa",
                "pa",
                "rattr",
                "sattr",
                "sattr_rank",
                "origin",
            )
            if any(getattr(other, p) != getattr(first, p) for p in parameters):
                raise QueryError(
                    "The window clauses of one SELECT differ; one clause serves all of its aggregates.",
                    sql=self.sql, line=other.line, column=other.column,
                )  # fmt: skip
        return items, (found[0] if found else None)

    def _plain(self, node: exp.Expr, scope: _Scope, binder: ExpressionBinder) -> Expression | None:
        """Columns of a SELECT without aggregation; an aggregate here is out of place."""
        if self._aggregate_name(node):
            raise binder.error("An aggregate cannot stand here.", node, hint="use HAVING for conditions on aggregates")
        return scope.column(node, binder) if isinstance(node, exp.Column) else None

    def _aggregate_name(self, node: exp.Expr) -> str | None:
        if type(node) in _AGGREGATES:
            return _AGGREGATES[type(node)]
        if isinstance(node, exp.Anonymous) and node.name.lower() in self.catalog.aggregates:
            return USER + node.name.lower()
        return None

    def _projection(self, items: list[exp.Expr], node: Node, binder: ExpressionBinder) -> Node:
        columns = self._columns(items, node.schema, binder)
        schema = node.schema
        if all(isinstance(e, Column) and e.name == n for n, e in columns) and [n for n, _ in columns] == [
            f.name for f in schema.visible
        ]:
            return node
        return _project(node, columns)

    def _columns(self, items: list[exp.Expr], schema: Schema, binder: ExpressionBinder) -> list[tuple[str, Expression]]:
        columns: list[tuple[str, Expression]] = []
        for item in items:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                columns += [(f.name, Column(f.name, f.type)) for f in schema.visible]
            else:
                bound = binder.bind(item.unalias())
                columns.append((_name(item, bound, len(columns)), bound))
        return _unique(columns)

    # Aggregation

    def _aggregation(
        self,
        tree: exp.Select,
        items: list[exp.Expr],
        scope: _Scope,
        window_binder: WindowBinder | None,
        below: ExpressionBinder,
    ) -> Node:
        grouping = _Grouping()
        self._bind_keys(tree, items, below, grouping)
        window = self._window(tree, items, scope.node.schema, window_binder, grouping)
        if isinstance(window, PartitionedWindow):
            names = []
            for name in window.partition:
                key = Column(name, scope.node.schema[name].type)
                known = next((n for n, (_, bound) in grouping.keys.items() if bound == key), None)
                if known is None:
                    known = _key_name(key, grouping)
                    grouping.keys[known] = (exp.column(name), key)
                names.append(known)
            window = replace(window, partition=tuple(names))

        above = ExpressionBinder(self.catalog, self.sql, lambda n: self._grouped(n, grouping, below, above, window))
        having = tree.args.get("having")
        predicate = above.predicate(_with_aliases(having.this, items)) if having is not None else None
        columns: list[tuple[str, Expression]] = []
        for item in items:
            if isinstance(item, exp.Star):
                raise self.error("SELECT * cannot be aggregated.", item, hint="name the columns")
            bound = above.bind(item.unalias())
            if not (
                isinstance(bound, Column) and bound.name in WINDOW_FIELDS and item.alias_or_name.lower() == bound.name
            ):
                columns.append((_name(item, bound, len(columns)), bound))

        aggregate = WindowAggregate(
            self._inputs_of(scope.node, grouping, window), window, tuple(grouping.keys), tuple(grouping.calls.values())
        )
        node: Node = Select(aggregate, predicate) if predicate is not None else aggregate
        lead: list[tuple[str, Expression]] = [(n, Column(n, aggregate.schema[n].type)) for n in WINDOW_FIELDS]
        return _project(node, _unique(lead + columns))

    def _window(
        self,
        tree: exp.Select,
        items: list[exp.Expr],
        schema: Schema,
        window_binder: WindowBinder | None,
        grouping: _Grouping,
    ) -> AnyWindow:
        if window_binder is not None:
            return window_binder.bind()
        if any(isinstance(bound, Column) and bound.name == schema.time for _, bound in grouping.keys.values()):
            return tick_window(schema)
        at = next((n for item in items for n in item.walk() if self._aggregate_name(n)), tree)
        lengths = "RANGE 10 minutes, SLIDE 1 minute" if schema.domain is Domain.TIMESTAMP else "RANGE 100, SLIDE 10"
        raise self.error(
            "An aggregate over a stream needs a window: without one it never completes.",
            at,
            got=at.sql("spark")[:60],
            hint=f"add [{lengths}, WA {schema.time}] after it, or GROUP BY {schema.time}",
        )

    def _bind_keys(self, tree: exp.Select, items: list[exp.Expr], below: ExpressionBinder, grouping: _Grouping) -> None:
        group = tree.args.get("group")
        for key in group.expressions if group is not None else ():
            source = key
            if isinstance(key, exp.Literal) and not key.is_string:
                index = int(key.name)
                if not 1 <= index <= len(items):
                    raise self.error("GROUP BY names a position that the select list has not.", key, got=str(index))
                source = items[index - 1].unalias()
            elif isinstance(key, exp.Column) and not key.table:
                alias = next(
                    (i for i in items if isinstance(i, exp.Alias) and i.alias.lower() == key.name.lower()), None
                )
                if alias is not None and not isinstance(alias.this, exp.Column):
                    source = alias.this
            bound = below.bind(source)
            grouping.keys[_key_name(bound, grouping)] = (source, bound)

    def _grouped(
        self,
        node: exp.Expr,
        grouping: _Grouping,
        below: ExpressionBinder,
        above: ExpressionBinder,
        window: AnyWindow,
    ) -> Expression | None:
        """Group keys, aggregates and window fields in a select list or HAVING."""
        for name, (source, bound) in grouping.keys.items():
            if node == source or (
                isinstance(node, exp.Column) and isinstance(bound, Column) and node.name.lower() == bound.name.lower()
            ):
                return Column(name, bound.type)
        function = self._aggregate_name(node)
        if function is not None:
            return self._call(function, node, grouping, below)
        if isinstance(node, exp.Column):
            if node.name.lower() in WINDOW_FIELDS and not node.table:
                schema = WindowAggregate(_Nothing(), window, (), ()).schema
                return Column(node.name.lower(), schema[node.name.lower()].type)
            below.bind(node)
            raise above.error(
                "The column is neither grouped nor aggregated.",
                node,
                got=node.name,
                hint=f"add {node.name} to GROUP BY, or aggregate it",
            )
        return None

    def _call(self, function: str, node: exp.Expr, grouping: _Grouping, below: ExpressionBinder) -> Expression:
        args = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
        if len(args) != 1 or (isinstance(node, exp.Count) and node.expressions):
            raise below.error("An aggregate takes one argument.", node)
        inner = args[0]
        distinct = isinstance(inner, exp.Distinct)
        if distinct:
            if len(inner.expressions) != 1:
                raise below.error("DISTINCT takes one expression here.", node)
            inner = inner.expressions[0]
        if any(self._aggregate_name(n) for n in inner.walk()):
            raise below.error("An aggregate cannot stand inside another.", node, hint="use a sub-query")
        argument = None if isinstance(inner, exp.Star) else below.bind(inner)
        if argument is None and function != "count":
            raise below.error("Only count takes *.", node)
        if distinct and function in ("min", "max"):
            distinct = False
        if distinct and function != "count":
            raise below.error("DISTINCT is supported in count only.", node)
        if function.startswith(USER):
            type_ = self.catalog.aggregates[function.removeprefix(USER)][1]
        else:
            found = aggregate_type(function, argument.type if argument is not None else None)
            if found is None:
                raise below.error(
                    f"{function} does not apply to this type.", node, got=str(argument.type if argument else "*")
                )
            type_ = found
        key = (function, argument, distinct)
        if key not in grouping.calls:
            name = None
            if argument is not None:
                name = grouping.arguments.setdefault(argument, f"__arg{len(grouping.arguments)}")
            grouping.calls[key] = AggregateCall(
                function,
                name,
                type_,
                f"__agg{len(grouping.calls)}",
                distinct,
                argument.type if argument is not None else None,
            )
        return Column(grouping.calls[key].name, type_)

    def _inputs_of(self, node: Node, grouping: _Grouping, window: AnyWindow) -> Node:
        """A projection to what the aggregation reads: time, keys, arguments."""
        time = window.attribute
        columns: dict[str, Expression] = {time: Column(time, node.schema[time].type)}
        for name, (_, bound) in grouping.keys.items():
            columns.setdefault(name, bound)
        for bound, name in grouping.arguments.items():
            columns[name] = bound
        return Project(node, tuple(columns.items()), time, frozenset({time} - set(grouping.keys)))


@dataclass(frozen=True)
class _Nothing(Node):
    """Stands for an input whose columns do not matter."""


def _project(node: Node, columns: list[tuple[str, Expression]]) -> Project:
    """A projection that carries the time along, hidden if it is not among the columns."""
    time = node.schema.time
    assert time is not None
    for name, expression in columns:
        if isinstance(expression, Column) and expression.name == time:
            return Project(node, tuple(columns), name)
    hidden = (HIDDEN_TIME, Column(time, node.schema[time].type))
    return Project(node, (*columns, hidden), HIDDEN_TIME, frozenset({HIDDEN_TIME}))


def _with_aliases(node: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    """HAVING may use the select list's aliases."""
    aliases = {i.alias.lower(): i.this for i in items if isinstance(i, exp.Alias)}

    def with_meaning(n: exp.Expr) -> exp.Expr:
        if isinstance(n, exp.Column) and not n.table and n.name.lower() in aliases:
            meaning: exp.Expr = aliases[n.name.lower()].copy()
            return meaning
        return n

    return node.copy().transform(with_meaning)


def _key_name(bound: Expression, grouping: _Grouping) -> str:
    """What a group key is called below the select list: never as a window's own columns are."""
    if isinstance(bound, Column) and bound.name.lower() not in WINDOW_FIELDS:
        return bound.name
    return f"__key{len(grouping.keys)}"


def _name(item: exp.Expr, bound: Expression, index: int) -> str:
    """The name of an output column: the alias, the column's own, or one made from the aggregate."""
    if isinstance(item, exp.Alias):
        return str(item.alias)
    if isinstance(item, exp.Column) and isinstance(bound, Column):
        if not bound.name.startswith("__"):
            return bound.name
        # A group key of an inner window beside the columns of the outer one.
        return f"group_{item.name.lower()}" if item.name.lower() in WINDOW_FIELDS else str(item.name)
    if type(item) in _AGGREGATES or isinstance(item, exp.Anonymous):
        function = _AGGREGATES.get(type(item)) or item.name.lower()
        inner = item.expressions[0] if isinstance(item, exp.Anonymous) and item.expressions else item.this
        if isinstance(inner, exp.Distinct):
            inner = inner.expressions[0]
        return f"{function}_{inner.name}" if isinstance(inner, exp.Column) else str(function)
    return f"col{index}"


def _unique(columns: list[tuple[str, Expression]]) -> list[tuple[str, Expression]]:
    """Names made different by a number where the query gives one twice."""
    seen: set[str] = set()
    result = []
    for name, expression in columns:
        unique, n = name, 2
        while unique.lower() in seen:
            unique, n = f"{name}_{n}", n + 1
        seen.add(unique.lower())
        result.append((unique, expression))
    return result
