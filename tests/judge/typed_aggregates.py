"""Random aggregates in three dialects, from the page on aggregates.

Where Spark and DuckDB leave ties open, ours is written out for them: a value by time, or by another one, is the least
or the greatest of (that, whether there is a value, the value), and the mode the first of (how often, value).
"""

from __future__ import annotations

from collections.abc import Callable

from tests.judge.twins import EMPTY, Twin, same, twin
from tests.judge.typed import KINDS, Scope, Typed

Aggregate = tuple[str, Twin]
"""A kind, and the call."""


class Aggregates(Typed):
    """Makes aggregates from one source of chance."""

    def aggregate(self, scope: Scope, time: Twin) -> Aggregate:
        """One over the rows of a scope; `time` is what the window stands on."""
        kind = self.pick([k for k in KINDS if scope.get(k)])
        x = self.make(kind, self.pick([0, 0, 1]), scope)
        f = same(" FILTER (WHERE {})", self.make("boolean", 1, scope)) if self.chance(0.25) else EMPTY
        choices = [*self._counts(x, scope, f), *self._picked(kind, x, scope, time, f)]
        if kind in ("int", "bigint", "double", "decimal"):
            choices += [*self._sums(kind, x, f)] * 2
        if kind == "int":
            choices += self._spreads(x, self.make("int", 0, scope), f)
        if kind == "boolean":
            choices += self._conditions(x, f)
        if kind in ("int", "bigint"):
            choices += [(kind, same(f"{name}({{}}){{}}", x, f)) for name in ("bit_and", "bit_or", "bit_xor")]
        return self.pick(choices)

    def _counts(self, x: Twin, scope: Scope, f: Twin) -> list[Aggregate]:
        y = self.leaf("int", scope)
        two = "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN "
        calls = [
            same("count(*){}", f),
            same("count({}){}", x, f),
            same("count(DISTINCT {}){}", x, f),
            twin("count({0}, {1}){2}", f"count({two}1 END){{2}}", x, y, f),
            twin("count(DISTINCT {0}, {1}){2}", f"count(DISTINCT {two}row({{0}}, {{1}}) END){{2}}", x, y, f),
        ]
        return [("bigint", each) for each in calls]

    def _sums(self, kind: str, x: Twin, f: Twin) -> list[Aggregate]:
        distinct = self.pick(["", "", "DISTINCT "])
        result = "bigint" if kind == "int" else kind
        found: list[Aggregate] = [(result, same(f"sum({distinct}{{}}){{}}", x, f))]
        if kind == "decimal":
            x = same("CAST({} AS decimal(12,2))", x)
            mean = f"p_avg((sum({distinct}{{0}}){{1}} * 100)::HUGEINT, count({distinct}{{0}}){{1}})"
            found.append(("decimal", twin(f"avg({distinct}{{0}}){{1}}", mean, x, f)))
        elif kind != "bigint":
            found.append(("real", same(f"{self.pick(['avg', 'mean'])}({distinct}{{}}){{}}", x, f)))
        return found

    def _spreads(self, x: Twin, y: Twin, f: Twin) -> list[Aggregate]:
        one = self.pick(["var_samp", "variance", "var_pop", "stddev_samp", "stddev", "stddev_pop"])
        share = self.pick(["0", "0.25", "0.5", "0.9", "1"])
        calls = [
            same(f"{one}({self.pick(['', 'DISTINCT '])}{{}}){{}}", x, f),
            twin("std({}){}", "stddev_samp({}){}", x, f),
            same(self.pick(["covar_pop({}, {}){}", "covar_samp({}, {}){}"]), x, y, f),
            twin("corr({}, {}){}", "p_not_nan(corr({}, {}){})", x, y, f),
            same("median({}){}", x, f),
            twin(f"percentile({{}}, {share}){{}}", f"quantile_cont({{}}, {share}){{}}", x, f),
            same(f"percentile_cont({share}) WITHIN GROUP (ORDER BY {{}}){{}}", x, f),
        ]
        return [("real", each) for each in calls]

    def _conditions(self, x: Twin, f: Twin) -> list[Aggregate]:
        every, some = self.pick(["bool_and", "every"]), self.pick(["bool_or", "any", "some"])
        return [
            ("boolean", twin(f"{every}({{}}){{}}", "bool_and({}){}", x, f)),
            ("boolean", twin(f"{some}({{}}){{}}", "bool_or({}){}", x, f)),
            ("bigint", twin("count_if({}){}", "count(CASE WHEN {} THEN 1 END){}", x, f)),
        ] * 2

    def _picked(self, kind: str, x: Twin, scope: Scope, time: Twin, f: Twin) -> list[Aggregate]:
        """One of the values."""
        by = self.leaf(self.pick(["int", "string", "timestamp"]), scope)
        ignoring = same("CASE WHEN {} IS NOT NULL THEN {} END", x, time)
        makers: list[Callable[[], Twin]] = [
            lambda: same("min({}){}", x, f),
            lambda: same("max({}){}", x, f),
            lambda: twin("any_value({}){}", "min({}){}", x, f, spark="min({}){}"),
            lambda: twin("mode({}){}", "p_mode(histogram({}){})", x, f, spark="mode() WITHIN GROUP (ORDER BY {}){}"),
            lambda: by_value(self.pick(["min_by", "max_by"]) + "({x}, {y}){f}", x, by, f),
            lambda: by_value(self.pick(["first", "last", "first_value", "last_value"]) + "({x}){f}", x, time, f),
            lambda: by_value(self.pick(["first", "last"]) + "({x}){f} IGNORE NULLS", x, ignoring, f),
        ]
        return [(kind, make()) for make in makers]


def by_value(name: str, x: Twin, y: Twin, f: Twin) -> Twin:
    """The x of the row with the least or greatest y, ties decided by x, with null below every value."""
    most = "min" if name.startswith(("min", "first")) else "max"
    ours = name.format(x="{0}", y="{1}", f="{2}")
    duck = (
        f"({most}(CASE WHEN {{1}} IS NOT NULL THEN {{{{'y': {{1}}, 'n': {{0}} IS NOT NULL, 'x': {{0}}}}}} END){{2}}).x"
    )
    struct = "named_struct('y', {1}, 'n', {0} IS NOT NULL, 'x', {0})"
    spark = f"({most}(CASE WHEN {{1}} IS NOT NULL THEN {struct} END){{2}}).x"
    return twin(ours, duck, x, y, f, spark=spark)
