"""Patterns in-process against the oracle: any context, arrival, progress and cuts give the same TDB."""

from __future__ import annotations

import contextlib
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.elements import Punctuation
from penstock.operators.patterns.seq import SeqOperator
from penstock.plan import planner
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.runtime.joins import JoinCase, run
from tests.runtime.patterns import MODES, inputs_of, pattern_cases

cases = pattern_cases()
AS_THEY_ARE = mock.patch.object(planner, "recent_as_joins", lambda plan: plan)
"""Patterns that could be joins are none."""


@pytest.mark.parametrize("mode", MODES)
@given(data=st.data(), form=st.sampled_from(["rows", "arrow"]), as_joins=st.booleans())
def test_the_tdb_is_the_oracles(mode: str, data: st.DataObject, form: str, as_joins: bool) -> None:
    case = data.draw(pattern_cases([mode]))
    with contextlib.nullcontext() if as_joins else AS_THEY_ARE:
        execution = case.execution()
    outputs = run(execution, inputs_of(case, form))
    expected = case.outcome()
    assert_same(expected.result, tdb_of(outputs))
    assert_sound(outputs)
    assert execution.counts.failed == expected.dead.total()


@given(case=cases, at=st.integers(0, 10))
def test_a_restored_pattern_goes_on_as_if_nothing_had_happened(case: JoinCase, at: int) -> None:
    inputs = inputs_of(case)
    with AS_THEY_ARE:
        first, second, third = case.execution(), case.execution(), case.execution()
    outputs = [item for name, batch in inputs[:at] for item in first.feed(name, batch)]
    second.graph.restore(first.graph.snapshot())
    outputs += run(second, inputs[at:])
    whole = run(third, inputs)
    assert_same(tdb_of(whole), tdb_of(outputs))
    assert [p for p in outputs if isinstance(p, Punctuation)] == [p for p in whole if isinstance(p, Punctuation)]


@given(case=cases)
def test_nothing_is_kept_when_both_streams_have_ended(case: JoinCase) -> None:
    with AS_THEY_ARE:
        execution = case.execution()
    run(execution, inputs_of(case))
    (pattern,) = [node.operator for node in execution.graph.nodes if isinstance(node.operator, SeqOperator)]
    kept = [key for key in pattern.pages.keys() if key.startswith("slot")]  # noqa: SIM118
    assert not kept or "UNLIMITED" in case.sql or " OVER" not in case.sql
