"""Joins with the latest rows of another stream, as of a row's own time.

They are written in two ways. `FROM trades t ASOF JOIN quotes q ON q.sym = t.sym AND t.ts >= q.ts`, as users of DuckDB
write it: the latest row up to `t.ts` of those that are equal; inner, or LEFT, which keeps rows that meet none. A window
after the second stream makes it the latest so many, `quotes q [ROWS 3]`, and a bound on the other side says how old the
latest may be. Or as the papers write windows, `FROM trades t, quotes q [ROWS 3, PA sym, WA ts] WHERE q.sym = t.sym`:
the last three rows of each partition, as of the time of a row of the first stream. Without PA these are the last three
of all, of which the conditions then choose.

WHERE, and without ASOF any condition but those on the partition, is asked of what was found. What is to be left out
before is said in a sub-query.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.errors import QueryError
from penstock.plan.differences import differences
from penstock.plan.expressions import Call, Column, Expression, conjunction
from penstock.plan.join_nodes import Join, JoinKind, Latest
from penstock.plan.nodes import Node, Select
from penstock.plan.progressing import progressing
from penstock.sql.bands import check_band
from penstock.sql.bind_window import WindowBinder
from penstock.sql.join_sides import Sides
from penstock.sql.operands import Operand
from penstock.sql.reading import Reading

AS_OF = "ASOF"
_INSTEAD = "write the stream whose rows come out first, ASOF JOIN or ASOF LEFT JOIN, and the other second"


def check_method(reading: Reading, join: exp.Expr, kind: JoinKind | None) -> None:
    """Refuse NATURAL joins, and as-of joins that keep another side than the first."""
    method = str(reading.value(join, "method") or "").upper()
    if method not in ("", AS_OF):
        raise reading.error(
            f"{method} joins are not supported.", join, got=method, hint="name the columns: USING (…) or ON …"
        )
    if method == AS_OF and kind not in ("inner", "left"):
        words = [str(join.args.get(word) or "").upper() for word in ("side", "kind")]
        raise reading.error(
            "An as-of join gives each row of the first stream with the latest of the second.", join,
            got=" ".join([AS_OF, *filter(None, words), "JOIN"]), hint=_INSTEAD,
        )  # fmt: skip


def takes_latest(operand: Operand) -> bool:
    """Whether a relation is joined by its latest rows."""
    return _is_as_of(operand) or is_of_rows(operand)


def is_of_rows(operand: Operand) -> bool:
    """Whether a relation has a window of its last rows."""
    clause = operand.clause
    return clause is not None and clause.range is not None and clause.range.is_rows


def _is_as_of(operand: Operand) -> bool:
    return operand.join is not None and str(operand.join.args.get("method") or "").upper() == AS_OF


def joined_latest(
    left: Node, names: list[str], operand: Operand, pool: list[Expression], reading: Reading
) -> tuple[Node, list[str]]:
    """The join of what was joined so far with a relation; conditions of `pool` that it takes care of are taken out."""
    binder = _LatestBinder(left, names, operand, reading)
    binder.check()
    joined = binder.as_of() if _is_as_of(operand) else binder.windowed(pool)
    return joined, [f.name for f in joined.schema.fields]


class _LatestBinder:
    """Binds one such join."""

    def __init__(self, left: Node, names: list[str], operand: Operand, reading: Reading) -> None:
        self.left, self.operand, self.reading = left, operand, reading
        self.sides = Sides(left, list(names), operand.node, list(operand.names))

    @property
    def tree(self) -> exp.Expr:
        return self.operand.join if self.operand.join is not None else self.operand.tree

    def check(self) -> None:
        if self.operand.is_table:
            name = self.operand.table.name
            raise self.reading.error(
                "A table has no latest row.", self.tree, got=name,
                hint=f"declare it with key=… and valid_from=…, and write JOIN {name} FOR SYSTEM_TIME AS OF s.ts",
            )  # fmt: skip
        if self.operand.kind not in ("inner", "left"):
            raise self.reading.error(
                "A window of the last rows is joined by JOIN or LEFT JOIN.", self.tree, got=self.operand.kind.upper(),
                hint="keep rows of the first stream only, or use a window of time",
            )  # fmt: skip

    # ASOF JOIN

    def as_of(self) -> Node:
        """What ON says: which columns are equal, and which of the times is not later."""
        conditions = self._conditions()
        lefts = [self.sides.left_names[self.left.schema.index(name)] for name in progressing(self.left)]
        found = differences(conditions, lefts, self.operand.times)
        usable = [(on, known, said) for on, (known, said) in found.items() if known.high is not None]
        if not usable:
            raise self._no_time(found)
        on, known, said = usable[0]
        assert known.high is not None
        check_band(self.reading, self.tree, known, self.operand.node.schema[self.operand.own(on[1])].type.domain)
        rest = [c for c in conditions if not any(c is taken for taken in said)]
        equal, more = self.sides.equalities(rest)
        if more:
            raise self.reading.error(
                "ON of an as-of join says which columns are equal, and compares the times.", self.tree,
                got=str(more[0]), hint="put it in WHERE to ask the latest row, or in a sub-query to ask before",
            )  # fmt: skip
        own = self.sides.left_own(on[0]), self.sides.right_own(on[1])
        return self._join(Latest(self._rows(own[1]), known.high, known.low), own, equal)

    def _conditions(self) -> list[Expression]:
        """Those of ON, or of USING, whose last column is the time."""
        on = list(self.operand.on)
        if self.tree.args.get("using") and on and isinstance(on[-1], Call):
            on[-1] = Call("ge", on[-1].args, on[-1].type)
        return on

    def _rows(self, attribute: str) -> int:
        """How many rows are the latest."""
        clause = self.operand.clause
        if clause is None:
            return 1
        window = WindowBinder(clause, self.operand.scope, self.reading.sql)
        if not is_of_rows(self.operand):
            raise window.error(
                "The window of an as-of join is a number of rows.", "range", got=str(clause.range or "no RANGE"),
                hint="write [ROWS 3], and how old rows may be in ON: q.ts >= t.ts - 10",
            )  # fmt: skip
        window.only("an as-of join, whose ON says what is equal", "range", "wa")
        if clause.wa is not None and window.progressing(clause.wa, "wa") != attribute:
            raise window.error("The window is on another attribute than ON compares.", "wa", got=clause.wa)
        return window.rows("range")

    def _no_time(self, found: object) -> QueryError:
        right = str(self.operand.node.schema.time)
        name = min(self.operand.scope.qualifiers, default=right)
        got = "a later time of the second stream, or any" if found else "no condition compares their times"
        return self.reading.error(
            "Nothing says up to which time the latest row is meant.", self.tree, got=got,
            hint=f"add that the time of the first stream >= {name}.{right}",
        )  # fmt: skip

    # A window of the last rows

    def windowed(self, pool: list[Expression]) -> Node:
        """What the clause says, and which conditions are on the partition."""
        clause = self.operand.clause
        assert clause is not None
        window = WindowBinder(clause, self.operand.scope, self.reading.sql)
        window.only("a window of the last rows that is joined", "range", "wa", "pa")
        time = str(self.operand.node.schema.time)
        if clause.wa is not None and window.progressing(clause.wa, "wa") != time:
            raise window.error(
                "A window of the last rows is on the stream's time.", "wa", got=clause.wa,
                hint=f"use WA {time}, or ASOF JOIN … ON a.{clause.wa} >= b.{clause.wa}",
            )  # fmt: skip
        parts = window.partitions()
        usable = list(self.operand.on) + (pool if self.operand.kind == "inner" else [])
        equal: list[tuple[str, str]] = []
        taken: list[Expression] = []
        for part in parts:
            condition = next((c for c in usable if self._is_on(c, part)), None)
            if condition is None:
                raise window.error(
                    "The partition of a window that is joined is equal to a column of the first stream.", "pa",
                    got=f"no condition that {part} equals a column of its own type",
                    hint=f"add {min(self.operand.scope.qualifiers, default='')}.{part} = a column of its type",
                )  # fmt: skip
            equal += self.sides.equalities([condition])[0]
            taken.append(condition)
        pool[:] = [c for c in pool if not any(c is each for each in taken)]
        rest = [c for c in self.operand.on if not any(c is each for each in taken)]
        return self._join(Latest(window.rows("range")), (str(self.left.schema.time), time), equal, rest)

    def _is_on(self, condition: Expression, part: str) -> bool:
        """Whether a condition says that a column of the partition equals something of the first stream."""
        sides = self.sides.compared(condition)
        called = self.operand.names[self.operand.node.schema.index(part)]
        return sides is not None and isinstance(sides[1], Column) and sides[1].name == called

    def _join(
        self, near: Latest, on: tuple[str, str], equal: Sequence[tuple[str, str]], rest: Sequence[Expression] = ()
    ) -> Node:
        types = self.sides.left.schema[on[0]].type, self.sides.right.schema[on[1]].type
        if types[0] != types[1]:
            raise self.reading.error(
                "The times of the two streams are of different types.", self.tree,
                got=f"{on[0]} {types[0]} and {on[1]} {types[1]}", hint="declare both with the same kind of time",
            )  # fmt: skip
        sides, kind = self.sides, self.operand.kind
        condition = conjunction(list(rest)) if rest else None
        names = (*sides.left_names, *sides.right_names)
        inner = kind == "inner"
        joined: Node = Join(sides.left, sides.right, kind, near, on, tuple(equal), names, None if inner else condition)
        return Select(joined, condition) if inner and condition is not None else joined
