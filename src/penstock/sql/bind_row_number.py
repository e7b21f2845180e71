"""ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) in a select list: rows numbered within a window that tumbles.

Flink writes the first n of a window (top-n) and the first or last of rows that are alike (deduplication) so:

    SELECT … FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, auction ORDER BY price DESC) AS rn
        FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))
    ) WHERE rn <= 10

PARTITION BY says which window is meant: by the bounds of a table of windows, by `window_end` of a sub-query that has
windows, or by any attribute that progresses, which is a window of one tick. Without that a number is never final, and
is refused. Other functions, frames and windows that overlap are refused too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.plan.expressions import Column, Expression
from penstock.plan.nodes import WINDOW_FIELDS, Node, Project, RowNumber
from penstock.plan.rank_nodes import Sorting
from penstock.plan.windows import SlidingWindow
from penstock.sql.bind_expression import ExpressionBinder
from penstock.sql.bind_window import WindowBinder, window_of_keys
from penstock.sql.clause import Form
from penstock.sql.naming import fresh, is_named, item_name, projected, refuse_twice, shared_names, starred, unique
from penstock.sql.reading import Reading, shown
from penstock.sql.refusals import instead_of_over
from penstock.sql.scope import Scope


def numbering_among(items: list[exp.Expr], reading: Reading) -> exp.Expr | None:
    """The item of a select list that is a row number; any other OVER is refused."""
    found: exp.Expr | None = None
    for item in items:
        inner = item.this if isinstance(item, exp.Alias) else item
        for node in item.find_all(exp.Window):
            called = node.this
            is_number = isinstance(called, exp.RowNumber) or (
                isinstance(called, exp.Anonymous) and called.name.lower() == "row_number" and not called.expressions
            )
            if node is not inner or not is_number:
                raise reading.error("OVER is not supported.", node, got=shown(node), hint=instead_of_over(node))
            if found is not None:
                raise reading.error(
                    "Rows are numbered once in a SELECT.", node, got=shown(node), hint="number them in a sub-query too"
                )
            found = item
    return found


@dataclass
class RowNumberBinder:
    """Binds the select list of one SELECT with a row number."""

    scope: Scope
    items: list[exp.Expr]
    numbering: exp.Expr
    window: WindowBinder | None
    binder: ExpressionBinder
    reading: Reading

    def bind(self) -> Node:
        """The rows with their numbers, and what the select list makes of them."""
        call = self.reading.need(self.numbering, "this") if isinstance(self.numbering, exp.Alias) else self.numbering
        self.reading.whole(self.reading.need(call, "this"))
        self.reading.value(call, "over")
        if self.scope.node.schema.lives is not None:
            raise self.reading.error("Rows with lives of their own cannot be numbered.", call, got=shown(call))
        keys, by_window = self._keys(call)
        window, times = self._window(call, keys, by_window=by_window)
        order = self._order(call)
        below = self._inputs(window, times, keys, [(name, e) for name, e, _, _ in order])
        alias = self.reading.name(self.numbering, "alias") if isinstance(self.numbering, exp.Alias) else "row_number"
        names = below.schema.names
        if self.window is not None:
            taken = [name for name in WINDOW_FIELDS[1:] if name in {n.lower() for n in names}]
            if taken:
                raise self.reading.error("The rows have a column of the window's name.", call, got=taken[0])
        bounds = [name if self.window is not None else fresh(f"__{name}", names) for name in WINDOW_FIELDS[1:]]
        number = fresh(alias, [*names, *bounds])
        grouped = tuple(name for name in keys if not (window.range == 1 and name == window.attribute))
        sorting = tuple(Sorting(name, descending, nulls_last) for name, _, descending, nulls_last in order)
        made = RowNumber(below, window, grouped, sorting, (bounds[0], bounds[1]), number)
        return self._selected(made, alias)

    def _keys(self, call: exp.Expr) -> tuple[dict[str, Expression], bool]:
        """What PARTITION BY names, under names that it has below, and whether bounds of the window are among it."""
        keys: dict[str, Expression] = {}
        by_window = False
        for at, node in enumerate(self.reading.parts(call, "partition_by")):
            if self.window is not None and self.window.is_own(node):
                self.reading.whole(node)
                by_window = True
                continue
            bound = self.binder.bind(node)
            keys[bound.name if isinstance(bound, Column) else self._fresh(f"__key{at}")] = bound
        return keys, by_window

    def _order(self, call: exp.Expr) -> list[tuple[str, Expression, bool, bool]]:
        """What ORDER BY names: the column below, the expression, whether it falls and where nulls are."""
        order = self.reading.part(call, "order")
        if order is None:
            raise self.reading.error("Rows are numbered in an order.", call, got=shown(call), hint="add ORDER BY")
        found = []
        for at, node in enumerate(self.reading.parts(order, "expressions")):
            bound = self.binder.bind(self.reading.need(node, "this"))
            name = bound.name if isinstance(bound, Column) else self._fresh(f"__order{at}")
            falls, nulls_first = self.reading.flag(node, "desc"), self.reading.flag(node, "nulls_first")
            found.append((name, bound, falls, not nulls_first))
        return found

    def _fresh(self, name: str) -> str:
        return fresh(name, self.scope.node.schema.names)

    def _window(
        self, call: exp.Expr, keys: dict[str, Expression], *, by_window: bool
    ) -> tuple[SlidingWindow, dict[str, Expression]]:
        """The window whose rows are numbered, and what it stands on if that is computed."""
        if self.window is not None:
            window = self.window.bind()
            if self.window.clause.form is not Form.TABLE or not isinstance(window, SlidingWindow):
                raise self.reading.error(
                    "OVER is not supported here.", call, got=shown(call), hint=instead_of_over(call)
                )
            if not window.is_tumbling:
                raise self.reading.error(
                    "Rows are numbered in windows that do not overlap.", call, got=str(window), hint="use TUMBLE"
                )
            if not by_window:
                raise self.reading.error(
                    "Rows are numbered by window.", call, got=shown(call), hint="PARTITION BY window_start, window_end"
                )
            return window, self.window.times
        found = window_of_keys(self.scope.node, keys)
        if found is None:
            raise self.reading.error(
                "A row number over a stream needs a window: without one it is never final.",
                call,
                got=shown(call),
                hint=instead_of_over(call),
            )
        return found

    def _inputs(
        self,
        window: SlidingWindow,
        times: dict[str, Expression],
        keys: dict[str, Expression],
        order: list[tuple[str, Expression]],
    ) -> Node:
        """The rows, with what is computed for keys and order, and the time that the window stands on."""
        node = self.scope.node
        schema = node.schema
        columns: dict[str, Expression] = {f.name: Column(f.name, f.type) for f in schema.fields}
        computed = {n: e for n, e in (*keys.items(), *order) if n not in columns}
        columns |= computed
        if window.attribute in times:
            columns[window.attribute] = times[window.attribute]
        if list(columns) == list(schema.names) and window.attribute == schema.time and not times:
            return node
        hidden = {f.name for f in schema.fields if f.hidden} | (computed.keys() - {window.attribute})
        return Project(node, tuple(columns.items()), window.attribute, frozenset(hidden))

    def _selected(self, made: RowNumber, alias: str) -> Node:
        """What the select list takes of the numbered rows."""
        numbered = replace(self.scope, node=made)
        shared = shared_names(self.items, self.scope)
        refuse_twice(self.items, self.reading, self.scope, shared)
        columns: list[tuple[str, Expression]] = []
        unnamed: set[int] = set()
        for item in self.items:
            inner = self.reading.need(item, "this") if isinstance(item, exp.Alias) else item
            if item is self.numbering:
                columns.append((alias, Column(made.name, made.schema[made.name].type)))
            elif self.scope.is_star(item):
                columns += starred(self.scope, item, shared)
                if self.window is not None:
                    columns += [(name, Column(name, made.schema[name].type)) for name in made.bounds]
            elif self.window is not None and self.window.is_own(inner):
                name = str(self.window.column(inner))
                if name not in made.schema:
                    raise self.reading.error("Numbered rows have no such column.", item, got=name, hint="window_end")
                columns.append((self.reading.name(item, "alias") if inner is not item else name, _column(made, name)))
            else:
                bound = self.binder.bind(inner)
                unnamed |= set() if is_named(item) else {len(columns)}
                columns.append((item_name(item, bound, len(columns), self.reading, numbered, shared), bound))
        return projected(made, unique(columns, unnamed))


def _column(node: Node, name: str) -> Column:
    return Column(name, node.schema[name].type)
