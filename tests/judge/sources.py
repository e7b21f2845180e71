"""What can stand after FROM, at random and in three dialects: streams, sub-queries, names of WITH or of views, joins,
lookups into tables, versions of them, unions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.judge.odd_rows import KINDS as STREAM_KINDS
from tests.judge.odd_rows import TABLE, VERSIONS, Data
from tests.judge.twins import EMPTY, Twin, joined, same, twin
from tests.judge.typed import KINDS
from tests.judge.typed_aggregates import Aggregates

Item = tuple[Twin, str, str]
"""An expression, its kind, its name."""
Columns = dict[str, str]
KEYS = ("k", "j", "b", "i")
"""Columns of streams that are often equal."""


@dataclass
class Relation:
    """Something with a name and a time."""

    text: Twin
    alias: str
    columns: Columns
    time: str
    stream: str = ""
    """The stream, if it is one as it stands."""

    @property
    def refs(self) -> dict[str, list[str]]:
        """Its columns by kind, with its name before them."""
        return {kind: [f"{self.alias}.{name}" for name, k in self.columns.items() if k == kind] for kind in KINDS}


@dataclass
class Source:
    """What stands after FROM, and what must then stand in WHERE."""

    text: Twin
    scope: dict[str, list[str]]
    times: list[str]
    """What progresses, and is never null."""
    where: list[Twin] = field(default_factory=list)
    paired: list[str] = field(default_factory=list)
    """What progresses too, where it is selected: the later and the earlier time of pairs."""
    single: Relation | None = None


class Sources(Aggregates):
    """Makes them from one source of chance, and keeps the names that it gives."""

    def __init__(self, random_: random.Random, data: Data) -> None:
        """Over streams and tables of these kinds."""
        super().__init__(random_)
        self.data = data
        self.names: list[tuple[str, Twin]] = []
        self._count = 0

    def fresh(self, letter: str) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"{letter}{self._count}"

    def source(self, depth: int) -> Source:
        """Anything after FROM."""
        form = self.random.random()
        if form < 0.3 and depth > 0:
            return self._join(depth - 1)
        if form < 0.5:
            return self._lookup(depth)
        if form < 0.57:
            return self._bag()
        relation = self.relation(depth)
        found = Source(relation.text, relation.refs, [f"{relation.alias}.{relation.time}"], single=relation)
        if self.chance(0.25):
            found.where.append(self._sub_query(relation))
        return found

    def relation(self, depth: int) -> Relation:
        """A stream, or a query over one."""
        form = self.random.random()
        if depth <= 0 or form < 0.3:
            return self._stream()
        if form < 0.65:
            source = self.source(depth - 1)
            return self._projected(source) if source.times else self._stream()
        return self._united() if form < 0.75 else self.aggregated(depth - 1)

    def aggregated(self, depth: int) -> Relation:
        """A query with windows; made by another class."""
        raise NotImplementedError

    def named(self, select: Twin, columns: Columns, time: str) -> Relation:
        """A query as a relation: where it stands, or under a name."""
        alias = self.fresh("r")
        if self.chance(0.6):
            return Relation(same(f"({{}}) AS {alias}", select), alias, columns, time)
        name = self.fresh("v")
        self.names.append((name, select))
        return Relation(same(f"{name} AS {alias}"), alias, columns, time)

    def items(self, scope: dict[str, list[str]], depth: int) -> list[Item]:
        """Some columns of a select list; decimals keep the digits that they need and no more."""
        made: list[Item] = []
        for _ in range(self.random.randint(1, 4)):
            kind = self.pick(KINDS)
            expression = self.make(kind, depth, scope)
            expression = same("CAST({} AS decimal(20,6))", expression) if kind == "decimal" else expression
            made.append((expression, kind, self.fresh("c")))
        return made

    def where(self, source: Source) -> Twin:
        """The conditions of a source, and perhaps one more."""
        parts = [*source.where]
        if self.chance(0.2):
            parts.insert(
                self.pick([0, len(parts)]), same("({})", self.make("boolean", self.pick([1, 1, 2]), source.scope))
            )
        return same(" WHERE {}", joined(" AND ", parts)) if parts else EMPTY

    def _stream(self) -> Relation:
        stream, alias = self.pick(["x", "y", "z"]), self.fresh("s")
        columns = {"t": self.data.time_type, **STREAM_KINDS}
        text = self.pick([f"{stream} AS {alias}", f"{stream} {alias}"])
        return Relation(same(text), alias, columns, "t", stream)

    def _projected(self, source: Source) -> Relation:
        time = self.fresh("t")
        at = self.pick([*source.times, *source.paired])
        items: list[Item] = [(same(at), self.data.time_type, time), *self.items(source.scope, 2)]
        # Rows of one instant are told apart by the time of the pair, which is not in the list.
        distinct = "DISTINCT " if source.single is not None and self.chance(0.15) else ""
        self.random.shuffle(items)
        select = same(f"SELECT {distinct}{{}} FROM {{}}{{}}", listed(items), source.text, self.where(source))
        return self.named(select, {name: kind for _, kind, name in items}, time)

    def _united(self) -> Relation:
        """Two queries of the same columns."""
        kinds = [self.pick(KINDS) for _ in range(self.random.randint(1, 3))]
        names = [self.fresh("u") for _ in range(len(kinds) + 1)]
        selects = []
        for _ in range(2):
            stream = self._stream()
            values = [self.make(kind, 1, stream.refs) for kind in kinds]
            values = [
                same("CAST({} AS decimal(20,6))", v) if k == "decimal" else v
                for k, v in zip(kinds, values, strict=True)
            ]
            items = [(e, "", n) for e, n in zip([same(f"{stream.alias}.t"), *values], names, strict=True)]
            source = Source(stream.text, stream.refs, [])
            selects.append(same("SELECT {} FROM {}{}", listed(items), stream.text, self.where(source)))
        union = joined(self.pick([" UNION ALL ", " UNION "]), selects)
        return self.named(union, dict(zip(names, [self.data.time_type, *kinds], strict=True)), names[0])

    def _bag(self) -> Source:
        """Streams side by side, as the papers write them."""
        streams = self.random.sample(["x", "y", "z"], self.random.randint(2, 3))
        all_rows = " UNION ALL ".join(f"SELECT * FROM {name}" for name in streams)
        text = Twin(" UNION ".join(streams), f"({all_rows}) AS bag", f"({all_rows}) AS bag")
        columns = {"t": self.data.time_type, **STREAM_KINDS}
        return Source(text, {kind: [n for n, k in columns.items() if k == kind] for kind in KINDS}, ["t"])

    def _join(self, depth: int) -> Source:
        left, right = self.relation(depth), self.relation(depth)
        if right.stream and any(left.refs[right.columns[c]] for c in KEYS) and self.chance(0.3):
            return self._latest(left, right)
        if left.stream and right.stream and left.stream != right.stream and self.chance(0.2):
            return self._windowed_join(left.stream, right.stream)
        kind = self.pick(
            ["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
        )
        condition = self._condition(left, right)
        scope = {k: left.refs[k] + right.refs[k] for k in KINDS}
        times = [f"{left.alias}.{left.time}", f"{right.alias}.{right.time}"]
        times = {"JOIN": times, "RIGHT JOIN": times[1:], "FULL JOIN": []}.get(kind, times[:1])
        if kind.startswith("LEFT ") and kind != "LEFT JOIN":
            text = twin(f"{{}} {kind} {{}} ON {{}}", f"{{}} {kind[5:]} {{}} ON {{}}", left.text, right.text, condition)
            return Source(text, left.refs, times)
        if kind == "JOIN" and self.chance(0.2):
            text = twin("{}, {}", "{} CROSS JOIN {}", left.text, right.text)
            return Source(text, scope, times, [condition], paired=self._both(times))
        text = same(f"{{}} {kind} {{}} ON {{}}", left.text, right.text, condition)
        return Source(text, scope, times, paired=self._both(times))

    def _both(self, times: list[str]) -> list[str]:
        return [f"{name}({', '.join(times)})" for name in ("greatest", "least")] if len(times) == 2 else []

    def _latest(self, left: Relation, right: Relation) -> Source:
        """The latest row of a stream as of the time of another; of rows of one time the greatest is the latest."""
        kind, sign = self.pick(["ASOF JOIN", "ASOF LEFT JOIN"]), self.pick([">=", ">"])
        column = self.pick([c for c in KEYS if left.refs[right.columns[c]]])
        key = self.pick(left.refs[right.columns[column]])
        order = ", ".join(f"{name} DESC NULLS LAST" for name in right.columns)
        newest = (
            f"SELECT * FROM {right.stream} QUALIFY row_number() OVER (PARTITION BY {column}, t ORDER BY {order}) = 1"
        )
        time = f"{left.alias}.{left.time}"
        condition = f"ON {right.alias}.{column} = {key} AND {time} {sign} {right.alias}.t"
        judged = f"{{}} {kind} ({newest}) AS {right.alias} {condition}"
        text = twin(f"{{}} {kind} {{}} {condition}", judged, left.text, right.text)
        return Source(text, {k: left.refs[k] + right.refs[k] for k in KINDS}, [time])

    def _windowed_join(self, left: str, right: str) -> Source:
        """As the papers write it: a window after each stream, or one that tumbles for both."""
        a, b = self.random.randint(0, 8) + 1, self.random.randint(0, 8) + 1
        columns = {"t": self.data.time_type, **STREAM_KINDS}
        scope = {kind: [f"{s}.{n}" for s in (left, right) for n, k in columns.items() if k == kind] for kind in KINDS}
        both = f"{left} CROSS JOIN {right}"
        times = [f"{left}.t", f"{right}.t"]
        if self.chance(0.5):
            near = Twin(
                "TRUE", *[f"{right}.t BETWEEN {self.plus(left + '.t', -b)} AND {self.plus(left + '.t', a)}"] * 2
            )
            text = Twin(f"{left} [RANGE {self.length(a)}, WA t], {right} [RANGE {self.length(b)}, WA t]", both, both)
            return Source(text, scope, times, [near, self._equal(left, right)])
        if self.data.timed:
            numbers = [f"floor(epoch_us({s}.t) / {a}000000.0)" for s in (left, right)]
            spark = [f"floor(unix_micros({s}.t) / {a}000000.0)" for s in (left, right)]
        else:
            numbers = spark = [f"floor({s}.t / {a}.0)" for s in (left, right)]
        near = Twin("TRUE", " = ".join(numbers), " = ".join(spark))
        text = Twin(f"{left}, {right} [RANGE TUMBLING {self.length(a)}, WA t]", both, both)
        return Source(text, scope, times, [near, self._equal(left, right)])

    def _equal(self, left: str, right: str) -> Twin:
        return same(self.pick(["{0}.k = {1}.k", "{0}.j = {1}.j", "{0}.i = {1}.j"]).format(left, right))

    def _condition(self, left: Relation, right: Relation) -> Twin:
        parts = [self.near(left, right)]
        shared = [k for k in KINDS if left.refs[k] and right.refs[k]]
        if self.chance(0.7):
            kind = self.pick([*shared, *[k for k in shared if k in ("int", "string", "boolean")] * 3])
            parts.append(same(f"{self.pick(left.refs[kind])} = {self.pick(right.refs[kind])}"))
        if self.chance(0.3):
            parts.append(same("({})", self.make("boolean", 1, {k: left.refs[k] + right.refs[k] for k in KINDS})))
        self.random.shuffle(parts)
        return joined(" AND ", parts)

    def near(self, left: Relation, right: Relation) -> Twin:
        """How far apart the times of two relations may be."""
        a, b = f"{left.alias}.{left.time}", f"{right.alias}.{right.time}"
        low = self.random.randint(-6, 4)
        high = low + self.random.randint(0, 12)
        if self.chance(0.5):
            a, b, low, high = b, a, -high, -low
        forms = [
            f"{b} BETWEEN {self.plus(a, low)} AND {self.plus(a, high)}",
            f"{b} >= {self.plus(a, low)} AND {b} <= {self.plus(a, high)}",
            f"{self.plus(a, low)} <= {b} AND {b} < {self.plus(a, high + 1)}",
            f"{a} = {b}",
        ]
        if not self.data.timed:
            forms += [f"{b} - {a} BETWEEN {low} AND {high}", f"abs({b} - {a}) <= {abs(high)}"]
        return same(self.pick(forms))

    def plus(self, time: str, ticks: int) -> str:
        """A time some ticks later, or earlier."""
        amount = f"INTERVAL {abs(ticks)} SECONDS" if self.data.timed else str(abs(ticks))
        return f"{time} {'-' if ticks < 0 else '+'} {amount}"

    def length(self, ticks: int) -> str:
        """So many ticks, as a window clause has them."""
        return f"{ticks} seconds" if self.data.timed else str(ticks)

    def _lookup(self, depth: int) -> Source:
        relation, alias = self.relation(depth), self.fresh("d")
        times = [f"{relation.alias}.{relation.time}"]
        kind = self.pick(["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
        key = self.make("string", 1, relation.refs)
        if self.chance(0.35):
            kind = self.pick(["JOIN", "LEFT JOIN"])
            valid = f"{alias}.since <= {times[0]} AND ({alias}.until IS NULL OR {times[0]} < {alias}.until)"
            text = twin(
                f"{{}} {kind} rates FOR SYSTEM_TIME AS OF {times[0]} AS {alias} ON {alias}.vk = {{}}",
                f"{{}} {kind} rates AS {alias} ON {alias}.vk = {{}} AND {valid}",
                relation.text, key,
                spark=f"{{}} {kind} rates AS {alias} ON {alias}.vk = {{}} AND {valid}",
            )  # fmt: skip
            return Source(text, _with(relation, alias, VERSIONS), times)
        scope = _with(relation, alias, TABLE)
        condition = same(f"{alias}.key = {{}}", key)
        if self.chance(0.4):
            condition = same("{} AND ({})", condition, self.make("boolean", 1, scope))
        elif self.chance(0.3):
            condition = same("({})", self.make("boolean", 2, scope))
        written = kind[5:] if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN") else kind
        text = twin(
            f"{{}} {kind} dim AS {alias} ON {{}}", f"{{}} {written} dim AS {alias} ON {{}}", relation.text, condition
        )
        return Source(text, scope if written == kind else relation.refs, times)

    def _sub_query(self, relation: Relation) -> Twin:
        negated = self.pick(["", "NOT "])
        if self.chance(0.5):
            alias = self.fresh("d")
            if self.chance(0.5):
                scope = {kind: [f"{alias}.{n}" for n, k in TABLE.items() if k == kind] for kind in KINDS}
                text = f"{{}} {negated}IN (SELECT {alias}.key FROM dim AS {alias} WHERE {{}})"
                return same(text, self.make("string", 1, relation.refs), self.make("boolean", 1, scope))
            text = f"{negated}EXISTS (SELECT 1 FROM dim AS {alias} WHERE {alias}.key = {{}} AND {{}})"
            condition = self.make("boolean", 1, _with(relation, alias, TABLE))
            return same(text, self.make("string", 0, relation.refs), same("({})", condition))
        other = self._stream()
        if self.chance(0.5):
            asked = self.make("string", 1, relation.refs)
            text = f"{{}} {negated}IN (SELECT {other.alias}.k FROM {{}} WHERE {{}})"
            return same(text, asked, other.text, self.near(relation, other))
        return same(f"{negated}EXISTS (SELECT 1 FROM {{}} WHERE {{}})", other.text, self._condition(relation, other))


def listed(items: list[Item]) -> Twin:
    """A select list."""
    return joined(", ", [same(f"{{}} AS {name}", expression) for expression, _, name in items])


def _with(relation: Relation, alias: str, table: Columns) -> dict[str, list[str]]:
    kinds = {name: "decimal" if type_.startswith("decimal") else type_ for name, type_ in table.items()}
    return {kind: relation.refs[kind] + [f"{alias}.{n}" for n, k in kinds.items() if k == kind] for kind in KINDS}
