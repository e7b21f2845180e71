"""Joins with tables, in-process against the oracle: any kind, conditions, forms and cuts give the same TDB."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.operators.joins import lookup
from penstock.operators.joins.lookup import LookupOperator
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.runtime.lookups import LookupCase, lookup_cases


@pytest.mark.parametrize("form", ["rows", "arrow"])
@given(case=lookup_cases(), most=st.sampled_from([1, 3, 1000]), few=st.sampled_from([0, 3, 100]))
def test_the_tdb_is_the_oracles(form: str, case: LookupCase, most: int, few: int) -> None:
    with mock.patch.multiple(lookup, MOST=most, FEW_ROWS=few):
        execution = case.execution()
        outputs = [item for batch in case.inputs(form) for item in execution.feed("A", batch)]
        outputs += execution.close()
    expected = case.outcome()
    assert_same(expected.result, tdb_of(outputs))
    assert_sound(outputs)
    assert execution.counts.failed == expected.dead.total()


@given(case=lookup_cases())
def test_rows_that_are_pushed_one_by_one_give_the_same(case: LookupCase) -> None:
    execution = case.execution()
    outputs: list[Batch | Punctuation] = []
    push = execution.pusher("A")
    for batch in case.batches:
        for row in batch:
            push(row)
        outputs += execution.take()
    outputs += execution.close()
    assert_same(case.outcome().result, tdb_of(outputs))


@given(case=lookup_cases())
def test_nothing_is_kept(case: LookupCase) -> None:
    execution = case.execution()
    for batch in case.inputs("arrow"):
        execution.feed("A", batch)
    lookups = [node.operator for node in execution.graph.nodes if isinstance(node.operator, LookupOperator)]
    assert lookups
    assert not [key for operator in lookups for key in operator.pages.keys()]  # noqa: SIM118
