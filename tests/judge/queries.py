"""Random queries and rows, from the pages on SQL alone: what is documented as supported, with every nuisance of data.

A query is a text with two holes: the window clause, which only Penstock knows, and what stands for the stream, so that
a judge can put rows in its place that are already copied to their windows. `portable` queries have no aliases that are
also columns, besides what `expressions` says.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from tests.judge.expressions import BY_KIND, COLUMNS, KINDS, START, TEXTS, Expressions


@dataclass(frozen=True)
class Window:
    """A sliding window on `t` in ticks, or on `clock` in seconds."""

    on: str
    range: int
    slide: int
    origin: int = 0

    @property
    def has_gaps(self) -> bool:
        """Whether there are rows in no window."""
        return self.range < self.slide

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
    sets: str = ""
    """ROLLUP or CUBE, of the keys."""

    def text(self, *, clause: str, source: str, lead: Sequence[str] = ()) -> str:
        """The SQL; `lead` are columns that come first in the select list and in GROUP BY, and move positions."""
        items = [*lead, *[f"{e} AS {a}" for e, a in self.items]]
        own = [str(k + len(lead)) if isinstance(k, int) else k for k in self.keys]
        keys = [*lead, f"{self.sets} ({', '.join(own)})"] if self.sets and own else [*lead, *own]
        parts = [f"SELECT {'DISTINCT ' if self.distinct else ''}{', '.join(items)}{clause} FROM {source}"]
        parts += [f"WHERE {self.where}"] if self.where else []
        parts += [f"GROUP BY {', '.join(keys)}"] if keys else []
        parts += [f"HAVING {self.having}"] if self.having else []
        return " ".join(parts)

    @property
    def penstock(self) -> str:
        """For Penstock."""
        return self.text(clause=f" {self.window.clause}" if self.window else "", source="s")


class Maker(Expressions):
    """Makes rows and queries from one source of chance."""

    def __init__(self, random_: random.Random, *, portable: bool = False) -> None:
        """`portable`: only what DuckDB means alike."""
        super().__init__(random_, portable=portable)
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
            column = self.pick(BY_KIND[kind])
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
            if alias in COLUMNS and alias not in BY_KIND.get(kind, ()):
                alias = "y" + alias  # Spark looks at the column's type first, and refuses what does not fit it
            if self.random.random() < 0.2 and kind in ("int", "bigint"):
                call = f"{call} {self.pick('+-')} 1"
            items.append((call, alias))
            known.setdefault(alias, kind)
        if not any(isinstance(k, int) for k in keys):
            self.random.shuffle(items)
        having = self._having(known) if self.random.random() < 0.5 else ""
        # Beside grouping sets Spark finds keys in HAVING only if the select list has them by name.
        sets = self.pick(["", "", "ROLLUP", "CUBE"]) if not having else ""
        # A key that is there twice is one to Spark, and two to DuckDB.
        named = {alias: expression for expression, alias in items}
        meant = [items[k - 1][0] if isinstance(k, int) else named.get(k, k) for k in keys]
        sets = sets if len(set(meant)) == len(meant) else ""
        return Query(items, self.pick(self._windows), where, keys, having, sets=sets)

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
