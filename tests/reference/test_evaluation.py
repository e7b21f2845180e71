"""Whole queries by the oracle, with results worked out by hand."""

from __future__ import annotations

import json
from decimal import Decimal

from penstock.model.batch import Row
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import BIGINT, schema_of
from penstock.model.tdb import TDB
from penstock.model.text import read_timestamp
from penstock.model.time import MINUTE, SECOND
from penstock.plan.catalog import Catalog, StreamInfo, UserFunction
from penstock.reference import evaluate, outcome
from penstock.sql.binder import bind

PLAIN = schema_of([("ts", "bigint"), ("srcIP", "string"), ("length", "int"), ("cost", "decimal(8,2)")], "ts")
CLOCK = schema_of([("ts", "timestamp"), ("srcIP", "string"), ("length", "int")], "ts")


class Product:
    """A user aggregate."""

    def lift(self, value: int) -> int:
        return value

    def combine(self, left: int, right: int) -> int:
        return left * right

    def lower(self, partial: int) -> int:
        return partial


def twice(value: int | None) -> int:
    return -1 if value is None else 2 * value


def catalog() -> Catalog:
    result = Catalog(
        functions={"twice": UserFunction("Twice", twice, BIGINT)},
        aggregates={"product": (Product(), BIGINT)},
    )
    for name, schema in (("Main", PLAIN), ("Main2", PLAIN), ("Clock", CLOCK)):
        result.add_stream(StreamInfo(name, schema, ordered(), StreamProperties()))
    return result


def run(sql: str, arrivals: list[tuple[str, Row]]) -> TDB:
    return evaluate(bind(sql, catalog()), arrivals, functions={"twice": twice}, aggregates={"product": Product()})


def main(*rows: tuple[int, str | None, int | None], stream: str = "Main") -> list[tuple[str, Row]]:
    return [(stream, (*row, None)) for row in rows]


def payloads(tdb: TDB) -> list[tuple[object, ...]]:
    """The visible values of every event, by time and then value."""
    every = [(vs, payload) for (payload, vs, _), n in tdb.items() for _ in range(n)]
    return [payload for _, payload in sorted(every, key=repr_key)]


def repr_key(item: tuple[int, tuple[object, ...]]) -> tuple[int, str]:
    return item[0], repr(item[1])


def test_the_thesis_example_in_sql() -> None:
    # 10:00:05 lies in windows 0 to 9, which end at 10:01 … 10:10
    origin = read_timestamp("2026-01-01 10:00:00")
    sql = "SELECT count(*) AS n [RANGE 10 minutes, SLIDE 1 minute, WA ts, ORIGIN '2026-01-01 10:00:00'] FROM Clock"
    result = run(sql, [("Clock", (origin + 5 * SECOND, "x", 1))])
    expected = TDB(
        [
            (
                (w, origin + (w - 9) * MINUTE, origin + (w + 1) * MINUTE, 1),
                origin + (w + 1) * MINUTE,
                origin + (w + 2) * MINUTE,
            )
            for w in range(10)
        ]
    )
    assert result == expected


def test_q5_1_counts_per_source_in_sliding_windows() -> None:
    # x at 5 lies in windows 0..9, x at 65 in 1..10, y at 30 in 0..9; they arrive out of order
    sql = "SELECT srcIP, count(*) [RANGE 600, SLIDE 60, WATTR ts] FROM Main GROUP BY srcIP"
    result = run(sql, main((65, "x", 1), (5, "x", 1), (30, "y", 1)))
    x = {0: 1, **dict.fromkeys(range(1, 10), 2), 10: 1}
    events = []
    for ip, counts in (("x", x), ("y", dict.fromkeys(range(10), 1))):
        for w, n in counts.items():
            end = 60 * (w + 1)
            events.append(((w, end - 600, end, ip, n), end, end + 60))
    assert result == TDB(events)


