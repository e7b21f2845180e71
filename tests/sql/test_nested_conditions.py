"""Fields of structs stand wherever conditions of joins and of sub-queries do, also as a condition by themselves."""

from __future__ import annotations

import pytest

import penstock as pk

ROWS = [{"ts": t, "k": t % 2, "s": {"flag": t % 3 == 0, "x": t}} for t in range(8)]
BY_THREE = [0, 3, 6]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a.ts FROM a JOIN b ON a.k = b.k AND a.ts = b.ts WHERE a.s.flag", BY_THREE),
        ("SELECT a.ts FROM a JOIN b ON a.s.x = b.s.x AND a.ts = b.ts AND b.s.flag", BY_THREE),
        ("SELECT a.ts FROM a LEFT JOIN b ON a.s.x = b.s.x AND a.ts = b.ts WHERE b.s.flag AND a.k = 0", [0, 6]),
        ("SELECT ts FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.ts = b.ts AND b.s.flag)", BY_THREE),
        ("SELECT ts FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.ts = b.ts AND b.s.x = a.s.x) AND s.flag", BY_THREE),
        ("SELECT ts FROM a WHERE a.s.x IN (SELECT b.s.x FROM b WHERE a.ts = b.ts AND b.s.flag)", BY_THREE),
        ("SELECT ts FROM a WHERE s.x NOT IN (SELECT s.x FROM b WHERE a.ts = b.ts AND NOT s.flag)", BY_THREE),
    ],
)
def test_fields_in_conditions(sql: str, expected: list[int]) -> None:
    flow = pk.Flow()
    for name in ("a", "b"):
        flow.stream(name, ROWS, time="ts", progress=pk.bounded(3))
    assert sorted(flow.query(sql).collect()["ts"].to_pylist()) == expected


def test_a_relation_that_is_called_like_a_column_without_fields_is_the_relation() -> None:
    rows = [{"ts": 1, "k": 1, "a": [1, 2]}]
    flow = pk.Flow().stream("a", rows, time="ts").stream("b", rows, time="ts")
    for sql in ("SELECT a.nope FROM a JOIN b ON a.k = b.k AND a.ts = b.ts", "SELECT a.nope FROM a"):
        with pytest.raises(pk.PenstockError, match=r"Unknown column[\s\S]*nope"):
            flow.query(sql)
