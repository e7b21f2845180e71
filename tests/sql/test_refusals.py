"""Ordinary SQL that has no meaning on a stream: each refusal points at its place and says what to write instead."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.errors import QueryError


def flow() -> pk.Flow:
    made = pk.Flow()
    made.stream("orders", [], time="ts", schema="ts bigint, id int, item string, price double")
    made.stream("payments", [], time="ts", schema="ts bigint, id int, paid int")
    made.stream("clicks", [], time="at", schema="at timestamp, id int, url string")
    made.table("items", [{"item": "pump", "seller": "Ada"}])
    made.table("rates", [{"cur": "EUR", "since": 0, "rate": 1.0}], key=["cur"], valid_from="since")
    return made


NEAR = "p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + 10"
UNBOUNDED = "add p.ts BETWEEN o.ts - 100 AND o.ts + 100"
# The caret marks where the error must point; then what it must say to do.
REFUSED = [
    # Over the rows before and after
    ("SELECT id, ^row_number() OVER (PARTITION BY id ORDER BY ts) AS n FROM orders", "PARTITION BY window_start"),
    ("SELECT id, ^lag(price) OVER (ORDER BY ts) FROM orders", "join the stream with itself"),
    ("SELECT ^sum(price) OVER (ORDER BY ts ROWS 2 PRECEDING) AS s FROM orders", "[RANGE …, SLIDE …, WA …]"),
    ("SELECT sum(price) OVER w FROM orders WINDOW ^w AS (PARTITION BY id)", "[RANGE …, SLIDE …, WA …]"),
    ("SELECT id FROM orders QUALIFY ^row_number() OVER (ORDER BY ts) = 1", "rn <= 10"),
    ("SELECT ^count(*) FROM orders", "GROUP BY ts"),
    ("SELECT id, ^count(*) AS n FROM orders GROUP BY id", "[RANGE 100, SLIDE 10, WA ts]"),
    ("SELECT id, ^sum(price) AS s FROM orders GROUP BY id HAVING s > 3", "[RANGE 100, SLIDE 10, WA ts]"),
    ("SELECT first(price) IGNORE NULLS FILTER ^(WHERE id > 1) [RANGE 9, SLIDE 9, WA ts] FROM orders", "FILTER stands"),
    # Order and number
    ("SELECT id FROM orders LIMIT ^10", "cut the collected result"),
    ("SELECT id FROM orders ORDER BY ^price DESC LIMIT 10", "sort or cut the collected result"),
    ("SELECT id FROM orders OFFSET ^5", "cut the collected result"),
    ("SELECT id FROM orders FETCH FIRST ^5 ROWS ONLY", "cut the collected result"),
    ("SELECT TOP ^5 id FROM orders", "cut the collected result"),
    ("SELECT DISTINCT ON (^id) id, price FROM orders", "first(x) or max_by(x, y)"),
    ("SELECT id FROM orders TABLESAMPLE (^10 PERCENT)", "WHERE pmod(id, 10) = 0"),
    # Sub-queries and set operations
    (
        "SELECT id, (SELECT ^max(paid) FROM payments p WHERE p.id = o.id) AS m FROM orders o",
        "JOIN (SELECT …) AS x ON …",
    ),
    ("SELECT id FROM orders WHERE price > (SELECT ^avg(price) FROM orders)", "JOIN (SELECT …) AS x ON …"),
    ("SELECT id FROM orders WHERE price > ALL (SELECT ^paid FROM payments)", "NOT EXISTS"),
    ("SELECT id FROM orders WHERE price = ANY (SELECT ^paid FROM payments)", "x IN (SELECT …)"),
    ("SELECT id FROM orders WHERE ^id IN (SELECT id FROM payments) OR price > 3", "by themselves or by AND"),
    ("SELECT id FROM orders WHERE (^id, price) IN ((1, 2))", "column by column"),
    ("SELECT ^id FROM orders INTERSECT SELECT id FROM payments", "WHERE EXISTS"),
    ("SELECT ^id FROM orders EXCEPT SELECT id FROM payments", "WHERE NOT EXISTS"),
    ("SELECT ^id FROM orders MINUS SELECT id FROM payments", "WHERE NOT EXISTS"),
    ("WITH RECURSIVE ^n AS (SELECT id FROM orders UNION ALL SELECT id FROM n) SELECT id FROM n", "cannot read its own"),
    ("SELECT o.id FROM orders o, LATERAL (SELECT ^paid FROM payments p WHERE p.id = o.id) x", "JOIN (SELECT …)"),
    ("SELECT o.id FROM orders o CROSS APPLY (SELECT ^paid FROM payments) x", "JOIN (SELECT …)"),
    ("SELECT id FROM orders LATERAL VIEW explode(^item) t AS e", "split(text, ',')"),
    ("SELECT o.id, explode(^o.price) FROM orders o", "split(text, ',')"),
    ("SELECT o.id FROM orders o LEFT JOIN UNNEST(^split(o.item, ',')) AS t(e) ON TRUE", "LATERAL VIEW OUTER"),
    ("SELECT * FROM orders PIVOT (^sum(price) FOR item IN ('pump', 'pipe'))", "FILTER (WHERE kind = 'a')"),
    ("SELECT * FROM orders UNPIVOT (^v FOR c IN (price, id))", "UNION ALL"),
    ("SELECT * EXCEPT (^id) FROM orders", "name the columns"),
    # Joins
    ("SELECT o.id FROM orders o JOIN ^payments p ON p.paid > o.price", UNBOUNDED),
    ("SELECT o.id FROM orders o LEFT JOIN ^payments p ON p.id = o.id", UNBOUNDED),
    ("SELECT o.id FROM orders o FULL OUTER JOIN ^payments p ON p.id = o.id", UNBOUNDED),
    ("SELECT o.id FROM orders o CROSS JOIN ^payments p", UNBOUNDED),
    ("SELECT o.id FROM orders o, ^payments p WHERE o.id = p.id", "windows after the streams"),
    ("SELECT o.id FROM orders o JOIN ^payments p ON p.id = o.id AND p.ts > o.ts", UNBOUNDED),
    ("SELECT o.id FROM orders o JOIN ^payments p ON p.id = o.id OR p.ts = o.ts", UNBOUNDED),
    ("SELECT o.id FROM orders o JOIN ^payments p ON p.ts BETWEEN o.ts + 5 AND o.ts", "the lesser bound comes first"),
    ("SELECT o.id FROM orders o JOIN ^clicks c ON c.id = o.id", "times of one type"),
    ("SELECT o.id FROM orders o NATURAL JOIN ^payments p", "USING (…) or ON …"),
    ("SELECT o.id FROM orders o ASOF FULL JOIN ^payments p ON p.id = o.id AND p.ts <= o.ts", "ASOF"),
    (f"SELECT ^id FROM orders o JOIN payments p ON {NEAR}", "write o.id or p.id"),
    (f"SELECT ^o.idd FROM orders o JOIN payments p ON {NEAR}", "did you mean id?"),
    (f"SELECT ^q.id FROM orders o JOIN payments p ON {NEAR}", "known: o, p"),
    (f"SELECT o.id FROM orders o JOIN payments p ON {NEAR} AND ^p.id = o.item", "CAST one of them"),
    (f"SELECT count(*) [RANGE TUMBLING 9, ^WA p.ts] FROM orders o LEFT JOIN payments p ON {NEAR}", "o.ts"),
    ("SELECT id FROM orders WHERE EXISTS (SELECT ^1 FROM payments p WHERE p.id = 1)", "BETWEEN orders.ts - 100"),
    # Tables
    ("SELECT item FROM ^items", "join it with a stream"),
    ("SELECT i.seller FROM items i LEFT JOIN ^orders o ON o.item = i.item", "a_stream LEFT JOIN items"),
    ("SELECT o.id FROM orders o JOIN ^rates FOR SYSTEM_TIME AS OF o.ts AS r ON r.rate > 1", "add rates.cur ="),
    ("SELECT o.id FROM orders o JOIN ^items FOR SYSTEM_TIME AS OF o.ts AS i ON i.item = o.item", "valid_from='since'"),
    # Windows of other kinds
    ("SELECT count(*) FROM clicks GROUP BY ^session_window(at, '5 minutes')", "windows of a fixed length"),
    (
        "SELECT count(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL ^'1' MONTH)) GROUP BY window_end",
        "weeks",
    ),
    ("SELECT ^window, count(*) FROM clicks GROUP BY window(at, '5 minutes')", "window.start and window.end"),
    ("SELECT * FROM orders MATCH_RECOGNIZE (ORDER BY ts PATTERN (A ^B) DEFINE A AS id > 1)", "X*?"),
    # Expressions
    ("SELECT id FROM orders WHERE ^item = 3", "CAST one of them"),
    ("SELECT id FROM clicks WHERE ^at > 3", "CAST one of them"),
    ("SELECT ^price * item FROM orders", "CAST the operands"),
    ("SELECT CASE ^price WHEN 1 THEN 'a' ELSE 2 END FROM orders", "CAST them to one type"),
    ("SELECT id FROM clicks WHERE at > ^current_timestamp", "use the stream's time"),
    ("SELECT id FROM orders WHERE ^item LIKE 'a' ESCAPE '!'", "a backslash escapes"),
    ("SELECT id FROM orders WHERE ^item SIMILAR TO 'a'", "RLIKE"),
    ("SELECT id FROM orders WHERE item ^~ 'a'", "RLIKE"),
    ("SELECT TRY_CAST(^item AS int) FROM orders", "CASE for values that do not fit"),
    ("SELECT ^approx_count_distinct(id) [RANGE 9, SLIDE 9, WA ts] FROM orders", "count(DISTINCT x)"),
    ("SELECT id, ^id FROM orders", "another name with AS"),
    # Statements
    ("^INSERT INTO orders VALUES (1, 2)", "flow.sql(…)"),
    ("^CREATE TABLE x AS SELECT id FROM orders", "flow.sql(…)"),
    ("^DELETE FROM orders", "SELECT … FROM …"),
    ("SELECT id FROM orders; ^SELECT id FROM orders", "flow.sql(…)"),
    ("SELECT id INTO ^x FROM orders", "INSERT INTO name SELECT"),
    ("SELECT id FROM orders FOR ^UPDATE", "leave it out"),
    ("SELECT ^1", "name the stream to read"),
]


@pytest.mark.parametrize(("marked", "hint"), REFUSED, ids=[marked for marked, _ in REFUSED])
def test_what_is_refused_says_where_and_what_to_write(marked: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        flow().query(marked.replace("^", ""))
    assert hint in caught.value.hint
    assert (caught.value.line, caught.value.column) == (1, marked.index("^") + 1)


@pytest.mark.parametrize(("written", "count"), [("IS DISTINCT FROM", 3), ("IS NOT DISTINCT FROM", 2)])
def test_null_is_a_value_to_distinct_from(written: str, count: int) -> None:
    rows = [{"t": t, "a": a, "b": b} for t, (a, b) in enumerate([(1, 1), (1, 2), (None, 1), (1, None), (None, None)])]
    asked = pk.Flow().stream("s", rows, time="t").query(f"SELECT t FROM s WHERE a {written} b")
    assert len(asked.collect()) == count


def test_filter_stands_before_ignore_nulls() -> None:
    rows = [{"t": t, "v": v} for t, v in enumerate([None, 1, 5, None, 7])]
    text = "SELECT {}(v) FILTER (WHERE t <> 4) IGNORE NULLS AS v [RANGE TUMBLING 5, WA t] FROM s"
    found = [pk.Flow().stream("s", rows, time="t").query(text.format(n)).collect()["v"] for n in ("first", "last")]
    assert [each.to_pylist() for each in found] == [[1], [5]]
