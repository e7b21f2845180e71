"""Patterns: what they mean to the binder, and what is refused."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.errors import QueryError
from penstock.model.progress import bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.nodes import Pattern, Select
from penstock.plan.pattern_nodes import PatternKey
from penstock.sql.binder import bind

MINUTE = 60_000_000


def catalog() -> Catalog:
    made = Catalog()
    plain = schema_of([("ts", "bigint"), ("k", "string"), ("v", "int")], "ts")
    for name in "abc":
        made.add_stream(StreamInfo(name, plain, bounded(5), StreamProperties()))
    timed = schema_of([("at", "timestamp"), ("k", "string"), ("v", "bigint")], "at")
    made.add_stream(StreamInfo("timed", timed, bounded("5 seconds"), StreamProperties()))
    updated = StreamProperties(update_key=frozenset({"k"}))
    made.add_stream(StreamInfo("updated", plain, bounded(5), updated))
    return made


def pattern(text: str) -> Pattern:
    (found,) = [node for node in bind(f"SELECT * FROM {text}", catalog()).walk() if isinstance(node, Pattern)]
    return found


@pytest.mark.parametrize(
    ("text", "context", "within"),
    [
        ("SEQ(a, b)", "recent", None),
        ("seq(a, b) mode Chronicle over [10 preceding b]", "chronicle", 10),
        ("SEQ(a, b) OVER [10 FOLLOWING a] MODE CONTINUOUS", "continuous", 10),
        ("SEQ(a, b) OVER [UNLIMITED PRECEDING b] MODE CHRONICLE", "chronicle", None),
        ("SEQ(a, b) MODE CUMULATIVE WHERE b.ts <= a.ts + 7", "cumulative", 7),
        ("SEQ(a, b) OVER [10 PRECEDING b] WHERE b.ts - a.ts < 7 AND b.ts > a.ts", "recent", 6),
        ("SEQ(timed x, timed y) OVER [5 MINUTES PRECEDING y]", "recent", 5 * MINUTE),
        ("SEQ(timed x, timed y) WHERE y.at <= x.at + INTERVAL 1 MINUTE", "recent", MINUTE),
    ],
)
def test_context_and_bound(text: str, context: str, within: int | None) -> None:
    found = pattern(text)
    assert (found.context, found.within) == (context, within)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SEQ(a, b) WHERE a.k = b.k", [PatternKey(("k", "k"))]),
        ("SEQ(a, b, c) WHERE a.k = b.k AND c.k = a.k AND a.v = b.v AND b.v = c.v",
         [PatternKey(("k", "k", "k")), PatternKey(("v", "v", "v"))]),
        ("SEQ(a, b) PARTITION BY k, v", [PatternKey(("k", "k"), is_group=True), PatternKey(("v", "v"), is_group=True)]),
        ("SEQ((SELECT ts, upper(k) AS u FROM a) x, b) WHERE x.u = b.k", [PatternKey(("u", "k"))]),
    ],
)  # fmt: skip
def test_keys(text: str, keys: list[PatternKey]) -> None:
    assert list(pattern(text).keys) == keys


def test_a_condition_on_one_step_is_asked_before_and_others_of_what_was_found() -> None:
    plan = bind("SELECT x.v FROM SEQ(a x, a y) WHERE x.v > 1 AND (y.v = 2 OR y.v = 3) AND x.v < y.v", catalog())
    (found,) = [node for node in plan.walk() if isinstance(node, Pattern)]
    assert [str(step.predicate) for step in found.steps if isinstance(step, Select)] == [
        "(v > 1)", "((v = 2) OR (v = 3))",
    ]  # fmt: skip
    (asked,) = [node for node in plan.walk() if isinstance(node, Select) and isinstance(node.input, Pattern)]
    assert str(asked.predicate) == "(x_v < y_v)"


def test_a_difference_that_has_a_least_is_asked_of_what_was_found() -> None:
    plan = bind("SELECT x.v FROM SEQ(a x, a y) WHERE y.ts >= x.ts + 3", catalog())
    assert any(isinstance(node, Select) and isinstance(node.input, Pattern) for node in plan.walk())


@pytest.mark.parametrize(
    ("condition", "within", "asked"),
    [
        ("y.ts BETWEEN x.ts + 2 AND x.ts + 4", 4, True),
        ("y.ts >= x.ts + 2 AND y.ts <= x.ts + 4", 4, True),
        ("y.ts BETWEEN x.ts + 1 AND x.ts + 4", 4, False),
        ("y.ts = x.ts + 2", 2, True),
    ],
)
def test_a_longest_time_is_one_however_it_is_said(condition: str, within: int, asked: bool) -> None:
    plan = bind(f"SELECT x.v FROM SEQ(a x, a y) MODE CHRONICLE WHERE {condition}", catalog())
    (pattern,) = [node for node in plan.walk() if isinstance(node, Pattern)]
    assert pattern.within == within
    assert asked == any(isinstance(node, Select) and isinstance(node.input, Pattern) for node in plan.walk())


def test_the_step_that_did_not_come_has_the_time_until_which_it_did_not() -> None:
    seq = "SEQ(a x, NOT a y) OVER [3 FOLLOWING x]"
    plan = bind(f"SELECT x.v, y.ts AS until FROM {seq}", catalog())
    assert plan.schema.time == "until"
    assert (
        bind(f"SELECT * FROM {seq}", catalog()).schema.visible
        == bind(f"SELECT x.* FROM {seq}", catalog()).schema.visible
    )
    bind(f"SELECT count(*) AS n [RANGE TUMBLING 10, WA y.ts] FROM {seq}", catalog())
    with pytest.raises(QueryError, match="Unknown column"):
        bind(f"SELECT y.v FROM {seq}", catalog())


def test_columns_of_steps_whose_rows_are_collected_are_arrays() -> None:
    plan = bind("SELECT x.v, y.v AS w FROM SEQ(a x, a y) OVER [9 PRECEDING y] MODE CUMULATIVE", catalog())
    assert [str(field.type) for field in plan.schema.visible] == ["array<int>", "int"]


def test_a_pattern_is_the_step_of_another_and_can_be_aggregated() -> None:
    inner = "(SELECT x.k, y.ts FROM SEQ(a x, b y) WHERE x.k = y.k) AS xy"
    plan = bind(f"SELECT xy.k, count(*) AS n [RANGE TUMBLING 9, WA c.ts] FROM SEQ({inner}, c) GROUP BY xy.k", catalog())
    assert sum(isinstance(node, Pattern) for node in plan.walk()) == 2


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("SEQ(a)", "at least two steps", "SEQ(a, b)"),
        ("SEQ(a, a)", "Two steps have the same name", "a AS x"),
        ("SEQ(NOT a, b)", "begins with a step that comes", "NOT EXISTS"),
        ("SEQ(a, b) MODE LATEST", "no such context", "RECENT"),
        ("SEQ(a, b) MODE CHRONICLE", "could never be given up", "OVER [100 PRECEDING b]"),
        ("SEQ(timed x, timed y) MODE CONTINUOUS", "could never be given up", "OVER [1 HOUR PRECEDING y]"),
        ("SEQ(a, NOT b)", "until when the last step must not come", "FOLLOWING"),
        ("SEQ(a, NOT b) OVER [5 PRECEDING b]", "a time after the first", "FOLLOWING"),
        ("SEQ(a, NOT b) OVER [UNLIMITED FOLLOWING a]", "a time after the first", "FOLLOWING"),
        ("SEQ(a, b) OVER [5 PRECEDING a]", "PRECEDING the last step", "PRECEDING b"),
        ("SEQ(a, b) OVER [5 FOLLOWING b]", "FOLLOWING the first step", "FOLLOWING a"),
        ("SEQ(a, b) OVER [5 MINUTES PRECEDING b]", "does not fit the time", "without a unit"),
        ("SEQ(timed x, timed y) OVER [5 PRECEDING y]", "does not fit the time", "unit of time"),
        ("SEQ(a, b) OVER [5 BEFORE b]", "PRECEDING or FOLLOWING, and a step", "SEQ(a, b)"),
        ("SEQ(a, b) OVER (5)", "in brackets", "SEQ(a, b)"),
        ("SEQ(a, b) OVER [0.5 MINUTES PRECEDING b]", "does not fit", "without a unit"),
        ("SEQ(a, b) OVER [0.5 PRECEDING b]", "whole microseconds", "finer unit"),
        ("SEQ(a, b) OVER [0 PRECEDING b]", "cannot hold together", "later than the one before"),
        ("SEQ(a, b) MODE RECENT MODE RECENT", "given twice", ""),
        ("SEQ(a, b) AS x", "no name of its own", "AS c"),
        ("SEQ(a, timed t)", "of different types", "same kind of time"),
        ("SEQ(a, b, c) WHERE a.k = b.k", "are equal in all of them", "c."),
        ("SEQ(a, (SELECT ts, CAST(v AS bigint) AS w FROM b) x) WHERE a.v = x.w", "keys of a pattern", "CAST"),
        ("SEQ(a, b) PARTITION BY w", "a column that all steps have", "WHERE"),
        ("SEQ(a, timed t) PARTITION BY v", "of different types", ""),
        ("SEQ(a, NOT b, c) WHERE b.v > a.v", "must not come has no row", "alone"),
        ("SEQ(a, b), c WHERE a.k = b.k", "stands alone in FROM", "sub-query"),
        ("SEQ(a, b) WHERE a.v = count(*)", "An aggregate cannot stand here", "HAVING"),
        ("a x JOIN SEQ(a, b) ON TRUE", "stands alone in FROM", "sub-query"),
        ("SEQ()", "with commas between", "SEQ(a AS x"),
        ("SEQ(a b c)", "with commas between", "SEQ(a AS x"),
        ("SEQ(a UNION b, c)", "with commas between", "UNION ALL"),
        ("SEQ(a, NOT NOT b)", "with commas between", "NOT b AS y"),
        ("SEQ(updated, b)", "goes by every row", "without an update key"),
        ("SEQ(a, missing)", "Unknown stream", ""),
    ],
)
def test_what_is_refused(text: str, what: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(f"SELECT * FROM {text}", catalog())
    assert what in caught.value.what
    assert hint in caught.value.hint
    assert caught.value.line == 1
    assert caught.value.got


def test_two_columns_of_a_step_are_no_key() -> None:
    made = catalog()
    made.add_stream(
        StreamInfo(
            "d", schema_of([("ts", "bigint"), ("k", "string"), ("j", "string")], "ts"), bounded(5), StreamProperties()
        )
    )
    with pytest.raises(QueryError, match="Two columns of a step are equal") as caught:
        bind("SELECT * FROM SEQ(a, d) WHERE a.k = d.k AND a.k = d.j", made)
    assert "d.j = d.k" in caught.value.hint


def test_a_table_has_no_rows_that_follow_one_another() -> None:
    flow = pk.Flow()
    flow.stream("a", [{"ts": 1, "k": "x"}], time="ts")
    flow.table("t", [{"k": "x"}])
    with pytest.raises(QueryError, match="Rows of a table do not follow") as caught:
        flow.query("SELECT a.k FROM SEQ(a, t)")
    assert "join the table" in caught.value.hint


def test_a_window_on_another_time_than_that_until_which_nothing_came_is_told_which_to_use() -> None:
    pattern = "SEQ(a, NOT b) OVER [4 FOLLOWING a]"
    with pytest.raises(QueryError, match="does not progress") as caught:
        bind(f"SELECT count(*) AS n [RANGE 9, SLIDE 9, WA ts] FROM (SELECT a.ts FROM {pattern}) d", catalog())
    assert "the time until which nothing came: select that of the step that must not come" in caught.value.hint
    bind(f"SELECT count(*) AS n [RANGE 9, SLIDE 9, WA u] FROM (SELECT a.ts, b.ts AS u FROM {pattern}) d", catalog())
