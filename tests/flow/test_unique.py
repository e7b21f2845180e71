"""What is unique in a stream: declared, derived, used by joins, and never a change of the result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import PenstockError, StreamError
from penstock.model.batch import Batch
from penstock.plan.nodes import Join

ORDERS, PAYMENTS = "ts bigint, id bigint, item string", "ts bigint, id bigint, paid int"
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
Rows = list[dict[str, Any]]


def shop(orders: Any = (), payments: Any = (), unique: tuple[Any, Any] = (None, None), delay: int = 10) -> pk.Flow:
    flow = pk.Flow()
    for name, rows, schema, own in zip(
        ("orders", "payments"), (orders, payments), (ORDERS, PAYMENTS), unique, strict=True
    ):
        flow.stream(name, iter(rows), time="ts", schema=schema, progress=pk.bounded(delay), unique=own)
    return flow


def joins(query: Any) -> Join:
    (found,) = [node for node in query.plan.walk() if isinstance(node, Join)]
    return found


TIMES = st.integers(0, 30)
UNIQUE = st.lists(st.tuples(TIMES, st.integers(0, 12)), max_size=13, unique_by=lambda row: row[1])
ANY = st.lists(st.tuples(TIMES, st.sampled_from([*range(13), None])), max_size=25)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on_left", [True, False])
@given(keyed=UNIQUE, others=ANY, more=st.sampled_from(["", " AND p.paid > 3"]))
def test_results_are_the_same_as_without(
    kind: str, on_left: bool, keyed: list[Any], others: list[Any], more: str
) -> None:
    left, right = (keyed, others) if on_left else (others, keyed)
    orders: Rows = [{"ts": t, "id": k, "item": str(i)} for i, (t, k) in enumerate(left)]
    payments: Rows = [{"ts": t, "id": k, "paid": i} for i, (t, k) in enumerate(right)]
    shown = "o.id, o.item" if "SEMI" in kind or "ANTI" in kind else "o.id, o.item, p.paid"
    sql = f"SELECT {shown} FROM orders o {kind} payments p ON p.id = o.id AND p.ts BETWEEN o.ts - 5 AND o.ts + 9{more}"
    found = []
    for unique in ((None, None), ("id", None) if on_left else (None, "id")):
        query = shop(orders, payments, unique, delay=40).query(sql)
        assert any(joins(query).once) == any(unique)
        found.append(sorted(query.collect().to_pylist(), key=str))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("sql", "once"),
    [
        ("SELECT o.id FROM orders o JOIN payments p ON p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + 9", (False, True)),
        ("SELECT o.no FROM (SELECT id AS no, ts FROM orders WHERE item = 'x') o JOIN payments p "
         "ON p.id = o.no AND p.ts BETWEEN o.ts AND o.ts + 9", (False, True)),
        ("SELECT o.id FROM orders o JOIN payments p ON p.id = o.id AND p.paid = o.id AND p.ts = o.ts", (False, True)),
        ("SELECT o.no FROM (SELECT id + 0 AS no, ts FROM orders) o JOIN payments p "
         "ON p.id = o.no AND p.ts BETWEEN o.ts AND o.ts + 9", (False, False)),
        ("SELECT o.id FROM orders o JOIN payments p ON p.ts BETWEEN o.ts AND o.ts + 9", (False, False)),
        ("SELECT o.id FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders) o JOIN payments p ON p.id = o.id "
         "AND p.ts BETWEEN o.ts AND o.ts + 9", (False, False)),
        ("SELECT a.n FROM (SELECT id, count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM payments GROUP BY id) a JOIN "
         "(SELECT id, max(paid) AS m [RANGE 5, SLIDE 5, WA ts] FROM payments GROUP BY id) b "
         "ON a.id = b.id AND a.window_end = b.window_end", (True, True)),
    ],
)  # fmt: skip
def test_who_meets_one_at_most(sql: str, once: tuple[bool, bool]) -> None:
    assert joins(shop(unique=("id", None)).query(sql)).once == once


def test_what_stays_unique_after_a_join() -> None:
    near = "ON p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + 9"
    kept = {
        "JOIN": ("o_id", "p_id"), "LEFT JOIN": ("o_id", None), "RIGHT JOIN": (None, "p_id"), "FULL JOIN": (None, None),
    }  # fmt: skip
    for kind, (of_left, of_right) in kept.items():
        for unique, named in ((("id", "id"), of_left or of_right), (("id", None), of_left and None)):
            query = shop(unique=unique).query(f"SELECT * FROM orders o {kind} payments p {near}")
            found = joins(query).properties.unique
            assert found == (None if named is None else frozenset({named})), (kind, unique)


def test_explain_says_what_is_freed() -> None:
    query = shop(unique=("id", None)).query(
        "SELECT o.id FROM orders o JOIN payments p ON p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + 9"
    )
    said = query.explain()
    assert "those of the right once they have met one, since id is unique on the other side" in said
    assert "unique (id)" in said


def test_the_state_that_it_frees() -> None:
    """Nineteen of twenty orders are paid after 5, all may be paid within 1000: what waits is what is not paid."""
    sizes = []
    for unique in ((None, None), ("id", "id")):
        near = "p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + 1000"
        query = shop(unique=unique).query(f"SELECT o.id, p.paid FROM orders o LEFT JOIN payments p ON {near}")
        execution: Any = query.execution()
        order, pay = execution.pusher("orders"), execution.pusher("payments")
        for t in range(2000):
            order((t, t, "pump"))
            if t >= 5 and t % 20:
                pay((t, t - 5, 1))
        execution.take()
        sizes.append(len(execution.snapshot()))
    assert sizes[1] < 0.15 * sizes[0]


@pytest.mark.parametrize(
    ("unique", "what", "hint"),
    [
        ("ids", "unknown column", "did you mean id"),
        ([], "names columns", "unique="),
        ([1], "names columns", "unique="),
        (["id", "nothing"], "unknown column", "known"),
    ],
)
def test_what_cannot_be_unique(unique: Any, what: str, hint: str) -> None:
    with pytest.raises(StreamError, match=what) as raised:
        shop(unique=(unique, None))
    assert raised.value.where == "stream orders"
    assert hint in str(raised.value.hint)


def test_in_a_script() -> None:
    flow = pk.Flow()
    script = """
        CREATE STREAM orders (ts bigint, id bigint, item string) WITH (time = 'ts', unique = 'id');
        CREATE STREAM payments (ts bigint, id bigint, part int) WITH (time = 'ts', unique = 'id, part');
    """
    flow.sql(script, sources={"orders": [], "payments": []})
    assert flow.catalog.streams["orders"].properties.unique == frozenset({"id"})
    assert flow.catalog.streams["payments"].properties.unique == frozenset({"id", "part"})
    with pytest.raises(PenstockError, match="unknown column") as raised:
        pk.Flow().sql("CREATE STREAM s (ts bigint) WITH (time = 'ts', unique = 'x')", sources={"s": []})
    assert "line 1" in str(raised.value)


def test_a_second_partner_is_counted_where_it_is_seen() -> None:
    """It is not joined either way: who met one has gone."""
    flow = shop(unique=(None, "id"))
    execution: Any = flow.query(
        "SELECT o.id, p.paid FROM orders o JOIN payments p ON p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + 9"
    ).execution()
    schemas = [execution.graph.sources[name][0].plan.schema for name in ("orders", "payments")]
    execution.feed("orders", Batch(schemas[0], [(1, k, "") for k in range(100)]))
    for paid in (1, 2):
        execution.feed("payments", Batch(schemas[1], [(2, 7, paid)]))
    execution.close()
    assert execution.counts.failed == 1
    assert "not unique" in execution.dead_letters().to_pylist()[0]["reason"]
