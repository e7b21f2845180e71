"""Queries and rows of which every release keeps snapshots; a case is never changed, only added to.

A golden file was written by the release that its folder names, after the first part of a case's rows. Each later
release must open it and, with the rest of the rows, give what the whole input gives. There is a case for every kind of
operator and for every shape that its pages can have.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Element, Insert, Punctuation, linear
from penstock.model.forms import to_open_close, to_signed
from penstock.model.lives import Lives
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.model.timestamps import without_stamps
from penstock.plan.planner import in_process

FOLDER = Path(__file__).parent / "snapshots"
COLUMNS = "ts bigint, k string, v bigint, d double, c decimal(20,4), b binary, day date, at timestamp"
BARE = COLUMNS.removeprefix("ts bigint, ")
Row = tuple[Any, ...]


def rows(count: int = 120) -> list[Row]:
    """Rows out of order by up to 9, with what each type has besides ordinary values."""
    odd_texts = ["a", "b", None, "", "ß\0", "日本", "x" * 50, "'"]
    odd_floats = [1.5, None, math.nan, math.inf, -math.inf, -0.0, 0.0, 1e308, 5e-324]
    made = []
    for i in range(count):
        ts = i + (i * 7) % 10
        v = None if i % 11 == 3 else (2**62 if i % 13 == 5 else (i * 37) % 23 - 7)
        c = None if i % 9 == 1 else Decimal(i * 12345) / 10**4
        day = None if i % 5 == 2 else dt.date(1970 + i % 60, 1 + i % 12, 1 + i % 28)
        b = None if i % 6 == 4 else bytes([i % 256, 0, 255])
        at = None if i % 7 == 6 else i * 1_000_003 - 5
        made.append((ts, odd_texts[(i * 5) % 8], v, odd_floats[(i * 4) % 9], c, b, day, at))
    return made


class Spread:
    """A user's aggregate with plain partials: an integer beyond 64 bits, a tuple, a set."""

    def lift(self, value: Any) -> Any:
        return {"sum": value << 80, "ends": (value, value), "seen": {value}}

    def combine(self, left: Any, right: Any) -> Any:
        ends = min(left["ends"][0], right["ends"][0]), max(left["ends"][1], right["ends"][1])
        return {"sum": left["sum"] + right["sum"], "ends": ends, "seen": left["seen"] | right["seen"]}

    def lower(self, partial: Any) -> Any:
        return (partial["sum"] >> 80) % 1000 + (partial["ends"][1] - partial["ends"][0]) % 7 + len(partial["seen"])


class Latest:
    """A user's aggregate whose partials are objects that are no plain data."""

    def lift(self, value: Any) -> Any:
        return deque([value], maxlen=3)

    def combine(self, left: Any, right: Any) -> Any:
        return deque(sorted([*left, *right]), maxlen=3)

    def lower(self, partial: Any) -> Any:
        return sum(partial) % 1000

    def to_state(self, partial: Any) -> Any:
        return Counter(partial)

    def from_state(self, data: Any) -> Any:
        return deque(sorted(data.elements()), maxlen=3)


class Absorb:
    """A user's aggregate that has None among its partials, and among the data of those."""

    def lift(self, value: Any) -> Any:
        return None if value < 0 else value

    def combine(self, left: Any, right: Any) -> Any:
        return None if left is None or right is None else (left + right) % 1000

    def lower(self, partial: Any) -> Any:
        return -1 if partial is None else partial

    def to_state(self, partial: Any) -> Any:
        return {"nothing": True} if partial is None else partial or None

    def from_state(self, data: Any) -> Any:
        return None if isinstance(data, dict) else data or 0


