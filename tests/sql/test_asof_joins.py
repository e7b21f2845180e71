"""As-of joins and windows of the last rows: what they mean to the binder, and what is refused."""

from __future__ import annotations

import random

import duckdb
import pytest

import penstock as pk
from penstock.errors import PlanError, QueryError
from penstock.model.progress import bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.join_nodes import Band, Join, Latest
from penstock.plan.nodes import Select
from penstock.plan.progressing import progressing
from penstock.sql.binder import bind
from tests.judge.compare import difference


def catalog() -> Catalog:
    made = Catalog()
    plain = schema_of([("ts", "bigint"), ("k", "string"), ("v", "int")], "ts")
    for name in "abc":
        made.add_stream(StreamInfo(name, plain, bounded(5), StreamProperties()))
    timed = schema_of([("ts", "timestamp"), ("k", "string"), ("v", "bigint")], "ts")
    made.add_stream(StreamInfo("timed", timed, bounded("5 seconds"), StreamProperties()))
    return made


def joins(sql: str) -> list[Join]:
    return [node for node in bind(sql, catalog()).walk() if isinstance(node, Join)]


@pytest.mark.parametrize(
    ("text", "near", "equal", "kind"),
    [
        ("a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts", Latest(1), (("k", "k"),), "inner"),
        ("a ASOF LEFT JOIN b ON b.ts < a.ts", Latest(1, -1), (), "left"),
        ("a ASOF JOIN b ON b.k = a.k AND b.v = a.v AND b.ts <= a.ts + 5", Latest(1, 5), (("k", "k"), ("v", "v")),
         "inner"),
        ("a ASOF JOIN b [ROWS 3] ON b.ts BETWEEN a.ts - 9 AND a.ts", Latest(3, 0, -9), (), "inner"),
        ("a ASOF LEFT JOIN b USING (k, ts)", Latest(1), (("k", "k"),), "left"),
        ("a, b [ROWS 3, WA ts]", Latest(3), (), "inner"),
        ("a LEFT JOIN b [RANGE 2 ROWS, PA k] ON b.k = a.k", Latest(2), (("k", "k"),), "left"),
    ],
)  # fmt: skip
def test_what_is_the_latest(text: str, near: Latest, equal: tuple[tuple[str, str], ...], kind: str) -> None:
    (join,) = joins(f"SELECT a.v FROM {text}")
    assert (join.near, join.equal, join.kind) == (near, equal, kind)


def test_a_microsecond_earlier_is_strictly_earlier() -> None:
    (join,) = joins("SELECT x.v FROM timed x ASOF JOIN timed y ON x.ts > y.ts")
    assert join.near == Latest(1, -1)


def test_the_time_of_the_latest_progresses_only_if_it_cannot_be_of_any_age() -> None:
    (join,) = joins("SELECT a.v FROM a ASOF JOIN b ON a.ts >= b.ts")
    assert set(progressing(join)) == {"a_ts", "__time"}
    (join,) = joins("SELECT a.v FROM a ASOF JOIN b ON b.ts BETWEEN a.ts - 3 AND a.ts")
    assert set(progressing(join)) == {"a_ts", "b_ts", "__time"}


def test_where_is_asked_of_the_latest_and_a_sub_query_before() -> None:
    plan = bind("SELECT a.v FROM a ASOF JOIN b ON a.ts >= b.ts WHERE b.v > 3 AND a.v > 1", catalog())
    selects = [node for node in plan.walk() if isinstance(node, Select)]
    assert [isinstance(node.input, Join) for node in selects] == [True, False]  # the latter is of a
    (join,) = joins("SELECT a.v FROM a ASOF JOIN (SELECT * FROM b WHERE v > 3) AS b ON a.ts >= b.ts")
    assert any(isinstance(node, Select) for node in join.right.walk())


def test_further_streams_are_joined_by_the_first() -> None:
    found = joins("SELECT a.v FROM a ASOF JOIN b ON a.ts >= b.ts JOIN c ON c.ts BETWEEN a.ts AND a.ts + 3")
    near = [join.near for join in found]
    assert near == [Band(0, 3), Latest(1)]
    near = [join.near for join in joins("SELECT a.v FROM a [RANGE 5, WA ts], b [ROWS 2], c [RANGE 7, WA ts]")]
    assert near == [Band(-7, 5), Latest(2)]


