"""Random queries over one stream, how their rows arrive, and what the oracle says of them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.errors import PlanError
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.progress import Progress, bounded, estimated, ordered, per_source, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.model.tdb import TDB
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.cost import DIFFERENTIAL, PANED
from penstock.plan.nodes import Node
from penstock.plan.physical import Physical
from penstock.plan.planner import in_process
from penstock.plan.windows import SlidingWindow
from penstock.reference import evaluate, judge
from penstock.sql.binder import bind
from penstock.testing.strategies import cuts, disordered_times, sliding_windows
from penstock.testing.strategies import rows as some_rows

SCHEMA = schema_of(
    [("ts", "bigint"), ("k", "string"), ("v", "int"), ("d", "double"), ("c", "decimal(6,2)"), ("at", "timestamp")], "ts"
)
Output = Batch | Punctuation

EXACT = "count(*) AS n, count(v) AS cv, sum(v) AS sv, avg(v) AS av, sum(c) AS sc, avg(c) AS ac"
ORDERED = "min(d) AS d0, max(d) AS d1, sum(d) AS sd, min(c) AS c0, max(k) AS k1, min(at) AS a0"
NUMBERS = (
    "count(*) AS n, sum(v) AS sv, avg(v) AS av, max(v) AS mv, min(d) AS d0, max(d) AS d1, sum(d) AS sd, max(at) AS a1, "
    "var_pop(v) AS pv, stddev_samp(d) AS td, count(DISTINCT d) AS dd, count(DISTINCT k) AS dk, bit_and(v) AS ba, "
    "bit_xor(v) AS bx, every(v > 3) AS ev, any(d > 2) AS ad, count_if(v > 2) AS ci, sum(v) FILTER (WHERE d > 1) AS fv"
)
HOLISTIC = (
    "count(DISTINCT d) AS dd, count(DISTINCT at) AS da, var_pop(v) AS pv, stddev_samp(c) AS sc, var_samp(d) AS vd"
)

OF_PAIRS = (
    "first(v) AS fv, last(d) IGNORE NULLS AS ld, last(k) FILTER (WHERE v > 3) AS fl, min_by(k, d) AS mk, "
    "max_by(v, c) AS mv, covar_pop(v, d) AS pc, covar_samp(v, c) AS sc, corr(v, c) AS r, count(DISTINCT k, v) AS dkv, "
    "count(v, d) AS cvd"
)
OF_VALUES = (
    "median(v) AS mv, percentile(d, 0.3) AS pd, percentile(c, 1) FILTER (WHERE v > 0) AS pc, mode(k) AS mk, "
    "mode(d) AS md, sum(DISTINCT v) AS sv, avg(DISTINCT c) AS ac, stddev(DISTINCT d) AS td, bit_or(v) AS bv, "
    "any_value(at) AS aa"
)


def catalog(progress: Progress, *names: str) -> Catalog:
    result = Catalog()
    for name in names or ("s",):
        result.add_stream(StreamInfo(name, SCHEMA, progress, StreamProperties()))
    return result


PROGRESS = st.sampled_from(
    [
        ordered(),
        bounded(12),
        bounded(100),
        bounded(rows=3),
        estimated("20%", rows=5),
        per_source("k", idle=20, disorder=5),
        punctuated("k = 'c'", whole_stream=True),
    ]
)


@st.composite
def rows(draw: st.DrawFn, max_size: int = 20) -> list[Row]:
    """Rows with what floating point has besides numbers."""
    odd = st.sampled_from(["nan", "inf", "-inf", "-0.0"]).map(float)  # a NaN that is another object each time
    drawn = draw(
        some_rows(SCHEMA, times=disordered_times(max_size=max_size, max_disorder=draw(st.sampled_from([5, None]))))
    )
    doubles = draw(st.lists(st.none() | odd, min_size=len(drawn), max_size=len(drawn)))
    return [row if x is None else (*row[:3], x, *row[4:]) for row, x in zip(drawn, doubles, strict=True)]


@dataclass(frozen=True)
class Case:
    """A query over one stream, and how its rows arrive."""

    sql: str
    progress: Progress
    batches: list[list[Row]]

    @property
    def plan(self) -> Node:
        return bind(self.sql, catalog(self.progress))

    def expected(self) -> tuple[TDB, tuple[int, ...]]:
        """What the oracle says, and the bound after each batch."""
        judged = judge(
            self.progress, 0, self.batches, granularity="row", source_index=1, domain=SCHEMA.domain,
            is_punctuation=lambda row: row[1] == "c",
        )  # fmt: skip
        late = [place for place, (_, is_late) in enumerate(judged.data) if is_late]
        return evaluate(self.plan, [("s", row) for row, _ in judged.data], late=late), judged.bounds

    def execution(self, aggregate: str | None = None) -> LocalExecution:
        own = catalog(self.progress)
        return LocalExecution(self.plan, own, in_the_way(self.plan, own, aggregate))

    def inputs(self, form: str = "rows") -> list[Batch]:
        """The batches as rows, as Arrow tables, or as one and the other in turn."""
        made = [Batch(SCHEMA, rows) for rows in self.batches]
        tables = {"rows": (), "arrow": range(len(made)), "mixed": range(0, len(made), 2)}[form]
        return [Batch(SCHEMA, table=b.table) if i in tables else b for i, b in enumerate(made)]

    def run(self, aggregate: str | None = None, form: str = "rows") -> list[Output]:
        return run(self.execution(aggregate), self.inputs(form))


def in_the_way(plan: Node, own: Catalog, aggregate: str | None) -> Physical:
    """The plan with all aggregates in one way; panes are combined where functions cannot be taken out."""
    try:
        return in_process(plan, own, aggregate=aggregate)
    except PlanError:
        if aggregate != DIFFERENTIAL:
            raise
        return in_process(plan, own, aggregate=PANED)


def run(execution: LocalExecution, inputs: list[Batch]) -> list[Output]:
    outputs: list[Output] = []
    for batch in inputs:
        outputs += execution.feed("s", batch)
    return outputs + execution.close()


def clause(window: SlidingWindow) -> str:
    return f"[RANGE {window.range}, SLIDE {window.slide}, WA ts, ORIGIN {window.origin}]"


@st.composite
def window_queries(draw: st.DrawFn) -> Case:
    keys = draw(st.sampled_from([(), ("k",), ("d",), ("k", "v"), ("at", "c")]))
    aggregates = draw(st.sampled_from([EXACT, ORDERED, HOLISTIC, NUMBERS, OF_PAIRS, OF_VALUES, f"{EXACT}, {ORDERED}"]))
    where = draw(st.sampled_from(["", " WHERE v > 3", " WHERE d > 1.5 OR k = 'a'", " WHERE NOT (v + 1 <= 4)"]))
    having = draw(st.sampled_from(["", " HAVING count(*) > 1"]))
    names = [f"{k} AS key_{k}" for k in keys]
    sql = f"SELECT {', '.join([*names, aggregates])} {clause(draw(sliding_windows()))} FROM s{where}"
    if keys:
        grouped = st.sampled_from(["{}", "{}", "ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"])
        sql += f" GROUP BY {draw(grouped).format(', '.join(keys))}"
    sql += having
    arrived = draw(rows())
    return Case(sql, draw(PROGRESS), [arrived[c] for c in draw(cuts(len(arrived)))])


@st.composite
def number_queries(draw: st.DrawFn) -> Case:
    keys = draw(st.sampled_from([(), ("k",), ("v",), ("at",), ("k", "v"), ("at", "c"), ("k", "v", "at")]))
    sql = f"SELECT {', '.join([*keys, NUMBERS])} {clause(draw(sliding_windows()))} FROM s"
    sql += f" GROUP BY {', '.join(keys)}" if keys else ""
    arrived = draw(rows(max_size=40))
    return Case(sql, draw(PROGRESS), [arrived[c] for c in draw(cuts(len(arrived)))])


@st.composite
def plain_queries(draw: st.DrawFn) -> Case:
    sql = draw(
        st.sampled_from(
            [
                "SELECT * FROM s",
                "SELECT k, v + 1 AS w, d * 2 AS dd FROM s WHERE v IS NOT NULL",
                "SELECT DISTINCT k, d FROM s",
                "SELECT DISTINCT v FROM s WHERE k IN ('a', 'b') OR d IS NULL",
                "SELECT k FROM s UNION SELECT upper(k) FROM s WHERE v > 5",
                "SELECT k, ts FROM s UNION ALL SELECT k, ts FROM s",
                "SELECT ts, k, count(*) AS n FROM s GROUP BY ts, k",
                "SELECT sum(v) AS x [RANGE 4 rows, SLIDE 3 rows, WA row-num] FROM s WHERE k = 'a'",
                "SELECT k, count(*) AS n [RANGE 5 rows, SLIDE 2 rows, WA row-num] FROM s UNION s GROUP BY k",
                "SELECT max(ts) AS t [RANGE TUMBLING 3 rows, WA row-num] FROM (SELECT ts FROM s WHERE v > 3) i",
                "SELECT count(*) AS n [RANGE 4 rows, SLIDE 4 rows, WA row-num] FROM s UNION ALL "
                "SELECT count(*) AS n [RANGE 8, SLIDE 4, WA ts] FROM s",
                "SELECT sum(n) AS m [RANGE 3 rows, SLIDE 3 rows, WA row-num] "
                "FROM (SELECT count(*) AS n [RANGE 8, SLIDE 4, WA ts] FROM s) i",
                "SELECT max(n) AS m [RANGE 24, SLIDE 8, WA window_end] "
                "FROM (SELECT k, count(*) AS n [RANGE 8, SLIDE 4, WA ts] FROM s GROUP BY k) i",
                "SELECT window_end, max(n) AS m FROM (SELECT count(*) AS n [RANGE 8, SLIDE 4, WA ts] FROM s) i "
                "GROUP BY window_end",
                "SELECT CASE WHEN v > 3 THEN 'x' ELSE k END AS w, CAST(at AS STRING) AS t, coalesce(d, v) AS x FROM s",
                "SELECT CAST(c AS STRING) AS t, -c AS m, c * 2.5 AS p, c + v AS q, v % 3 AS r, floor(v / 2) AS f "
                "FROM s",
            ]
        )
    )
    arrived = draw(rows())
    return Case(sql, draw(PROGRESS), [arrived[c] for c in draw(cuts(len(arrived)))])
