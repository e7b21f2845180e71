"""From SQL text to a logical plan: queries, unions, what FROM names, and plain selections.

Names are checked against the catalog, types are derived, window clauses are given their meaning. `FROM a UNION b` is
bag union; `SELECT … UNION SELECT …` removes duplicates, `UNION ALL` does not. ORDER BY and LIMIT have no meaning on a
stream without end and are refused. So is every part of the text that nothing here reads (`reading.py`), or that the
parser passed over (`shape.py`). SELECTs with aggregates are bound in `bind_grouping.py`, window clauses in
`bind_window.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.errors import QueryError
from penstock.plan.catalog import Catalog, closest
from penstock.plan.expressions import Column, Expression, conjunction
from penstock.plan.lookup_nodes import TableRows
from penstock.plan.nodes import AlterLifetime, Distinct, Ends, Node, Select
from penstock.plan.rules.queue_windows import queued_windows
from penstock.plan.rules.settle import settled
from penstock.plan.rules.stamps import stamped_where_needed
from penstock.plan.rules.top_n import first_only
from penstock.plan.typing import common_type
from penstock.sql.aggregate_names import aggregate_name
from penstock.sql.bind_expression import SUB_QUERIES, ExpressionBinder
from penstock.sql.bind_grouping_sets import bind_grouping
from penstock.sql.bind_join import JoinBinder
from penstock.sql.bind_lookup import refuse_table, streams_first
from penstock.sql.bind_nested import MAPS_AS_KEYS
from penstock.sql.bind_pattern import bind_pattern
from penstock.sql.bind_row_number import RowNumberBinder, numbering_among
from penstock.sql.bind_unnest import has_generator, is_lateral, with_laterals
from penstock.sql.bind_unnest import taken_apart as taken_apart_in
from penstock.sql.bind_window import WindowBinder
from penstock.sql.clause import CLAUSE, ClauseNode, Form, WindowClause
from penstock.sql.dialect import NESTING, room_to_recurse
from penstock.sql.join_hints import hinted
from penstock.sql.naming import is_named, item_name, projected, refuse_twice, shared_names, starred, unique
from penstock.sql.operands import Operand
from penstock.sql.paths import parts_of, untangle
from penstock.sql.pattern_syntax import PatternNode
from penstock.sql.predicates import source_of
from penstock.sql.reading import Reading, shown
from penstock.sql.refusals import instead_of, instead_of_query
from penstock.sql.scope import Relation, Scope
from penstock.sql.subqueries import taken_apart
from penstock.sql.tokens import check_shape, parse
from penstock.sql.unions import aligned, time_at
from penstock.sql.update_keys import check_updates, newest_match, united, with_aggregates
from penstock.sql.window_functions import clause_of, window_call

_NO_MEANING = {
    "order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET", "qualify": "QUALIFY",
    "windows": "WINDOW", "distribute": "DISTRIBUTE BY", "sort": "SORT BY", "cluster": "CLUSTER BY",
}  # fmt: skip
MOST_STEPS = 2000


def bind(sql: str, catalog: Catalog) -> Node:
    """The logical plan of a query."""
    return stamped_where_needed(with_aggregates(queued_windows(settled(bind_view(sql, catalog))), sql))


def bind_view(sql: str, catalog: Catalog) -> Node:
    """The logical plan of a query that others read: they settle what they make of it."""
    with room_to_recurse():
        try:
            node = bind_tree(parse(sql), sql, catalog)
            check_shape(sql)
            return node
        except RecursionError:  # whoever calls has used up the room
            raise QueryError(
                "The query is nested too deeply.", sql=sql, line=1, column=1, hint="use WITH for parts of it"
            ) from None


def bind_tree(tree: exp.Expr, sql: str, catalog: Catalog) -> Node:
    """The logical plan of a syntax tree, all of which must have been read."""
    reading = Reading(sql)
    node = _Binder(catalog, reading).query(tree, {})
    reading.finish(tree)
    return node


class _Binder:
    def __init__(self, catalog: Catalog, reading: Reading) -> None:
        self.catalog, self.reading = catalog, reading
        self.error = reading.error

    def query(self, tree: exp.Expr, named: dict[str, Node]) -> Node:
        named = self._named(tree, named)
        match tree:
            case exp.Subquery():
                self._refuse(tree)
                node = self.query(self.reading.need(tree, "this"), named)
            case exp.Union():
                node = self._union(tree, named)
            case exp.Select():
                node = self._select(tree, named)
            case _:
                raise self.error(
                    "This kind of query is not supported.", tree, got=type(tree).__name__.upper(),
                    hint=instead_of_query(tree),
                )  # fmt: skip
        if _is_larger(node, NESTING, MOST_STEPS):
            raise self.error(
                "The query has too many steps.",
                tree,
                got=f"more than {NESTING} one after the other, or {MOST_STEPS} in all",
                hint="put conditions into one WHERE, expressions into one SELECT",
            )
        return node

    def _named(self, tree: exp.Expr, named: dict[str, Node]) -> dict[str, Node]:
        with_ = self.reading.part(tree, "with_")
        if with_ is None:
            return named
        if self.reading.flag(with_, "recursive"):
            raise self.error("RECURSIVE is not supported.", with_, got="RECURSIVE", hint=instead_of("RECURSIVE"))
        result = dict(named)
        for cte in self.reading.parts(with_, "expressions"):
            alias = self.reading.need(cte, "alias")
            name = self.reading.name(alias)
            if name.lower() in result and name.lower() not in named:
                raise self.error("WITH gives a name twice.", cte, got=name, hint="choose another name")
            result[name.lower()] = self.query(self.reading.need(cte, "this"), result)
        return result

    def _refuse(self, tree: exp.Expr) -> None:
        for arg, name in _NO_MEANING.items():
            value = tree.args.get(arg)
            if value:
                parts = [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)]
                at = parts[0] if parts else tree
                raise self.error(f"{name} has no meaning on a stream.", at, got=name, hint=instead_of(name))

    # Unions

    def _union(self, tree: exp.Expr, named: dict[str, Node]) -> Node:
        self._refuse(tree)
        sides: list[tuple[exp.Expr, bool]] = []  # a query, and whether duplicates go after it came
        at = tree
        while isinstance(at, exp.Union) and (at is tree or at.args.get("with_") is None):
            self._refuse(at)
            sides.append((self.reading.need(at, "expression"), self.reading.flag(at, "distinct")))
            at = self.reading.need(at, "this")
        sides.reverse()
        together, distinct = [self.query(at, named)], sides[0][1]
        for side, goes in sides:
            if goes is not distinct:
                together, distinct = [self._united(together, distinct, tree)], goes
            together.append(self.query(side, named))
        return self._united(together, distinct, tree)

    def _united(self, sides: list[Node], distinct: bool, tree: exp.Expr) -> Node:
        """The sides with one set of names and types; without duplicates if so asked."""
        first = sides[0].schema
        types = [f.type for f in first.visible]
        for schema in (side.schema for side in sides[1:]):
            if len(types) != len(schema.visible):
                raise self.error(
                    "The sides of a UNION have different numbers of columns.",
                    tree,
                    got=f"{len(types)} and {len(schema.visible)}",
                )
            if first.domain is not schema.domain or first.lifetime != schema.lifetime:
                raise self.error(
                    "The sides of a UNION live on different time scales.",
                    tree,
                    hint="union streams of one kind of time and one SLIDE",
                )
            for at, (known, field) in enumerate(zip(types, schema.visible, strict=True)):
                common = common_type(known, field.type)
                if common is None:
                    raise self.error(
                        "The sides of a UNION have columns of different types.",
                        tree,
                        got=f"{first.visible[at].name} {known} and {field}",
                        hint="CAST one of them",
                    )
                types[at] = common
        times = {time_at(side.schema) for side in sides}
        shared = times.pop() if len(times) == 1 else -1
        alike = [aligned(side, [f.name for f in first.visible], types, shared) for side in sides]
        union = united(alike, tree, self.reading)
        return self._without_duplicates(union, tree) if distinct else union

    # FROM

    def _relation(self, node: exp.Expr, named: dict[str, Node]) -> Scope:
        alias_node = self.reading.part(node, "alias")
        alias = self.reading.name(alias_node) if alias_node is not None else ""
        if isinstance(node, exp.Subquery):
            inner = self.query(node, named)
            return Scope(inner, (Relation(frozenset({alias.lower()} if alias else ())),), self.reading)
        if isinstance(node, PatternNode):
            raise self._not_alone(node, "SEQ")
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            hint = "join with a sub-query: JOIN (SELECT …) AS x ON …" if isinstance(node, exp.Lateral) else ""
            raise self.error("A stream's name or a sub-query is expected after FROM.", node, got=shown(node), hint=hint)
        name = self.reading.name(node)
        qualifiers = frozenset({(alias or name).lower()})
        known = named.get(name.lower()) or source_of(self.catalog, name)
        if known is None and name.lower() in self.catalog.tables:
            known = TableRows(self.catalog.tables[name.lower()])
        if known is None:
            raise self.error("Unknown stream.", node, got=name, hint=closest(name, [*named, *self.catalog.names]))
        return Scope(known, (Relation(qualifiers),), self.reading)

    # SELECT

    def _select(self, tree: exp.Select, named: dict[str, Node]) -> Node:
        self._refuse(tree)
        from_ = self.reading.part(tree, "from_")
        if from_ is None:
            raise self.error("FROM is missing.", tree, hint="name the stream to read")
        items = self.reading.parts(tree, "expressions")
        if not items:
            raise self.error("The select list is empty.", tree, hint="name columns, aggregates or *")
        relation = self.reading.need(from_, "this")
        scope, wanted, alone = self._read(tree, relation, named)
        with_laterals(tree, scope, self.catalog, alone=alone is not None)
        group, having = self.reading.part(tree, "group"), self.reading.part(tree, "having")
        clause = self._clause([*items, *([] if alone is None else [alone])], group)
        window = WindowBinder(clause, scope, self.reading.sql) if clause is not None else None
        numbering = numbering_among(items, self.reading)
        aggregates = self._has_aggregate(items) or group is not None or having is not None
        if numbering is not None and aggregates:
            hint = "aggregate in a sub-query, and number its rows"
            raise self.error("Rows are numbered or aggregated, not both.", numbering, got=shown(numbering), hint=hint)
        if window is not None and window.is_life and not aggregates:
            scope.node, window = AlterLifetime(scope.node, duration=window.life()), None
        scope.node = _with_ends(scope.node, [*items, *(tree.args.get(p) for p in ("where", "group", "having"))])
        if window is not None and window.counts_arrivals:
            scope.node = window.numbered(scope.node)
        binder = ExpressionBinder(self.catalog, self.reading, lambda n: self._plain(n, scope, binder, window))
        where = self.reading.part(tree, "where")
        if wanted is None and where is not None:
            wanted = [binder.predicate(self.reading.need(where, "this"))]
        if wanted:
            scope.node = first_only(Select(scope.node, conjunction(wanted)))
        taken = has_generator(items)
        if taken is not None and (aggregates or window is not None or numbering is not None):
            raise self.error("Rows cannot be taken apart beside aggregates.", taken, hint="explode in a sub-query")
        if taken is not None:
            items = taken_apart_in(items, scope, binder)
        if numbering is not None:
            result = RowNumberBinder(scope, items, numbering, window, binder, self.reading).bind()
        elif aggregates or window is not None:
            result = bind_grouping(self.catalog, scope, items, window, binder, tree)
        else:
            result = self._projection(items, scope, binder)
        result = check_updates(result, tree, self.reading)
        distinct = self.reading.part(tree, "distinct")
        return result if distinct is None else self._without_duplicates(result, distinct)

    def _without_duplicates(self, node: Node, tree: exp.Expr) -> Node:
        for field in node.schema.visible:
            if field.type.holds_map:
                raise self.error("Maps cannot be compared.", tree, got=str(field), hint=MAPS_AS_KEYS)
        return Distinct(node)

    def _read(
        self, tree: exp.Select, first: exp.Expr, named: dict[str, Node]
    ) -> tuple[Scope, list[Expression] | None, exp.Expr | None]:
        """What a SELECT reads, and what is left of WHERE; None where nobody has looked at that.

        And the one stream that it reads, whose window is that of the SELECT; None where streams are joined.
        """
        where = self.reading.part(tree, "where")
        joins = [join for join in self.reading.parts(tree, "joins") if not is_lateral(join)]
        plain, asked = ([], []) if where is None else taken_apart(self.reading.need(where, "this"), self.reading)
        if isinstance(first, PatternNode):
            return *self._pattern(tree, first, named, [*joins, *(sub.tree for sub in asked)]), first
        if not joins and not asked:
            scope = refuse_table(self._relation(first, named), first, self.reading)
            untangle(parts_of(tree), [scope])
            return scope, None, first
        operands = [self._operand(first, named)]
        for join in joins:
            kind, right = JoinBinder.kind_of(self.reading, join), self.reading.need(join, "this")
            operands.append(replace(self._operand(right, named), kind=kind, join=join))
        for sub in asked:
            kind = "anti" if sub.negated else "semi"
            operands.append(replace(self._operand(sub.relation, named), kind=kind, join=sub.tree, asked=sub))
        operands = streams_first(operands, self.reading)
        plain = self._with_fields(tree, operands, where)
        alone = operands[0].tree if all(operand.is_table for operand in operands[1:]) else None
        scope, rest = JoinBinder(self.catalog, self.reading, operands).bind(plain)
        scope.node = newest_match(hinted(scope.node, tree, self.reading))
        return scope, rest, alone

    def _pattern(
        self, tree: exp.Select, pattern: exp.Expr, named: dict[str, Node], beside: Sequence[exp.Expr]
    ) -> tuple[Scope, list[Expression]]:
        """The sequences of a pattern, and what WHERE asks of them."""
        if beside:
            raise self._not_alone(beside[0], shown(beside[0]))
        relations = [self.reading.need(step, "this") for step in self.reading.parts(pattern, "steps")]
        operands = [Operand(self._relation(relation, named), relation) for relation in relations]
        untangle(parts_of(tree), [operand.scope for operand in operands])
        where = self.reading.part(tree, "where")
        condition = None if where is None else self.reading.need(where, "this")
        return bind_pattern(self.catalog, self.reading, pattern, operands, condition)

    def _not_alone(self, node: exp.Expr, got: str) -> QueryError:
        hint = "find the pattern in a sub-query that selects its times, and join that: FROM (SELECT …) AS x JOIN"
        return self.error("A pattern stands alone in FROM.", node, got=got, hint=hint)

    def _with_fields(self, tree: exp.Select, operands: list[Operand], where: exp.Expr | None) -> list[exp.Expr]:
        """Put fields of structs into all conditions; those of WHERE that are no sub-queries, as they are then."""
        scopes = [operand.scope for operand in operands]
        untangle(parts_of(tree), scopes)
        within = [operand for operand in operands if operand.asked is not None]
        for operand in within:
            query = operand.tree.find_ancestor(exp.Select)
            assert query is not None
            untangle(parts_of(query), [operand.scope, *scopes])
        if where is None:
            return []
        plain, asked = taken_apart(self.reading.need(where, "this"), self.reading)
        as_now = {id(sub.tree): sub for sub in asked}
        for operand in within:
            assert operand.asked is not None
            operand.asked = as_now[id(operand.asked.tree)]
        return plain

    def _operand(self, relation: exp.Expr, named: dict[str, Node]) -> Operand:
        """A relation that is joined, with the window clause that follows it."""
        node = self.reading.part(relation, CLAUSE)
        if node is not None and not isinstance(node, ClauseNode):
            raise self.error(
                "Windows of a table cannot be joined.", relation, got=shown(relation),
                hint="aggregate by window in a sub-query, and join that by window_end",
            )  # fmt: skip
        clause = None if node is None else self.reading.value(node, "this")
        return Operand(self._relation(relation, named), relation, clause=clause)

    def _has_aggregate(self, items: list[exp.Expr]) -> bool:
        found = False
        for node in (n for item in items for n in item.walk()):
            if isinstance(node, exp.Query):
                raise self.error("A sub-query cannot stand here.", node, got=shown(node), hint=SUB_QUERIES)
            found = found or aggregate_name(node, self.catalog) is not None
        return found

    def _clause(self, parts: list[exp.Expr], group: exp.Expr | None) -> WindowClause | None:
        """The window clause that some parts of a SELECT are followed by, or the window that it groups by."""
        found: list[WindowClause] = []
        for node in (node for part in parts if (node := self.reading.part(part, CLAUSE)) is not None):
            is_clause = isinstance(node, ClauseNode)
            found.append(self.reading.value(node, "this") if is_clause else clause_of(node, Form.TABLE, self.reading))
        for key in group.expressions if group is not None else ():
            name = window_call(key)
            if name is not None:
                found.append(clause_of(key, Form.WINDOW if name == "window" else Form.GROUP, self.reading))
        for other in found[1:]:
            if not other.says_the_same(found[0]):
                raise QueryError(
                    "The window clauses of one SELECT differ; one clause serves all of its aggregates.",
                    sql=self.reading.sql, line=other.line, column=other.column,
                )  # fmt: skip
        return found[0] if found else None

    def _plain(
        self, node: exp.Expr, scope: Scope, binder: ExpressionBinder, window: WindowBinder | None
    ) -> Expression | None:
        """Columns of a SELECT without aggregation; an aggregate here is out of place, and so is what comes of one."""
        if window is not None and window.is_own(node):
            raise binder.error("A column of the window cannot stand here.", node, hint="use HAVING, or the select list")
        if aggregate_name(node, self.catalog):
            raise binder.error("An aggregate cannot stand here.", node, hint="use HAVING for conditions on aggregates")
        return scope.column(node) if isinstance(node, exp.Column) else None

    def _projection(self, items: list[exp.Expr], scope: Scope, binder: ExpressionBinder) -> Node:
        schema = scope.node.schema
        shared = shared_names(items, scope)
        refuse_twice(items, self.reading, scope, shared)
        columns: list[tuple[str, Expression]] = []
        made: set[int] = set()
        for item in items:
            if scope.is_star(item):
                columns += starred(scope, item, shared)
            else:
                inner = self.reading.need(item, "this") if isinstance(item, exp.Alias) else item
                bound = binder.bind(inner)
                made |= set() if is_named(item) else {len(columns)}
                columns.append((item_name(item, bound, len(columns), self.reading, scope, shared), bound))
        columns = unique(columns, made)
        if all(isinstance(e, Column) and e.name == n for n, e in columns) and [n for n, _ in columns] == [
            f.name for f in schema.visible
        ]:
            return scope.node
        return projected(scope.node, columns)


def _with_ends(node: Node, parts: Sequence[exp.Expr | None]) -> Node:
    """What is selected from; with the ends of events as a column, if they have lives and a part of the query asks."""
    schema = node.schema
    if schema.lives is None or schema.lives[0] in schema:
        return node
    end = schema.lives[0]
    columns = (c for part in parts if part is not None for c in part.find_all(exp.Column))
    return Ends(node, end) if any(c.name.lower() == end.lower() for c in columns) else node


def _is_larger(node: Node, depth: int, size: int) -> bool:
    """Whether more than `depth` steps stand on one another, or there are more than `size`."""
    pending, seen = [(node, 1)], 0
    while pending:
        at, level = pending.pop()
        seen += 1
        if level > depth or seen > size:
            return True
        pending += [(i, level + 1) for i in at.inputs]
    return False
