"""Random queries and rows, from the pages on SQL alone: what is documented as supported, with every nuisance of data.

A query is a text with two holes: the window clause, which only Penstock knows, and what stands for the stream, so that
a judge can put rows in its place that are already copied to their windows. `portable` queries keep to what DuckDB means
alike: no division, no casts, no arithmetic that may overflow, no NaN, no aliases that are also columns.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

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
_BY_KIND = {
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
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Window:
    """A sliding window on `t` in ticks, or on `clock` in seconds."""

    on: str
    range: int
    slide: int
    origin: int = 0

    @property
    def clause(self) -> str:
        """As it is written."""
        unit = " seconds" if self.on == "clock" else ""
        lengths = f"RANGE {self.range}{unit}, SLIDE {self.slide}{unit}"
        if self.range == self.slide and self.range % 2:
            lengths = f"RANGE TUMBLING {self.range}{unit}"
        origin = ""
        if self.origin:
            origin = f", ORIGIN '{START + dt.timedelta(seconds=self.origin):%Y-%m-%d %H:%M:%S}'" if unit else ""
            origin = origin or f", ORIGIN {self.origin}"
        return f"[{lengths}, WA {self.on}{origin}]"


@dataclass
class Query:
    """A SELECT in parts."""

    items: list[tuple[str, str]]
    window: Window | None = None
    where: str = ""
    keys: list[str | int] = field(default_factory=list)
    having: str = ""
    distinct: bool = False

    def text(self, *, clause: str, source: str, lead: Sequence[str] = ()) -> str:
        """The SQL; `lead` are columns that come first in the select list and in GROUP BY, and move positions."""
        items = [*lead, *[f"{e} AS {a}" for e, a in self.items]]
        keys = [*lead, *[str(k + len(lead)) if isinstance(k, int) else k for k in self.keys]]
        parts = [f"SELECT {'DISTINCT ' if self.distinct else ''}{', '.join(items)}{clause} FROM {source}"]
        parts += [f"WHERE {self.where}"] if self.where else []
        parts += [f"GROUP BY {', '.join(keys)}"] if keys else []
        parts += [f"HAVING {self.having}"] if self.having else []
        return " ".join(parts)

    @property
    def penstock(self) -> str:
        """For Penstock."""
        return self.text(clause=f" {self.window.clause}" if self.window else "", source="s")


class Maker:
    """Makes rows and queries from one source of chance."""

    def __init__(self, random_: random.Random, *, portable: bool = False) -> None:
        """`portable`: only what DuckDB means alike."""
        self.random, self.portable = random_, portable
        self.pick = random_.choice
        self._windows = [self.window() for _ in range(2)]

    def rows(self, count: int) -> list[dict[str, object]]:
        """Rows in the order of arrival."""
        return [self._row() for _ in range(count)]

    def _row(self) -> dict[str, object]:
        r, pick = self.random, self.pick
        small = r.randint(-6, 9)
        whole = [small, small, small, 10**6, -1, 2**31 - 1, -(2**31)]
        large = [small, small, 10**15, 2**62, -(2**62), 2**63 - 1, -(2**63)]
        real = [small / 4, small / 4, small * 1.0, 1e15, float("nan"), float("inf"), float("-inf"), -0.0]
        if self.portable:
            whole, large, real = whole[:3], large[:2], real[:3]
        values: dict[str, object] = {
            "k": pick(TEXTS[:6]) if self.portable else pick(TEXTS),
            "w": pick(TEXTS[1:4]),
            "i": pick(whole),
            "j": r.randint(-3, 3),
            "n": pick(large),
            "d": pick(real),
            "c": Decimal(r.randint(-999, 999)) / 100,
            "b": pick([True, False]),
            "ts": START + dt.timedelta(seconds=r.randint(-(10**9), 10**6), microseconds=pick([0, 5])),
        }
        values = {name: None if r.random() < 0.15 else value for name, value in values.items()}
        t = r.randint(-5, 30)
        return {"t": t, "clock": START + dt.timedelta(seconds=t), **values}

    def window(self) -> Window:
        """Any window of few slides."""
        slide = self.random.randint(1, 8)
        lengths = [slide, slide, slide * self.random.randint(2, 5), self.random.randint(1, 20)]
        return Window(self.pick(["t", "t", "clock"]), self.pick(lengths), slide, self.pick([0, 0, 0, 3, -7]))

    # Expressions

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a kind of type."""
        if depth <= 0 or self.random.random() < 0.2:
            return self.pick(_BY_KIND[kind]) if self.random.random() < 0.75 else self.literal(kind)
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
            ]
        )

    def _string(self, depth: int) -> str:
        a, b = self.expression("string", depth), self.expression("string", depth)
        alike = [f"lower({a})", f"upper({a})", f"trim({a})", f"{a} || {b}"]
        if self.portable:
            return self.pick(alike)
        start, length = self.random.randint(-4, 4), self.random.randint(-1, 4)
        return self.pick(
            [
                *alike,
                f"concat({a}, {b})",
                f"substring({a}, {start}, {length})",
                f"substring({a}, {start})",
                f"CAST({self.expression(self.pick(_WRITTEN), depth)} AS string)",
            ]
        )

    def _timestamp(self, depth: int) -> str:
        a = self.expression("timestamp", depth)
        unit, number = self.pick(["SECONDS", "MINUTES", "HOURS", "DAYS"]), self.random.randint(-5, 90)
        shifted = f"{a} {self.pick('+-')} INTERVAL {abs(number)} {unit}"
        truncated = f"date_trunc('{self.pick(['second', 'minute', 'hour', 'day'])}', {a})"
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
                *([] if self.portable else [f"{a} <=> {b}", f"({p}) IS TRUE", f"({p}) IS FALSE"]),
            ]
        )

    # Queries

    def query(self) -> Query:
        """A query of any form."""
        where = self.expression("boolean", 2) if self.random.random() < 0.5 else ""
        if self.random.random() < 0.35:
            items = [(self.expression(self.pick(KINDS), 3), f"x{n}") for n in range(self.random.randint(1, 4))]
            distinct = self.random.random() < 0.15
            return Query([("t", "t"), *items] if distinct else items, None, where, distinct=distinct)
        return self._grouped(where)

    def _grouped(self, where: str) -> Query:
        items: list[tuple[str, str]] = []
        keys: list[str | int] = []
        known: dict[str, str] = {}  # what HAVING may name, with its kind
        names = [f"x{n}" for n in range(9)] + ([] if self.portable else ["i", "k", "d", "n", "w"])
        self.random.shuffle(names)
        for _ in range(self.random.choice([0, 1, 1, 1, 2])):
            kind = self.pick(KINDS)
            column = self.pick(_BY_KIND[kind])
            if self.random.random() < 0.5 and column not in ("t", "clock"):
                keys.append(column)
                known[column] = kind
                if self.random.random() < 0.8:
                    items.append((self.pick([column, f"({column})", f"coalesce({column}, {column})"]), names.pop()))
            else:
                expression, alias = self.expression(kind, 1), names.pop()
                if alias in COLUMNS:
                    alias = "y" + alias
                items.append((expression, alias))
                # A constant in GROUP BY is a place in the select list, or refused.
                constant = not set(re.findall(r"\w+", expression)) & COLUMNS.keys()
                keys.append(alias if constant else self.pick([len(items), expression, alias]))
                known.setdefault(alias, kind)
        for _ in range(self.random.randint(1, 3)):
            kind, call = self.aggregate()
            alias = names.pop()
            if alias in COLUMNS and alias not in _BY_KIND.get(kind, ()):
                alias = "y" + alias  # Spark looks at the column's type first, and refuses what does not fit it
            if self.random.random() < 0.2 and kind in ("int", "bigint"):
                call = f"{call} {self.pick('+-')} 1"
            items.append((call, alias))
            known.setdefault(alias, kind)
        if not any(isinstance(k, int) for k in keys):
            self.random.shuffle(items)
        having = self._having(known) if self.random.random() < 0.5 else ""
        return Query(items, self.pick(self._windows), where, keys, having)

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
        return self.pick(choices)

    def _having(self, known: dict[str, str]) -> str:
        comparable = [(name, kind) for name, kind in known.items() if kind != "inexact"]
        parts = []
        for _ in range(self.random.randint(1, 2)):
            if comparable and self.random.random() < 0.6:
                name, kind = self.pick(comparable)
            else:
                kind, name = self.aggregate()
            if kind == "inexact":
                parts.append(f"{name} IS NOT NULL")
            elif kind == "boolean":
                parts.append(self.pick([f"{name} IS NULL", f"{name} = TRUE", f"NOT {name}"]))
            else:
                parts.append(f"{name} {self.pick(['<', '>', '>=', '<>', '='])} {self.literal(kind)}")
        return self.pick([" AND ", " OR "]).join(parts)
