"""Snapshots of earlier releases open, and lead to the right answer."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import pytest

import penstock.operators
from penstock.model.time import END_OF_TIME
from penstock.operators.operator import Operator
from penstock.operators.state import open_snapshot
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.golden import replaced
from tests.golden.cases import CASES, MERGES, Golden, GoldenMerge, feed

every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


@every_case
def test_an_old_snapshot_leads_to_the_right_answer(case: Golden) -> None:
    whole, first, second = case.execution(), case.execution(), case.execution()
    before, after = case.half(whole)
    outputs = feed(first, before)
    second.restore(case.path.read_bytes())
    outputs += feed(second, after) + second.close()
    assert_same(tdb_of(feed(whole, [*before, *after]) + whole.close()), tdb_of(outputs))
    assert_sound(outputs)


@pytest.mark.parametrize("case", MERGES, ids=lambda c: c.name)
def test_an_old_snapshot_of_a_merge_leads_to_the_right_answer(case: GoldenMerge) -> None:
    whole, second = case.merge(), case.merge()
    before, after = case.half()
    for name, element in before:
        whole.push(name, element)
    second.restore(case.path.read_bytes())
    for name, element in after:
        assert second.push(name, element) == whole.push(name, element)
    assert second.stable == whole.stable == END_OF_TIME
    assert second.counts == whole.counts


def test_an_old_snapshot_of_a_query_that_is_being_replaced_leads_to_the_right_answer() -> None:
    whole, first, second = (replaced.execution() for _ in range(3))
    outputs = replaced.until_kept(first)
    second.restore(replaced.PATH.read_bytes(), {"q": replaced.plans()[2]})
    outputs += replaced.after_it(second)
    assert_same(tdb_of(replaced.until_kept(whole) + replaced.after_it(whole)), tdb_of(outputs))
    assert not second.graph.handovers


@every_case
def test_an_old_snapshot_is_small_and_of_the_case(case: Golden) -> None:
    content = open_snapshot(case.path.read_bytes())
    assert any(held["pages"] for held in content["operators"].values())
    assert case.path.stat().st_size < 50_000


EXPERIMENTS = {"opob-join", "opib-join", "ordered union"}
"""Kinds that no query is planned with, so that no checkpoint has them: rivals that the papers' experiments measure."""
EXPERIMENTAL = ("penstock.operators.intervals.", "penstock.operators.migration.")
"""Packages of such kinds: operators and boxes of the paper on migration, but for the handover of running queries."""


def kinds_of_operators() -> set[str]:
    for module in pkgutil.walk_packages(penstock.operators.__path__, "penstock.operators."):
        import_module(module.name)
    found, waiting = set(), [Operator]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        is_planned = kind.kind == "handover" or not kind.__module__.startswith(EXPERIMENTAL)
        if not inspect.isabstract(kind) and kind.__module__.startswith("penstock.") and is_planned:
            found.add(kind.kind)
    return found - {"stateless"} - EXPERIMENTS


def test_every_kind_of_operator_has_an_old_snapshot() -> None:
    paths = [*(case.path for case in CASES), replaced.PATH]
    kept = [open_snapshot(path.read_bytes())["operators"].values() for path in paths]
    with_pages = {held["kind"] for operators in kept for held in operators if held["pages"]}
    assert with_pages == kinds_of_operators()


def test_operators_with_pages_have_a_kind() -> None:
    """One that keeps pages and has no kind of its own would share its pages' kind with all others."""
    for case in CASES:
        for held in open_snapshot(case.path.read_bytes())["operators"].values():
            assert held["kind"] != "stateless" or not held["pages"]
