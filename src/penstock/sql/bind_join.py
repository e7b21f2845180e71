"""Several relations in FROM: who meets whom, and for how long.

Relations are joined one after the other, in the order in which they are written. Conditions of inner joins, and those
in WHERE that speak of relations joined so, are sorted by what they are about: one relation (it is chosen from before it
is joined), equal columns, the difference of two times (`plan/differences.py`), and the rest. An outer join takes its
conditions from its own ON. Windows after the relations say the same as conditions on the times (`join_windows.py`).

A join needs an end for every row: the difference of two times that progress must be bounded on both sides. Where it is
not, the query is refused, with what to add.

Tables are joined without such an end (`bind_lookup.py`), and so are the latest rows of a stream (`bind_latest.py`).

Columns are told apart by the relation that they are of. Those of one name are called after both (`a_id` and `b_id`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from penstock.model.schema import BOOLEAN
from penstock.plan.catalog import Catalog
from penstock.plan.differences import Difference, differences, split
from penstock.plan.expressions import Call, Column, Expression, balanced, columns_in, conjunction, renamed
from penstock.plan.join_nodes import Band, Join, JoinKind, Near
from penstock.plan.nodes import Node, Select
from penstock.plan.progressing import distance, progressing
from penstock.plan.typing import common_type
from penstock.sql.aggregate_names import aggregate_name
from penstock.sql.bands import check_band
from penstock.sql.bind_expression import ExpressionBinder
from penstock.sql.bind_latest import check_method, joined_latest, takes_latest
from penstock.sql.bind_lookup import bind_version, looked_up
from penstock.sql.join_sides import Sides, first_columns
from penstock.sql.join_windows import Found, Held, JoinWindows
from penstock.sql.one_window import in_one_window
from penstock.sql.operands import Operand, columns_of_all, name_all, scope_of
from penstock.sql.reading import Reading
from penstock.sql.scope import Scope
from penstock.sql.subqueries import SubQuery
from penstock.sql.unbounded import Unbounded

_KINDS: dict[tuple[str, str], JoinKind] = {
    ("", ""): "inner", ("", "INNER"): "inner", ("", "CROSS"): "inner",
    ("LEFT", ""): "left", ("LEFT", "OUTER"): "left", ("RIGHT", ""): "right", ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full", ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi", ("LEFT", "ANTI"): "anti", ("", "SEMI"): "semi", ("", "ANTI"): "anti",
}  # fmt: skip
_EMPTY_ON = re.compile(r"\bON\s*($|[),;]|(WHERE|JOIN|LEFT|RIGHT|FULL|INNER|CROSS|GROUP|HAVING)\b)", re.IGNORECASE)


class JoinBinder:
    """Binds the joins of one SELECT."""

    def __init__(self, catalog: Catalog, reading: Reading, operands: Sequence[Operand]) -> None:
        """The relations in the order in which they are written."""
        self.catalog, self.reading, self.operands = catalog, reading, list(operands)
        self.error = reading.error
        self._check_names()
        self._merge_named()
        name_all(self.operands)
        self.windows = JoinWindows(self.operands, reading)

    @staticmethod
    def kind_of(reading: Reading, join: exp.Expr) -> JoinKind:
        """What a join keeps."""
        side, kind = (str(reading.value(join, arg) or "").upper() for arg in ("side", "kind"))
        found = _KINDS.get((side, kind))
        check_method(reading, join, found)
        if found is None:
            raise reading.error(
                "This kind of join is not supported.",
                join,
                got=f"{side} {kind} JOIN".strip(),
                hint="use INNER, LEFT, RIGHT or FULL OUTER, LEFT SEMI or LEFT ANTI",
            )
        return found

    def bind(self, where: Sequence[exp.Expr]) -> tuple[Scope, list[Expression]]:
        """The joined rows with their names, and what WHERE asks beyond what the joins have taken care of.

        `where` are the conditions that WHERE joins by AND, without those that are sub-queries.
        """
        outside = self._scope(columns_of_all(self.operands), [o for o in self.operands if o.asked is None])
        binder = ExpressionBinder(self.catalog, self.reading, lambda n: self._column(n, outside, binder))
        wanted = [each for condition in where for each in split(binder.predicate(condition))]
        for operand in self.operands[1:]:
            bind_version(operand, binder, self.reading)
            if operand.asked is None:
                self._bind_on(operand, binder)
            else:
                self._bind_asked(operand, operand.asked, outside, binder)
        free = all(o.kind in ("inner", "semi", "anti") for o in self.operands[1:])
        pool = wanted if free else []
        node, names = self.operands[0].node, list(self.operands[0].names)
        node = self._chosen(self.operands[0], pool) if free else node
        for at in range(1, len(self.operands)):
            node, names = self._joined(node, names, at, pool)
        gone = {id(o) for o in self.operands[1:] if o.kind in ("semi", "anti")}
        left = [o for o in self.operands if id(o) not in gone]
        return self._scope(node, left), (pool if free else wanted)

    # Names

    def _check_names(self) -> None:
        """Refuse two relations of one name; a sub-query's may be that of one outside, which it then means by it."""
        seen: set[str] = set()
        for operand in self.operands:
            again = operand.scope.qualifiers & seen
            if again and operand.asked is None:
                name = min(again)
                raise self.error(
                    "Two relations have the same name.", operand.tree, got=name, hint=f"write {name} AS another name"
                )
            seen |= operand.scope.qualifiers

    def _scope(self, node: Node, operands: Sequence[Operand], *, merges: bool = True) -> Scope:
        return scope_of(node, operands, self.reading, merges=merges)

    def _column(self, node: exp.Expr, scope: Scope, binder: ExpressionBinder) -> Expression | None:
        if aggregate_name(node, self.catalog):
            raise binder.error("An aggregate cannot stand here.", node, hint="use HAVING for conditions on aggregates")
        return scope.column(node) if isinstance(node, exp.Column) else None

    def _bind_asked(self, operand: Operand, asked: SubQuery, outside: Scope, above: ExpressionBinder) -> None:
        """The conditions of a sub-query: names are those of its own relation, where that has them."""
        inside = self._scope(columns_of_all(self.operands), [operand])

        def resolve(node: exp.Expr) -> Expression | None:
            own = isinstance(node, exp.Column) and inside.has(node)
            return self._column(node, inside if own else outside, binder)

        binder = ExpressionBinder(self.catalog, self.reading, resolve)
        if asked.where is not None:
            operand.on = split(binder.predicate(asked.where))
        if asked.member is not None:
            outer, inner = asked.member
            one, other = above.bind(outer), binder.bind(inner)
            if common_type(one.type, other.type) is None:
                raise self.error("These types cannot be compared.", outer, got=f"{one.type} and {other.type}")
            same: Expression = Call("eq", (one, other), BOOLEAN)
            if asked.negated:  # unless all comparisons are false, it is not true
                nulls = [Call("is_null", (side,), BOOLEAN) for side in (one, other) if not self._is_time(side)]
                same = balanced("or", [same, *nulls])
            operand.on.append(same)

    def _is_time(self, expression: Expression) -> bool:
        """Whether it is the time of a stream, which is never null, or only where a row has no partner."""
        sure = all(o.kind in ("inner", "semi", "anti") for o in self.operands[1:])
        times = [o.names[o.node.schema.time_index] for o in self.operands if sure and not o.is_table]
        return isinstance(expression, Column) and expression.name in times

    def _bind_on(self, operand: Operand, binder: ExpressionBinder) -> None:
        """The conditions of ON and of USING."""
        assert operand.join is not None
        on = self.reading.part(operand.join, "on")
        if isinstance(on, exp.Boolean) and _EMPTY_ON.search(self.reading.sql):  # which is read as TRUE
            raise self.error("Nothing stands after ON.", operand.join, hint="write which rows meet, or leave ON out")
        if on is not None:
            operand.on = split(binder.predicate(on))
            known = {n for o in self.operands[: self.operands.index(operand) + 1] for n in o.names}
            if any(not columns_in(c) <= known for c in operand.on):
                raise self.error("ON speaks of a relation that is joined later.", on, hint="join that one first")
        for using in self.reading.parts(operand.join, "using"):
            operand.on.append(self._same(operand, using))
        if operand.kind != "inner" and not operand.on and not any(o.clause for o in self.operands):
            raise self.error(
                "The join does not say which rows meet.", operand.join, got=operand.kind.upper(), hint="add ON …"
            )

    def _merge_named(self) -> None:
        """Columns in USING are, without a qualifier, those of the side that is never missing."""
        for at, operand in enumerate(self.operands):
            for using in operand.join.args.get("using") or () if operand.join is not None else ():
                if operand.kind == "full":
                    raise self.error(
                        "USING does not say which side a column is of, where either may be missing.", using,
                        got=using.name, hint="use ON, and coalesce(a.x, b.x) in the select list",
                    )  # fmt: skip
                for each in self.operands[:at] if operand.kind == "right" else [operand]:
                    each.merged.add(using.name.lower())

    def _same(self, operand: Operand, using: exp.Expr) -> Expression:
        """A column of a name on both sides."""
        name = using.name
        self.reading.whole(using)
        before = self.operands[: self.operands.index(operand)]
        left = self._scope(columns_of_all(self.operands), before, merges=operand.kind != "right")
        right = self._scope(columns_of_all(self.operands), [operand], merges=False)
        found = [left.called(name), right.called(name)]
        if any(len(each) != 1 for each in found):
            raise self.error("USING needs a column of that name on both sides, once.", using, got=name, hint="use ON")
        one, other = (Column(each[0], left.node.schema[each[0]].type) for each in found)
        common = common_type(one.type, other.type)
        if common is None:
            raise self.error("These types cannot be compared.", using, got=f"{one.type} and {other.type}")
        return Call("eq", (one, other), BOOLEAN)

    # Joining

    def _chosen(self, operand: Operand, pool: list[Expression]) -> Node:
        """A relation's rows that WHERE asks for, where it asks for nothing else; what that says is taken out."""
        about = [c for c in pool if columns_in(c) and columns_in(c) <= set(operand.names)]
        if not about:
            return operand.node
        pool[:] = [c for c in pool if not any(c is taken for taken in about)]
        return Select(operand.node, renamed(conjunction(about), {n: operand.own(n) for n in operand.names}))

    def _joined(self, left: Node, names: list[str], at: int, pool: list[Expression]) -> tuple[Node, list[str]]:
        operand = self.operands[at]
        if takes_latest(operand):
            return joined_latest(left, names, operand, pool, self.reading)
        conditions = list(operand.on)
        right = operand.node
        if operand.kind == "inner":
            known = {*names, *operand.names}
            usable = [c for c in pool if columns_in(c) & set(operand.names) and columns_in(c) <= known]
            pool[:] = [c for c in pool if not any(c is taken for taken in usable)]
            conditions += usable
        if operand.is_table:
            return looked_up(left, names, operand, conditions, self.reading)
        if operand.kind == "inner":
            right = self._chosen(operand, conditions)
        near, on, conditions = self._near(left, names, at, conditions)
        sides = Sides(left, list(names), right, list(operand.names))
        equal, rest = sides.equalities(conditions)
        called = (*sides.left_names, *sides.right_names)
        condition = conjunction(rest) if rest else None
        inner = operand.kind == "inner"
        on = sides.left_own(on[0]), sides.right_own(on[1])
        self._check_alike(sides, on, operand)
        joined: Node = Join(
            sides.left, sides.right, operand.kind, near, on, tuple(equal), called, None if inner else condition
        )
        if inner and condition is not None:
            joined = Select(joined, condition)
        if operand.kind in ("semi", "anti"):
            if sides.left_names != names:  # a column was computed to be compared
                joined = first_columns(joined, len(names))
            return joined, list(names)
        return joined, [f.name for f in joined.schema.fields]

    def _check_alike(self, sides: Sides, on: tuple[str, str], operand: Operand) -> None:
        """Times that are to be near each other are of one type."""
        types = sides.left.schema[on[0]].type, sides.right.schema[on[1]].type
        if types[0] != types[1]:
            raise self.error(
                "The times of the two streams are of different types.",
                operand.join or operand.tree,
                got=f"{on[0]} {types[0]} and {on[1]} {types[1]}",
                hint="declare both streams with the same kind of time",
            )

    # How near

    def _near(
        self, left: Node, names: list[str], at: int, conditions: list[Expression]
    ) -> tuple[Near, tuple[str, str], list[Expression]]:
        """How near rows are to be, on which attributes, and the conditions that do not say so, or further windows."""
        lefts = {names[left.schema.index(name)]: None for name in progressing(left)}
        tumbling = self.windows.tumbling(at)
        if tumbling is not None:
            window, others, own = tumbling
            other = next((name for name in reversed(others) if name in lefts), None)
            if other is None:
                raise Unbounded(left, names, self.operands, at, conditions, {}, self.reading).error()
            return window, (other, own), conditions
        rights, distances = self.operands[at].times, self._distances(left, names, at)
        times = {**lefts, **dict.fromkeys(self.windows.attributes(at))}
        found = differences(conditions, times, rights, distances)
        held = self.windows.held(at, found)
        if held:
            usable = self._within(held, found, at)
            usable = {on: band for on, band in usable.items() if on[0] in lefts} or self._of_pairs(left, names, held)
            if not usable:
                raise Unbounded(left, names, self.operands, at, conditions, {}, self.reading).error()
            on = min(reversed(usable), key=lambda on: usable[on].high - usable[on].low)
            rest = _without(conditions, found[on][1] if on in found else [])
            return usable[on], on, [*rest, *(each.condition for each in held if each.on != on)]
        for known_as in (None, distances):
            found = differences(conditions, lefts, rights, known_as)
            for on, (known, said) in found.items():
                if known.low is not None and known.high is not None:
                    self._check_band(on, known, at)
                    return Band(known.low, known.high), on, _without(conditions, said)
        same = in_one_window(left, names, self.operands[at], conditions)
        if same is not None:
            cut, on, said = same
            return cut, on, _without(conditions, said)
        one_sided = {on: known for on, (known, _) in found.items()}
        raise Unbounded(left, names, self.operands, at, conditions, one_sided, self.reading).error()

    def _within(self, held: Sequence[Held], found: Found, at: int) -> dict[tuple[str, str], Band]:
        """The bands that windows and conditions together come to."""
        bands = {on: Difference(known.low, known.high) for on, (known, _) in found.items()}
        for each in held:
            if not each.may_miss:
                bands.setdefault(each.on, Difference()).narrow(each.low, each.high)
        for on, known in bands.items():
            if known.low is not None and known.high is not None:
                self._check_band(on, known, at, "widen the windows after the streams, or leave out such conditions")
        return {on: Band(b.low, b.high) for on, b in bands.items() if b.low is not None and b.high is not None}

    @staticmethod
    def _of_pairs(left: Node, names: list[str], held: Sequence[Held]) -> dict[tuple[str, str], Band]:
        """The band to the latest of several times, where bounds on none of them come through, as after the latest rows.

        What is near each of the times is near the latest, and not later than the first of the ends.
        """
        if any(each.may_miss for each in held):
            return {}
        time, own = names[left.schema.time_index], held[0].own.name
        return {(time, own): Band(min(each.low for each in held), min(each.high for each in held))}

    def _distances(self, left: Node, names: list[str], at: int) -> dict[str, tuple[str, int]]:
        """Columns of both sides that are attributes with something added, such as the start of a window."""
        found: dict[str, tuple[str, int]] = {}
        for node, called in ((left, names), (self.operands[at].node, self.operands[at].names)):
            for own, name in zip(node.schema.names, called, strict=True):
                known = distance(node, own)
                if known is not None:
                    found[name] = called[node.schema.index(known[0])], known[1]
        return found

    def _check_band(self, on: tuple[str, str], known: Difference, at: int, hint: str = "") -> None:
        operand = self.operands[at]
        domain = operand.node.schema[operand.own(on[1])].type.domain
        check_band(self.reading, operand.join or operand.tree, known, domain, hint)


def _without(conditions: Sequence[Expression], taken: Sequence[Expression]) -> list[Expression]:
    """The conditions that are not among those that were taken care of."""
    return [c for c in conditions if not any(c is each for each in taken)]
