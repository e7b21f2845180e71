"""Joins in-process against the oracle: any kind, conditions, arrival, progress and cuts give the same TDB."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.elements import Punctuation
from penstock.operators.joins import oa_join
from penstock.operators.joins.oa_join import OAJoin
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.runtime.joins import JoinCase, join_cases, run


@pytest.mark.parametrize("form", ["rows", "arrow"])
@given(case=join_cases(), most=st.sampled_from([1, 3, 1000]), few=st.sampled_from([0, 3, 100]))
def test_the_tdb_is_the_oracles(form: str, case: JoinCase, most: int, few: int) -> None:
    with mock.patch.multiple(oa_join, MOST=most, FEW_CODES=0, FEW_ROWS=few):
        outputs = run(case.execution(), case.inputs(form))
    assert_same(case.expected(), tdb_of(outputs))
    assert_sound(outputs)


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
