"""Random expressions and aggregates of a kind of type, over the columns of one stream.

`portable` ones keep to what DuckDB means alike: no division, no casts, no arithmetic that may overflow, no NaN.
"""

from __future__ import annotations

import datetime as dt
import random

COLUMNS = {
    "t": "bigint",
    "clock": "timestamp",
    "k": "string",
    "w": "string",
    "i": "int",
    "j": "int",
    "n": "bigint",
    "d": "double",
    "c": "decimal(8,2)",
    "b": "boolean",
    "ts": "timestamp",
}
KINDS = ("int", "bigint", "double", "decimal", "string", "boolean", "timestamp")
BY_KIND = {
    "int": ["i", "j"],
    "bigint": ["n", "t"],
    "double": ["d"],
    "decimal": ["c"],
    "string": ["k", "w"],
    "boolean": ["b"],
    "timestamp": ["ts", "clock"],
}
_WRITTEN = ["int", "bigint", "decimal", "timestamp", "boolean"]
TEXTS = [
    "",
    "a",
    "ab",
    "A",
    "b%",
    "a_b",
    "\\",
    "é",
    "ß",
    " 7",
    "7",
    "-12",
    "1d",
    "2026-01-01",
    "x y ",
    "aab",
    "%",
    "😀a",
]
PATTERNS = ["%", "a%", "%b", "%a%", "_", "a_b", "%a%b%", "a\\\\_b", "", "%\\\\%%", "_%_", "\\\\\\\\", "ß", "%é%"]
REGULAR = ["a.", "[a-z]+", "^a|b$", "(a|b)+", "[^a ]", "(?i)A", "\\\\d+", "\\\\s$", "x(?= )", ".{2}"]
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Expressions:
    """Makes expressions from one source of chance."""

    def __init__(self, random_: random.Random, *, portable: bool = False) -> None:
        """`portable`: only what DuckDB means alike."""
        self.random, self.portable = random_, portable
        self.pick = random_.choice

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a kind of type."""
        if depth <= 0 or self.random.random() < 0.2:
            return self.pick(BY_KIND[kind]) if self.random.random() < 0.75 else self.literal(kind)
        if self.random.random() < 0.25:
            return self._general(kind, depth - 1)
        return str(getattr(self, f"_{kind}")(depth - 1))

    def literal(self, kind: str) -> str:
        """A constant."""
        r = self.random
        match kind:
            case "int":
                return str(r.randint(-3, 12))
            case "bigint":
                return str(self.pick([2**40, 3 * 10**9, -(2**35)]))
            case "double":
                return self.pick(["0.5e0", "2e0", "-1.25e0", "1e3"])
            case "decimal":
                return self.pick(["1.5", "0.25", "-10.00", "3.0"])
            case "boolean":
                return self.pick(["TRUE", "FALSE", "nullif(TRUE, TRUE)"])
            case "timestamp":
                return f"TIMESTAMP '{START + dt.timedelta(seconds=r.randint(-99, 99)):%Y-%m-%d %H:%M:%S}'"
            case _:
                return self.pick(["'a'", "'ab'", "''", "'zz'"] + ([] if self.portable else ["'it''s'", "'ß'"]))

    def _general(self, kind: str, depth: int) -> str:
        def one() -> str:
            return self.expression(kind, depth)

        condition = self.expression("boolean", depth)
        subject = self.expression("string", depth)
        return self.pick(
            [
                f"CASE WHEN {condition} THEN {one()} ELSE {one()} END",
                f"CASE WHEN {condition} THEN {one()} END",
                f"coalesce({one()}, {one()})",
                f"nullif({one()}, {one()})",
                f"({one()})",
                f"CASE {subject} WHEN 'a' THEN {one()} WHEN {self.expression('string', 0)} THEN {one()} END",
                *([] if self.portable else [f"if({condition}, {one()}, {one()})"]),
                *(
                    []
                    if kind == "boolean" or self.portable
                    else [f"greatest({one()}, {one()})", f"least({one()}, {one()})"]
                ),
            ]
        )

    def _int(self, depth: int) -> str:
        a, b = self.expression("int", depth), self.expression("int", depth)
        text, time = self.expression("string", depth), self.expression("timestamp", depth)
        alike = [f"length({text})"] + [f"{p}({time})" for p in ("year", "month", "day", "hour", "minute", "second")]
        if self.portable:
            return self.pick([*alike, f"CASE WHEN {a} < 100 THEN {b} END"])
        return self.pick(
            [
                *alike,
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * {b})",
                f"{a} % {self.pick(['2', '3', b])}",
                f"abs({a})",
                f"-({a})",
                f"CAST({self.expression('bigint', depth)} AS int)",
                f"CAST({self.expression('decimal', depth)} AS int)",
                f"pmod({a}, {self.pick(['3', '-7', b])})",
                f"({a} {self.pick('&|^')} {b})",
                f"{self.pick(['instr', 'locate'])}({text}, {self.expression('string', 0)})",
                f"{self.pick(['quarter', 'dayofweek', 'weekday', 'dayofyear', 'weekofyear'])}({time})",
                f"datediff({time}, {self.expression('timestamp', 0)})",
                f"round({a}, {self.random.randint(-2, 1)})",
                f"CASE WHEN {text} IN ('7', '-12', ' 7') THEN CAST({text} AS int) END",
            ]
        )

    def _bigint(self, depth: int) -> str:
        a, b = self.expression("bigint", depth), self.expression(self.pick(["int", "bigint"]), depth)
        if self.portable:
            return f"CASE WHEN {a} < 1000000 THEN {a} END"
        return self.pick(
            [
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * {b})",
                f"{a} % {self.pick(['7', b])}",
                f"{a} div {self.pick(['2', b])}",
                f"CAST({b} AS bigint)",
                f"floor({self.expression('double', depth)})",
                f"ceil({self.expression('double', depth)})",
                f"CAST({self.expression('double', depth)} AS bigint)",
                f"-({a})",
                f"abs({a})",
                f"unix_timestamp({self.expression('timestamp', depth)})",
                f"unix_millis({self.expression('timestamp', depth)})",
                f"bround({a}, {self.random.randint(-3, 1)})",
                f"shiftleft({a}, {self.random.randint(0, 70)})",
            ]
        )

    def _double(self, depth: int) -> str:
        a, b = self.expression("double", depth), self.expression(self.pick(["double", "int", "double"]), depth)
        if self.portable:
            return self.pick([f"({a} + {a})", f"({a} * 2e0)", f"abs({a})", f"-({a})"])
        text = self.expression("string", depth)
        return self.pick(
            [
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * {b})",
                f"{a} / {self.pick(['2e0', '4', b])}",
                f"{a} % {self.pick(['2', b])}",
                f"sqrt({a})",
                f"{self.pick(['round', 'bround'])}({a}, {self.random.randint(-2, 4)})",
                f"sign({a})",
                f"abs({a})",
                f"-({a})",
                f"CAST({self.expression('int', depth)} AS double)",
                f"{self.expression('int', depth)} / {self.pick(['2', '8', self.expression('int', depth)])}",
                f"CASE WHEN {text} LIKE '%7' OR {text} = '1d' THEN CAST({text} AS double) END",
            ]
        )

    def _decimal(self, depth: int) -> str:
        a, b = self.expression("decimal", depth), self.expression(self.pick(["decimal", "int"]), depth)
        if self.portable:
            return self.pick([f"abs({a})", f"-({a})"])
        return self.pick(
            [
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * {b})",
                f"{a} / {self.pick(['3', '0.5', b])}",
                f"{a} % {self.pick(['1.5', b])}",
                f"abs({a})",
                f"-({a})",
                f"CAST({self.expression('int', depth)} AS decimal(12,3))",
                f"CAST({a} AS decimal(20,4))",
                f"round({a}, {self.random.randint(-2, 4)})",
                f"{self.pick(['ceil', 'floor'])}({a}{self.pick(['', ', 1', ', -1'])})",
                f"extract(second FROM {self.expression('timestamp', depth)})",
            ]
        )

    def _string(self, depth: int) -> str:
        a, b = self.expression("string", depth), self.expression("string", depth)
        alike = [f"lower({a})", f"upper({a})", f"trim({a})", f"{a} || {b}"]
        if self.portable:
            return self.pick(alike)
        start, length = self.random.randint(-4, 4), self.random.randint(-1, 4)
        form = self.pick(["yyyy-MM-dd", "d.M.yy HH:mm", "E h a"])
        return self.pick(
            [
                *alike,
                f"concat({a}, {b})",
                f"substring({a}, {start}, {length})",
                f"substring({a}, {start})",
                f"CAST({self.expression(self.pick(_WRITTEN), depth)} AS string)",
                f"{self.pick(['left', 'right', 'repeat'])}({a}, {start})",
                f"{self.pick(['lpad', 'rpad'])}({a}, {length + 3}, {b})",
                f"{self.pick(['ltrim', 'rtrim', 'btrim', 'reverse', 'initcap', 'md5'])}({a})",
                f"replace({a}, {self.expression('string', 0)}, {b})",
                f"concat_ws({self.expression('string', 0)}, {a}, {b})",
                f"split_part({a}, {self.literal('string')}, {start or 1})",
                f"regexp_replace({a}, '{self.pick(REGULAR)}', '<$0>')",
                f"regexp_extract({a}, '{self.pick(REGULAR)}', 0)",
                f"date_format({self.expression('timestamp', depth)}, '{form}')",
            ]
        )

    def _timestamp(self, depth: int) -> str:
        a = self.expression("timestamp", depth)
        unit, number = self.pick(["SECONDS", "MINUTES", "HOURS", "DAYS"]), self.random.randint(-5, 90)
        shifted = f"{a} {self.pick('+-')} INTERVAL {abs(number)} {unit}"
        units = ["second", "minute", "hour", "day"] + ([] if self.portable else ["week", "month", "quarter", "year"])
        truncated = f"date_trunc('{self.pick(units)}', {a})"
        return self.pick([shifted, truncated, f"({a})"])

    def _boolean(self, depth: int) -> str:
        kind = self.pick([k for k in KINDS if k != "boolean"])
        a, b = self.expression(kind, depth), self.expression(kind, depth)
        p, q = self.expression("boolean", depth), self.expression("boolean", depth)
        text = self.expression("string", depth)
        other = "double" if kind == "int" and not self.portable and self.random.random() < 0.3 else kind
        compared = f"{a} {self.pick(['=', '<>', '<', '<=', '>', '>='])} {self.expression(other, depth)}"
        pattern = self.pick(PATTERNS[:6] if self.portable else PATTERNS)
        return self.pick(
            [
                compared,
                compared,
                f"({p} AND {q})",
                f"({p} OR {q})",
                f"NOT ({p})",
                f"{a} IS NULL",
                f"{a} IS NOT NULL",
                f"{a} BETWEEN {b} AND {self.expression(kind, 0)}",
                f"{a} IN ({b}, {self.expression(kind, 0)})",
                f"{a} NOT IN ({self.literal(kind)}, {self.literal(kind)})",
                f"{text} {self.pick(['', 'NOT '])}LIKE '{pattern}'",
                *([] if self.portable else [f"{text} RLIKE '{self.pick(REGULAR)}'", f"contains({text}, 'a')"]),
                *([] if self.portable else [f"{a} <=> {b}", f"({p}) IS TRUE", f"({p}) IS FALSE"]),
            ]
        )

    def aggregate(self) -> tuple[str, str]:
        """A kind of type, and an aggregate of it."""
        kind = self.pick(KINDS)
        argument = self.expression(kind, self.random.choice([0, 0, 1]))
        choices = [("bigint", "count(*)"), ("bigint", f"count({argument})"), ("bigint", f"count(DISTINCT {argument})")]
        if kind != "boolean" or not self.portable:
            choices += [(kind, f"min({argument})"), (kind, f"max({argument})")] * 2
        if kind in ("int", "bigint", "double", "decimal") and not (self.portable and kind == "double"):
            result = {"int": "bigint", "bigint": "bigint", "double": "double", "decimal": "decimal"}[kind]
            choices += [(result, f"sum({argument})")] * 2
            if not self.portable:
                if kind != "bigint":  # Spark adds bigints up as doubles, and loses what cancels out
                    mean = "decimal" if kind == "decimal" else "inexact"
                    choices += [(mean, f"avg({argument})")]
                if kind in ("int", "double"):
                    spread = self.pick(["var_pop", "var_samp", "stddev_pop", "stddev_samp", "variance", "stddev"])
                    choices += [("inexact", f"{spread}({argument})")]
        choices += self._further(kind, argument)
        result, call = self.pick(choices)
        if self.random.random() < 0.2:
            call = f"{call} FILTER (WHERE {self.expression('boolean', 1)})"
        return result, call

    def _further(self, kind: str, argument: str) -> list[tuple[str, str]]:
        """Aggregates of which the judges leave nothing open: no ties, no order of arrival."""
        choices: list[tuple[str, str]] = []
        if kind == "boolean":
            choices += [] if self.portable else [("bigint", f"count_if({argument})")]
            choices += [(kind, f"{name}({argument})") for name in ("bool_and", "bool_or")]
        if kind in ("int", "bigint"):
            choices += [(kind, f"{name}({argument})") for name in ("bit_and", "bit_or", "bit_xor")]
        if kind == "int":
            choices += [("bigint", f"sum(DISTINCT {argument})"), ("inexact", f"median({argument})")]
        if kind == "decimal" and not self.portable:
            choices += [("decimal", f"sum(DISTINCT {argument})"), ("inexact", f"percentile({argument}, 0.3)")]
        if kind == "double" and not self.portable:
            share = self.pick(["0", "0.25", "0.9", "1"])
            choices += [("inexact", f"percentile({argument}, {share})"), ("inexact", "corr(j, t)")]
            choices += [("inexact", "covar_pop(t, j)"), ("bigint", f"count(DISTINCT j, {argument})")]
        return choices