def test_q5_2_windows_within_partitions() -> None:
    # number  0  1  2  3
    # source  A  B  A  A     A has 9, 3, 4; RANGE 2 rows, SLIDE 1 row: window i holds ranks i-1 and i
    # length  9  1  3  4
    sql = "SELECT srcIP, max(length) AS m [RANGE 2 rows, SLIDE 1 row, WA row-num, PA srcIP] FROM Main"
    result = run(sql, main((50, "A", 9), (10, "B", 1), (20, "A", 3), (5, "A", 4)))
    assert payloads(result) == [
        (0, -1, 1, "A", 9),
        (0, -1, 1, "B", 1),
        (1, 0, 2, "A", 9),
        (1, 0, 2, "B", 1),
        (2, 1, 3, "A", 4),
        (3, 2, 4, "A", 4),
    ]
    assert all(ve == vs + 1 for _, vs, ve in result)


def test_q5_3_groups_within_windows() -> None:
    # the same rows; window i holds rows i-1 and i of the stream: A9 | A9 B1 | B1 A3 | A3 A4 | A4
    sql = "SELECT srcIP, max(length) AS m [RANGE 2 rows, SLIDE 1 row, WA row-num] FROM Main GROUP BY srcIP"
    result = run(sql, main((50, "A", 9), (10, "B", 1), (20, "A", 3), (5, "A", 4)))
    assert payloads(result) == [
        (0, -1, 1, "A", 9),
        (1, 0, 2, "A", 9),
        (1, 0, 2, "B", 1),
        (2, 1, 3, "A", 3),
        (2, 1, 3, "B", 1),
        (3, 2, 4, "A", 4),
        (4, 3, 5, "A", 4),
    ]


def test_q5_4_landmark() -> None:
    # SLIDE 60, arrivals 130 and 10: windows 0 and 1 hold the 10, window 2 both
    result = run("SELECT count(*) AS n [RANGE ALL, SLIDE 60, WA ts] FROM Main", main((130, "x", 1), (10, "x", 1)))
    assert result == TDB([((0, 0, 60, 1), 60, 120), ((1, 0, 120, 1), 120, 180), ((2, 0, 180, 2), 180, 240)])


def test_q5_5_slide_by_tuple() -> None:
    sql = "SELECT max(length) AS m, count(*) AS n [RANGE 8, RATTR ts, SLIDE 1 row, SATTR row-num] FROM Main"
    result = run(sql, main((39, "x", 3), (31, "x", 7)))
    assert result == TDB([((31, 24, 31, 7, 1), 31, 32), ((39, 32, 39, 3, 1), 39, 40)])


def test_rows_are_numbered_before_a_selection() -> None:
    # number  0   1   2   3   4   5       SLIDE 2: the rows 1, 3 and 5 end windows
    # time    1   2   3   4   5   6
    # WHERE   -   x   x   x   x   -       row 5 does not get to the window, so no window ends with it
    arrivals = main((1, "x", 0), (2, "x", 1), (3, "x", 1), (4, "x", 1), (5, "x", 1), (6, "x", 0))
    sql = "SELECT count(*) AS n [RANGE 8, RATTR ts, SLIDE 2 rows, SATTR row-num] FROM Main WHERE length > 0"
    assert payloads(run(sql, arrivals)) == [(2, -5, 2, 1), (4, -3, 4, 3)]
    sql = "SELECT count(*) AS n [RANGE 2 rows, SLIDE 2 rows, WA row-num] FROM Main WHERE length > 0"
    assert payloads(run(sql, arrivals)) == [(0, 0, 2, 1), (1, 2, 4, 2), (2, 4, 6, 1)]


def test_late_rows_have_numbers_too() -> None:
    # number  0   1   2   3
    # time    1   9   2!  10      2 is late: it is numbered 2, and counts where rows are taken by number alone
    arrivals = main((1, "x", 1), (9, "x", 10), (2, "x", 100), (10, "x", 1000))

    def with_late(sql: str) -> list[object]:
        return payloads(evaluate(bind(sql, catalog()), arrivals, late=[2]))

    numbers = "SELECT sum(length) AS s [RANGE 2 rows, SLIDE 2 rows, WA row-num] FROM Main"
    assert with_late(numbers) == [(0, 0, 2, 11), (1, 2, 4, 1100)]
    assert with_late(numbers + " WHERE length > 9") == [(0, 0, 2, 10), (1, 2, 4, 1100)]
    inner = "FROM (SELECT length FROM Main WHERE length > 9) i"  # numbered as the sub-query puts them out
    assert with_late(numbers.replace("FROM Main", inner)) == [(0, 0, 2, 110), (1, 2, 4, 1000)]
    tuples = "SELECT sum(length) AS s [RANGE 100, RATTR ts, SLIDE 2 rows, SATTR row-num] FROM Main"
    assert with_late(tuples) == [(9, -90, 9, 11), (10, -89, 10, 1011)]
    times = "SELECT sum(length) AS s [RANGE 20, SLIDE 20, WA ts] FROM Main"
    assert with_late(times) == [(0, 0, 20, 1011)]


