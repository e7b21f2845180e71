"""Random queries that join two or three streams, as Penstock and as DuckDB write them.

Both have the same conditions; only a window over the pairs is written out for DuckDB, as a join with the windows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tests.judge.expressions import BY_KIND, COLUMNS, KINDS
from tests.judge.queries import Maker, Window

STREAMS = ("x", "y", "z")
_TEXT_OR_COLUMN = re.compile(rf"('(?:[^']|'')*')|\b({'|'.join(COLUMNS)})\b(?!\s*\()")
EQUAL = [
    "{a}.k = {b}.k", "{a}.w = {b}.w", "{a}.w = {b}.w", "{a}.j = {b}.j", "{a}.i = {b}.j", "{b}.b = {a}.b",
    "{a}.n = {b}.i", "lower({a}.k) = {b}.w", "{a}.w = {b}.w AND {a}.b = {b}.b", "{a}.c = {b}.c",
    "coalesce({b}.j, 0) = {a}.j",
]  # fmt: skip


@dataclass(frozen=True)
class JoinQuery:
    """One query in both dialects."""

    penstock: str
    duck: str
    window: Window | None = None


class JoinMaker(Maker):
    """Makes them from one source of chance; what it takes from `Expressions` must be portable."""

    def join(self) -> JoinQuery:
        """A query of any form."""
        form = self.random.random()
        if form < 0.25:
            return self._sub_query()
        if form < 0.35:
            return self._in_one_window()
        return self._joined()

    def _joined(self) -> JoinQuery:
        count = 3 if self.random.random() < 0.2 else 2
        kinds = [self.pick(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])]
        kept = "y" if kinds[0] == "RIGHT JOIN" else "x"  # its time is never missing
        if count == 3:
            kinds = [self.pick(["JOIN", "LEFT JOIN", "RIGHT JOIN"]), self.pick(["JOIN", "LEFT JOIN"])]
            kept = "y" if kinds[0] == "RIGHT JOIN" else "x"
        from_ = f"x {kinds[0]} y ON {self._condition('x', 'y')}"
        if count == 3:
            from_ += f" {kinds[1]} z ON {self._condition(kept, 'z')}"
        names = STREAMS[:count]
        where = self._where(names)
        if kinds[0] != "FULL JOIN" and self.random.random() < 0.4:
            return self._over_pairs(from_, kept, names, where)
        text = f"SELECT {self._items(names)} FROM {from_}{where}"
        return JoinQuery(text, text)

    def _over_pairs(self, from_: str, kept: str, names: Sequence[str], where: str) -> JoinQuery:
        window = Window("t", self.random.randint(1, 12), self.random.randint(1, 6), self.pick([0, 0, 2]))
        items, keys = [], []
        if self.random.random() < 0.6:
            column = self.pick([c for kind in KINDS for c in BY_KIND[kind] if c not in ("t", "clock")])
            keys.append(f"{self.pick(names)}.{column}")
            items.append(f"{keys[0]} AS g")
        items += [f"{self._qualified(self.aggregate()[1], names)} AS a{n}" for n in range(self.random.randint(1, 3))]
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        clause = window.clause.replace("WA t", f"WA {kept}.t")
        lead = ["w.wid", "w.window_start", "w.window_end"]
        within = f"JOIN w ON {kept}.t >= w.window_start AND {kept}.t < w.window_end"
        return JoinQuery(
            f"SELECT {', '.join(items)} {clause} FROM {from_}{where}{grouped}",
            f"SELECT {', '.join([*lead, *items])} FROM {from_} {within}{where} GROUP BY {', '.join([*lead, *keys])}",
            window,
        )

    def _in_one_window(self) -> JoinQuery:
        length = self.random.randint(1, 9)
        equal = self._equal("x", "y")
        items, where = self._items(("x", "y")), self._where(("x", "y")).replace(" WHERE ", " AND ")
        same = f"floor(x.t / {length}.0) = floor(y.t / {length}.0)"
        text = f"SELECT {items} FROM x, y{{}} WHERE {equal}{where}"
        return JoinQuery(
            text.format(f" [RANGE TUMBLING {length}, WA t]"),
            f"SELECT {items} FROM x, y WHERE {same} AND {equal}{where}",
        )

    def _sub_query(self) -> JoinQuery:
        items = self._items(("x",))
        where = self._where(("x",)).replace(" WHERE ", " AND ")
        negated = self.pick(["", "NOT "])
        match self.random.randint(0, 2):
            case 0:
                text = f"x.w {negated}IN (SELECT y.w FROM y WHERE {self._near('x', 'y')})"
            case 1:
                text = f"{negated}EXISTS (SELECT 1 FROM y WHERE {self._condition('x', 'y')})"
            case _:
                kind = "ANTI" if negated else "SEMI"
                condition = self._condition("x", "y")
                rest = where.replace(" AND ", " WHERE ", 1)
                return JoinQuery(
                    f"SELECT {items} FROM x LEFT {kind} JOIN y ON {condition}{rest}",
                    f"SELECT {items} FROM x {kind} JOIN y ON {condition}{rest}",
                )
        text = f"SELECT {items} FROM x WHERE {text}{where}"
        return JoinQuery(text, text)

    def _condition(self, left: str, right: str) -> str:
        parts = [self._near(left, right)]
        parts += [self._equal(left, right)] if self.random.random() < 0.7 else []
        parts += [self._residual(left, right)] if self.random.random() < 0.4 else []
        self.random.shuffle(parts)
        return " AND ".join(parts)

    def _residual(self, left: str, right: str) -> str:
        return f"({self._qualified(self.expression('boolean', 1), (left, right))})"

    def _equal(self, left: str, right: str) -> str:
        return str(self.pick(EQUAL).format(a=left, b=right))

    def _near(self, a: str, b: str) -> str:
        low = self.random.randint(-6, 4)
        high = low + self.random.randint(0, 8)
        if self.random.random() < 0.5:
            a, b, low, high = b, a, -high, -low
        least, most = f"{a}.t {_added(low)}", f"{a}.t {_added(high)}"
        forms = [
            f"{b}.t BETWEEN {least} AND {most}",
            f"{b}.t >= {least} AND {b}.t <= {most}",
            f"{least} <= {b}.t AND {b}.t < {a}.t {_added(high + 1)}",
            f"{b}.t - {a}.t BETWEEN {low} AND {high}",
        ]
        return str(self.pick(forms))

    def _where(self, names: Sequence[str]) -> str:
        if self.random.random() < 0.6:
            return ""
        return f" WHERE ({self._qualified(self.expression('boolean', 2), names)})"

    def _items(self, names: Sequence[str]) -> str:
        made = [self._qualified(self.expression(self.pick(KINDS), 2), names) for _ in range(self.random.randint(1, 4))]
        return ", ".join(f"{expression} AS c{n}" for n, expression in enumerate(made))

    def _qualified(self, text: str, names: Sequence[str]) -> str:
        """Every column with a stream before it."""
        return _TEXT_OR_COLUMN.sub(lambda m: m[1] or f"{self.pick(names)}.{m[2]}", text)


def windows_of(window: Window) -> pa.Table:
    """Every window that a row can be in, with its number and ends."""
    numbers = range(-60, 61)
    ends = [window.origin + (n + 1) * window.slide for n in numbers]
    return pa.table({"wid": list(numbers), "window_start": [e - window.range for e in ends], "window_end": ends})


def _added(ticks: int) -> str:
    return f"- {-ticks}" if ticks < 0 else f"+ {ticks}"
