"""Joins in-process against the oracle: any kind, conditions, arrival, progress and cuts give the same TDB."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import QueryError
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.progress import ordered, punctuated
from penstock.operators.joins import finding, oa_join
from penstock.operators.joins.oa_join import OAJoin
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.runtime.joins import SCHEMA, JoinCase, join_cases, run


@pytest.mark.parametrize("form", ["rows", "arrow"])
@given(case=join_cases(), most=st.sampled_from([1, 3, 1000]), few=st.sampled_from([0, 3, 100]))
def test_the_tdb_is_the_oracles(form: str, case: JoinCase, most: int, few: int) -> None:
    with mock.patch.multiple(finding, MOST=most), mock.patch.object(oa_join, "FEW_ROWS", few):
        execution = case.execution()
        outputs = run(execution, case.inputs(form))
    expected = case.outcome()
    assert_same(expected.result, tdb_of(outputs))
    assert_sound(outputs)
    assert execution.counts.failed == expected.dead.total()


@given(case=join_cases(), at=st.integers(0, 10))
def test_a_restored_join_goes_on_as_if_nothing_had_happened(case: JoinCase, at: int) -> None:
    inputs = case.inputs()
    first, second = case.execution(), case.execution()
    outputs = [item for name, batch in inputs[:at] for item in first.feed(name, batch)]
    second.graph.restore(first.graph.snapshot())
    outputs += run(second, inputs[at:])
    whole = run(case.execution(), inputs)
    assert_same(tdb_of(whole), tdb_of(outputs))
    assert [p for p in outputs if isinstance(p, Punctuation)] == [p for p in whole if isinstance(p, Punctuation)]


@given(case=join_cases())
def test_nothing_is_kept_when_both_streams_have_ended(case: JoinCase) -> None:
    execution = case.execution()
    run(execution, case.inputs())
    (join,) = [node.operator for node in execution.graph.nodes if isinstance(node.operator, OAJoin)]
    assert not [key for key in join.pages.keys() if key.startswith(("run", "loose"))]  # noqa: SIM118


# Joint punctuation (thesis, Fig. 7-5): Q7-1 counts pairs per pair of times, which are no more than 2 apart

Q7_1 = (
    "SELECT A.ts AS t0, B.ts AS t1, count(*) AS n FROM A JOIN B ON A.k = B.k AND B.ts BETWEEN A.ts - 2 AND A.ts + 2 "
    "GROUP BY A.ts, B.ts"
)


def packet(time: int, kind: str = "a") -> Row:
    return (time, kind, 1, None, None)


def test_joint_punctuation_puts_a_group_out_before_its_time_has_passed_everywhere() -> None:
    """Bounds come as p1: (1, *), p2: (*, 1), p3: (2, *), p4: (*, 2), p5: (3, *).

    With p2 no pair is below 1 and 1 at once, so the group (0, 0) is out, and with p3 none below 2 and 1, so (1, 0) is.
    That no pair is below 1 on the second time by itself is known with p5 only, and would have put them out then.
    """
    how = punctuated("k = 'c'", whole_stream=True)
    case = JoinCase(Q7_1, (how, how), [])
    execution = case.execution()
    pairs = JoinCase("SELECT A.ts AS t0, B.ts AS t1 FROM A JOIN B ON A.k = B.k AND B.ts BETWEEN A.ts - 2 AND A.ts + 2",
                     (how, how), []).execution()  # fmt: skip
    told: list[tuple[set[Row], int]] = []
    promised = Frontier()
    steps = [("A", 0), ("A", 1), ("B", 0), ("A", -1), ("B", -1), ("A", -2), ("B", -2), ("A", -3)]
    for name, time in steps:
        row = packet(time) if time >= 0 else packet(-time, "c")
        out = execution.feed(name, Batch(SCHEMA, [row]))
        for each in pairs.feed(name, Batch(SCHEMA, [row])):
            if isinstance(each, Punctuation):
                promised.add(each)
        told.append(({r[:3] for b in out if isinstance(b, Batch) for r in b.rows}, promised.bound("t1")))
    groups = [found for found, _ in told]
    assert groups == [set(), set(), set(), set(), {(0, 0, 1)}, {(1, 0, 1)}, set(), set()]
    assert told[5][1] < 1
    assert told[7][1] == 1


def test_the_lesser_time_is_promised_as_far_as_both_are() -> None:
    """Rows meet that are no more than 2 apart: after bounds 5 and 9, a pair may be of 5 and 3; after 5 and 5 too."""
    how = punctuated("k = 'c'", whole_stream=True)
    sql = "SELECT least(A.ts, B.ts) AS t, A.ts AS t0, B.ts AS t1 FROM A JOIN B ON B.ts BETWEEN A.ts - 2 AND A.ts + 2"
    execution, promised, told = JoinCase(sql, (how, how), []).execution(), Frontier(), []
    for name, bound in (("A", 5), ("B", 9), ("B", 10), ("A", 20)):
        for each in execution.feed(name, Batch(SCHEMA, [packet(bound, "c")])):
            if isinstance(each, Punctuation):
                assert promised.add(each)
        told.append(promised.bound("t"))
        assert told[-1] == min(promised.bound("t0"), promised.bound("t1"))
    assert told[1:] == [3, 3, 8]


@given(case=join_cases())
def test_windows_on_the_lesser_time_close_as_soon_as_they_can(case: JoinCase) -> None:
    """A window is out once both times are promised to be past its end: as one on each of them would be."""
    near = "FROM A JOIN B ON A.k = B.k AND B.ts BETWEEN A.ts - 3 AND A.ts + 4"
    lesser = JoinCase(f"SELECT count(*) AS n {near} GROUP BY least(A.ts, B.ts)", case.progress, []).execution()
    pairs = JoinCase(f"SELECT A.ts AS a, B.ts AS b {near}", case.progress, []).execution()
    promised, out, seen = Frontier(), set[int](), list[int]()
    for name, batch in case.inputs():
        for each in pairs.feed(name, batch):
            if isinstance(each, Punctuation):
                promised.add(each)
            elif isinstance(each, Batch):
                seen += [min(row[:2]) for row in each.rows]  # type: ignore[type-var]
        for each in lesser.feed(name, batch):
            out |= {row[1] for row in each.rows} if isinstance(each, Batch) else set()  # type: ignore[misc]
        assert out == {t for t in seen if t < min(promised.bound("a"), promised.bound("b"))}


@pytest.mark.parametrize("sql", ["SELECT count(*) AS n FROM A LEFT JOIN B ON A.ts = B.ts GROUP BY least(A.ts, B.ts)"])
def test_where_a_time_may_be_missing_the_lesser_one_does_not_progress(sql: str) -> None:
    with pytest.raises(QueryError, match="needs a window"):
        JoinCase(sql, (ordered(), ordered()), []).execution()


@given(case=join_cases(st.just(Q7_1)))
def test_groups_by_both_times_are_the_oracles(case: JoinCase) -> None:
    outputs = run(case.execution(), case.inputs())
    assert_same(case.expected(), tdb_of(outputs))
    assert_sound(outputs)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT A.v FROM A JOIN B ON A.k = B.k WHERE A.k = B.k AND A.ts = B.ts",
        "SELECT A.v FROM A JOIN B ON A.v = B.v AND B.ts = A.v AND A.ts = B.ts",
        "SELECT A.v FROM A JOIN B USING (k, ts) WHERE A.k = B.k",
        "SELECT v FROM A WHERE EXISTS (SELECT 1 FROM B WHERE B.v = A.v AND B.v = A.ts AND B.ts = A.ts)",
    ],
)
@given(case=join_cases(st.just("")))
def test_a_column_may_equal_several_or_one_twice(sql: str, case: JoinCase) -> None:
    asked = JoinCase(sql, case.progress, case.batches)
    assert_same(asked.expected(), tdb_of(run(asked.execution(), asked.inputs())))


@pytest.mark.parametrize("width", [3, 2**40])
@pytest.mark.parametrize("first", [-(2**62), 2**62 - 7])
def test_times_as_far_apart_as_can_be_do_not_meet(first: int, width: int) -> None:
    """One side is at one end of time, the other at both: the differences do not fit into 64 bits."""
    near = [(first + i, "a", i, None, None) for i in range(7)]
    far = [(at + i, "a", i, None, None) for i in range(7) for at in (-(2**62), 2**62 - 7)]
    how = punctuated("k = 'c'", whole_stream=True)
    sql = f"SELECT A.v AS v, B.v AS w FROM A JOIN B ON A.k = B.k AND abs(A.ts - B.ts) <= {width}"
    case = JoinCase(sql, (how, how), [("A", near), ("B", far)])
    found = [row for o in run(case.execution(), case.inputs("arrow")) if isinstance(o, Batch) for row in o.rows]
    assert sorted(row[:2] for row in found) == [(v, w) for v in range(7) for w in range(7) if abs(v - w) <= width]