@dataclass(frozen=True)
class Golden:
    """A query, and how its rows come."""

    name: str
    sql: str
    progress: Any = field(default_factory=lambda: pk.bounded(9))
    aggregate: str | None = None
    """Which way to aggregate is to run, where the planner would choose another."""
    form: str = "rows"
    merge: dict[str, Any] | None = None
    """The stream is merged of two replicas."""
    lives: bool = False
    """Rows live for some time, and some are revised."""
    burst: int | None = None
    """How many rows without a partner come out at a time."""
    conflate: dict[str, Any] | None = None
    """The stream is conflated by this; without a policy, what is current of it is taken."""
    stamps: Any = None
    """Rows bring no times: `pk.internal()` or `pk.latent()`. The clock stands still: stamps are the same."""
    is_read: bool = False
    """Whether the queue keeps what went on last of each key, as for a run that is read by its key."""

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.snapshot"

    def execution(self) -> LocalExecution:
        """A fresh run."""
        flow = pk.Flow()
        names = ("one", "two") if self.merge is not None else ("s",) if self.conflate is None else ("raw",)
        for name in names:
            source = iter(()) if self.lives else []
            if self.stamps is not None:
                flow.stream(name, source, time="ts", schema=BARE, timestamps=self.stamps)
                continue
            flow.stream(name, source, time="ts", schema=COLUMNS, progress=self.progress, lives=self.lives)
        if self.merge is not None:
            flow.merge("s", list(names), **self.merge)
        if self.conflate is not None:
            declared: Any = flow.conflate if "policy" in self.conflate else flow.latest
            declared("s", "raw", **self.conflate)
        flow.aggregate("spread", Spread, "bigint").aggregate("latest", Latest, "bigint")
        flow.aggregate("absorb", Absorb, "bigint")
        flow.function("twice", _twice, "bigint")
        query: Any = flow.query(self.sql, max_burst=self.burst)
        found: LocalExecution = query.execution(in_process(query.plan, flow.catalog, aggregate=self.aggregate))
        if self.stamps is not None:
            found.clock = lambda: 10**15
        for arc in found.graph.queued:
            arc.operator.remembers = self.is_read
        return found

    def inputs(self, execution: LocalExecution) -> list[tuple[str, Batch]]:
        """The whole input in batches of different sizes; replicas by turns, the second one behind."""
        schemas = {n.stream: n.operator.schema for n in execution.graph.nodes if n.stream is not None}
        parts = {name: list(_cut(self._rows())) for name in schemas}
        if self.merge is not None:
            parts["two"] = [[], [], *parts["two"]]
            parts["one"] += [[], []]
        found = []
        for at in range(len(next(iter(parts.values())))):
            for name, schema in schemas.items():
                if parts[name][at] and self.stamps is not None:
                    found.append((name, Batch(without_stamps(schema), [row[1:] for row in parts[name][at]])))
                elif parts[name][at]:
                    batch = (_lived if self.lives else Batch)(schema, parts[name][at])
                    found.append((name, Batch(schema, table=batch.table) if self.form == "arrow" else batch))
        return found

    def _rows(self) -> list[Row]:
        made = rows()
        per = getattr(self.progress, "per", ())
        if self.merge is not None:  # time and text are a key
            made = sorted({(r[0], r[1]): r for r in made}.values(), key=_by_time)
            return _with_ends(made, bounds=True) if per else made
        if per:
            return _with_ends(made, bounds=self.lives)
        if isinstance(self.progress, type(pk.punctuated("true"))):
            return [r if i % 20 != 19 else (r[0] - 15, "punct", *[None] * 6) for i, r in enumerate(made)]
        return made

    def half(self, execution: LocalExecution) -> tuple[list[tuple[str, Batch]], list[tuple[str, Batch]]]:
        """What came before the snapshot, and what comes after it, which begins so that the state counts.

        A row that is late if one remembers how far the stream was, and rows that have been there; of replicas, the one
        that is behind.
        """
        inputs = self.inputs(execution)
        before, after = inputs[: len(inputs) // 2], inputs[len(inputs) // 2 :]
        if self.merge is not None:
            return before, sorted(after[:2], key=lambda i: i[0], reverse=True) + after[2:]
        if self.stamps is not None:
            return before, after
        name, last = before[-1]
        seen = [row for _, batch in before for row in batch.rows]
        newest = sorted(seen, key=lambda row: row[0])[-6:]
        again = Batch(last.schema, [(0, *seen[0][1:]), *[r for r in newest if r[1] != "punct"]])
        return before, [(name, again), *after]


def _with_ends(made: list[Row], *, bounds: bool) -> list[Row]:
    """Every twentieth row ends its group, by `v`; with `bounds`, some are one of the whole stream."""
    found = []
    for i, row in enumerate(made):
        if bounds and i % 20 == 9:
            found.append((row[0] - 15, "punct", *[None] * 6))
        else:
            ends = i % 20 == 19 and row[2] is not None
            found.append((row[0], "punct", row[2], *[None] * 5) if ends else row)
    return found


def _lived(schema: Schema, whole: list[Row]) -> Batch:
    """Each row lives a while; every other one gets another end at once, and every fifth is taken back."""
    elements: list[Insert | Adjust] = []
    for i, row in enumerate(whole):
        ts, end = row[0], row[0] + 2 + i % 11
        elements.append(Insert(row, ts, end))
        if i % 2:
            elements.append(Adjust(row, ts, end, end := end + 1 + i % 3))
        if i % 5 == 4:
            elements.append(Adjust(row, ts, end, ts))
    return Batch(schema, [e.payload for e in elements], lives=Lives.of(elements))


def _twice(value: int | None) -> int | None:
    return None if value is None else value * 2 % 1000


def _by_time(row: Row) -> Any:
    return (row[0], str(row))


def _cut(whole: list[Row]) -> Iterator[list[Row]]:
    sizes, at = [1, 40, 3, 1, 25, 10, 1, 39], 0
    for size in sizes:
        yield whole[at : at + size]
        at += size


def feed(execution: LocalExecution, inputs: list[tuple[str, Batch]]) -> list[Batch | Punctuation]:
    """Give it all, batch by batch; of a queue with a budget, that many rows go on after each."""
    budget = next((arc.pacing.budget for arc in execution.graph.queued), None)
    found: list[Batch | Punctuation] = []
    for name, batch in inputs:
        found += execution.feed(name, batch)
        found += [] if budget is None else execution.release(budget)
    return found


NUMBERS = "count(*) AS n, avg(v) AS av, max(v) AS mv, min(d) AS d0, sum(d) AS sd, var_pop(d) AS pd, max(at) AS a1"
TABLES = "count(v) AS n, sum(c) AS sc, max(k) AS mk, min(c) AS c0, count(DISTINCT d) AS dd, max(day) AS md"
EXACT = "count(*) AS n, count(v) AS nv, sum(c) AS sc, avg(c) AS ac, count(DISTINCT k) AS dk"
DAYS = "[RANGE 9 days, SLIDE 9 days, WA ts]"
SLIDING = "[RANGE 30, SLIDE 7, WA ts]"
SEVERAL = {
    "ts": pk.bounded(9),
    "at": pk.per_source("v", idle="40 seconds", disorder="12 seconds"),
    ("ts", "at"): pk.punctuated("k = 'b'", whole_stream=True),
}
PER = pk.punctuated("k = 'punct'", per=["v"], final=True)
TUMBLING = "[RANGE 25, SLIDE 25, WA ts]"

PAIRS = "first(v) AS f, last(k) AS l, min_by(d, v) AS m, corr(v, d) AS r, count(DISTINCT k, v) AS n"
VALUES = "median(v) AS m, percentile(c, 0.9) AS p, mode(k) AS o, sum(DISTINCT c) AS s, var_pop(DISTINCT d) AS x"
BITS = "bit_and(v) AS a, bit_or(v) AS o, bit_xor(v) AS x, any(v > 5) AS y, every(d > 0) AS e, count_if(v > 3) AS n"
DISTINCTS = "count(*) AS n, count(DISTINCT v) AS dv, count(DISTINCT d) AS dd, count(DISTINCT b) AS db, max(v) AS m"
NEAR = "a.k = b.k AND b.d = a.d AND b.ts BETWEEN a.ts - 4 AND a.ts + 11 AND a.v <> b.v"
SEQ = "OVER [30 PRECEDING c]"
THREE = ("s a JOIN s b ON a.k = b.k AND b.ts BETWEEN a.ts - 4 AND a.ts + 9 "
         "JOIN s c ON c.k = b.k AND c.ts BETWEEN b.ts AND b.ts + 6 AND c.d < b.d")  # fmt: skip
CASES = [
    Golden("ingest-ordered", "SELECT * FROM s", pk.ordered()),
    Golden("ingest-bounded", "SELECT ts, k, twice(v) AS x FROM s WHERE v > 0"),
    Golden("ingest-rows", "SELECT ts, k FROM s", pk.bounded(rows=7)),
    Golden("ingest-estimated", "SELECT ts, k FROM s", pk.estimated("20%", rows=9)),
    Golden("ingest-internal", "SELECT ts, k FROM s", stamps=pk.internal()),
    Golden("stamp", f"SELECT k, count(*) AS n {DAYS} FROM s GROUP BY k", stamps=pk.latent()),
    Golden("ingest-timer", "SELECT ts, k FROM s", pk.timer("1 second")),
    Golden("ingest-punctuated", "SELECT ts, k, v FROM s", pk.punctuated("k = 'punct'")),
    Golden("ingest-per-source", "SELECT ts, k, v FROM s", pk.per_source("k", idle=30, disorder=9)),
    Golden("join", f"SELECT a.k, a.v, b.v FROM s a JOIN s b ON {NEAR}"),
    Golden("join-arrow", f"SELECT a.k, a.v, b.v FROM s a FULL JOIN s b ON {NEAR} AND a.c < b.c", form="arrow"),
    Golden("join-anti", f"SELECT k, v FROM s a WHERE NOT EXISTS (SELECT 1 FROM s b WHERE {NEAR})"),
    Golden("as-of", "SELECT a.k, a.v, b.v FROM s a ASOF JOIN s b ON a.k = b.k AND a.ts > b.ts"),
    Golden(
        "as-of-arrow",
        "SELECT a.k, a.v, b.v, b.d FROM s a ASOF LEFT JOIN s b [ROWS 3] ON a.k = b.k AND a.ts > b.ts "
        "AND b.ts > a.ts - 30",
        form="arrow",
    ),
    Golden(
        "seq-recent", "SELECT a.v, b.d, c.at FROM SEQ(s a, NOT s n, s b, s c) WHERE n.v = 5 AND b.v > 0", form="arrow"
    ),
    Golden(
        "seq-chronicle",
        "SELECT a.v, b.d, b.c FROM SEQ(s a, s b) PARTITION BY k, d OVER [60 PRECEDING b] MODE CHRONICLE",
    ),
    Golden(
        "seq-continuous", f"SELECT a.v, c.b FROM SEQ(s a, s b, s c) {SEQ} MODE CONTINUOUS WHERE a.v < 3 AND c.v > 9"
    ),
    Golden(
        "seq-cumulative",
        f"SELECT a.v, b.day, c.b FROM SEQ(s a, s b, NOT s n, s c) {SEQ} MODE CUMULATIVE WHERE n.v = 3 AND c.v > 9",
    ),
    Golden("seq-nothing", "SELECT a.v, a.day FROM SEQ(s a, NOT s b) OVER [9 FOLLOWING a] WHERE a.k = b.k"),
    Golden(
        "seq-collected-nothing",
        "SELECT a.v, b.v AS w FROM SEQ(s a, s b, NOT s c) OVER [40 FOLLOWING a] "
        "MODE CUMULATIVE WHERE b.v > 9 AND c.v = 2",
    ),
    Golden("mjoin", f"SELECT /*+ MULTIWAY_JOIN */ a.k, a.v, b.v, c.v FROM {THREE}"),
    Golden("mjoin-arrow", f"SELECT /*+ MULTIWAY_JOIN */ a.k, a.v, b.v, c.v FROM {THREE}", form="arrow"),
    Golden("join-groups", "SELECT a.v, count(*) AS n FROM s a JOIN s b ON a.k = b.k AND a.ts = b.ts GROUP BY a.v", PER),
    Golden("join-earlier", f"SELECT count(*) AS n FROM s a JOIN s b ON {NEAR} GROUP BY least(a.ts, b.ts)"),
    Golden("join-bursts", f"SELECT a.ts, a.v, b.v AS w FROM s a FULL JOIN s b ON {NEAR} AND a.v < b.v", burst=1),
    Golden("join-times", f"SELECT a.ts AS x, b.ts AS y, count(*) AS n FROM s a JOIN s b ON {NEAR} GROUP BY a.ts, b.ts"),
    Golden("distinct", "SELECT DISTINCT k, d FROM s"),
    Golden("distinct-all", "SELECT DISTINCT * FROM s", form="arrow"),
    Golden(
        "row-number",
        "SELECT k, d, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end, k ORDER BY d DESC) AS rn "
        "FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), 30))) WHERE rn <= 2",
    ),
    Golden(
        "row-number-arrow",
        "SELECT *, ROW_NUMBER() OVER (PARTITION BY ts ORDER BY c) AS rn FROM s",
        form="arrow",
    ),
    Golden("union", "SELECT k, v FROM s WHERE v > 3 UNION ALL SELECT k, v FROM s"),
    Golden("row-numbers", "SELECT count(*) AS n, max(v) AS m [RANGE 9 rows, SLIDE 4 rows, WA row-num] FROM s"),
    Golden(
        "columnar-loose", "SELECT ts, k, count(*) AS n, max(v) AS m, sum(v) AS t FROM s GROUP BY ts, k", form="arrow"
    ),
    Golden("columnar-tumbling", f"SELECT k, {NUMBERS} {TUMBLING} FROM s GROUP BY k"),
    Golden("columnar-tumbling-arrow", f"SELECT k, {NUMBERS} {TUMBLING} FROM s GROUP BY k", form="arrow"),
    Golden("columnar-sliding", f"SELECT k, b, {NUMBERS} {SLIDING} FROM s GROUP BY k, b"),
    Golden("columnar-sliding-arrow", f"SELECT k, {NUMBERS} {SLIDING} FROM s GROUP BY k", form="arrow"),
    Golden("columnar-no-groups", f"SELECT {NUMBERS} {SLIDING} FROM s", form="arrow"),
    Golden("columnar-keys", f"SELECT k, at, {NUMBERS} {SLIDING} FROM s GROUP BY k, at", form="arrow"),
    Golden(
        "nested-keys",
        f"SELECT p, {NUMBERS} {SLIDING} FROM (SELECT *, struct(k, d) AS p FROM s) s GROUP BY p",
        form="arrow",
    ),
    Golden("nested-distinct", "SELECT DISTINCT array(d, v) AS a, named_struct('k', k, 'at', at) AS p FROM s"),
    Golden(
        "collected",
        f"SELECT k, collect_list(array(d)) AS l, collect_set(x) AS c {SLIDING} "
        "FROM s CROSS JOIN UNNEST(array(v, v % 3)) AS t(x) GROUP BY k",
    ),
    Golden("columnar-alone", f"SELECT {NUMBERS} {SLIDING} FROM s GROUP BY k"),
    Golden("columnar-distinct", f"SELECT k, {DISTINCTS} {SLIDING} FROM s GROUP BY k", form="arrow"),
    Golden("columnar-distinct-rows", f"SELECT v, {DISTINCTS} {TUMBLING} FROM s GROUP BY v"),
    Golden("paned", f"SELECT k, {TABLES} {SLIDING} FROM s GROUP BY k", aggregate="paned"),
    Golden("paned-pairs", f"SELECT k, {PAIRS} {SLIDING} FROM s GROUP BY k"),
    Golden("paned-values", f"SELECT k, {VALUES} {SLIDING} FROM s GROUP BY k"),
    Golden("columnar-bits", f"SELECT k, {BITS} {SLIDING} FROM s GROUP BY k"),
    Golden("grouping-sets", f"SELECT k, b, grouping_id() AS g, sum(v) AS s {SLIDING} FROM s GROUP BY CUBE (k, b)"),
    Golden("paned-differential", f"SELECT k, {EXACT} {SLIDING} FROM s GROUP BY k", aggregate="paned differential"),
    Golden(
        "paned-odd-keys", f"SELECT d, day, {EXACT} {SLIDING} FROM s GROUP BY d, day", aggregate="paned differential"
    ),
    Golden("wid", f"SELECT k, {TABLES} {SLIDING} FROM s GROUP BY k", aggregate="wid"),
    Golden("wid-odd-keys", f"SELECT c, at, {EXACT} {SLIDING} FROM s GROUP BY c, at", aggregate="wid"),
    Golden("user-aggregates", f"SELECT k, spread(v) AS x, latest(v) AS y {SLIDING} FROM s GROUP BY k"),
    Golden("user-aggregates-tumbling", f"SELECT spread(v) AS x, latest(v) AS y {TUMBLING} FROM s", aggregate="wid"),
    Golden("user-aggregates-none", f"SELECT k, absorb(v) AS x {SLIDING} FROM s GROUP BY k", aggregate="paned"),
    Golden("user-aggregates-none-wid", f"SELECT k, absorb(v % 3) AS x {TUMBLING} FROM s GROUP BY k", aggregate="wid"),
    Golden(
        "nested-windows",
        f"SELECT max(n) AS m [RANGE 28, SLIDE 14, WA window_end] "
        f"FROM (SELECT k, count(*) AS n {SLIDING} FROM s GROUP BY k) i",
    ),
    Golden("merge-r2", "SELECT * FROM s", pk.ordered(), merge={"key": ["k"]}),
    Golden("merge-r3", "SELECT * FROM s", merge={"key": ["k"]}),
    Golden("merge-r3-lag", "SELECT ts, k, v FROM s", merge={"key": ["k"], "lag": 5, "policy": "conservative"}),
    Golden("merge-r4", "SELECT * FROM s", merge={}),
    Golden("merge-r4-majority", "SELECT ts, k, d FROM s", merge={"driver": "majority"}),
    Golden("settle", f"SELECT k, {NUMBERS} {SLIDING} FROM s GROUP BY k", lives=True),
    Golden("distinct-stretches", "SELECT DISTINCT k FROM s", lives=True),
    Golden("merge-lives", "SELECT * FROM s", merge={"policy": "first seen"}, lives=True),
    Golden("ingest-several", "SELECT ts, at, k FROM s", SEVERAL),
    Golden(
        "several-windows",
        "SELECT k, count(*) AS n [RANGE 30 seconds, SLIDE 7 seconds, WA at] FROM s GROUP BY k",
        SEVERAL,
    ),
    Golden(
        "whole-groups",
        f"SELECT v, k, {TABLES}, {NUMBERS.removeprefix('count(*) AS n, ')}, spread(v) AS x, latest(v) AS y FROM s "
        "GROUP BY v, k",
        PER,
    ),
    Golden("settle-groups", f"SELECT v, k, {TABLES} FROM s GROUP BY v, k", PER, lives=True),
    Golden("merge-groups", f"SELECT v, {NUMBERS} {SLIDING} FROM s GROUP BY v", PER, merge={"key": ["k"]}),
    Golden("merge-then-windows", f"SELECT k, {NUMBERS} {SLIDING} FROM s GROUP BY k", merge={"key": ["k"]}),
    Golden("newest", "SELECT * FROM s WHERE v > 0", conflate={"key": ["k", "d"]}),
    Golden("conflate-in-place", "SELECT * FROM s", conflate={"key": ["k", "d"], "policy": "in_place"}),
    Golden("conflate-read", "SELECT * FROM s", conflate={"key": "k", "policy": "in_place", "budget": 3}, is_read=True),
    Golden("conflate-fifo", "SELECT k, v FROM s", conflate={"key": "k", "policy": "fifo"}, form="arrow"),
    Golden("conflate-linecutting", "SELECT * FROM s", conflate={"key": "day", "policy": "linecutting"}),
    Golden("conflate-append", "SELECT * FROM s", conflate={"key": "k", "policy": "append"}),
    Golden("conflate-paced", "SELECT * FROM s", conflate={"key": "k", "policy": "in_place", "access": {"a": "1 hour"}}),
    Golden("conflate-adaptive", "SELECT * FROM s", conflate={"key": "k", "policy": "in_place", "adaptive": True}),
    Golden(
        "conflate-windows",
        f"SELECT k, {EXACT} {SLIDING} FROM s GROUP BY k",
        conflate={"key": "k", "policy": "in_place", "windows": "lazy"},
    ),
    Golden(
        "conflate-windows-eager",
        f"SELECT k, {EXACT} {SLIDING} FROM s WHERE v > 0 GROUP BY k",
        conflate={"key": "k", "policy": "fifo", "windows": "eager", "budget": 3},
    ),
    Golden("conflate-groups", "SELECT k, v, ts FROM s", PER, conflate={"key": "k", "policy": "in_place"}),
]


# Merges by themselves


def told(shift: int, *, revised: bool, ties: bool) -> list[Element]:
    """What a replica says: events of text, numbers and what floats have besides, a bound after every fifth."""
    said: list[Element] = []
    for i in range(24):
        vs = i // 2 if ties else i
        payload = (f"p{i}", [i, 2**70, None][i % 3], [0.5, math.inf, None, -0.0][i % 4])
        end = vs + 3 + i % 5
        said.append(Insert(payload, vs, end + shift if revised else end))
        if revised and shift:
            said.append(Adjust(payload, vs, end + shift, end))
        if i % 5 == 4:
            said.append(linear("vs", vs - 1))
    return [*said, linear("vs", END_OF_TIME)]


@dataclass(frozen=True)
class GoldenMerge:
    """A merge of two replicas that is fed by hand."""

    name: str
    algorithm: str
    properties: StreamProperties
    revised: bool = False
    ties: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.snapshot"

    def merge(self) -> Any:
        """A fresh one."""
        return pk.merge({"a": [], "b": []}, properties=self.properties, algorithm=self.algorithm, **self.options)

    def _formed(self, said: list[Element]) -> list[Any]:
        """In the form that the merge is given; tuples with their bounds at the end."""
        if self.options.get("form") == "signed":
            return [*to_signed(said), said[-1]]
        return list(to_open_close(said)) if self.options.get("form") == "open/close" else said

    def half(self) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
        """What came before the snapshot, and what comes after it; the second replica is behind."""
        one, two = (self._formed(told(shift, revised=self.revised, ties=self.ties)) for shift in (0, 2))
        both = [("a", e) for e in one[:6]]
        for left, right in itertools.zip_longest(one[6:], two):
            both += [("a", left)] if left is not None else []
            both += [("b", right)] if right is not None else []
        return both[:30], both[30:]


_KEY = frozenset({"p"})
MERGES = [
    GoldenMerge("lmerge-r0", "R0", StreamProperties(ordered=True, strictly_ordered=True, deterministic_ties=True)),
    GoldenMerge("lmerge-r1", "R1", StreamProperties(ordered=True, deterministic_ties=True), ties=True),
    GoldenMerge("lmerge-r2", "R2", StreamProperties(ordered=True, key=_KEY), ties=True),
    *[
        GoldenMerge(
            f"lmerge-{name.lower()}-{policy.replace(' ', '-')}",
            name,
            StreamProperties(insert_only=False, key=key, lifetime=None),
            revised=True,
            ties=True,
            options={"policy": policy, **more},
        )
        for name, key in (("R3", _KEY), ("R4", None))
        for policy, more in (("first seen", {}), ("half frozen", {"lag": 2}), ("conservative", {"driver": "majority"}))
    ],
    GoldenMerge("lmerge-r3-minus", "R3-", StreamProperties(insert_only=False, key=_KEY), revised=True, ties=True),
    GoldenMerge(
        "lmerge-cleanse", "Cleanse + R1", StreamProperties(insert_only=False, key=_KEY), revised=True, ties=True
    ),
    GoldenMerge(
        "lmerge-open-close",
        "R3",
        StreamProperties(insert_only=False, key=_KEY),
        revised=True,
        options={"form": "open/close"},
    ),
    GoldenMerge("lmerge-signed", "R4", StreamProperties(insert_only=False), options={"form": "signed"}),
]
