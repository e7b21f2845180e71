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
from tests.profiles import examples
from tests.runtime.lookups import LookupCase, lookup_cases, other_forms, queries, versioned


@pytest.mark.parametrize("sql", [queries(), other_forms(), versioned()], ids=["kinds", "forms", "versions"])
@given(data=st.data(), most=st.sampled_from([1, 3, 1000]), few=st.sampled_from([0, 3, 100]))
def test_the_tdb_is_the_oracles(sql: st.SearchStrategy[str], data: st.DataObject, most: int, few: int) -> None:
    case, form = data.draw(lookup_cases(sql)), data.draw(st.sampled_from(["rows", "arrow"]))
    with mock.patch.multiple(lookup, MOST=most, FEW_ROWS=few):
        execution = case.execution()
        outputs = [item for batch in case.inputs(form) for item in execution.feed("A", batch)]
        outputs += execution.close()
    expected = case.outcome()
    assert_same(expected.result, tdb_of(outputs))
    assert_sound(outputs)
    assert execution.counts.failed == expected.dead.total()


@examples(20)
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


@examples(5)
@given(case=lookup_cases())
def test_nothing_is_kept(case: LookupCase) -> None:
    execution = case.execution()
    for batch in case.inputs("arrow"):
        execution.feed("A", batch)
    lookups = [node.operator for node in execution.graph.nodes if isinstance(node.operator, LookupOperator)]
    assert lookups
    assert not [key for operator in lookups for key in operator.pages.keys()]  # noqa: SIM118
