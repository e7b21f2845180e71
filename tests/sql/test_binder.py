"""From SQL to plans: the names and types of results, and what is promised of them."""

from __future__ import annotations

import pytest

from penstock.errors import QueryError
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.model.tdb import TDB
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.nodes import Node, WindowAggregate
from penstock.plan.windows import SlidingWindow
from penstock.reference import evaluate
from penstock.sql.binder import bind

NUMS = schema_of([("t", "bigint"), ("k", "string"), ("v", "int"), ("wid", "int"), ("c", "decimal(38,10)")], "t")


def plan(sql: str) -> Node:
    catalog = Catalog()
    catalog.add_stream(StreamInfo("nums", NUMS, ordered(), StreamProperties(ordered=True)))
    return bind(sql, catalog)


def names(node: Node) -> list[str]:
    return [f.name for f in node.schema.visible]


def aggregate_of(node: Node) -> WindowAggregate:
    return next(n for n in node.walk() if isinstance(n, WindowAggregate))


INNER = "(SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA t] FROM nums GROUP BY k) i"


def test_group_by_window_end_is_a_window_of_one_tick() -> None:
    # wid, window_start and window_end are the outer window's, as always; the grouped column keeps its value beside them
    node = plan(f"SELECT window_end, max(n) AS m FROM {INNER} GROUP BY window_end")
    assert names(node) == ["wid", "window_start", "window_end", "group_window_end", "m"]
    outer = aggregate_of(node)
    assert isinstance(outer.window, SlidingWindow)
    assert (outer.window.attribute, outer.window.range, outer.window.slide) == ("window_end", 1, 1)
    # counts: a 2, b 1 in windows that end at 5; 10 holds them too
    rows = [("nums", (t, k, 1, 0, None)) for t, k in ((1, "a"), (2, "a"), (3, "b"))]
    assert evaluate(node, rows) == TDB([((5, 5, 6, 5, 2), 6, 7), ((10, 10, 11, 10, 2), 11, 12)])


def test_a_grouped_window_column_can_be_renamed_filtered_and_left_out() -> None:
    node = plan(f"SELECT window_end AS at, max(n) AS m FROM {INNER} GROUP BY window_end HAVING window_end > 7")
    assert names(node) == ["wid", "window_start", "window_end", "at", "m"]
    rows = [("nums", (1, "a", 1, 0, None))]
    assert evaluate(node, rows) == TDB([((10, 10, 11, 10, 1), 11, 12)])
    assert names(plan(f"SELECT max(n) AS m FROM {INNER} GROUP BY window_end")) == [
        "wid",
        "window_start",
        "window_end",
        "m",
    ]


def test_a_column_named_like_a_windows_can_be_grouped() -> None:
    node = plan("SELECT wid, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM nums GROUP BY wid")
    assert names(node) == ["wid", "window_start", "window_end", "group_wid", "n"]
    assert evaluate(node, [("nums", (1, "a", 1, 77, None))]) == TDB([((0, 0, 10, 77, 1), 10, 20)])
    partitioned = plan("SELECT count(*) AS n [RANGE 2 rows, SLIDE 1 row, WA row-num, PA wid] FROM nums")
    assert evaluate(partitioned, [("nums", (1, "a", 1, 77, None))]).size == 2


@pytest.mark.parametrize(
    ("clause", "is_ordered", "has_key"),
    [
        ("[RANGE 10, SLIDE 5, WA t]", True, True),
        ("[RANGE ALL, SLIDE 5, WA t]", True, True),
        ("[RANGE 4 rows, SLIDE 2 rows, WA row-num]", True, True),
        ("[RANGE 4 rows, SLIDE 2 rows, WA row-num, PA k]", False, True),
        ("[RANGE 8, RATTR t, SLIDE 1 row, SATTR row-num]", True, False),
        ("[RANGE 8, RATTR t, SLIDE 2 rows, SATTR rank(t)]", True, False),
    ],
)
def test_what_is_promised_of_windows(clause: str, is_ordered: bool, has_key: bool) -> None:
    properties = aggregate_of(plan(f"SELECT k, count(*) AS n {clause} FROM nums GROUP BY k")).properties
    assert properties.ordered is is_ordered
    assert properties.max_disorder == (0 if is_ordered else None)
    assert properties.key == (frozenset({"wid", "k"}) if has_key else None)


@pytest.mark.parametrize(
    ("type_", "total", "mean"),
    [  # as Spark 4 has them
        ("decimal(38,10)", "decimal(38,10)", "decimal(38,14)"),
        ("decimal(35,0)", "decimal(38,0)", "decimal(38,4)"),
        ("decimal(30,10)", "decimal(38,10)", "decimal(34,14)"),
        ("decimal(38,38)", "decimal(38,38)", "decimal(38,38)"),
        ("decimal(36,30)", "decimal(38,30)", "decimal(38,34)"),
        ("decimal(8,2)", "decimal(18,2)", "decimal(12,6)"),
        ("int", "bigint", "double"),
        ("float", "double", "double"),
    ],
)
def test_types_of_sums_and_averages(type_: str, total: str, mean: str) -> None:
    catalog = Catalog()
    schema = schema_of([("t", "bigint"), ("x", type_)], "t")
    catalog.add_stream(StreamInfo("s", schema, ordered(), StreamProperties()))
    node = bind("SELECT sum(x) AS s, avg(x) AS a [RANGE 9, SLIDE 9, WA t] FROM s", catalog)
    assert (str(node.schema["s"].type), str(node.schema["a"].type)) == (total, mean)


def test_names_given_twice_are_refused() -> None:
    for twice in ("SELECT k AS a, v AS A FROM nums", "SELECT v, v FROM nums", "SELECT *, v FROM nums"):
        with pytest.raises(QueryError, match="Two columns of the result have the same name"):
            plan(twice)


@pytest.mark.parametrize("item", ["v AS wid", "v AS Window_End", "wid + 1 AS wid"])
def test_the_names_of_the_window_are_taken(item: str) -> None:
    with pytest.raises(QueryError) as refused:
        plan(f"SELECT {item}, count(*) AS n [RANGE 9, SLIDE 9, WA t] FROM nums GROUP BY v")
    assert refused.value.what == "Two columns of the result have the same name."
    assert (refused.value.line, refused.value.column) == (1, 8)


def test_a_name_that_the_query_gives_is_kept_and_a_made_one_gives_way() -> None:
    node = plan("SELECT count(v), count(v) + 0, v AS count_v, count(v) [RANGE 9, SLIDE 9, WA t] FROM nums GROUP BY v")
    assert names(node)[3:] == ["count_v_2", "col1", "count_v", "count_v_3"]
    assert names(plan("SELECT v + 1, k AS col0, v FROM nums")) == ["col0_2", "col0", "v"]


def test_time_is_carried_when_it_is_not_selected() -> None:
    node = plan("SELECT k FROM nums")
    assert names(node) == ["k"]
    assert node.schema.time == "__time"
