"""A SELECT with aggregates: its keys, its aggregate calls, what the select list and HAVING make of them.

Names mean what they mean in Spark:

- in GROUP BY and inside an aggregate: a column of the input; in GROUP BY, where the input has none of that name, an
  alias of the select list;
- in the select list: a group key, a column of the window, nothing else;
- in HAVING, outside aggregates: a group key, a column of the window, else an alias of the select list.

A part of an expression is a group key if it is bound to the same as one, however it is written.

Without a window clause it takes GROUP BY on the stream's own time, which is a window of one tick, or on columns of
which the stream promises that groups are complete (`plan.complete`), or on both times of a join; then there are no
columns of a window.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.errors import QueryError
from penstock.model.schema import Schema
from penstock.model.time import Domain
from penstock.operators.aggregates.catalogue import find
from penstock.plan.catalog import Catalog
from penstock.plan.complete import completing
from penstock.plan.expressions import USER, AggregateCall, Column, Expression
from penstock.plan.nodes import (
    WINDOW_FIELDS,
    GroupAggregate,
    Node,
    Project,
    Select,
    Source,
    WindowAggregate,
    window_fields,
)
from penstock.plan.progressing import progressing
from penstock.plan.windows import AnyWindow, PartitionedWindow, SlideByTupleWindow
from penstock.sql.bind_expression import ExpressionBinder
from penstock.sql.bind_window import WindowBinder, is_of_window, window_of_keys
from penstock.sql.clause import ClauseNode
from penstock.sql.naming import fresh, is_named, item_name, projected, refuse_twice, shared_names, unique
from penstock.sql.reading import shown
from penstock.sql.scope import Scope, aggregate_name


@dataclass
class _Grouping:
    """The aggregation that a SELECT is being turned into: keys and arguments below, results above."""

    keys: dict[str, Expression] = field(default_factory=dict)
    """What is grouped by, under the names that it has below the select list."""
    sizes: set[int] = field(default_factory=set)
    """How many nodes the keys have as they are written: nothing of another size is worth a comparison."""
    arguments: dict[Expression, str] = field(default_factory=dict)
    calls: dict[tuple[str, Expression | None, bool], AggregateCall] = field(default_factory=dict)


class GroupingBinder:
    """Binds one SELECT that aggregates."""

    def __init__(
        self,
        catalog: Catalog,
        scope: Scope,
        items: list[exp.Expr],
        window: WindowBinder | None,
        below: ExpressionBinder,
    ) -> None:
        """`below` binds expressions over the rows that are aggregated."""
        self.catalog, self.scope, self.items, self.below = catalog, scope, items, below
        self.reading = scope.reading
        self.window_binder = window
        self.grouping = _Grouping()
        self._window: AnyWindow | None = None
        self._sizes: dict[int, int] = {}
        self._times: dict[str, Expression] = {} if window is None else window.times
        """What windows stand on that is computed from an attribute, as an expression over it."""
        self.select = ExpressionBinder(catalog, self.reading, self._in_select)
        self.having = ExpressionBinder(catalog, self.reading, self._in_having)

    def bind(self, tree: exp.Expr, group: exp.Expr | None, having: exp.Expr | None) -> Node:
        """The plan: rows brought to keys and arguments, the aggregation, HAVING, the select list."""
        if group is not None:
            self._bind_keys(group)
        if self.window_binder is not None:
            self.window_binder.check_grouped(tree)
        self._window = self._bind_window(tree)
        self._add_partition()
        # The select list first: a HAVING that comes later then changes nothing below it, unless it asks for more.
        columns, made = self._columns()
        predicate = self.having.predicate(self.reading.need(having, "this")) if having is not None else None
        refuse_twice(self.items, self.reading, shared=shared_names(self.items, self.scope))
        grouping = self.grouping
        keys, calls = tuple(grouping.keys), tuple(grouping.calls.values())
        aggregate: Node
        if self._window is None:
            aggregate = GroupAggregate(self._inputs(), keys, calls)
        else:
            aggregate = WindowAggregate(self._inputs(), self._window, keys, calls)
        node = Select(aggregate, predicate) if predicate is not None else aggregate
        lead: list[tuple[str, Expression]] = [(n, Column(n, aggregate.schema[n].type)) for n in self._lead]
        return projected(node, unique(lead + columns, {at + len(lead) for at in made}))

    @property
    def _lead(self) -> tuple[str, ...]:
        """The columns that a result begins with."""
        return () if self._window is None else WINDOW_FIELDS

    def _columns(self) -> tuple[list[tuple[str, Expression]], set[int]]:
        """The select list without the columns of the window, and which of its names were made here."""
        columns: list[tuple[str, Expression]] = []
        made: set[int] = set()
        shared = shared_names(self.items, self.scope)
        for item in self.items:
            if self.scope.is_star(item):
                raise self.reading.error("SELECT * cannot be aggregated.", item, hint="name the columns")
            bound = self.select.bind(self.reading.need(item, "this") if isinstance(item, exp.Alias) else item)
            name = item_name(item, bound, len(columns), self.reading, self.scope, shared)
            own = bound.name if isinstance(bound, Column) and bound.name in self._lead else None
            if own is not None and (not isinstance(item, exp.Alias) or name.lower() == own):
                continue
            if name.lower() in self._lead and is_named(item):
                raise self.reading.error(
                    "Two columns of the result have the same name.",
                    item,
                    got=name,
                    hint=f"{', '.join(WINDOW_FIELDS)} come first by themselves; choose another name with AS",
                )
            made |= set() if is_named(item) else {len(columns)}
            columns.append((name, bound))
        return columns, made

    # Keys

    def _bind_keys(self, group: exp.Expr) -> None:
        binder = ExpressionBinder(self.catalog, self.reading, lambda n: self._in_group_by(n, binder))
        if self.reading.flag(group, "all"):
            raise self.reading.error("GROUP BY ALL is not supported.", group, got="ALL", hint="name what to group by")
        for key in self.reading.parts(group, "expressions"):
            source = self._at_position(key)
            if self.window_binder is not None and self.window_binder.takes_key(source):
                continue
            if self.scope.is_star(source):
                raise self.reading.error("GROUP BY takes columns and expressions.", source, got="*")
            self._add_key(binder.bind(source))
            self.grouping.sizes.add(self._size(source))

    def _at_position(self, key: exp.Expr) -> exp.Expr:
        """What a key stands for: a whole number is a place in the select list."""
        negative = isinstance(key, exp.Neg) and isinstance(key.this, exp.Literal)
        number = key.this if negative else key
        if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdecimal():
            return key
        self.reading.whole(key)
        digits = number.name.lstrip("0")[:20] or "0"
        index = -int(digits) if negative else int(digits)
        if not 1 <= index <= len(self.items):
            raise self.reading.error(
                "GROUP BY names a position that the select list has not.", key, got=f"{'-' if negative else ''}{digits}"
            )
        item = self.items[index - 1]
        return self.reading.need(item, "this") if isinstance(item, exp.Alias) else item

    def _in_group_by(self, node: exp.Expr, binder: ExpressionBinder) -> Expression | None:
        if aggregate_name(node, self.catalog):
            raise binder.error("An aggregate cannot be grouped by.", node, hint="use a sub-query")
        if not isinstance(node, exp.Column):
            return None
        alias = None if self.scope.has(node) else self._aliased(node)
        return self.scope.column(node) if alias is None else self._named_key(alias, node)

    def _named_key(self, alias: exp.Expr, node: exp.Expr) -> Expression:
        self.reading.name(node)
        if any(aggregate_name(n, self.catalog) for n in alias.walk()):
            raise self.reading.error(
                "An aggregate cannot be grouped by.", node, got=shown(alias), hint="use a sub-query"
            )
        self.grouping.sizes.add(self._size(alias))
        return self.below.bind(alias)

    def _add_key(self, bound: Expression) -> str:
        grouping = self.grouping
        name = fresh(f"__key{len(grouping.keys)}", self.scope.node.schema.names)
        if isinstance(bound, Column) and bound.name.lower() not in WINDOW_FIELDS:
            name = bound.name
        grouping.keys[name] = bound
        return name

    def _add_partition(self) -> None:
        """The partitioning attributes of a window are keys, too."""
        window = self._window
        if not isinstance(window, PartitionedWindow):
            return
        names = []
        for name in window.partition:
            key = Column(name, self.scope.node.schema[name].type)
            known = next((n for n, bound in self.grouping.keys.items() if bound == key), None)
            names.append(known if known is not None else self._add_key(key))
            self.grouping.sizes.add(1)
        self._window = replace(window, partition=tuple(names))

    def _bind_window(self, tree: exp.Expr) -> AnyWindow | None:
        """The window; None where groups are complete without one."""
        if self.window_binder is not None:
            return self.window_binder.bind()
        schema = self.scope.node.schema
        if self._by_both_times():
            return None
        found = window_of_keys(self.scope.node, self.grouping.keys)
        if found is not None:
            window, self._times = found
            return window
        if self._completes():
            return None
        at = next((n for item in self.items for n in item.walk() if aggregate_name(n, self.catalog)), tree)
        raise self._windowless(at, schema)

    def _by_both_times(self) -> bool:
        """Whether several attributes that progress are grouped by: a group is complete when they all passed it."""
        node = self.scope.node
        grouped = {bound.name for bound in self.grouping.keys.values() if isinstance(bound, Column)}
        timed = [attribute for attribute in progressing(node) if attribute in grouped]
        return len(timed) > 1 and node.schema.time not in timed

    def _completes(self) -> bool:
        """Whether the stream promises of the groups that they are complete."""
        columns = [bound.name for bound in self.grouping.keys.values() if isinstance(bound, Column)]
        return completing(self.scope.node, columns) is not None

    def _windowless(self, at: exp.Expr, schema: Schema) -> QueryError:
        told = [n for n in self.scope.node.walk() if isinstance(n, Source) and n.speaks_of_groups]
        columns = ", ".join(dict.fromkeys(n.schema.fields[i].name for n in told for i in n.per)) or "columns"
        lengths = "RANGE 10 minutes, SLIDE 1 minute" if schema.domain is Domain.TIMESTAMP else "RANGE 100, SLIDE 10"
        return self.reading.error(
            "An aggregate over a stream needs a window: without one it never completes.",
            at,
            got=shown(at),
            hint=f"add [{lengths}, WA {schema.time}] after it, or GROUP BY {schema.time}; or GROUP BY {columns} of "
            "which every stream says when a group is complete, pk.punctuated(…, per=[…], final=True)",
        )

    # What names mean above the aggregation

    def _in_select(self, node: exp.Expr) -> Expression | None:
        known = self._known(node)
        if known is None and isinstance(node, exp.Column):
            raise self._not_grouped(node)
        return known

    def _in_having(self, node: exp.Expr) -> Expression | None:
        known = self._known(node)
        if known is not None or not isinstance(node, exp.Column):
            return known
        alias = self._aliased(node)
        if alias is None:
            raise self._not_grouped(node)
        self.reading.name(node)
        return self.select.bind(alias)

    def _known(self, node: exp.Expr) -> Expression | None:
        """A group key, an aggregate or a column of the window."""
        key = self._key(node)
        if key is not None:
            return key
        function = aggregate_name(node, self.catalog)
        if function is not None:
            return self._call(function, node)
        name = self.window_binder.column(node) if self.window_binder is not None else None
        if self.window_binder is None and self._window is not None and is_of_window(node):
            name = self.reading.name(node).lower()
        if self._window is not None and name is not None:
            (field,) = [f for f in window_fields(self._window) if f.name == name]
            return Column(name, field.type)
        return None

    def _key(self, node: exp.Expr) -> Column | None:
        """The group key that a node is."""
        if isinstance(node, exp.Column) and not self.scope.has(node):
            return None
        if isinstance(node, exp.Paren) or self._size(node) not in self.grouping.sizes:
            return None
        if any(aggregate_name(n, self.catalog) for n in node.walk()):
            return None
        try:
            bound = self.below.bind(node)
        except QueryError:
            return None  # the binder above says what is wrong with it, or knows it
        for name, key in self.grouping.keys.items():
            if key == bound:
                return Column(name, key.type)
        return None

    def _size(self, node: exp.Expr) -> int:
        if id(node) not in self._sizes:
            self._sizes.update(_sizes(node))
        return self._sizes[id(node)]

    def _not_grouped(self, node: exp.Expr) -> QueryError:
        self.scope.column(node)
        return self.reading.error(
            "The column is neither grouped nor aggregated.",
            node,
            got=node.name,
            hint=f"add {node.name} to GROUP BY, or aggregate it",
        )

    def _aliased(self, node: exp.Expr) -> exp.Expr | None:
        """What a name without a qualifier stands for in the select list; an error if it stands for two things."""
        if node.args.get("table") is not None:
            return None
        found = [i for i in self.items if isinstance(i, exp.Alias) and i.alias.lower() == node.name.lower()]
        if len(found) > 1:
            raise self.reading.error(
                "The alias is given twice in the select list.", node, got=node.name, hint="give each its own"
            )
        return self.reading.need(found[0], "this") if found else None

    # Aggregates

    def _call(self, function: str, node: exp.Expr) -> Expression:
        reading, below = self.reading, self.below
        argument, distinct = self._argument(node)
        record = find(function)
        if argument is None and not (record is not None and record.takes_star):
            raise below.error("Only count takes *.", node)
        if distinct and record is not None and record.ignores_distinct:
            distinct = False
        if distinct and find(function, distinct=True) is None:
            raise below.error("DISTINCT is supported in count only.", node)
        if record is None:
            reading.name(node)
            type_ = self.catalog.aggregates[function.removeprefix(USER)][1]
        else:
            found = record.type_of(argument.type if argument is not None else None)
            if found is None:
                raise below.error(
                    f"{function} does not apply to this type.", node, got=str(argument.type if argument else "*")
                )
            type_ = found
        grouping, key, taken = self.grouping, (function, argument, distinct), self.scope.node.schema.names
        if key not in grouping.calls:
            name = None
            if argument is not None:
                name = grouping.arguments.setdefault(argument, fresh(f"__arg{len(grouping.arguments)}", taken))
            of_type = argument.type if argument is not None else None
            called = fresh(f"__agg{len(grouping.calls)}", taken)
            grouping.calls[key] = AggregateCall(function, name, type_, called, distinct, of_type)
        return Column(grouping.calls[key].name, type_)

    def _argument(self, node: exp.Expr) -> tuple[Expression | None, bool]:
        """What an aggregate is of, None for `*`, and whether only distinct values count."""
        reading, below = self.reading, self.below
        if isinstance(node, exp.Anonymous):
            args = reading.parts(node, "expressions")
        else:
            reading.value(node, "big_int")  # in which type other dialects count
            inner = reading.part(node, "this")
            args = [*([inner] if inner is not None else []), *reading.parts(node, "expressions")]
        if len(args) != 1:
            raise below.error("An aggregate takes one argument.", node)
        (inner,) = args
        distinct = isinstance(inner, exp.Distinct)
        if distinct:
            of = reading.parts(inner, "expressions")
            if len(of) != 1:
                raise below.error("DISTINCT takes one expression here.", node)
            (inner,) = of
            if isinstance(inner, exp.Star):
                raise below.error("DISTINCT takes an expression, not *.", node, hint="name a column")
        if any(aggregate_name(n, self.catalog) for n in inner.walk()):
            raise below.error("An aggregate cannot stand inside another.", node, hint="use a sub-query")
        return (None if isinstance(inner, exp.Star) else below.bind(inner)), distinct

    def _inputs(self) -> Node:
        """A projection to what the aggregation reads: time, keys, arguments."""
        node, window = self.scope.node, self._window
        time = str(node.schema.time) if window is None else window.attribute
        of_time = self._times.get(time)
        columns: dict[str, Expression] = {time: of_time or Column(time, node.schema[time].type)}
        for name, bound in self.grouping.keys.items():
            columns.setdefault(name, bound)
        if isinstance(window, SlideByTupleWindow) and window.number is not None:
            columns[window.number] = Column(window.number, node.schema[window.number].type)
        for bound, name in self.grouping.arguments.items():
            columns[name] = bound
        made = {name for name, bound in columns.items() if not (isinstance(bound, Column) and bound.name == name)}
        hidden = frozenset({time} - set(self.grouping.keys))
        return Project(node, tuple(columns.items()), time, hidden, frozenset(made))


def _sizes(tree: exp.Expr) -> dict[int, int]:
    """How many nodes each node of a tree has in it, by identity; parentheses and parts of names do not count."""
    sizes: dict[int, int] = {}
    for node in reversed(list(tree.walk())):  # parts before wholes
        own = 0 if isinstance(node, exp.Paren | exp.Identifier | ClauseNode) else 1
        sizes[id(node)] = own + sum(sizes[id(part)] for part in node.iter_expressions())
    return sizes