@pytest.mark.parametrize(
    ("text", "what", "got"),
    [
        ("a ASOF RIGHT JOIN b ON a.ts >= b.ts", "gives each row of the first stream", "ASOF RIGHT JOIN"),
        ("a ASOF FULL JOIN b ON a.ts >= b.ts", "gives each row of the first stream", "ASOF FULL JOIN"),
        ("a ASOF SEMI JOIN b ON a.ts >= b.ts", "gives each row of the first stream", "ASOF SEMI JOIN"),
        ("a ASOF JOIN b ON a.k = b.k", "up to which time", "no condition compares their times"),
        ("a ASOF JOIN b ON a.ts <= b.ts", "up to which time", "a later time of the second stream"),
        ("a ASOF JOIN b ON a.ts >= b.ts AND b.v > 1", "ON of an as-of join says", "(b_v > 1)"),
        ("a ASOF JOIN b ON a.ts >= b.ts AND b.ts > a.ts + 1", "cannot hold together", "at least 2"),
        (f"a ASOF JOIN b ON a.ts >= b.ts AND b.ts > a.ts - {2**60 + 2}", "too far apart", f"of -{2**60 + 1}"),
        (f"a ASOF JOIN b ON a.ts + {2**60 + 1} >= b.ts", "too far apart", f"of {2**60 + 1}"),
        ("a ASOF JOIN b [RANGE 5, WA ts] ON a.ts >= b.ts", "is a number of rows", "5"),
        ("a ASOF JOIN b [ROWS 5, PA k] ON a.ts >= b.ts", "PA has no meaning", "PA"),
        ("a ASOF JOIN b [ROWS 0] ON a.ts >= b.ts", "greater than zero", "0 rows"),
        ("a ASOF JOIN timed ON a.ts >= timed.ts", "", ""),
        ("a, timed [ROWS 3]", "of different types", "ts bigint and ts timestamp"),
        ("a, b [ROWS 3, PA k]", "The partition of a window", "no condition that k equals"),
        ("a, b [ROWS 3, PA nope]", "does not exist", "nope"),
        ("a, b [ROWS 3, SLIDE 1 ROWS]", "SLIDE has no meaning", "SLIDE"),
        ("a, b [ROWS 3, WA v]", "does not progress", "v"),
        ("a [ROWS 3], b", "is that of the second stream", "3 rows"),
        ("a RIGHT JOIN b [ROWS 3] ON a.k = b.k", "JOIN or LEFT JOIN", "RIGHT"),
        ("a NATURAL JOIN b", "NATURAL joins are not supported", "NATURAL"),
    ],
)
def test_what_is_refused(text: str, what: str, got: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(f"SELECT a.v FROM {text}", catalog())
    assert what in caught.value.message
    assert got in str(caught.value)
    assert caught.value.line == 1


def test_a_table_has_no_latest_row() -> None:
    flow = pk.Flow().stream("s", [{"ts": 1, "k": 1}], time="ts").table("t", [{"ts": 1, "k": 1}])
    with pytest.raises(pk.PenstockError, match="A table has no latest row"):
        flow.query("SELECT s.k FROM s ASOF JOIN t ON s.ts >= t.ts")


def test_a_node_that_keeps_the_right_is_refused() -> None:
    (join,) = joins("SELECT a.v FROM a ASOF JOIN b ON a.ts >= b.ts")
    with pytest.raises(PlanError, match="inner or left"):
        Join(join.left, join.right, "right", join.near, join.on, join.equal, join.names)


def test_explain_says_how() -> None:
    flow = pk.Flow().stream("a", [{"ts": 1, "k": 1}], time="ts").stream("b", [{"ts": 1, "k": 1}], time="ts")
    told = str(flow.query("SELECT a.k FROM a ASOF JOIN b [ROWS 2] ON a.k = b.k AND a.ts > b.ts").explain())
    assert "the latest 2 of b_ts <= a_ts - 1 AND a_k = b_k (As-of join)" in told
    assert "those that wait for the right's promise" in told


# Against DuckDB, which nobody here wrote


def test_random_as_of_joins_give_what_duckdb_gives() -> None:
    assert sum(_check(seed) for seed in range(60)) > 600  # there is something to compare


def _check(seed: int) -> int:
    chance = random.Random(seed)
    left = [{"ts": chance.randrange(60), "k": chance.choice(["a", "b", "c", None]), "id": i} for i in range(40)]
    times = {key: chance.sample(range(60), chance.choice([3, 30])) for key in ("a", "b", None)}  # none is twice
    right = [{"ts": time, "k": key, "v": chance.randrange(9)} for key, own in times.items() for time in own]
    chance.shuffle(right)
    compare, kind = chance.choice([">=", ">"]), chance.choice(["", "LEFT "])
    most = chance.choice([1, 1, 2, 4])
    flow = pk.Flow()
    batched = chance.random() < 0.5
    for name, rows in (("l", left), ("r", right)):
        given = _table(rows) if batched else rows
        flow.stream(name, given, time="ts", progress=pk.bounded(100))
    window = f"[ROWS {most}]" if most > 1 or chance.random() < 0.5 else ""
    ours = flow.query(
        f"SELECT l.id, l.ts AS t, r.ts AS s, v FROM l ASOF {kind}JOIN r {window} ON l.k = r.k AND l.ts {compare} r.ts"
    )
    found = [tuple(row.values()) for row in ours.collect().to_pylist()]
    with duckdb.connect() as database:
        database.register("l", _table(left))
        database.register("r", _table(right))
        if most == 1:
            sql = f"SELECT id, l.ts, r.ts, v FROM l ASOF {kind}JOIN r ON l.k = r.k AND l.ts {compare} r.ts"
        else:
            ranked = "row_number() OVER (PARTITION BY id ORDER BY r.ts DESC) AS n"
            pairs = f"l {kind}JOIN r ON l.k = r.k AND l.ts {compare} r.ts"
            sql = (
                f"SELECT id, t, s, v FROM (SELECT id, l.ts AS t, r.ts AS s, v, {ranked} FROM {pairs}) WHERE n <= {most}"
            )
        expected = database.execute(sql).fetchall()
    assert not difference(found, expected), f"seed {seed}"
    return len(expected)


def _table(rows: list[dict[str, object]]) -> object:
    import pyarrow as pa

    return pa.Table.from_pylist(rows)
