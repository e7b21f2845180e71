"""Random joins of two streams, how their rows arrive, and what the oracle says of them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.progress import Progress, Punctuated, bounded, ordered, per_source, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.model.tdb import TDB
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.nodes import Node
from penstock.reference import judge
from penstock.reference.evaluation import Outcome, outcome
from penstock.sql.binder import bind

SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("v", "int"), ("d", "double"), ("at", "timestamp")], "ts")
Output = Batch | Punctuation
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
EQUAL = ["", "", "a.k = b.k AND ", "a.v = b.v AND ", "a.d = b.d AND ", "a.k = b.k AND b.v = a.v AND ",
         "upper(a.k) = b.k AND ", "struct(a.k, a.d) = struct(b.k, b.d) AND ", "array(a.d, a.v) = array(b.d, b.v) AND ",
         "a.at = b.at AND "]  # fmt: skip
NEAR = ["b.ts BETWEEN a.ts - 3 AND a.ts + 5", "b.ts = a.ts", "a.ts + 2 <= b.ts AND b.ts < a.ts + 9",
        "b.ts > a.ts - 8 AND a.ts - 2 >= b.ts"]  # fmt: skip
MORE = ["", "", "", " AND a.v > b.v", " AND a.v + b.v > 4 AND b.k IS NOT NULL", " AND a.k <> 'a'", " AND 6 / b.v > 1"]
PROGRESS = [
    ordered(),
    bounded(3),
    bounded(5),
    bounded(100),
    bounded(rows=3),
    per_source("k", idle=20, disorder=5),
    punctuated("k = 'c'", whole_stream=True),
    punctuated("k = 'c'", per=["v"]),
]


def catalog(*progress: Progress) -> Catalog:
    result = Catalog()
    for name, how in zip("AB", progress, strict=True):
        result.add_stream(StreamInfo(name, SCHEMA, how, StreamProperties()))
    return result


@dataclass(frozen=True)
class JoinCase:
    """A query over two streams, and how their rows arrive: batches of one or the other."""

    sql: str
    progress: tuple[Progress, Progress]
    batches: list[tuple[str, list[Row]]]

    @property
    def catalog(self) -> Catalog:
        return catalog(*self.progress)

    @property
    def plan(self) -> Node:
        return bind(self.sql, self.catalog)

    def of(self, name: str) -> list[list[Row]]:
        return [rows for stream, rows in self.batches if stream == name]

    def expected(self) -> TDB:
        return self.outcome().result

    def outcome(self) -> Outcome:
        """What comes out, and what dies on the way."""
        arrivals: list[tuple[str, Row]] = []
        for name, how in zip("AB", self.progress, strict=True):
            groupwise = isinstance(how, Punctuated) and bool(how.per)
            judged = judge(
                how, 0, self.of(name), granularity="row", source_index=1, domain=SCHEMA.domain,
                is_punctuation=lambda row: row[1] == "c", per=[2] if groupwise else [],
                is_ambiguous=lambda row, groupwise=groupwise: groupwise and row[3:] != (None, None),
            )  # fmt: skip
            arrivals += [(name, row) for row in judged.on_time]
        return outcome(self.plan, arrivals)

    def execution(self) -> LocalExecution:
        return LocalExecution(self.plan, self.catalog)

    def inputs(self, form: str = "rows") -> list[tuple[str, Batch]]:
        made = [(name, Batch(SCHEMA, rows)) for name, rows in self.batches]
        return made if form == "rows" else [(name, Batch(SCHEMA, table=batch.table)) for name, batch in made]


def run(execution: LocalExecution, inputs: list[tuple[str, Batch]]) -> list[Output]:
    outputs: list[Output] = []
    for name, batch in inputs:
        outputs += execution.feed(name, batch)
    return outputs + execution.close()


@st.composite
def queries(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(KINDS))
    condition = draw(st.sampled_from(EQUAL)) + draw(st.sampled_from(NEAR)) + draw(st.sampled_from(MORE))
    if "SEMI" in kind or "ANTI" in kind:
        return f"SELECT a.ts, a.k, a.v, a.d FROM A a {kind} B b ON {condition}"
    above = draw(
        st.sampled_from(
            [
                "SELECT * FROM A a {} B b ON {}",
                "SELECT a.k, b.v + a.v AS w, a.ts AS t FROM A a {} B b ON {}",
                "SELECT a.k AS k, count(*) AS n FROM A a {} B b ON {} GROUP BY a.k, a.ts",
                "SELECT count(*) AS n, max(t) AS m [RANGE 4, SLIDE 2, WA t] "
                "FROM (SELECT greatest(b.ts, a.ts) AS t FROM A a {} B b ON {}) AS x",
                "SELECT count(*) AS n, max(t) AS m [RANGE 4, SLIDE 2, WA t] "
                "FROM (SELECT least(b.ts, a.ts) AS t FROM A a {} B b ON {}) AS x",
                "SELECT least(a.ts, b.ts) div 3 AS t, count(*) AS n FROM A a {} B b ON {} "
                "GROUP BY least(a.ts, b.ts) div 3",
                "SELECT b.v, count(*) AS n FROM A a {} B b ON {} GROUP BY least(a.ts, b.ts), b.v",
            ]
        )
    )
    if ("least" in above and kind != "JOIN") or ("GROUP BY" in above and kind not in ("JOIN", "LEFT JOIN")):
        above = "SELECT * FROM A a {} B b ON {}"
    return above.format(kind, condition)


@st.composite
def asked(draw: st.DrawFn) -> str:
    """Sub-queries in WHERE."""
    near = draw(st.sampled_from(NEAR))
    more = draw(st.sampled_from(["", " AND b.k = a.k", " AND b.v > a.v", " AND v = 1"]))
    sub = f"SELECT b.v FROM B b WHERE {near}{more}"
    condition = draw(
        st.sampled_from([f"EXISTS ({sub})", f"NOT EXISTS ({sub})", f"a.v IN ({sub})", f"a.v NOT IN ({sub})"])
    )
    also = draw(st.sampled_from(["", " AND a.k <> 'b'", " AND a.v + 1 > 1"]))
    return f"SELECT a.ts, k, v FROM A a WHERE {condition}{also}"


@st.composite
def windowed(draw: st.DrawFn) -> str:
    """As the papers write it."""
    sliding = f"A [RANGE {draw(st.integers(1, 6))}, WA ts], B [RANGE {draw(st.integers(1, 6))}, WA ts]"
    tumbling = f"A, B [RANGE TUMBLING {draw(st.integers(1, 9))}, WA ts],"
    window = draw(st.sampled_from(["", " [RANGE 6, SLIDE 2, WA A.ts]", " [RANGE TUMBLING 5, WA B.ts]"]))
    chosen = f"count(*) AS n, sum(A.v) AS s{window}" if window else "A.k, B.k, A.ts, B.v"
    where = draw(st.sampled_from(["A.k = B.k", "A.v = B.v and A.k = B.k and A.d < B.d", "A.v > 2 and B.v > 2"]))
    return f"SELECT {chosen} FROM {draw(st.sampled_from([sliding, tumbling]))} WHERE {where}"


@st.composite
def near_rows(draw: st.DrawFn) -> list[Row]:
    """Rows close together, of few keys, mostly in order: many meet, and progress settles many."""
    steps = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=16))
    values = st.tuples(
        st.sampled_from(["a", "a", "b", "c", None]),
        st.sampled_from([0, 1, 1, 5, None]),
        st.sampled_from([0.0, -0.0, float("nan"), 1.5, None]),
        st.sampled_from([0, 60_000_000, None]),
    )
    reached, made = 0, []
    for step, behind in steps:
        reached += step
        row = (max(reached - behind, 0), *draw(values))
        made.append((*row[:3], None, None) if row[1] == "c" and draw(st.booleans()) else row)
    return made


@st.composite
def join_cases(draw: st.DrawFn, sql: st.SearchStrategy[str] | None = None) -> JoinCase:
    batches: list[tuple[str, list[Row]]] = []
    left = {name: draw(near_rows()) for name in "AB"}
    while any(left.values()):
        name = draw(st.sampled_from([n for n, own in left.items() if own]))
        size = draw(st.integers(1, 6))
        batches.append((name, left[name][:size]))
        del left[name][:size]
    how = draw(st.sampled_from(PROGRESS)), draw(st.sampled_from(PROGRESS))
    return JoinCase(draw(sql if sql is not None else queries() | windowed() | asked()), how, batches)