def test_q5_6_slide_by_rank() -> None:
    # ranks 5 7 10 20: the second and the fourth end windows
    sql = "SELECT count(*) AS n [RANGE 8, RATTR ts, SLIDE 2 rows, SATTR rank(ts)] FROM Main"
    result = run(sql, main((10, "x", 1), (5, "x", 1), (20, "x", 1), (7, "x", 1)))
    assert payloads(result) == [(7, 0, 7, 2), (20, 13, 20, 1)]


def test_ties_of_slide_by_tuple_are_kept_as_two_events() -> None:
    sql = "SELECT count(*) AS n [RANGE 8, RATTR ts, SLIDE 1 row, SATTR row-num] FROM Main"
    result = run(sql, main((31, "x", 1), (31, "x", 2)))
    assert dict(result) == {((31, 24, 31, 2), 31, 32): 2}


def test_q1_2_bag_union_of_links() -> None:
    sql = "SELECT count(*) AS n [RANGE 60, SLIDE 60, WA ts] FROM Main UNION Main2"
    arrivals = main((10, "x", 1)) + main((10, "x", 1), (70, "x", 1), stream="Main2")
    assert run(sql, arrivals) == TDB([((0, 0, 60, 2), 60, 120), ((1, 60, 120, 1), 120, 180)])


def test_q2_1_group_by_time_is_a_window_of_one_tick() -> None:
    sql = "SELECT srcIP, ts, count(*) AS n FROM Main WHERE srcIP = 'a' OR srcIP = 'b' GROUP BY srcIP, ts"
    result = run(sql, main((5, "a", 1), (5, "c", 1), (5, "a", 1), (6, "b", 1)))
    assert result == TDB([((5, 5, 6, "a", 5, 2), 6, 7), ((6, 6, 7, "b", 6, 1), 7, 8)])


def test_row_numbers_follow_the_global_arrival() -> None:
    # tumbling windows of two rows over a union: (main 9, main2 1) and (main 5)
    sql = "SELECT sum(length) AS s [RANGE 2 rows, SLIDE 2 rows, WA row-num] FROM Main UNION Main2"
    arrivals = main((9, "x", 1)) + main((1, "x", 10), stream="Main2") + main((5, "x", 100))
    assert payloads(run(sql, arrivals)) == [(0, 0, 2, 11), (1, 2, 4, 100)]


def test_select_and_project_keep_time_when_it_is_not_asked_for() -> None:
    result = run("SELECT length + 1 AS l FROM Main WHERE length > 1", main((7, "x", 1), (3, "x", 2), (4, "x", None)))
    assert result == TDB([((3,), 3, 4)])


def test_distinct_is_per_instant() -> None:
    result = run(
        "SELECT DISTINCT srcIP FROM Main", main((1, "x", 1), (1, "x", 2), (2, "x", 3), (1, None, 1), (1, None, 2))
    )
    assert result == TDB([(("x",), 1, 2), (("x",), 2, 3), ((None,), 1, 2)])


def test_sql_union_removes_duplicates_and_union_all_does_not() -> None:
    arrivals = main((1, "x", 1)) + main((1, "x", 2), stream="Main2")
    union = "SELECT srcIP FROM Main UNION {}SELECT srcIP FROM Main2"
    assert dict(run(union.format(""), arrivals)) == {(("x",), 1, 2): 1}
    assert dict(run(union.format("ALL "), arrivals)) == {(("x",), 1, 2): 2}


def test_null_is_a_group_and_nulls_are_skipped() -> None:
    aggregates = "count(length) AS n, sum(length) AS s, avg(length) AS a"
    sql = f"SELECT srcIP, {aggregates} [RANGE 10, SLIDE 10, WA ts] FROM Main GROUP BY srcIP"
    result = run(sql, main((1, None, 4), (2, None, 1), (3, "x", None)))
    assert payloads(result) == [(0, 0, 10, "x", 0, None, None), (0, 0, 10, None, 2, 5, 2.5)]


