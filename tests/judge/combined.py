"""Random queries that put everything together, for Penstock, DuckDB and Spark: windows in the words of the papers, of
Spark and of Flink over any source, grouped in every way, in one another; `sources` and `typed` say of what.

The judges have no windows. Rows are joined with a table of them, in which each window that a row can be in has its
number and ends, from the definitions alone.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.judge.odd_rows import Data
from tests.judge.sources import Item, Relation, Source, Sources, listed
from tests.judge.twins import EMPTY, Twin, joined, same, twin
from tests.judge.typed import KINDS

FARTHEST = 150
"""No row of a query is farther from the first time, in ticks."""


@dataclass(frozen=True)
class Grid:
    """Windows on the grid of their ends; the origin is in ticks of the stream's own time."""

    range: int
    slide: int
    origin: int
    of_rows: bool = False

    def windows(self, data: Data) -> list[tuple[int, int, int]]:
        """Number, start and end of all that matter."""
        base = 0 if self.of_rows else data.base
        first, last = ((base + far - self.origin) // self.slide for far in (-FARTHEST, FARTHEST))
        ends = [(n, self.origin + (n + 1) * self.slide) for n in range(first, last + 1)]
        return [(n, end - self.range, end) for n, end in ends]


@dataclass
class CombinedQuery:
    """One query in three dialects, and the windows that judges need to be given."""

    ours: str
    duck: str
    spark: str
    grids: dict[str, Grid]
    open_number: bool
    """Whether the first column is a number that the words of the window leave open."""


@dataclass
class _Windowed:
    """What a window adds to a query over a source."""

    lead: Sequence[Twin]
    """Number, start and end, for the judges."""
    join: str = ""
    clause: str = ""
    after: str = ""
    """A clause after the stream."""
    keys: list[str] = field(default_factory=list)
    """What stands in GROUP BY, in our own text."""
    from_: Twin | None = None
    nestable: bool = True
    number: Twin | None = None
    """What the window stands on, if not on the time."""
    open_number: bool = False


class Combined(Sources):
    """Makes queries from one source of chance."""

    def __init__(self, random_: random.Random, data: Data) -> None:
        """Over streams and tables of these kinds."""
        super().__init__(random_, data)
        self.grids: dict[str, Grid] = {}

    def query(self) -> CombinedQuery:
        """A query of any form."""
        open_number = False
        if self.chance(0.6):
            select, _, windowed = self._grouped(self._progressing(2), nested=False)
            open_number = windowed.open_number
        else:
            source = self.source(2)
            items = self.items(source.scope, 3)
            items += [(self.real(source.scope), "real", self.fresh("c"))] if self.chance(0.4) else []
            select = same("SELECT {} FROM {}{}", listed(items), source.text, self.where(source))
        views = self.chance(0.4)
        if views:
            heads = [
                twin(
                    f"CREATE VIEW {name} AS {{}}; ",
                    f"CREATE OR REPLACE VIEW {name} AS {{}}; ",
                    text,
                    spark=f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {{}}; ",
                )
                for name, text in self.names
            ]
            whole = joined("", [*heads, select])
        else:
            heads = [same(f"{name} AS ({{}})", text) for name, text in self.names]
            whole = same("WITH {} {}", joined(", ", heads), select) if heads else select
        return CombinedQuery(whole.ours, whole.duck, whole.spark, self.grids, open_number)

    def aggregated(self, depth: int) -> Relation:
        """A query with windows as a relation, whose time is the end of the window."""
        select, items, _ = self._grouped(self._progressing(depth), nested=True)
        columns = {name: kind for _, kind, name in items}
        columns |= {"window_start": self.data.time_type, "window_end": self.data.time_type}
        return self.named(select, columns, "window_end")

    def _progressing(self, depth: int) -> Source:
        source = self.source(depth)
        while not source.times:
            source = self.source(depth)
        return source

    def _grouped(self, source: Source, *, nested: bool) -> tuple[Twin, list[Item], _Windowed]:
        time = self.pick(source.times)
        windowed = self._window(source, time)
        while nested and not windowed.nestable:
            windowed = self._window(source, time)
        scope = source.scope
        # A time that is grouped by is a window of its own, which is `_tick`.
        columns = {kind: [ref for ref in refs if ref not in source.times] for kind, refs in scope.items()}
        keys = [self._key(columns) for _ in range(self.random.choice([0, 1, 1, 2]))]
        items = [(key, kind, self.fresh("g")) for key, kind in keys]
        aggregates: list[Item] = []
        for _ in range(self.random.randint(1, 3)):
            kind, call = self.aggregate(scope, windowed.number or same(time))
            if kind == "decimal" and nested:
                call = same("CAST({} AS decimal(20,6))", call)
            aggregates.append((call, kind, self.fresh("a")))
        grouped, extra = self._group_by(items, windowed)
        clause = f" {windowed.clause}" if windowed.clause else ""
        having = self._having([*aggregates], windowed) if self.chance(0.2) else EMPTY
        chosen = [*items, *aggregates, *extra]
        if self.chance(0.15) and windowed.nestable and not any("window_end" in time for time in source.times):
            ends = Twin("window_end", windowed.lead[2].duck, windowed.lead[2].spark)
            chosen.append((ends, self.data.time_type, self.fresh("e")))
        lead = listed([(text, "", name) for text, name in zip(windowed.lead, LEAD, strict=True)])
        from_ = windowed.from_ or source.text
        from_ = twin(f"{{}}{windowed.after}", f"{{}}{windowed.join}", from_, spark=f"{{}}{windowed.join}")
        whole = "SELECT {0}, {1} FROM {2}{3}{4}{5}"
        parts = (lead, listed(chosen), from_, self.where(source), grouped, having)
        select = twin(f"SELECT {{1}}{clause} FROM {{2}}{{3}}{{4}}{{5}}", whole, *parts, spark=whole)
        return select, chosen, windowed

    def _key(self, scope: dict[str, list[str]]) -> tuple[Twin, str]:
        """A column, or an expression of one: a constant in GROUP BY is a place in the select list."""
        kind = self.pick([k for k in KINDS if scope[k]])
        column = same(self.pick(scope[kind]))
        if self.chance(0.6) or kind == "decimal":
            return column, kind
        if kind == "string":
            return same(self.pick(["lower({})", "coalesce({}, 'none')", "trim({})"]), column), kind
        if kind in ("int", "bigint"):
            return same("{} % 3", column), kind
        return same("coalesce({}, {})", column, self.literal(kind)), kind

    def _group_by(self, items: list[Item], windowed: _Windowed) -> tuple[Twin, list[Item]]:
        """The clause, and what the select list may have because of it."""
        lead = joined(", ", [*windowed.lead])
        if not items:
            return _grouping(windowed.keys, lead), []
        expressions = joined(", ", [e for e, _, _ in items])
        form = self.random.random()
        if form < 0.35 and len({e.ours for e, _, _ in items}) == len(items):
            sets = self._sets(items)
            number = twin("grouping_id()", "grouping_id({})", expressions, spark="grouping_id()")
            extra = [(number, "bigint", self.fresh("g")), (same("grouping({})", items[0][0]), "int", self.fresh("g"))]
            return _grouping([*windowed.keys, sets.ours], same("{}, {}", lead, sets)), extra
        by_all = same("{}, {}", lead, expressions)
        if form < 0.5 and not windowed.keys:
            return _grouping(["ALL"], by_all), []
        own = [self.pick([e.ours, name, str(place)]) for place, (e, _, name) in enumerate(items, 1)]
        return _grouping([*windowed.keys, *own], by_all), []

    def _sets(self, items: list[Item]) -> Twin:
        keys = [expression for expression, _, _ in items]
        all_keys = joined(", ", keys)
        forms = [same("ROLLUP ({})", all_keys), same("CUBE ({})", all_keys)]
        forms.append(same("GROUPING SETS (({}), ({}), ())", all_keys, keys[0]))
        if len(keys) == 2:
            forms.append(same("{}, ROLLUP ({})", *keys))
            forms.append(same("GROUPING SETS (({}), ({}))", *keys))
        return self.pick(forms)

    def _having(self, aggregates: list[Item], windowed: _Windowed) -> Twin:
        call, kind, name = self.pick(aggregates)
        call = self.pick([call, Twin(name, call.duck, call.spark)])
        if kind in ("real", "boolean"):
            return same(" HAVING {} IS NOT NULL", call)
        return same(f" HAVING {{}} {self.pick(['<', '>', '>=', '<>'])} {{}}", call, self.literal(kind))

    def _window(self, source: Source, time: str) -> _Windowed:
        """A window over a source, in any words."""
        slide = self.random.randint(1, 8)
        length = self.pick([slide, slide, slide * self.random.randint(2, 4), self.random.randint(1, 14)])
        form = self.random.random()
        if form < 0.25 and source.single is not None and source.single.stream and not source.where:
            return self._rows(source.single, length, slide)
        if form < 0.5:
            return self._clause(source, time, length, slide)
        if form < 0.85:
            return self._borrowed(source, time, max(length, slide), slide)
        return self._tick(time)

    def _clause(self, source: Source, time: str, length: int, slide: int) -> _Windowed:
        shift = self.pick([0, 0, 3, -7])
        origin = self.data.base + shift if shift else 0
        parts = [f"RANGE {self.length(length)}", f"SLIDE {self.length(slide)}"]
        if length == slide and self.chance(0.5):
            parts = [f"RANGE TUMBLING {self.length(length)}"]
        parts.append(f"WA {time}")
        if shift:
            parts.append(f"ORIGIN {self.moment(origin) if self.data.timed else origin}")
        clause = f"[{', '.join(parts)}]"
        found = self._on_grid(time, Grid(length, slide, origin))
        if source.single is not None and source.single.stream and not source.where and self.chance(0.3):
            found.after = " " + clause
        else:
            found.clause = clause
        return found

    def _rows(self, stream: Relation, length: int, slide: int) -> _Windowed:
        """Of rows, by arrival and whether or not they are late."""
        found = self._on_grid(f"{stream.alias}.number", Grid(length, slide, 0, of_rows=True))
        found.clause = f"[RANGE {length} rows, SLIDE {slide} rows, WA row-num]"
        found.from_ = Twin(stream.text.ours, *[f"{stream.stream}_rows AS {stream.alias}"] * 2)
        found.nestable = False
        found.number = same(f"{stream.alias}.number")
        return found

    def _borrowed(self, source: Source, time: str, length: int, slide: int) -> _Windowed:
        """In the words of Spark and Flink, whose windows start on the grid."""
        offset = self.pick([0, 0, self.random.randint(0, slide - 1)])
        relation = source.single
        form = self.pick(
            ["window", "group", "table"]
            if relation is not None and not source.where and relation.time != "window_end"
            else ["window", "group"]
        )
        rest = f", {self.amount(offset)}" if offset else ""
        short = length == slide and self.chance(0.7)
        flink = f"{self.amount(length)}{rest}" if short else f"{self.amount(slide)}, {self.amount(length)}{rest}"
        found = self._on_grid(time, Grid(length, slide, offset + length))
        found.open_number = True
        if form == "window":
            lengths = (
                f"{self.amount(length)}"
                if short and not offset
                else f"{self.amount(length)}, {self.amount(slide)}{rest}"
            )
            found.keys = [f"window({time}, {lengths})"]
        elif form == "group":
            found.keys = [f"{'TUMBLE' if short else 'HOP'}({time}, {flink})"]
        else:
            assert relation is not None
            inner = f"TABLE {relation.stream}" if relation.stream else f"TABLE {relation.text.ours.split(' AS ')[0]}"
            if not relation.stream and relation.text.ours.startswith("("):
                inner = relation.text.ours.rsplit(" AS ", 1)[0]
            name = "TUMBLE" if short else "HOP"
            text = f"TABLE({name}({inner}, DESCRIPTOR({relation.time}), {flink})) AS {relation.alias}"
            found.from_ = Twin(text, relation.text.duck, relation.text.spark)
            found.keys = ["window_start", "window_end"]
        return found

    def _tick(self, time: str) -> _Windowed:
        """One instant; on whole numbers also what rises with the time."""
        at = same(time)
        if self.data.timed:
            number = twin("", "epoch_us({})", at, spark="unix_micros({})")
            return _Windowed((number, at, same("{} + INTERVAL 1 MICROSECOND", at)), keys=[time])
        if self.chance(0.5):
            return _Windowed((at, at, same("{} + 1", at)), keys=[time])
        by = self.random.randint(2, 9)
        step = twin(f"{{}} div {by}", f"{{}} // {by}", at)
        return _Windowed((step, step, same("{} + 1", step)), keys=[step.ours], nestable=False, number=step)

    def _on_grid(self, time: str, grid: Grid) -> _Windowed:
        name = self.fresh("w")
        self.grids[name] = grid
        return _Windowed(
            tuple(same(f"{name}.{column}") for column in LEAD),
            f" JOIN {name} ON {time} >= {name}.window_start AND {time} < {name}.window_end",
        )

    def amount(self, ticks: int) -> str:
        """So many ticks, as Spark and Flink have them."""
        return self.pick([f"INTERVAL '{ticks}' SECONDS", f"'{ticks} seconds'"]) if self.data.timed else str(ticks)

    def moment(self, ticks: int) -> str:
        """A time, as a clause has it."""
        return f"'{dt.datetime.fromtimestamp(ticks, dt.UTC):%Y-%m-%d %H:%M:%S}'"


def _grouping(ours: Sequence[str], judged: Twin) -> Twin:
    """GROUP BY, of which the judges need the window too."""
    keys = f" GROUP BY {', '.join(ours)}" if ours else ""
    return Twin(keys, f" GROUP BY {judged.duck}", f" GROUP BY {judged.spark}")


LEAD = ("wid", "window_start", "window_end")
