"""The experiment of joins as one operator, over a few rows: all cases and measures, and the same results."""

from __future__ import annotations

import pytest

from penstock.errors import InternalError
from penstock.papers import many_joins
from penstock.papers.many_joins import CASES, PLANS, ManyExperiment, execution


def test_every_case_is_measured_by_both_plans() -> None:
    report = ManyExperiment(3000, lambda line: None).run()
    assert [(row["case"], row["plan"]) for row in report.rows] == [(c.name, plan) for c in CASES for plan in PLANS]
    assert all(row["rows kept"] > 0 and row["memory, bytes"] > 0 for row in report.rows)
    assert len(report.claims) == 3 * len(CASES)
    by = {(row["case"], row["plan"]): row["rows kept"] for row in report.rows}
    assert by["many pairs", "one operator"] < by["many pairs", "tree"]


def test_each_plan_is_run_by_its_operators() -> None:
    names = {plan: {type(node.operator).__name__ for node in execution(CASES[0], plan).graph.nodes} for plan in PLANS}
    joins = {plan: {name for name in own if "Join" in name} for plan, own in names.items()}
    assert joins == {"one operator": {"MultiJoinOperator"}, "tree": {"OAJoin"}}


def test_plans_that_disagree_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(100))
    monkeypatch.setattr(many_joins, "timed", lambda case, plan, size: (1.0, next(numbers), 1))
    with pytest.raises(InternalError, match="different results"):
        ManyExperiment(100, lambda line: None).run()
