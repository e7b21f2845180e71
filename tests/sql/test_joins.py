"""FROM with several relations: what names mean, which rows meet, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import QueryError
from penstock.model.progress import bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.model.time import MINUTE, SECOND, Domain, longest
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.join_nodes import Band, Join, SameWindow
from penstock.plan.nodes import Node, Project, Select, Union, WindowAggregate
from penstock.sql.binder import bind

PACKETS = schema_of(
    [("ts", "timestamp"), ("srcIP", "string"), ("destIP", "string"), ("srcPort", "int"), ("destPort", "int")], "ts"
)
NUMBERS = schema_of([("t", "bigint"), ("k", "string"), ("v", "int"), ("w", "bigint")], "t")


def catalog() -> Catalog:
    result = Catalog()
    for name in ("Main1", "Main2", "M1", "M2", "A", "B", "C", "D"):
        result.add_stream(StreamInfo(name, PACKETS, bounded("5 seconds"), StreamProperties()))
    for name in ("x", "y", "z"):
        result.add_stream(StreamInfo(name, NUMBERS, bounded(5), StreamProperties()))
    return result


def joins(sql: str) -> list[Join]:
    return [node for node in bind(sql, catalog()).walk() if isinstance(node, Join)]


def visible(node: Node) -> list[str]:
    return [field.name for field in node.schema.visible]


# As the thesis prints them


def test_q5_7_a_tumbling_window_serves_both_streams() -> None:
    sql = (
        "SELECT Main1.srcIP, Main1.destIP, Main2.srcIP, Main2.destIP, Main2.ts FROM Main1, Main2\n"
        "[RANGE TUMBLING 5 minutes, WA ts], WHERE Main1.srcIP = Main2.destIP"
    )
    (join,) = joins(sql)
    assert join.near == SameWindow(5 * MINUTE)
    assert join.equal == (("srcIP", "destIP"),)
    assert visible(bind(sql, catalog())) == ["Main1_srcIP", "Main1_destIP", "Main2_srcIP", "Main2_destIP", "ts"]


def test_q5_8_each_stream_has_a_window_of_its_own() -> None:
    (join,) = joins(
        "SELECT Main1.srcIP, Main1.destIP, Main2.srcIP, Main2.destIP, Main2.ts FROM Main1 [RANGE 3 minutes, WA ts], "
        "Main2 [RANGE 2 minutes, WA ts] WHERE Main1.srcIP = Main2.destIP"
    )
    assert join.near == Band(-2 * MINUTE, 3 * MINUTE)  # Main2.ts - 3 <= Main1.ts <= Main2.ts + 2


def test_q7_2_a_window_over_the_time_of_one_of_them() -> None:
    plan = bind(
        "SELECT count(*) [RANGE 1 minute, SLIDE 1 minute, WA M1.ts] FROM M1 [RANGE 9 seconds, WA ts], "
        "M2 [RANGE 9 seconds, WA ts] WHERE M1.srcIP = M2.destIP and M1.destIP = M2.srcIP and "
        "M1.srcPort = M2.destPort and M1.destPort = M2.srcPort",
        catalog(),
    )
    (join,) = [node for node in plan.walk() if isinstance(node, Join)]
    (aggregate,) = [node for node in plan.walk() if isinstance(node, WindowAggregate)]
    assert join.near == Band(-9 * SECOND, 9 * SECOND)
    assert len(join.equal) == 4
    assert aggregate.window.attribute == "M1_ts"


@pytest.mark.parametrize(
    "relations", ["A UNION B as M1, C UNION D as M2\n[RANGE TUMBLING 10 seconds, WA ts],", "M1, M2 Union C as M3 "]
)
def test_q8_3_and_q8_4_unions_are_joined(relations: str) -> None:
    right = "M3" if "M3" in relations else "M2"
    clause = "" if "TUMBLING" in relations else "[RANGE TUMBLING 10 seconds, WA ts]\n"
    sql = f"SELECT M1.srcIP, M1.destIP, M1.ts FROM {relations}{clause} WHERE M1.srcIP = {right}.destIP"
    (join,) = joins(sql)
    assert join.near == SameWindow(10 * SECOND)
    assert isinstance(join.right, Union)


# Which rows meet


@pytest.mark.parametrize(
    ("condition", "near"),
    [
        ("y.t BETWEEN x.t - 3 AND x.t + 5", Band(-3, 5)),
        ("x.t BETWEEN y.t - 3 AND y.t + 5", Band(-5, 3)),
        ("y.t > x.t AND y.t < x.t + 10", Band(1, 9)),
        ("x.t + 1 <= y.t AND 10 + x.t >= y.t", Band(1, 10)),
        ("y.t = x.t", Band(0, 0)),
        ("y.t - 4 = x.t + 2", Band(6, 6)),
        ("y.t - x.t BETWEEN -3 AND 5", Band(-3, 5)),
        ("x.t - y.t >= -5 AND 3 > x.t - y.t + 1", Band(-1, 5)),
        ("x.t - 1 - y.t + 4 = 0", Band(3, 3)),
        ("y.t BETWEEN x.t AND x.t + 2 * 3", Band(0, 6)),
        ("NOT (y.t < x.t - 2 OR y.t > x.t + 4)", Band(-2, 4)),
        ("abs(y.t - x.t) < 4 AND NOT NOT (y.t <= x.t)", Band(-3, 0)),
        ("4 >= abs(x.t - y.t)", Band(-4, 4)),
        ("y.t >= x.t AND y.t >= x.t + 2 AND y.t <= x.t + 9 AND y.t < x.t + 8", Band(2, 7)),
    ],
)
def test_conditions_on_the_times_are_a_band(condition: str, near: Band) -> None:
    for sql in (f"FROM x JOIN y ON x.k = y.k AND {condition}", f"FROM x, y WHERE {condition} AND y.k = x.k"):
        (join,) = joins(f"SELECT x.v {sql}")
        assert join.near == near
        assert join.equal == (("k", "k"),)
        assert join.condition is None


WINDOWS = "(SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA t] FROM x GROUP BY k)"
INSTANTS = "(SELECT t AS at, k, count(*) AS n FROM y GROUP BY t, k)"


@pytest.mark.parametrize(
    ("relations", "condition", "on", "near"),
    [
        (f"{WINDOWS} a, y b", "b.t BETWEEN a.window_start AND a.window_start + 9", ("window_end", "t"), Band(-10, -1)),
        (f"y a, {WINDOWS} b", "a.t + 3 = b.window_start", ("t", "window_end"), Band(13, 13)),
        (f"x a, {INSTANTS} b", "a.t = b.at", ("t", "window_end"), Band(1, 1)),
        (f"(SELECT at + 2 AS later, n FROM {INSTANTS}) a, x b", "a.later = b.t", ("__time", "t"), Band(1, 1)),
        (f"{WINDOWS} a, {WINDOWS} b", "a.window_start = b.window_start", ("window_end", "window_end"), Band(0, 0)),
    ],
)
def test_starts_of_windows_and_instants_are_as_near_as_their_ends(
    relations: str, condition: str, on: tuple[str, str], near: Band
) -> None:
    (join,) = joins(f"SELECT 1 AS one FROM {relations} WHERE {condition}")
    assert (join.on, join.near) == (on, near)
    assert join.condition is None


def test_a_key_of_a_longer_window_is_at_no_fixed_distance() -> None:
    with pytest.raises(QueryError, match="Nothing says how far apart"):
        joins(
            "SELECT 1 AS one FROM (SELECT w, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM x GROUP BY w) a, y b "
            "WHERE a.w = b.t"
        )


def test_a_window_on_one_side_only_is_of_that_side() -> None:
    (join,) = joins("SELECT x.v FROM x [RANGE 5, WA t], y WHERE x.k = y.k")
    assert join.near == Band(0, 5)  # x is joined for 5 after it came, y as it comes


@pytest.mark.parametrize(
    ("relations", "near"),
    [
        ("x, y [RANGE TUMBLING 5, WA t]", SameWindow(5)),
        ("x [RANGE TUMBLING 5, WA t], y [RANGE TUMBLING 5, WA t]", SameWindow(5)),
        ("x [RANGE TUMBLING 5, WA x.t, ORIGIN 6], y AS q [RANGE TUMBLING 5, WA q.t, ORIGIN 1]", SameWindow(5, 1)),
        ("x [RANGE TUMBLING 5, WA t], y, z [RANGE TUMBLING 5, WA t]", SameWindow(5)),
        ("x LEFT JOIN y ON x.k = y.k JOIN z [RANGE TUMBLING 5, WA t] ON z.k = x.k", SameWindow(5)),
    ],
)
def test_tumbling_windows_of_a_join_are_the_same(relations: str, near: SameWindow) -> None:
    made = joins(f"SELECT x.v FROM {relations}")
    assert {join.near for join in made} == {near}
    assert made[0].named_on[0] == ("x_t" if "LEFT" in relations or len(made) == 1 else "y_t")


def test_each_clause_names_the_attribute_of_its_own_stream() -> None:
    odd = catalog()
    also = replace(schema_of([("t", "bigint"), ("seq", "bigint"), ("k", "string")], "t"), attributes=("t", "seq"))
    odd.add_stream(StreamInfo("two", also, bounded(5), StreamProperties()))
    for relations, on in (
        ("two [RANGE TUMBLING 5, WA seq], x [RANGE TUMBLING 5, WA t]", ("seq", "x_t")),
        ("x [RANGE TUMBLING 5, WA t], two [RANGE TUMBLING 5, WA seq]", ("x_t", "seq")),
        ("two, x [RANGE TUMBLING 5, WA t]", ("two_t", "x_t")),
    ):
        (join,) = [n for n in bind(f"SELECT x.v FROM {relations}", odd).walk() if isinstance(n, Join)]
        assert join.named_on == on


def test_a_tumbling_window_is_not_that_of_a_sub_query() -> None:
    sql = "SELECT x.v FROM x, y [RANGE TUMBLING 5, WA t] WHERE EXISTS (SELECT 1 FROM z WHERE z.t = x.t AND z.k = x.k)"
    with pytest.raises(QueryError, match="how far apart"):
        bind(sql.replace("z.t = x.t AND ", ""), catalog())
    upper, lower = (
        joins("SELECT x.v FROM x WHERE EXISTS (SELECT 1 FROM z [RANGE TUMBLING 5, WA t] WHERE z.k = x.k)") * 2
    )
    assert upper.near == lower.near == SameWindow(5)


@pytest.mark.parametrize(
    ("sql", "near", "equal"),
    [
        ("x, y WHERE floor(x.t / 5) = floor(y.t / 5)", SameWindow(5), 0),
        ("x, y WHERE floor(y.t / 5) * 5 = floor(x.t / 5) * 5 AND x.k = y.k", SameWindow(5), 1),
        ("x JOIN y ON x.t div 5 = y.t div 5", Band(-8, 8), 1),  # from -4 to 4 it is 0
        ("x LEFT JOIN y ON x.t - x.t % 5 = y.t - y.t % 5", Band(-8, 8), 1),
        ("Main1 x, Main2 y WHERE date_trunc('minute', x.ts) = date_trunc('minute', y.ts)", SameWindow(MINUTE), 0),
        ("(SELECT t div 5 AS w, k FROM x) x JOIN (SELECT t div 5 AS w, k FROM y) y ON x.w = y.w", Band(-8, 8), 1),
        ("(SELECT floor(t / 5) AS w FROM x) x, (SELECT floor(t / 5) AS w FROM y) y WHERE x.w = y.w", SameWindow(5), 0),
    ],
)
def test_the_same_cut_of_both_times_is_a_tumbling_window(sql: str, near: object, equal: int) -> None:
    (join,) = joins(f"SELECT 1 AS one FROM {sql}")
    assert (join.near, len(join.equal)) == (near, equal)


def test_on_true_is_a_condition_like_others() -> None:
    assert [join.near for join in joins("SELECT x.v FROM x JOIN y ON TRUE WHERE x.t = y.t")] == [Band(0, 0)]


@pytest.mark.parametrize("condition", ["x.t div 5 = y.t div 6", "x.t div 5 = y.v div 5", "x.v div 5 = y.v div 5"])
def test_another_cut_is_none(condition: str) -> None:
    with pytest.raises(QueryError, match="how far apart"):
        joins(f"SELECT 1 AS one FROM x JOIN y ON {condition}")


@pytest.mark.parametrize(
    ("relations", "got", "hint"),
    [
        (
            "x JOIN y ON y.t = x.t + 1.5",
            "(y.t = (x.t + 1.5)), which is no difference in whole ticks",
            "add y.t BETWEEN",
        ),
        (
            "x LEFT JOIN y ON y.t = x.t JOIN z ON z.t = y.t",
            "y.t may be missing, after an outer join",
            "add z.t BETWEEN x",
        ),
        ("x, y, z, w WHERE x.t = y.t AND y.t = z.t AND w.t = x.t", "nothing is promised after", "add w.t BETWEEN y"),
        ("(SELECT k FROM x) x JOIN (SELECT k FROM y) y ON x.k = y.k", "no condition compares", "select the times"),
    ],
)
def test_what_could_never_be_given_up_says_why(relations: str, got: str, hint: str) -> None:
    known = catalog()
    known.add_stream(StreamInfo("w", NUMBERS, bounded(5), StreamProperties()))
    with pytest.raises(QueryError, match="how far apart") as caught:
        bind(f"SELECT 1 AS one FROM {relations}", known)
    assert got in caught.value.got
    assert hint in caught.value.hint
    assert "__" not in str(caught.value)


def test_every_stream_is_held_to_every_earlier_one() -> None:
    plan = bind("SELECT x.v FROM x [RANGE 3, WA t], y [RANGE 9, WA t], z [RANGE 2, WA t]", catalog())
    upper, lower = (node for node in plan.walk() if isinstance(node, Join))
    (select,) = [node for node in plan.walk() if isinstance(node, Select)]
    assert (lower.on, lower.near) == (("t", "t"), Band(-9, 3))
    assert (upper.on, upper.near) == (("x_t", "t"), Band(-2, 3))  # the narrower: that to y is from -2 to 9
    assert str(select.predicate) == "((y_t <= (z_t + 2)) AND (z_t <= (y_t + 9)))"


@pytest.mark.parametrize(
    ("relations", "where", "near", "rest"),
    [
        ("x [RANGE 1000, WA t], y [RANGE 1000, WA t]", "x.t = y.t", Band(0, 0), 0),
        ("x [RANGE 9, WA t], y [RANGE 5, WA t]", "y.t > x.t", Band(1, 9), 0),
        ("x [RANGE 9, WA t], y [RANGE 5, WA t]", "abs(y.t - x.t) <= 7", Band(-5, 7), 0),
        ("x [RANGE 9, WA t], y [RANGE 5, WA t]", "y.t <> x.t", Band(-5, 9), 1),
        ("x [RANGE 9, WA t] LEFT JOIN y ON y.t < x.t + 4", "true", Band(0, 3), 0),
        ("x [RANGE 9, WA t]", "EXISTS (SELECT 1 FROM y WHERE y.t < x.t + 4)", Band(0, 3), 0),
    ],
)
def test_conditions_beside_windows_narrow_the_band(relations: str, where: str, near: Band, rest: int) -> None:
    plan = bind(f"SELECT x.v FROM {relations} WHERE {where}", catalog())
    (join,) = [node for node in plan.walk() if isinstance(node, Join)]
    assert join.near == near
    assert join.condition is None
    assert join.equal == ()
    assert len([node for node in plan.walk() if isinstance(node, Select) and "<>" in node.label]) == rest


def test_streams_that_have_no_window_beside_others_are_joined_as_they_come() -> None:
    for relations in ("x [RANGE 3, WA t], y, z", "y, z, x [RANGE 3, WA t]"):
        held = [join for join in joins(f"SELECT x.v FROM {relations}") if join.near == Band(0, 0)]
        assert [join.named_on for join in held] == [("y_t", "z_t")]
    upper, lower = joins("SELECT x.v FROM y JOIN z ON z.t BETWEEN y.t AND y.t + 7, x [RANGE 3, WA t]")
    assert (lower.near, upper.near) == (Band(0, 7), Band(-3, 0))


def test_a_stream_that_may_be_missing_holds_nothing_where_it_is() -> None:
    plan = bind(
        "SELECT x.v FROM x [RANGE 3, WA t] LEFT JOIN y [RANGE 9, WA t] ON x.k = y.k "
        "JOIN z [RANGE 1, WA t] ON z.k = x.k",
        catalog(),
    )
    upper, _ = (node for node in plan.walk() if isinstance(node, Join))
    (select,) = [node for node in plan.walk() if isinstance(node, Select)]
    assert (upper.on, upper.near) == (("x_t", "t"), Band(-1, 3))
    assert str(select.predicate) == "((y_t IS NULL) OR ((y_t <= (z_t + 1)) AND (z_t <= (y_t + 9))))"


def test_after_the_latest_rows_streams_are_held_to_the_later_of_the_times() -> None:
    upper, _, lower = joins(
        "SELECT x.v FROM x [RANGE 3, WA t], y [RANGE 9, WA t], x AS q [ROWS 2], z [RANGE 2, WA t] WHERE x.k = y.k"
    )
    assert lower.near == Band(-9, 3)
    assert (upper.left.schema.time, upper.near) == (upper.on[0], Band(-2, 3))


def test_what_is_about_one_stream_is_asked_before_it_is_joined() -> None:
    (join,) = joins("SELECT x.v FROM x, y WHERE x.t = y.t AND x.v > 3 AND y.v > 4 AND x.v > y.v")
    assert isinstance(join.left, Select)
    assert isinstance(join.right, Select)
    assert join.left.label == "Select (v > 3)"


def test_an_outer_join_keeps_its_conditions_to_itself() -> None:
    plan = bind("SELECT * FROM x LEFT JOIN y ON x.t = y.t AND x.v > 3 AND y.v > 4 WHERE y.k IS NULL", catalog())
    assert isinstance(plan, Select)
    assert isinstance(plan.input, Join)
    assert str(plan.input.condition) == "((x_v > 3) AND (y_v > 4))"


def test_sides_of_different_types_are_brought_to_one() -> None:
    (join,) = joins("SELECT x.k FROM x JOIN y ON x.t = y.t AND x.v = y.w")
    assert [str(side.schema[name].type) for side, name in zip(join.inputs, join.equal[0], strict=True)] == [
        "bigint"
    ] * 2


def test_three_streams_one_after_the_other() -> None:
    upper, lower = joins(
        "SELECT x.v, z.v FROM x JOIN y USING (k) JOIN z ON z.t = y.t AND z.k = x.k WHERE y.t >= x.t AND y.t < x.t + 5"
    )
    assert (lower.near, upper.near) == (Band(0, 4), Band(0, 0))
    assert upper.on == ("y_t", "t")


# Names


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT x.v FROM x JOIN y ON x.t = y.t", ["v"]),
        ("SELECT x.v, y.v FROM x JOIN y ON x.t = y.t", ["x_v", "y_v"]),
        ("SELECT x.v AS a, y.v AS b FROM x JOIN y ON x.t = y.t", ["a", "b"]),
        ("SELECT * FROM x JOIN y ON x.t = y.t", ["x_t", "x_k", "x_v", "x_w", "y_t", "y_k", "y_v", "y_w"]),
        ("SELECT x.* FROM x JOIN y ON x.t = y.t", ["t", "k", "v", "w"]),
        ("SELECT X.V, b.k FROM x JOIN y AS b ON x.t = b.t", ["v", "k"]),
        ("SELECT * FROM x LEFT SEMI JOIN y ON x.t = y.t", ["t", "k", "v", "w"]),
        ("SELECT t, v FROM x LEFT ANTI JOIN y ON x.t = y.t AND upper(x.k) = y.k", ["t", "v"]),
        ("SELECT a.t, b.t FROM x a JOIN x b ON a.t = b.t", ["a_t", "b_t"]),
        ("SELECT k, x.v FROM x JOIN y USING (k) WHERE x.t = y.t", ["k", "v"]),
        ("SELECT * FROM x JOIN y USING (k) WHERE x.t = y.t", ["x_t", "k", "x_v", "x_w", "y_t", "y_v", "y_w"]),
        ("SELECT y.k FROM x JOIN y USING (k) WHERE x.t = y.t AND k > 'a'", ["k"]),
        ("SELECT k FROM x RIGHT JOIN y USING (t, k)", ["k"]),
    ],
)
def test_columns_are_called_after_what_they_are_of_where_they_must_be(sql: str, names: list[str]) -> None:
    assert visible(bind(sql, catalog())) == names


# What is refused

FAR = 2**60 + 1
"""A tick more than a RANGE may be."""


@pytest.mark.parametrize(
    ("sql", "what", "at", "hint"),
    [
        ("SELECT x.v FROM x JOIN y ON x.k = y.k", "how far apart", "y ON", "add y.t BETWEEN x.t - 100 AND x.t + 100"),
        ("SELECT x.v FROM x JOIN y ON", "Nothing stands after ON", "y ON", "which rows meet"),
        ("SELECT x.v FROM x JOIN y ON WHERE x.t = y.t", "Nothing stands after ON", "y ON", "leave ON out"),
        ("SELECT x.v FROM x, y WHERE x.k = y.k", "how far apart", "y WHERE", "windows after the streams"),
        ("SELECT x.v FROM x LEFT JOIN y ON y.t > x.t", "how far apart", "y ON", "BETWEEN"),
        ("SELECT v FROM x JOIN y ON x.t = y.t", "The name means several columns", "v FROM", "write x.v or y.v"),
        ("SELECT x.q FROM x JOIN y ON x.t = y.t", "Unknown column", "x.q", ""),
        ("SELECT z.v FROM x JOIN y ON x.t = y.t", "Unknown stream", "z.v", "x"),
        ("SELECT x.v FROM x JOIN y ON x.t = y.t AND x.k = y.v", "These types cannot be compared", "x.k = y", "CAST"),
        ("SELECT x.v FROM x JOIN y ON x.t = y.t AND x.v", "A condition must be boolean", "x.v", ""),
        ("SELECT x.v FROM x NATURAL JOIN y", "NATURAL joins are not supported", "y", "USING"),
        ("SELECT x.v FROM x JOIN y USING (q)", "USING needs a column", "q)", "ON"),
        ("SELECT x.v FROM x JOIN y ON x.t = z.t JOIN z ON z.t = y.t", "joined later", "x.t = z", "join that one first"),
        ("SELECT x.v FROM x JOIN y ON y.t > x.t + 3 AND y.t < x.t", "cannot hold together", "y ON", ""),
        (f"SELECT x.v FROM x JOIN y ON y.t BETWEEN x.t - {FAR} AND x.t", "too far apart", "y ON", f"by {FAR - 1} at"),
        (f"SELECT x.v FROM x JOIN y ON abs(x.t - y.t) <= {2**63 - 1}", "too far apart", "y ON", f"by {FAR - 1} at"),
        (f"SELECT v FROM x WHERE t - {FAR} IN (SELECT t FROM y)", "too far apart", "t -", f"by {FAR - 1} at"),
        (
            "SELECT x.v FROM x [RANGE 3, WA t], y [RANGE 3, WA t] WHERE x.t = y.t + 10",
            "cannot hold together",
            "y [RANGE",
            "windows",
        ),
        ("SELECT x.v FROM x [RANGE 3, WA t], y, z WHERE z.t > y.t", "cannot hold together", "z WHERE", "windows"),
        (
            "SELECT x.v FROM x [RANGE TUMBLING 3, WA t], y [RANGE TUMBLING 5, WA t]",
            "tumbling windows of a join differ",
            "RANGE TUMBLING 3",
            "write it once, after the last",
        ),
        (
            "SELECT x.v FROM x [RANGE TUMBLING 3, WA t, ORIGIN 1], y [RANGE TUMBLING 3, WA t]",
            "tumbling windows of a join differ",
            "ORIGIN 1",
            "give all streams the same",
        ),
        (
            "SELECT x.v FROM x [RANGE TUMBLING 3, WA t], y [RANGE TUMBLING 3, WA t, ORIGIN 1]",
            "tumbling windows of a join differ",
            "[RANGE TUMBLING 3, WA t], y",
            "give all streams the same",
        ),
        (
            "SELECT x.v FROM x [RANGE 7, WA t], y [RANGE TUMBLING 3, WA t]",
            "are of one kind",
            "RANGE 7",
            "leave this one out",
        ),
        (
            "SELECT x.v FROM x [RANGE TUMBLING 3, WA t], y [RANGE 7, WA t]",
            "are of one kind",
            "[RANGE TUMBLING",
            "after y too",
        ),
        (
            "SELECT x.v FROM x [RANGE TUMBLING 3, WA t], y WHERE x.k = y.k",
            "stands after the last stream",
            "[RANGE TUMBLING",
            "write it once, after y",
        ),
        ("SELECT x.v FROM x, Main1 [RANGE TUMBLING 5 minutes, WA ts]", "attribute does not exist", "WA ts", "t, k"),
        ("SELECT x.v FROM x JOIN Main1 ON x.t = Main1.ts", "These types cannot be compared", "x.t = M", "CAST"),
        ("SELECT x.v FROM x [RANGE 5, SLIDE 2, WA t], y WHERE x.k = y.k", "SLIDE has no meaning", "SLIDE", "leave it"),
        ("SELECT x.v FROM x [RANGE 5, WA v], y WHERE x.k = y.k", "does not progress", "WA v", ""),
        ("SELECT y.v FROM x LEFT SEMI JOIN y ON x.t = y.t", "Unknown stream", "y.v", ""),
        ("SELECT v FROM x JOIN x ON x.t = x.t", "Two relations have the same name", "x ON", "write x AS"),
        ("SELECT x.q FROM x JOIN y ON x.t = y.t", "Unknown column", "x.q", "known: t, k, v, w"),
        (
            "SELECT x.v FROM x [RANGE 3 rows, WA t], y WHERE x.k = y.k",
            "is that of the second stream",
            "RANGE",
            "leave out",
        ),
        ("SELECT x.v FROM x FULL JOIN y USING (t)", "where either may be missing", "t)", "coalesce"),
        ("SELECT count(*) FROM x JOIN y ON x.t = y.t", "needs a window", "count", "WA x.t] after it"),
        (
            "SELECT count(*) [RANGE TUMBLING 5, WA y.t] FROM x LEFT JOIN y ON x.t = y.t",
            "does not progress",
            "WA",
            "x.t",
        ),
        ("SELECT v FROM x WHERE v = (SELECT v FROM y)", "cannot stand here", "v FROM y)", "EXISTS and IN"),
    ],
)
def test_what_is_refused_says_where_and_what_to_write(sql: str, what: str, at: str, hint: str) -> None:
    with pytest.raises(QueryError, match=what) as caught:
        bind(sql, catalog())
    assert hint in caught.value.hint
    assert sql[caught.value.column - 1 :].startswith(at)


def test_a_band_is_no_longer_than_a_range_may_be() -> None:
    """99 years, or 2^60."""
    most = longest(Domain.INTEGER)
    (join,) = joins(f"SELECT x.v FROM x JOIN y ON y.t BETWEEN x.t - {most} AND x.t + {most}")
    assert join.near == Band(-most, most)
    sql = "SELECT a.ts FROM Main1 a JOIN Main1 b ON b.ts BETWEEN a.ts AND a.ts + INTERVAL {} DAYS"
    assert joins(sql.format(36_159))
    with pytest.raises(QueryError, match="too far apart") as caught:
        bind(sql.format(36_160), catalog())
    assert (caught.value.got, "by 867816 hours" in caught.value.hint) == ("a difference of 867840 hours", True)


def test_what_using_names_is_of_the_side_that_is_never_missing() -> None:
    for kind, side in (("", "x_k"), ("LEFT ", "x_k"), ("RIGHT ", "y_k")):
        plan = bind(f"SELECT k FROM x {kind}JOIN y USING (t, k)", catalog())
        assert isinstance(plan, Project)
        assert str(dict(plan.columns)["k"]) == side
    upper, lower = joins("SELECT k, z.v FROM x JOIN y USING (k) JOIN z USING (k) WHERE x.t = y.t AND z.t = y.t")
    assert (upper.equal, lower.equal) == ((("x_k", "k"),), (("k", "k"),))


# Sub-queries in WHERE


def test_exists_and_in_are_joins_that_keep_the_left() -> None:
    near = "y.t BETWEEN x.t - 3 AND x.t"
    kinds = {
        f"EXISTS (SELECT 1 FROM y WHERE y.k = x.k AND {near})": "semi",
        f"NOT EXISTS (SELECT * FROM y WHERE y.k = x.k AND {near})": "anti",
        f"x.k IN (SELECT k FROM y WHERE {near})": "semi",
    }
    for condition, kind in kinds.items():
        (join,) = joins(f"SELECT v FROM x WHERE v > 1 AND {condition}")
        assert (join.kind, join.near, join.equal) == (kind, Band(-3, 0), (("k", "k"),))
        assert isinstance(join.left, Select)


def test_not_in_minds_nulls() -> None:
    (join,) = joins("SELECT v FROM x WHERE x.k NOT IN (SELECT k FROM y WHERE y.t = x.t)")
    assert join.equal == ()
    assert str(join.condition) == "(((x_k = y_k) OR (x_k IS NULL)) OR (y_k IS NULL))"


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ("k IN (SELECT k FROM y)", "how far apart"),
        ("k IN (SELECT k, v FROM y WHERE y.t = x.t)", "one column"),
        ("k IN (SELECT k FROM y WHERE y.t = x.t GROUP BY k)", "nothing else"),
        ("v > 1 OR EXISTS (SELECT 1 FROM y WHERE y.t = x.t)", "cannot stand here"),
        ("EXISTS (SELECT 1 FROM q WHERE q.t = x.t)", "Unknown stream"),
    ],
)
def test_sub_queries_that_are_no_joins_are_refused(condition: str, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        bind(f"SELECT v FROM x WHERE {condition}", catalog())


def test_a_star_over_a_join_leaves_nothing_out_without_a_word() -> None:
    odd = Catalog()
    schema = replace(NUMBERS, unusable=(("tags", "map<string, string>"),))
    for name, each in (("x", NUMBERS), ("y", schema)):
        odd.add_stream(StreamInfo(name, each, bounded(5), StreamProperties()))
    with pytest.raises(QueryError, match="types that queries cannot use") as caught:
        bind("SELECT * FROM x JOIN y ON x.t = y.t", odd)
    assert "tags" in caught.value.got


@pytest.mark.parametrize(
    "near",
    [
        "Main2.ts - Main1.ts BETWEEN - INTERVAL 1 MINUTE AND INTERVAL 2 MINUTES",
        "INTERVAL 2 MINUTES >= (Main2.ts - Main1.ts) AND Main1.ts - Main2.ts <= INTERVAL 60 SECONDS",
    ],
)
def test_the_difference_of_two_timestamps_is_compared_with_an_interval(near: str) -> None:
    (join,) = joins(f"SELECT Main1.srcIP FROM Main1 JOIN Main2 ON {near}")
    assert join.near == Band(-MINUTE, 2 * MINUTE)


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("x.*, y.v", ["t", "k", "x_v", "w", "y_v"]),
        ("x.*, y.*", ["x_t", "x_k", "x_v", "x_w", "y_t", "y_k", "y_v", "y_w"]),
        ("y.v + 1 AS v2, x.*", ["v2", "t", "k", "v", "w"]),
    ],
)
def test_stars_of_relations_are_told_apart(items: str, names: list[str]) -> None:
    assert visible(bind(f"SELECT {items} FROM x JOIN y ON x.t = y.t", catalog())) == names


def test_a_column_that_a_star_has_already_is_refused_at_its_place() -> None:
    with pytest.raises(QueryError, match="same name") as caught:
        bind("SELECT *, y.v FROM x JOIN y ON x.t = y.t", catalog())
    assert (caught.value.line, caught.value.column, caught.value.got) == (1, 11, "y.v")


def test_a_time_is_never_null_so_not_in_may_ask_for_it() -> None:
    (join,) = joins("SELECT v FROM x WHERE x.t NOT IN (SELECT t FROM y WHERE y.k = x.k)")
    assert (join.kind, join.near, join.equal) == ("anti", Band(0, 0), (("k", "k"),))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, count(*) FROM (SELECT x.k, y.v FROM x JOIN y ON x.t = y.t) AS p GROUP BY k",
        "SELECT x.k FROM x FULL JOIN y ON x.t = y.t JOIN z ON z.k = x.k",
        "SELECT count(*) [RANGE 5, SLIDE 5, WA a] FROM (SELECT x.t % 9 AS a FROM x JOIN y ON x.t = y.t) AS p",
    ],
)
def test_hints_name_no_column_that_cannot_be_written(sql: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(sql, catalog())
    assert caught.value.hint
    assert "__" not in caught.value.hint
    assert "none" not in caught.value.hint
