"""Grouping by what rises with the time: complete as soon as the time has passed it, on its own scale.

t            0    60   120  180
t div 60     0    1    2    3
bound 150    ----------|          what is below 2 is complete
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import QueryError
from penstock.model.batch import Batch
from penstock.model.elements import Insert
from penstock.model.progress import bounded
from penstock.model.schema import schema_of
from penstock.reference.arrivals import Arrivals
from penstock.sql.binder import bind
from penstock.verify.agreement import agreement
from tests.profiles import examples
from tests.sql.test_errors import catalog

NUMBERS = schema_of([("t", "bigint"), ("k", "string")], "t")
# The query, what a row's group is, and how long the window is on that scale.
KEYS = [
    ("SELECT t div 7 AS g, count(*) AS n FROM s GROUP BY t div 7", lambda t: int(t / 7), 1),
    ("SELECT g, count(*) AS n FROM (SELECT t div 7 AS g FROM s WHERE k > '') GROUP BY g", lambda t: int(t / 7), 1),
    ("SELECT floor(t / 7) AS g, count(*) AS n FROM s GROUP BY g", lambda t: t // 7, 1),
    ("SELECT floor((t + 3) / 7) * 7 AS g, count(*) AS n FROM s GROUP BY 1", lambda t: (t + 3) // 7 * 7, 1),
    ("SELECT t - t % 7 AS g, count(*) AS n FROM s GROUP BY t - t % 7", lambda t: int(t / 7) * 7, 1),
    ("SELECT t + 5 AS g, count(*) AS n FROM s GROUP BY t + 5", lambda t: t + 5, 1),
    ("SELECT h - 1 AS g, count(*) AS n FROM (SELECT g + 2 AS h, k FROM (SELECT t div 7 AS g, k FROM s)) GROUP BY h - 1",
     lambda t: int(t / 7) + 1, 1),
    ("SELECT g, count(*) AS n FROM (SELECT t div 7 AS g FROM s WHERE k = 'a' UNION ALL SELECT t div 7 AS x FROM s "
     "WHERE k = 'b') GROUP BY g", lambda t: int(t / 7), 1),
    ("SELECT window_start AS g, count(*) AS n FROM (SELECT t div 7 AS g FROM s) [TUMBLING 3, WA g]",
     lambda t: int(t / 7) // 3 * 3, 3),
    ("SELECT window_start AS g, count(*) AS n FROM (SELECT t - 4 AS g FROM s) GROUP BY TUMBLE(g, 10)",
     lambda t: (t - 4) // 10 * 10, 10),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "key", "length"), KEYS, ids=[sql for sql, _, _ in KEYS])
@examples(15)
@given(values=st.lists(st.integers(-50, 50), min_size=1, max_size=20), delay=st.integers(0, 30))
def test_groups_are_those_of_sql_and_evaluators_agree(
    sql: str, key: object, length: int, values: list[int], delay: int
) -> None:
    assert callable(key)
    rows = tuple((t, "a") for t in values)
    stream = Arrivals("s", NUMBERS, bounded(delay), (rows[::2], rows[1::2]))
    found = agreement(sql, [stream], evaluators=("local",))
    assert found.agrees, found
    greatest, expected = -(10**9), dict[int, int]()
    for t in [t for t, _ in (*rows[::2], *rows[1::2])]:
        if t >= greatest - delay:
            expected[key(t)] = expected.get(key(t), 0) + 1
        greatest = max(greatest, t)
    (verdict,) = found.verdicts
    assert verdict.got is not None
    assert {p[3]: p[4] for p, _, _ in verdict.got.result} == expected
    assert all((p[1], p[2]) == (p[3], p[3] + length) for p, _, _ in verdict.got.result)


def test_a_truncated_timestamp_is_a_tumbling_window_of_the_timestamp() -> None:
    plain = bind("SELECT srcIP, count(*) AS n [TUMBLING 1 minute, WA ts] FROM main GROUP BY srcIP", catalog())
    keyed = bind("SELECT srcIP, count(*) AS n FROM main GROUP BY srcIP, date_trunc('minute', ts)", catalog())
    (window,) = [n.window for n in plain.walk() if hasattr(n, "window")]
    assert [n.window for n in keyed.walk() if hasattr(n, "window")] == [window]


def test_a_group_comes_out_when_the_bound_has_passed_it() -> None:
    flow = pk.Flow().stream("s", [{"t": 0}], time="t", schema="t bigint")
    execution = flow.query("SELECT t div 60 AS g, count(*) AS n FROM s GROUP BY t div 60").execution()
    given = {5: [], 59: [], 60: [(0, 2)], 130: [(1, 1)], 150: []}
    for t, expected in given.items():
        out = execution.feed("s", Batch(flow.streams["s"].schema, [(t,)]))
        rows = [e.payload for item in out if isinstance(item, Batch) for e in item.elements() if isinstance(e, Insert)]
        assert [row[3:] for row in rows] == expected


def test_what_falls_is_refused_as_before() -> None:
    for key in ("t % 60", "-t", "t div -60", "60 - t"):
        with pytest.raises(QueryError, match="needs a window"):
            bind(f"SELECT count(*) FROM nums GROUP BY {key}", catalog())
    sides = "SELECT t div 60 AS x FROM nums UNION ALL SELECT t div 30 AS x FROM nums"
    with pytest.raises(QueryError, match="needs a window"):
        bind(f"SELECT count(*) FROM ({sides}) GROUP BY x", catalog())
    with pytest.raises(QueryError, match="does not progress"):
        bind("SELECT count(*) [RANGE 5, SLIDE 5, WA x] FROM (SELECT t % 60 AS x FROM nums)", catalog())
