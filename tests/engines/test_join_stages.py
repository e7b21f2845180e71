"""Joins in plans that are cut into stages, without Spark: what they come to, and where they are cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.model.batch import table_of
from penstock.model.progress import Punctuated
from penstock.plan.identity import identities
from penstock.plan.kept import Kept
from penstock.plan.multi_nodes import MultiJoin
from penstock.plan.planner import spark_streaming
from penstock.plan.rules.narrow import narrowed
from penstock.plan.stages import why_uncut
from penstock.reference.arrivals import Arrivals
from tests.engines.hosted import HostedPlan
from tests.engines.test_stages import PER_KEY, come_to_what_the_oracle_says, drawn
from tests.engines.test_stages import SCHEMA as ROWS
from tests.profiles import examples
from tests.runtime.joins import PROGRESS, SCHEMA, asked, near_rows, queries, windowed
from tests.runtime.test_asof_joins import queries as of_latest

pytestmark = pytest.mark.spark  # the host is pyspark's; no session is started
NEAR = "z.ts BETWEEN s.ts - 2 AND s.ts + 3"
PAIRS = f"s JOIN z ON s.i = z.i AND {NEAR}"
COUNTED = "SELECT k, i, count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM {} GROUP BY k, i"
MOST = "SELECT max(i) AS m [RANGE 4, SLIDE 4, WA ts] FROM z"
JOINS: dict[str, tuple[str, int]] = {
    "inner": (f"SELECT s.k, z.k AS o, s.i, z.ts FROM {PAIRS}", 1),
    "left": (f"SELECT s.k, z.k AS o, s.i, z.ts AS u FROM s LEFT JOIN z ON s.i = z.i AND {NEAR}", 1),
    "full": (f"SELECT s.k, z.k AS o, s.i, z.i AS j FROM s FULL JOIN z ON s.i = z.i AND s.k = z.k AND {NEAR}", 1),
    "semi": (f"SELECT ts, k FROM s WHERE EXISTS (SELECT 1 FROM z WHERE z.i = s.i AND {NEAR})", 1),
    "anti": (f"SELECT ts, k FROM s LEFT ANTI JOIN z ON z.i = s.i AND {NEAR}", 1),
    "of a condition that may fail": (f"SELECT s.k, z.d FROM {PAIRS} AND 6 div z.i > 1", 1),
    "of computed columns": (f"SELECT s.k, z.ts FROM s JOIN z ON s.i % 2 = z.i % 2 AND {NEAR}", 1),
    "of a stream with itself": ("SELECT s.k, z.d FROM s JOIN s z ON s.i = z.i AND s.ts = z.ts", 1),
    "without equality": (f"SELECT s.k, z.k AS o FROM s JOIN z ON s.i < z.i AND {NEAR}", 1),
    "of one time": ("SELECT s.k, z.k AS o FROM s JOIN z ON z.ts = s.ts + 2 AND s.i < z.i", 1),
    "with the latest": ("SELECT s.k, z.d, z.ts FROM s ASOF LEFT JOIN z ON s.i = z.i AND s.ts >= z.ts", 1),
    "in one window": ("SELECT s.k, z.d FROM s, z [RANGE TUMBLING 5, WA ts] WHERE s.k = z.k", 1),
    "same groups": (
        f"SELECT s.i, count(*) AS n, max(z.d) AS m [RANGE 6, SLIDE 3, WA s.ts] FROM {PAIRS} GROUP BY s.i",
        1,
    ),
    "other groups": (
        f"SELECT z.k, count(*) AS n, sum(s.i) AS x [RANGE 6, SLIDE 3, WA z.ts] FROM {PAIRS} GROUP BY z.k",
        2,
    ),
    "no groups": (f"SELECT count(*) AS n [RANGE 6, SLIDE 6, WA s.ts] FROM {PAIRS}", 2),
    "groups that may be missing": (
        "SELECT z.i, count(*) AS n [RANGE 6, SLIDE 6, WA s.ts] FROM s "
        f"LEFT JOIN z ON s.i = z.i AND {NEAR} GROUP BY z.i",
        2,
    ),
    "groups that are there": (
        "SELECT s.i, count(z.i) AS n [RANGE 6, SLIDE 6, WA s.ts] FROM s "
        f"LEFT JOIN z ON s.i = z.i AND {NEAR} GROUP BY s.i",
        1,
    ),
    "distinct pairs": (f"SELECT DISTINCT s.i, z.k FROM {PAIRS}", 1),
    "of aggregates by the same": (
        f"SELECT a.k, a.n, b.n AS o FROM ({COUNTED.format('s')}) a JOIN ({COUNTED.format('z')}) b "
        "ON a.i = b.i AND a.window_end = b.window_end",
        1,
    ),
    "of aggregates by others": (
        f"SELECT a.k, a.n, b.i FROM ({COUNTED.format('s')}) a JOIN ({COUNTED.format('z')}) b "
        "ON a.n = b.n AND a.window_end = b.window_end",
        2,
    ),
    "of rows and an aggregate": (
        f"SELECT s.k, m FROM s JOIN ({MOST}) x ON s.i = x.m AND x.window_end BETWEEN s.ts AND s.ts + 4",
        2,
    ),
    "of rows and an aggregate by the same": (
        f"SELECT s.d, n FROM s JOIN ({PER_KEY}) x ON s.k = x.k AND x.window_end BETWEEN s.ts AND s.ts + 6",
        1,
    ),
    "of rows and an aggregate in one place": (
        f"SELECT s.k, m FROM s JOIN ({MOST}) x ON s.i < x.m AND x.window_end BETWEEN s.ts AND s.ts + 4",
        1,
    ),
    "of an aggregate with what it comes to": (
        f"SELECT c.k, c.n FROM ({PER_KEY}) c JOIN (SELECT ended, max(n) AS n FROM "
        f"(SELECT n, window_end AS ended FROM ({PER_KEY}) p) y GROUP BY ended) m "
        "ON m.ended = c.window_end AND c.n >= m.n",
        2,
    ),
    "first of pairs": (
        "SELECT i, o, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY at, i ORDER BY o DESC, d) AS place FROM "
        f"(SELECT s.ts AS at, s.i, z.k AS o, z.d FROM {PAIRS}) p) WHERE place <= 1",
        1,
    ),
    "of a union": (
        "SELECT u.k, z.d FROM (SELECT ts, i, k FROM s UNION ALL SELECT ts, i, k FROM z) u "
        "JOIN z ON u.i = z.i AND z.ts = u.ts",
        1,
    ),
}
THREE: dict[str, tuple[str, int]] = {
    "the same, in one operator": (
        f"SELECT /*+ MULTIWAY_JOIN */ s.k, z.k AS o, y.d FROM {PAIRS} "
        "JOIN y ON y.i = z.i AND y.ts BETWEEN s.ts AND s.ts + 3",
        1,
    ),
    "one operator, then groups": (
        f"SELECT /*+ MULTIWAY_JOIN */ z.k, count(*) AS n [RANGE 6, SLIDE 6, WA y.ts] FROM {PAIRS} "
        "JOIN y ON y.i = z.i AND y.ts BETWEEN s.ts AND s.ts + 3 GROUP BY z.k",
        2,
    ),
    "others, in one operator": (
        f"SELECT /*+ MULTIWAY_JOIN */ s.k, y.d FROM {PAIRS} JOIN y ON y.k = z.k AND y.ts BETWEEN s.ts AND s.ts + 3",
        1,
    ),
    "the same": (f"SELECT s.k, z.k AS o, y.d FROM {PAIRS} JOIN y ON y.i = z.i AND y.ts BETWEEN s.ts AND s.ts + 3", 1),
    "others": (f"SELECT s.k, z.i, y.d FROM {PAIRS} JOIN y ON y.k = z.k AND y.ts BETWEEN s.ts AND s.ts + 3", 2),
    "others, then others": (
        f"SELECT y.i, count(*) AS n [RANGE 6, SLIDE 6, WA y.ts] FROM {PAIRS} "
        "JOIN y ON y.k = z.k AND y.ts BETWEEN s.ts AND s.ts + 3 GROUP BY y.i",
        3,
    ),
    "not equal": (f"SELECT s.k, y.d FROM {PAIRS} JOIN y ON y.ts BETWEEN s.ts AND s.ts + 1", 2),
}


@pytest.mark.parametrize("case", JOINS)
@given(data=st.data())
@examples(8)
def test_joins_in_stages_come_to_what_the_oracle_says(case: str, data: st.DataObject) -> None:
    sql, stages = JOINS[case]
    assert come_to_what_the_oracle_says(sql, drawn(data, "sz"), data) == stages


@pytest.mark.parametrize("case", THREE)
@given(data=st.data())
@examples(6)
def test_three_streams_come_to_what_the_oracle_says(case: str, data: st.DataObject) -> None:
    sql, stages = THREE[case]
    assert come_to_what_the_oracle_says(sql, drawn(data, "szy"), data) == stages


@given(sql=queries() | windowed() | asked() | of_latest(), data=st.data())
@examples(40)
def test_any_joins_come_to_what_the_oracle_says(sql: str, data: st.DataObject) -> None:
    """Rows close together, of few keys."""
    in_stages = [how for how in PROGRESS if not (isinstance(how, Punctuated) and how.per)]
    streams = []
    for name in "AB":
        rows, at = data.draw(near_rows()), data.draw(st.integers(0, 16))
        progress = data.draw(st.sampled_from(in_stages), "progress")
        streams.append(Arrivals(name, SCHEMA, progress, (tuple(rows[:at]), tuple(rows[at:]))))
    is_cut = come_to_what_the_oracle_says(sql, streams, data) > 0
    assert is_cut == ("least(" not in sql)  # the bounds of the earlier time are known where the plan is whole


def asked_for(sql: str, **more: Any) -> Any:
    flow = pk.Flow()
    for name in "szy":
        flow.stream(name, [], time="ts", schema=ROWS.ddl, progress=pk.bounded(3), **more)
    return flow.query(sql)


def hosted(sql: str, **more: Any) -> HostedPlan:
    query = asked_for(sql, **more)
    return HostedPlan(query.plan, query.catalog, 4, staged=True)


def exchanged(sql: str) -> set[str]:
    """What travels, and how."""
    ends = [each for each in hosted(sql).planned.walk() if each.exchange is not None]
    return {
        f"{', '.join(each.node.schema.names)} {each.exchange.worded(each.node.schema)}"
        for each in ends
        if each.exchange
    }


def test_each_side_is_spread_by_its_own_columns_and_only_what_is_read_travels() -> None:
    assert exchanged(f"SELECT z.k AS o FROM s JOIN z ON s.i = z.i AND {NEAR} WHERE s.k = 'a'") == {
        "i, ts to stage 1, by i",
        "i, k, ts to stage 1, by i",
    }


def test_state_of_joins_that_were_given_columns_in_the_order_of_their_streams_is_taken_up() -> None:
    """As earlier releases kept it; a query without a checkpoint has them by name."""
    sql = JOINS["of rows and an aggregate"][0]
    query = asked_for(sql)
    old = [each.identity for each in identities(narrowed(query.plan, by_name=False))]
    new, again = (
        [each.identity for each in spark_streaming(query.plan, query.catalog, kept=kept, staged=True).walk()]
        for kept in (Kept(), Kept(dict.fromkeys(old, "any kind")))
    )
    assert new != old
    assert again == old


def test_rows_wait_for_no_stage_that_they_need_not_pass() -> None:
    """The aggregate is in one place, the join is spread: rows go there as they are read."""
    assert exchanged(JOINS["of rows and an aggregate"][0]) == {
        "ts, __arg0 to stage 1, single",
        "i, k, ts to stage 2, by i",
        "window_end, m to stage 2, by m",
    }


def test_joins_in_which_nothing_is_equal_in_all_are_one_operator_only_if_that_is_asked_for() -> None:
    """A tree has them in two stages, and one operator in one place."""
    asked, tree = THREE["others, in one operator"][0], THREE["others"][0]
    kinds = [[type(each.node) for each in hosted(sql).planned.walk()] for sql in (asked, tree)]
    assert [MultiJoin in each for each in kinds] == [True, False]


def test_an_aggregate_after_a_join_is_sent_partials() -> None:
    made = hosted(JOINS["other groups"][0])
    rows = table_of(ROWS, [(t % 3, "a" if t % 10 else "b", t % 5, 0.5, None) for t in range(400)])
    made.run_all({"s": [rows], "z": [rows]})
    sent = [packet for packet in made.sent[1] if packet.stage == 2]
    assert {packet.kind for packet in sent} == {"partials", "bounds"}
    assert sum(len(packet.body) for packet in sent) < 20_000  # of 32 000 pairs


@pytest.mark.parametrize(
    ("sql", "stream", "why"),
    [
        (JOINS["inner"][0], {"max_ahead": 100}, "max_ahead of s looks at all of its rows"),
        (f"SELECT s.ts, z.ts AS u, count(*) AS n FROM {PAIRS} GROUP BY s.ts, z.ts", {}, "groups without windows"),
    ],
)
def test_why_a_plan_is_not_cut(sql: str, stream: dict[str, Any], why: str) -> None:
    found = hosted(sql, **stream).planned
    assert found.stages == 0
    assert str(why_uncut(found.node)).startswith(why)
