"""Joins of several streams as one operator: what the oracle says in the end, and what the tree says at any time."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.operators.joins import multi_join, probing
from penstock.operators.joins.multi_join import MultiJoinOperator
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.runtime.joins import run
from tests.runtime.multi_joins import ONE, TREE, MultiCase, multi_cases

tuned = {"few": st.sampled_from([0, 3, 100]), "melting": st.sampled_from([1, 64]), "stale": st.sampled_from([1, 256])}


@pytest.mark.parametrize("form", ["rows", "arrow"])
@given(case=multi_cases(), **tuned)
def test_the_tdb_is_the_oracles(form: str, case: MultiCase, few: int, melting: int, stale: int) -> None:
    with (
        mock.patch.multiple(multi_join, FEW_ROWS=few, MELTING=melting, MOST=7),
        mock.patch.object(probing, "STALE", stale),
    ):
        execution = case.execution()
        outputs = run(execution, case.inputs(form))
    assert any(isinstance(node.operator, MultiJoinOperator) for node in execution.graph.nodes)
    assert_same(case.expected(), tdb_of(outputs))
    assert_sound(outputs)


@given(case=multi_cases(), few=st.sampled_from([0, 3, 100]))
def test_after_every_batch_it_has_said_what_the_tree_has(case: MultiCase, few: int) -> None:
    """The same rows, and no promise of the tree's that does not follow from its own."""
    with mock.patch.object(multi_join, "FEW_ROWS", few):
        both = [case.execution(hint) for hint in (ONE, TREE)]
        out: tuple[Counter[Row], Counter[Row]] = (Counter(), Counter())
        promised = Frontier()
        for name, batch in case.inputs():
            said = [execution.feed(name, batch) for execution in both]
            for found, items in zip(out, said, strict=True):
                found.update(_exact(row) for item in items if isinstance(item, Batch) for row in item.rows)
            assert out[0] == out[1]
            for promise in (item for item in said[0] if isinstance(item, Punctuation)):
                promised.add(promise)
            for promise in (item for item in said[1] if isinstance(item, Punctuation)):
                assert not Frontier(promised).add(promise), f"{promise} does not follow from {promised}"


def _exact(row: Row) -> Row:
    return tuple(repr(v) if isinstance(v, float) else v for v in row)


@given(case=multi_cases(), at=st.integers(0, 10), few=st.sampled_from([0, 100]))
def test_a_restored_join_goes_on_as_if_nothing_had_happened(case: MultiCase, at: int, few: int) -> None:
    with mock.patch.object(multi_join, "FEW_ROWS", few):
        inputs = case.inputs()
        first, second = case.execution(), case.execution()
        outputs = [item for name, batch in inputs[:at] for item in first.feed(name, batch)]
        second.graph.restore(first.graph.snapshot())
        outputs += run(second, inputs[at:])
        whole = run(case.execution(), inputs)
    assert_same(tdb_of(whole), tdb_of(outputs))
    assert [p for p in outputs if isinstance(p, Punctuation)] == [p for p in whole if isinstance(p, Punctuation)]


@given(case=multi_cases())
def test_nothing_is_kept_when_all_streams_have_ended(case: MultiCase) -> None:
    execution = case.execution()
    run(execution, case.inputs())
    (join,) = [node.operator for node in execution.graph.nodes if isinstance(node.operator, MultiJoinOperator)]
    assert join.rows_held() == 0
    assert not [key for key in join.pages.keys() if key.startswith(("run", "loose"))]  # noqa: SIM118


@pytest.mark.parametrize("then", [ONE, TREE, ""])
@pytest.mark.parametrize("first", [ONE, TREE])
@given(case=multi_cases())
def test_a_snapshot_goes_on_as_it_was_made(first: str, then: str, case: MultiCase) -> None:
    """What its state fixes is not chosen again, whatever costs say and whatever the query says now."""
    inputs = case.inputs()
    half = len(inputs) // 2
    one = case.execution(first)
    outputs = [item for name, batch in inputs[:half] for item in one.feed(name, batch)]
    taken_up = case.execution(then)
    taken_up.restore(one.snapshot())
    is_one = any(isinstance(node.operator, MultiJoinOperator) for node in taken_up.graph.nodes)
    assert is_one == (first == ONE)
    outputs += run(taken_up, inputs[half:])
    assert_same(case.expected(), tdb_of(outputs))
