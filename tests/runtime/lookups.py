"""Random joins of a stream with tables, and what the oracle says of them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch, Row, table_of
from penstock.model.progress import bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.lookup_nodes import TableInfo
from penstock.plan.nodes import Node
from penstock.reference import judge
from penstock.reference.evaluation import Outcome, outcome
from penstock.sql.binder import bind

SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("v", "int"), ("d", "double"), ("at", "timestamp")], "ts")
PLAIN = schema_of([("k", "string"), ("v", "bigint"), ("d", "double"), ("w", "int")])
VERSIONS = schema_of([("k", "string"), ("v", "int"), ("since", "bigint"), ("until", "bigint"), ("w", "int")], "since")
HOW = bounded(4)
KINDS = ["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
ON = [
    "a.k = b.k", "a.v = b.v", "a.d = b.d", "a.k = b.k AND b.v = a.v", "upper(a.k) = b.k", "a.k = upper(b.k)",
    "a.k = b.k AND a.d = b.d AND a.v = b.v", "a.v < b.w", "a.k = b.k AND a.v > b.w", "a.k = b.k AND a.v <> 1",
    "a.k = b.k AND b.w IS NOT NULL", "a.k = b.k AND 6 / b.w > a.v", "6 / b.w > a.v", "a.v IS NOT NULL", "true",
    "a.v + 1 = b.v",
]  # fmt: skip
AS_OF = ["a.k = p.k AND p.v = a.v", "a.k = p.k AND a.v = p.v AND p.w > 2", "a.k = p.k AND a.v = p.v AND 6 / p.w > 1"]


def catalog(plain: list[Row], versions: list[Row], *, ends: bool) -> Catalog:
    result = Catalog()
    result.add_stream(StreamInfo("A", SCHEMA, HOW, StreamProperties()))
    result.add_table(TableInfo("B", PLAIN, content=table_of(PLAIN, plain)))
    until = "until" if ends else None
    result.add_table(TableInfo("P", VERSIONS, ("k", "v"), "since", until, table_of(VERSIONS, versions)))
    return result


@dataclass(frozen=True)
class LookupCase:
    """A query over a stream and tables, and how the stream's rows arrive."""

    sql: str
    catalog: Catalog
    batches: list[list[Row]]

    @property
    def plan(self) -> Node:
        return bind(self.sql, self.catalog)

    def outcome(self) -> Outcome:
        judged = judge(HOW, 0, self.batches, granularity="row", source_index=1, domain=SCHEMA.domain)
        return outcome(self.plan, [("A", row) for row in judged.on_time])

    def execution(self) -> LocalExecution:
        return LocalExecution(self.plan, self.catalog)

    def inputs(self, form: str) -> list[Batch]:
        made = [Batch(SCHEMA, rows) for rows in self.batches]
        return made if form == "rows" else [Batch(SCHEMA, table=batch.table) for batch in made]


@st.composite
def queries(draw: st.DrawFn) -> str:
    kind, condition = draw(st.sampled_from(KINDS)), draw(st.sampled_from(ON))
    if "SEMI" in kind or "ANTI" in kind:
        return f"SELECT a.ts, a.k, a.v FROM A a {kind} B b ON {condition}"
    above = draw(
        st.sampled_from(
            [
                "SELECT * FROM A a {} B b ON {}",
                "SELECT a.k, b.w + a.v AS x, ts FROM A a {} B b ON {}",
                "SELECT b.k, count(*) AS n, sum(a.v) AS s FROM A a [RANGE 6, SLIDE 3, WA ts] {} B b ON {} GROUP BY b.k",
                "SELECT a.k, count(*) AS n FROM A a {} B b ON {} GROUP BY a.k, a.ts",
                "SELECT DISTINCT a.ts, b.w FROM A a {} B b ON {}",
            ]
        )
    )
    return above.format(kind, condition)


@st.composite
def other_forms(draw: st.DrawFn) -> str:
    """Tables first, with commas, with USING, and in sub-queries."""
    sub = f"SELECT b.v FROM B b WHERE {draw(st.sampled_from(ON))}"
    asked = draw(st.sampled_from([f"EXISTS ({sub})", f"NOT EXISTS ({sub})", f"a.v IN ({sub})", f"a.v NOT IN ({sub})"]))
    return draw(
        st.sampled_from(
            [
                f"SELECT a.ts, k FROM A a WHERE {asked} AND ts > 1",
                "SELECT a.ts, a.v, b.w FROM B b JOIN A a ON a.k = b.k WHERE a.v > 0",
                "SELECT a.ts, a.v, b.w FROM B b RIGHT JOIN A a ON a.k = b.k AND b.w > 1",
                "SELECT * FROM B, A WHERE B.k = A.k AND B.w > A.v",
                "SELECT * FROM A, B",
                "SELECT * FROM A LEFT JOIN B USING (k, v)",
                "SELECT a.ts, b.w, p.w AS y FROM A a JOIN B b ON a.k = b.k LEFT JOIN P p ON a.v = p.v AND p.w = b.w",
                "SELECT c.ts, c.k, b.w FROM A a JOIN B b ON a.k = b.k JOIN A c ON c.k = b.k AND c.ts = a.ts",
            ]
        )
    )


@st.composite
def versioned(draw: st.DrawFn) -> str:
    kind, condition = draw(st.sampled_from(KINDS)), draw(st.sampled_from(AS_OF))
    chosen = "a.ts, a.k" if "SEMI" in kind or "ANTI" in kind else draw(st.sampled_from(["*", "a.ts, p.since, p.w"]))
    return f"SELECT {chosen} FROM A a {kind} P FOR SYSTEM_TIME AS OF a.ts AS p ON {condition}"


KEYS = st.sampled_from(["a", "a", "b", "A", None])
NUMBERS = st.sampled_from([0, 1, 1, 5, None])
FLOATS = st.sampled_from([0.0, -0.0, float("nan"), 1.5, None])
ROWS = st.tuples(st.integers(0, 12), KEYS, NUMBERS, FLOATS, st.sampled_from([0, 60_000_000, None]))
PLAIN_ROWS = st.lists(st.tuples(KEYS, NUMBERS, FLOATS, NUMBERS), max_size=8)
VERSION_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from([0, 1]),
        st.integers(0, 12),
        st.sampled_from([3, 8, None]),
        NUMBERS,
    ),
    max_size=12,
    unique_by=lambda row: row[:3],
)


@st.composite
def lookup_cases(draw: st.DrawFn, sql: st.SearchStrategy[str] | None = None) -> LookupCase:
    tables = catalog(draw(PLAIN_ROWS), draw(VERSION_ROWS), ends=draw(st.booleans()))
    batches = draw(st.lists(st.lists(ROWS, min_size=1, max_size=6), max_size=4))
    return LookupCase(draw(sql if sql is not None else queries() | other_forms() | versioned()), tables, batches)
