"""A time that a sub-query selects twice progresses under both names."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.model.elements import Insert

ROWS = [{"t": t, "k": "ab"[t % 2]} for t in (1, 2, 3, 5, 8, 9)]
TWICE = "SELECT t AS a, t AS b, k FROM s"


def flow() -> pk.Flow:
    made = pk.Flow().stream("s", ROWS, time="t").stream("other", ROWS, time="t")
    return made.table("names", [{"k": "a", "name": "even"}, {"k": "b", "name": "odd"}])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS n, min({0}) AS first [RANGE 4, SLIDE 2, WA {0}] FROM ({1}) q GROUP BY k",
        "SELECT count(*) AS n [RANGE TUMBLING 3, WA q.{0}] FROM ({1}) q JOIN names ON names.k = q.k",
        "SELECT {0} AS instant, count(*) AS n FROM ({1}) q WHERE k IN (SELECT k FROM names) GROUP BY {0}",
        "SELECT count(*) AS n FROM ({1}) q GROUP BY {0} div 3",
        "SELECT count(*) AS n [RANGE TUMBLING 3, WA {0}] FROM ({1} UNION ALL {1}) q",
        "SELECT count(*) AS n [RANGE TUMBLING 3, WA {0}] FROM (SELECT DISTINCT t AS a, t AS b, k FROM s) q",
        "SELECT q.k, o.t FROM ({1}) q LEFT JOIN other o ON o.k = q.k AND o.t BETWEEN q.{0} + 1 AND q.{0} + 2",
        "SELECT q.k FROM ({1}) q WHERE NOT EXISTS (SELECT 1 FROM other o WHERE o.t = q.{0} + 1)",
        "SELECT count(*) AS n [RANGE TUMBLING 3, WA {0}] FROM (SELECT a AS a, b AS b FROM ({1}) p WHERE b > 1) q",
    ],
)
def test_either_name_gives_the_same(text: str) -> None:
    first, second = (flow().query(text.format(name, TWICE)).collect().to_pylist() for name in "ab")
    assert len(first) > 2
    assert first == second


def test_windows_on_the_second_name_close_as_the_stream_goes_on() -> None:
    read: list[int] = []

    def rows() -> object:
        for row in ROWS:
            read.append(int(str(row["t"])))
            yield row

    made = pk.Flow().stream("s", rows(), time="t", schema="t bigint, k string")
    asked = made.query(f"SELECT count(*) AS n [RANGE TUMBLING 2, WA b] FROM ({TWICE}) q")
    first = next(e for e in asked.elements() if isinstance(e, Insert))
    assert first.payload[-1] == 1
    assert read[-1] < ROWS[-1]["t"]  # type: ignore[operator]
