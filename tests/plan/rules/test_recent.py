"""Which patterns are joins; that they mean the same is a matter of `tests/runtime/test_patterns.py`."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as pk
from penstock.plan.join_nodes import Join, Latest
from penstock.plan.nodes import Pattern
from penstock.plan.rules.recent import recent_as_joins


def planned(text: str) -> list[Any]:
    flow = pk.Flow()
    for name in "ab":
        flow.stream(name, [], schema="ts bigint, k string, v int", time="ts")
    query: Any = flow.query(f"SELECT * FROM {text}")
    made = recent_as_joins(query.plan)
    assert made.schema == query.plan.schema
    return [node for node in made.walk() if isinstance(node, Join | Pattern)]


@pytest.mark.parametrize(
    ("text", "near", "equal"),
    [
        ("SEQ(a, b)", Latest(1, -1), ()),
        ("SEQ(a, b) OVER [9 PRECEDING b] WHERE a.k = b.k", Latest(1, -1, -9), (("k", "k"),)),
        ("SEQ(a x, a y) WHERE x.v > y.v", Latest(1, -1), ()),
    ],
)
def test_two_steps_are_an_as_of_join(text: str, near: Latest, equal: tuple[tuple[str, str], ...]) -> None:
    (join,) = planned(text)
    assert (join.near, join.equal, join.kind) == (near, equal, "inner")


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(a, b) OVER [9 PRECEDING b] MODE CHRONICLE",
        "SEQ(a, b, a AS c)",
        "SEQ(a, NOT b, a AS c)",
        "SEQ(a, NOT b) OVER [9 FOLLOWING a]",
        "SEQ(a, b) PARTITION BY k",
        "SEQ((SELECT count(*) AS n [RANGE TUMBLING 9, WA ts] FROM a) x, b)",
    ],
)
def test_others_stay_what_they_are(text: str) -> None:
    (found,) = planned(text)
    assert isinstance(found, Pattern)
