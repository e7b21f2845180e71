"""Which joins become one operator, what it is made of, and what costs, hints and engines say of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import penstock as pk
from penstock.errors import PlanError, QueryError
from penstock.model.progress import bounded, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.distribution import needed, routes
from penstock.plan.multi_nodes import Apart, MultiJoin
from penstock.plan.nodes import Join, Node
from penstock.plan.planner import in_process, spark_streaming
from penstock.plan.progressing import progressing
from penstock.plan.rules.multiway import multiway
from penstock.sql.binder import bind

ONE, TREE = "/*+ MULTIWAY_JOIN */", "/*+ BINARY_JOINS */"
KEYED = (
    "a JOIN b ON b.k = a.k AND b.ts BETWEEN a.ts - 3 AND a.ts + 3 "
    "JOIN c ON c.k = b.k AND c.ts BETWEEN b.ts AND b.ts + 4"
)
WIDE = (
    "a JOIN b ON b.ts BETWEEN a.ts - 3 AND a.ts + 3 "
    "JOIN c ON c.k = b.k AND c.v = a.v AND c.ts BETWEEN b.ts AND b.ts + 4"
)


def catalog() -> Catalog:
    made = Catalog()
    plain = schema_of([("ts", "bigint"), ("k", "string"), ("v", "int")], "ts")
    for name in "abcd":
        made.add_stream(StreamInfo(name, plain, bounded(5), StreamProperties()))
    told = punctuated("k = 'end'", per=["v"])
    made.add_stream(StreamInfo("grouped", plain, told, StreamProperties()))
    return made


def bound(text: str, hint: str = "") -> Node:
    return bind(f"SELECT {hint} * FROM {text}", catalog())


def one_of(plan: Node) -> MultiJoin:
    (found,) = [node for node in multiway(plan, lambda _: True, hints=False).walk() if isinstance(node, MultiJoin)]
    return found


def is_one(plan: Node) -> bool:
    return any(isinstance(planned.node, MultiJoin) for planned in in_process(plan, catalog()).walk())


def test_what_it_is_made_of() -> None:
    join = one_of(bound(KEYED + " AND a.v < c.v WHERE a.v <> b.v AND b.v > 3"))
    assert [node.schema.time for node in join.streams] == ["ts"] * 3
    assert join.apart == (Apart(0, 1, -3, 3), Apart(1, 2, 0, 4))
    assert join.equal == (((0, "k"), (1, "k"), (2, "k")),)
    assert sorted(map(str, join.conditions)) == ["(a_v < c_v)", "(a_v <> b_v)"]  # b.v > 3 is asked before
    tree = bound(KEYED)
    assert one_of(tree).schema == next(n for n in tree.walk() if isinstance(n, Join)).schema
    assert set(progressing(join)) == {"a_ts", "b_ts", "c_ts", join.schema.time}


def test_joins_within_joins_are_one() -> None:
    join = one_of(bound(KEYED + " JOIN d ON d.ts = c.ts AND d.v = a.v"))
    assert len(join.streams) == 4
    assert join.equal == (((0, "k"), (1, "k"), (2, "k")), ((0, "v"), (3, "v")))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a JOIN b ON b.ts = a.ts", "fewer than three streams"),
        ("a LEFT JOIN b ON b.ts = a.ts JOIN c ON c.ts = a.ts", "not inner but left"),
        ("a, b, c [RANGE TUMBLING 5, WA ts]", "a tumbling window"),
        # the sum may be too large for its type
        (
            "a JOIN b ON b.ts = a.ts AND a.v + b.v > 3 JOIN c ON c.ts = a.ts",
            "conditions on several streams that can fail",
        ),
        ("a ASOF JOIN b ON a.ts >= b.ts JOIN c ON c.ts = a.ts", "the latest rows"),
        ("a JOIN grouped b ON b.ts = a.ts JOIN c ON c.ts = a.ts", "streams that promise by groups, punctuated(per=…)"),
        ("grouped a, grouped b, grouped c WHERE a.ts = b.ts AND b.ts = c.ts", "streams that promise by groups"),
    ],
)
def test_what_cannot_be_one_is_a_tree_and_says_why(text: str, why: str) -> None:
    assert not any(isinstance(node, MultiJoin) for node in multiway(bound(text), lambda _: True).walk())
    with pytest.raises(QueryError, match="cannot be one operator") as caught:
        bound(text, ONE)
    assert (caught.value.line, "MULTIWAY_JOIN" in caught.value.got, why in caught.value.got) == (1, True, True)
    assert bound(text, TREE) == bound(text)  # which runs anyway


def test_a_hint_is_of_the_streams_below_a_table() -> None:
    flow = pk.Flow().table("names", [{"k": "x", "name": "pump"}])
    for name in "abc":
        flow.stream(name, [{"ts": 1, "k": "x", "v": 1}], time="ts")
    text = f"a.ts, n.name FROM {KEYED} JOIN names n ON n.k = a.k"
    assert "(MJoin)" in flow.query(f"SELECT {ONE} {text}").explain()
    assert "tree, as the query says" in flow.query(f"SELECT {TREE} {text}").explain()


def test_a_hint_that_nobody_knows_is_refused() -> None:
    with pytest.raises(QueryError, match="This hint is not known") as caught:
        bound(KEYED, "/*+ BROADCAST */")
    assert "MULTIWAY_JOIN, BINARY_JOINS" in str(caught.value)
    with pytest.raises(QueryError, match="not supported"):
        bind("SELECT /*+ MULTIWAY_JOIN */ v FROM a", catalog())


def test_costs_decide_and_hints_force() -> None:
    """Pairs of rows with a column in common are few, those without are many."""
    assert not is_one(bound(KEYED))
    assert is_one(bound(WIDE))
    assert is_one(bound(KEYED, ONE))
    assert not is_one(bound(WIDE, TREE))
    assert not is_one(bound(WIDE + " JOIN d ON d.ts = c.ts AND d.k = c.k", TREE))


def test_explain_says_which_and_why() -> None:
    flow = pk.Flow()
    for name in "abc":
        flow.stream(name, [{"ts": 1, "k": "x", "v": 1}], time="ts")
    told = {text: str(flow.query(f"SELECT {text}").explain()) for text in (
        f"* FROM {KEYED}", f"* FROM {WIDE}", f"{ONE} * FROM {KEYED}", f"{TREE} * FROM {WIDE}")}  # fmt: skip
    assert "tree, cost 5 against 6 for one operator, in lookups for a row of each stream" in told[f"* FROM {KEYED}"]
    assert "(MJoin)" in told[f"* FROM {WIDE}"]
    assert "one operator, cost 6 against 203 for tree, in lookups for a row of each stream" in told[f"* FROM {WIDE}"]
    assert "one operator, as the query says" in told[f"{ONE} * FROM {KEYED}"]
    assert "tree, as the query says" in told[f"{TREE} * FROM {WIDE}"]


def test_it_is_spread_by_what_is_equal_in_all() -> None:
    join = one_of(bound(KEYED))
    assert [str(key) for key in needed(join).keys] == ["a_k"]
    spread = routes(multiway(bound(KEYED), lambda _: True))
    assert spread is not None
    assert {name: [str(key) for key in keys] for name, keys in spread.items()} == {name: ["k"] for name in "abc"}
    assert routes(multiway(bound(WIDE), lambda _: True)) is None
    told = next(p.why for p in spark_streaming(bound(WIDE), catalog()).walk() if isinstance(p.node, MultiJoin))
    assert "in one place, as nothing is equal in all" in told


def test_a_node_that_does_not_fit_is_refused() -> None:
    join = one_of(bound(KEYED))
    with pytest.raises(PlanError):
        replace(join, on=join.on[:2])
    with pytest.raises(PlanError):
        replace(join, equal=(((0, "k"), (1, "v")),))
