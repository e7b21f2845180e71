"""As-of joins in-process against the oracle: any form, arrival, progress and cuts give the same TDB."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.elements import Punctuation
from penstock.operators.joins import asof_join, latest_keeper
from penstock.operators.joins.asof_join import AsOfJoin
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.runtime.joins import JoinCase, join_cases, run

ABOVE = [
    "SELECT * FROM A a {}",
    "SELECT a.k, b.v + a.v AS w, a.ts AS t FROM A a {}",
    "SELECT a.k AS k, count(*) AS n FROM A a {} GROUP BY a.k, a.ts",
    "SELECT count(*) AS n, max(b.v) AS m [RANGE 4, SLIDE 2, WA a.ts] FROM A a {}",
    "SELECT count(*) AS n, max(t) AS m [RANGE 4, SLIDE 2, WA t] FROM (SELECT greatest(b.ts, a.ts) AS t FROM A a {}) x",
]


@st.composite
def queries(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["ASOF JOIN", "ASOF LEFT JOIN"]))
    rows = draw(st.sampled_from(["", " [ROWS 2]", " [RANGE 3 ROWS, WA ts]"]))
    equal = draw(st.sampled_from(["", "a.k = b.k AND ", "b.v = a.v AND ", "a.d = b.d AND ", "upper(a.k) = b.k AND ",
                                  "a.k = b.k AND a.v = b.v AND "]))  # fmt: skip
    near = draw(st.sampled_from(["a.ts >= b.ts", "a.ts > b.ts", "b.ts + 2 <= a.ts", "a.ts + 3 > b.ts",
                                 "b.ts BETWEEN a.ts - 4 AND a.ts", "a.ts >= b.ts AND a.ts - b.ts < 6"]))  # fmt: skip
    where = draw(st.sampled_from(["", "", " WHERE a.v > 0", " WHERE b.v > 0", " WHERE 6 / b.v > 1"]))
    above = draw(st.sampled_from(ABOVE))
    if where and "GROUP BY" in above:
        where = ""
    return above.format(f"{kind} B b{rows} ON {equal}{near}{where}")


@st.composite
def windowed(draw: st.DrawFn) -> str:
    """As the papers write it."""
    rows, above = draw(st.integers(1, 4)), draw(st.sampled_from(ABOVE[:2]))
    partition = draw(st.sampled_from(["", ", PA k", ", PA (k, v)"]))
    equal = "b.k = a.k AND b.v = a.v" if "v" in partition else "b.k = a.k"
    more = draw(st.sampled_from(["", " AND b.v > a.v", " AND b.d IS NOT NULL", " AND 6 / b.v > 1"]))
    if draw(st.booleans()):
        return above.format(f", B b [ROWS {rows}{partition}, WA ts] WHERE {equal}{more}")
    join = draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
    return above.format(f"{join} B b [RANGE {rows} ROWS{partition}] ON {equal}{more}")


cases = join_cases(queries() | windowed())


@pytest.mark.parametrize("form", ["rows", "arrow"])
@given(case=cases, few=st.sampled_from([0, 3, 100]), melting=st.sampled_from([1, 64]), slack=st.sampled_from([0, 0.5]))
def test_the_tdb_is_the_oracles(form: str, case: JoinCase, few: int, melting: int, slack: float) -> None:
    with (
        mock.patch.multiple(latest_keeper, MELTING=melting, SLACK=slack),
        mock.patch.object(asof_join, "FEW_ROWS", few),
    ):
        execution = case.execution()
        outputs = run(execution, case.inputs(form))
    expected = case.outcome()
    assert_same(expected.result, tdb_of(outputs))
    assert_sound(outputs)
    assert execution.counts.failed == expected.dead.total()


@given(case=cases, at=st.integers(0, 10), few=st.sampled_from([0, 100]))
def test_a_restored_join_goes_on_as_if_nothing_had_happened(case: JoinCase, at: int, few: int) -> None:
    with mock.patch.object(asof_join, "FEW_ROWS", few):
        inputs = case.inputs()
        first, second = case.execution(), case.execution()
        outputs = [item for name, batch in inputs[:at] for item in first.feed(name, batch)]
        second.graph.restore(first.graph.snapshot())
        outputs += run(second, inputs[at:])
        whole = run(case.execution(), inputs)
    assert_same(tdb_of(whole), tdb_of(outputs))
    assert [p for p in outputs if isinstance(p, Punctuation)] == [p for p in whole if isinstance(p, Punctuation)]


@given(case=cases)
def test_nothing_is_kept_when_both_streams_have_ended(case: JoinCase) -> None:
    execution = case.execution()
    run(execution, case.inputs())
    (join,) = [node.operator for node in execution.graph.nodes if isinstance(node.operator, AsOfJoin)]
    assert not [key for key in join.pages.keys() if key.startswith(("run", "loose", "wait"))]  # noqa: SIM118