def test_having_and_expressions_on_aggregates() -> None:
    sql = "SELECT srcIP, 2 * count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM Main GROUP BY srcIP HAVING count(*) > 1"
    assert payloads(run(sql, main((1, "x", 1), (2, "x", 1), (3, "y", 1)))) == [(0, 0, 10, "x", 4)]


def test_decimals_keep_their_scale() -> None:
    # avg of decimal(8,2) is decimal(12,6): 1.00 / 3 = 0.333333
    sql = "SELECT sum(cost) AS s, avg(cost) AS a [RANGE 10, SLIDE 10, WA ts] FROM Main"
    arrivals: list[tuple[str, Row]] = [
        ("Main", (t, "x", 1, Decimal(c))) for t, c in ((1, "0.50"), (2, "0.25"), (3, "0.25"))
    ]
    assert payloads(run(sql, arrivals)) == [(0, 0, 10, Decimal("1.00"), Decimal("0.333333"))]


def test_a_window_over_windows() -> None:
    # counts of windows of 5: 2 at 5, 1 at 10. The end is the time: 5 lies in [0, 10), 10 in [10, 20)
    sql = (
        "SELECT sum(n) AS s [RANGE 10, SLIDE 10, WA window_end] "
        "FROM (SELECT count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM Main) counts"
    )
    assert payloads(run(sql, main((1, "x", 1), (2, "x", 1), (6, "x", 1)))) == [(0, 0, 10, 2), (1, 10, 20, 1)]


def test_user_functions_see_nulls_and_user_aggregates_do_not() -> None:
    assert payloads(run("SELECT Twice(length) AS d FROM Main", main((1, "x", 4), (2, "x", None)))) == [(8,), (-1,)]
    sql = "SELECT product(length) AS p [RANGE 10, SLIDE 10, WA ts] FROM Main"
    assert payloads(run(sql, main((1, "x", 4), (2, "x", None), (3, "x", 5), (11, "x", None)))) == [
        (0, 0, 10, 20),
        (1, 10, 20, None),
    ]


def test_a_timestamp_is_cast_as_it_is_written() -> None:
    tick = read_timestamp("2026-01-01 10:00:00.5")
    assert payloads(run("SELECT CAST(ts AS STRING) AS t FROM Clock", [("Clock", (tick, "x", 1))])) == [
        ("2026-01-01 10:00:00.5",)
    ]


def test_a_row_without_a_value_is_dead_and_the_others_go_on() -> None:
    sql = "SELECT ts, 1 / length AS r FROM Main"
    plan = bind(sql, catalog())
    came = outcome(plan, main((1, "x", 0), (2, "x", 4), (3, "x", None)))
    assert payloads(came.result) == [(2, 0.25), (3, None)]
    (letter,) = came.dead
    assert (letter.streams, letter.operator, letter.reason) == ("Main", plan.label, "Division by zero")
    assert json.loads(letter.row) == {"ts": 1, "srcIP": "x", "length": 0, "cost": None}


def test_nothing_is_evaluated_after_a_null() -> None:
    assert payloads(run("SELECT length + 1 div 0 AS r FROM Main", main((1, "x", None)))) == [(None,)]


def test_a_group_whose_sum_overflows_is_dead_for_that_window_only() -> None:
    sql = "SELECT srcIP, sum(CAST(length AS BIGINT) * 4611686018427387904) AS s [RANGE 10, SLIDE 10, WA ts] FROM Main "
    plan = bind(sql + "GROUP BY srcIP", catalog())
    rows = main((1, "x", 1), (2, "x", 1), (3, "y", 1), (11, "x", 1))
    came = outcome(plan, rows)
    assert sorted(p[:4] for p in payloads(came.result)) == [(0, 0, 10, "y"), (1, 10, 20, "x")]
    (letter,) = came.dead
    assert "overflow" in letter.reason.lower()
    assert json.loads(letter.row) == {"wid": 0, "window_start": 0, "window_end": 10, "srcIP": "x"}


def test_nothing_arrives_nothing_comes_out() -> None:
    assert len(run("SELECT count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM Main", [])) == 0
