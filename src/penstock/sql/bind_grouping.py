"""A SELECT with aggregates: its keys, its aggregate calls, what the select list and HAVING make of them.

Names mean what they mean in Spark:

- in GROUP BY and inside an aggregate: a column of the input; in GROUP BY, where the input has none of that name, an
  alias of the select list;
- in the select list: a group key, a column of the window, nothing else;
- in HAVING, outside aggregates: a group key, a column of the window, else an alias of the select list.

A part of an expression is a group key if it is bound to the same as one, however it is written.

In the aggregation of one of several grouping sets the keys of the others are null, and `grouping` and `grouping_id` are
constants (`bind_grouping_sets`).

Without a window clause it takes GROUP BY on the stream's own time, which is a window of one tick, or on columns of
which the stream promises that groups are complete (`plan.complete`), or on both times of a join; then there are no
columns of a window.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.errors import QueryError
from penstock.model.schema import BIGINT, Schema, parse_type
from penstock.model.time import Domain
from penstock.plan.catalog import Catalog
from penstock.plan.complete import completing
from penstock.plan.expressions import Column, Expression, Literal
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
from penstock.sql.aggregate_names import REFUSED, aggregate_name
from penstock.sql.bind_aggregate import AggregateBinder
from penstock.sql.bind_expression import ExpressionBinder
from penstock.sql.bind_nested import comparable
from penstock.sql.bind_window import WindowBinder, is_of_window, window_of_keys
from penstock.sql.clause import ClauseNode
from penstock.sql.grouping_sets import GroupingSets, Keys
from penstock.sql.naming import fresh, is_named, item_name, projected, refuse_twice, shared_names, unique
from penstock.sql.reading import shown
from penstock.sql.scope import Scope


@dataclass
class _Grouping:
    """The keys of the aggregation that a SELECT is being turned into."""

    keys: dict[str, Expression] = field(default_factory=dict)
    """What is grouped by, under the names that it has below the select list."""
    known: list[Expression] = field(default_factory=list)
    """The keys of all grouping sets."""
    sizes: set[int] = field(default_factory=set)
    """How many nodes the keys have as they are written: nothing of another size is worth a comparison."""


class GroupingBinder:
    """Binds the aggregation of one SELECT, or of one of its grouping sets."""

    def __init__(
        self,
        catalog: Catalog,
        scope: Scope,
        items: list[exp.Expr],
        window: WindowBinder | None,
        below: ExpressionBinder,
        sets: GroupingSets,
    ) -> None:
        """`below` binds expressions over the rows that are aggregated."""
        self.catalog, self.scope, self.items, self.below = catalog, scope, items, below
        self.reading = scope.reading
        self.window_binder = window
        self.sets = sets
        self.grouping = _Grouping()
        self.aggregates = AggregateBinder(catalog, below, lambda: self.scope.node.schema.names, self._time)
        self._window: AnyWindow | None = None
        self._sizes: dict[int, int] = {}
        self._times: dict[str, Expression] = {} if window is None else window.times
        """What windows stand on that is computed from an attribute, as an expression over it."""
        self.select = ExpressionBinder(catalog, self.reading, self._in_select)
        self.having = ExpressionBinder(catalog, self.reading, self._in_having)

    def bind(self, tree: exp.Expr, own: Keys, having: exp.Expr | None) -> Node:
        """The plan: rows brought to keys and arguments, the aggregation by its own keys, HAVING, the select list."""
        self._bind_keys(own)
        if self.window_binder is not None:
            self.window_binder.check_grouped(tree)
        self._window = self._bind_window(tree)
        self._add_partition()
        # The select list first: a HAVING that comes later then changes nothing below it, unless it asks for more.
        columns, made = self._columns()
        predicate = self.having.predicate(self.reading.need(having, "this")) if having is not None else None
        refuse_twice(self.items, self.reading, self.scope, shared_names(self.items, self.scope))
        keys, calls = tuple(self.grouping.keys), tuple(self.aggregates.calls.values())
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
            name = item_name(item, self._unless_absent(item, bound), len(columns), self.reading, self.scope, shared)
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

    def _bind_keys(self, own: Keys) -> None:
        binder = ExpressionBinder(self.catalog, self.reading, lambda n: self._in_group_by(n, binder))
        for key in self.sets.keys:
            source = self._at_position(key)
            if self.window_binder is not None and self.window_binder.takes_key(source):
                continue
            if self.scope.is_star(source):
                raise self.reading.error("GROUP BY takes columns and expressions.", source, got="*")
            bound = binder.bind(source)
            comparable(binder, bound.type, source)
            if bound not in self.grouping.known:
                self.grouping.known.append(bound)
            if any(key is each for each in own):
                self._add_key(bound)
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
        known = next((name for name, key in grouping.keys.items() if key == bound), None)
        if known is not None and self.sets.are_said:
            return known
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
        said = (self.scope.said(name) for name in progressing(self.scope.node))
        time = next((name for name in said if name is not None), None)
        add = f"add [{lengths}, WA {time}] after it, or GROUP BY {time}"
        if time is None:
            add = f"select the time in the sub-query AS t, and add [{lengths}, WA t] after the aggregate"
        return self.reading.error(
            "An aggregate over a stream needs a window: without one it never completes.",
            at,
            got=shown(at),
            hint=f"{add}; or GROUP BY {columns} of which every stream says when a group is complete, "
            "pk.punctuated(…, per=[…], final=True)",
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
        called = self.aggregates.bind(node)
        if called is not None:
            return called
        if isinstance(node, exp.Anonymous) and node.name.lower() in ("grouping", "grouping_id"):
            return self._grouping_id(node)
        name = self.window_binder.column(node) if self.window_binder is not None else None
        if self.window_binder is None and self._window is not None and is_of_window(node):
            name = self.reading.name(node).lower()
        if self._window is not None and name is not None:
            (field,) = [f for f in window_fields(self._window) if f.name == name]
            return Column(name, field.type)
        return None

    def _key(self, node: exp.Expr) -> Column | Literal | None:
        """The group key that a node is; null if it is one of another grouping set."""
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
        return Literal(None, bound.type) if bound in self.grouping.known else None

    def _unless_absent(self, item: exp.Expr, bound: Expression) -> Expression:
        """What a column of the result is named by: the column, also where it is null in this grouping set."""
        if not isinstance(item, exp.Column) or not isinstance(bound, Literal):
            return bound
        column = self.scope.column(item)
        return column if column.name.lower() not in WINDOW_FIELDS else replace(column, name=f"__{column.name}")

    def _grouping_id(self, node: exp.Expr) -> Expression:
        """A bit per key, the first one highest: set where the key is not of this grouping set."""
        name = self.reading.name(node).lower()
        written = self.reading.parts(node, "expressions")
        if not self.sets.are_said:
            raise self.below.error(f"{name} is not supported here.", node, hint=REFUSED[name])
        if name == "grouping" and len(written) != 1:
            raise self.below.error("grouping takes one key.", node, hint="write grouping_id for several")
        keys = [self._any_key(each) for each in written] or self.grouping.known
        bits = 0
        for key in keys:
            bits = 2 * bits + (key not in self.grouping.keys.values())
        return Literal(bits, parse_type("tinyint") if name == "grouping" else BIGINT)

    def _any_key(self, node: exp.Expr) -> Expression:
        bound = self.below.bind(node)
        if bound not in self.grouping.known:
            raise self.below.error("This is no key of GROUP BY.", node, hint="name what is grouped by")
        return bound

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

    def _time_name(self) -> str:
        """What that is called which windows are on; without them, the time of the stream."""
        return str(self.scope.node.schema.time) if self._window is None else self._window.attribute

    def _time(self) -> Expression:
        """What windows are on, over the rows that are aggregated."""
        name = self._time_name()
        return self._times.get(name) or Column(name, self.scope.node.schema[name].type)

    def _inputs(self) -> Node:
        """A projection to what the aggregation reads: time, keys, arguments."""
        node, window = self.scope.node, self._window
        time = self._time_name()
        columns: dict[str, Expression] = {time: self._time()}
        for name, bound in self.grouping.keys.items():
            columns.setdefault(name, bound)
        if isinstance(window, SlideByTupleWindow) and window.number is not None:
            columns[window.number] = Column(window.number, node.schema[window.number].type)
        for bound, name in self.aggregates.arguments.items():
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
