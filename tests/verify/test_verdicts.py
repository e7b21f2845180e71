"""What counts as agreement: equal findings, and nothing else; two failures are told as that."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.cli import main
from penstock.model.schema import schema_of
from penstock.model.tdb import TDB
from penstock.reference.arrivals import Arrivals
from penstock.verify import agreement as judged_by
from penstock.verify import evaluators
from penstock.verify.agreement import agreement
from penstock.verify.verdicts import Agreement, Findings, Verdict, by_known_columns, failed

SCHEMA = schema_of([("t", "bigint"), ("v", "int")], "t")
SQL = "SELECT sum(v) AS v [RANGE 4, SLIDE 2, WA t] FROM s"
EMPTY = Findings(TDB(), TDB(), 0)


def stream(*batches: tuple[tuple[int, int], ...], progress: Any = None) -> Arrivals:
    return Arrivals("s", SCHEMA, progress or pk.bounded(2), batches)


def broken(reason: str) -> Any:
    def raising(*_: object) -> Any:
        raise ZeroDivisionError(reason)

    return raising


def test_two_failures_are_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_by, "run_local", broken("in-process"))
    monkeypatch.setattr(evaluators.Trial, "oracle", broken("by definition"))
    found = agreement(SQL, [stream(((1, 1),))], evaluators=["local"])
    assert (found.agrees, found.all_raised, found["local"].both_raised) == (False, True, True)
    assert found.render() == (
        "local: both raised, so nothing is compared\n"
        "  ZeroDivisionError: in-process\n"
        "  the oracle\n"
        "    ZeroDivisionError: by definition"
    )


def test_who_raised_alone_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(judged_by, "run_local", broken("in-process"))
        found = agreement(SQL, [stream(((1, 1),))], evaluators=["local"])
        assert (found.agrees, found.all_raised) == (False, False)
        assert found.render() == "local: raised, and the oracle did not\n  ZeroDivisionError: in-process"
    monkeypatch.setattr(evaluators.Trial, "oracle", broken("by definition"))
    found = agreement(SQL, [stream(((1, 1),))], evaluators=["local"])
    assert (found.agrees, found.all_raised) == (False, False)
    assert found.render() == "local: did not raise, and the oracle did\n  ZeroDivisionError: by definition"


def test_one_that_does_not_support_the_query_takes_no_part() -> None:
    plan: Any = None
    unsupported = Verdict("spark batch", None, None, "no", is_supported=False)
    assert unsupported.agrees
    assert not unsupported.both_raised
    assert not Agreement(SQL, plan, (unsupported,)).all_raised
    assert Agreement(SQL, plan, (unsupported, Verdict("local", None, None, "x"))).all_raised
    assert not Agreement(SQL, plan, (unsupported, Verdict("local", EMPTY, EMPTY))).all_raised


UNSUPPORTED = "SELECT sum(v) AS v [RANGE ALL, SLIDE 2, WA t] FROM s"


def test_the_oracle_alone_is_compared_with_nothing() -> None:
    plan: Any = None
    oracle = Verdict("reference", EMPTY, EMPTY)
    unsupported = Verdict("local", None, None, "no", is_supported=False)
    for verdicts in ((), (oracle,), (oracle, unsupported), (unsupported,)):
        found = Agreement(SQL, plan, verdicts)
        assert (found.is_compared, found.agrees) == (False, False)
    assert oracle.render() == "reference: the oracle (0 rows, 0 late, 0 dead)"
    for verdict, agrees in ((Verdict("local", EMPTY, EMPTY), True), (Verdict("local", None, EMPTY, "x"), False)):
        found = Agreement(SQL, plan, (oracle, verdict))
        assert (found.is_compared, found.agrees) == (True, agrees)


def test_check_says_that_nothing_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.csv").write_text("t,v\n1,1\n5,2\n")
    asked = ["--evaluator", "reference", "--evaluator", "local"]
    command = ["penstock", "check", UNSUPPORTED, "-s", f"s={tmp_path}/x.csv", "--time", "t", *asked]
    for form in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", [*command, *form])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 1
        printed = capsys.readouterr().out
        if form:
            found = json.loads(printed)
            assert (found["passes"], found["agrees"], found["compared"]) == (False, False, False)
        else:
            assert "no evaluator beside the oracle has run the query, so nothing was compared" in printed
            assert "agree" not in printed


def test_late_rows_are_judged_by_the_oracle_and_not_taken_from_who_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that calls rows late that are not, or loses late ones, is found out, also for bounded(rows=n)."""
    progress = pk.bounded(rows=1)
    batches = (((1, 1), (9, 1)), ((2, 5), (10, 1)), ((3, 7),))
    right = agreement(SQL, [stream(*batches, progress=progress)], evaluators=["local"])
    assert right.agrees, right.render()
    got = right["local"].got
    assert got is not None
    assert got.late.size > 0
    monkeypatch.setattr(judged_by, "run_local", lambda trial: Findings(got.result, TDB(), got.dead, Counter()))
    assert "late rows" in agreement(SQL, [stream(*batches, progress=progress)], evaluators=["local"]).render()
    monkeypatch.setattr(judged_by, "run_spark_streaming", lambda *_: Findings(TDB(), TDB(), 0))
    monkeypatch.setattr(judged_by, "write_batches", lambda *_: None)
    found = agreement(SQL, [stream(*batches, progress=progress)], evaluators=["spark streaming"], spark=object())
    expected = found["spark streaming"].expected
    assert expected is not None
    # The first batch counts once the second has come: its greatest time, 9, condemns 3; 2 came beside it.
    assert {payload for (payload, _, _), _ in expected.late.items()} == {("s", '{"t": 3, "v": 7}')}


@pytest.mark.parametrize(
    ("raising", "option", "code", "says"),
    [
        (True, [], 1, "every evaluator raised, so nothing was compared"),
        (True, ["--expect-error"], 0, "every evaluator raised, as expected"),
        (False, [], 0, "all evaluators agree"),
        (False, ["--expect-error"], 1, "not every evaluator raised, as was expected"),
    ],
)
def test_check_succeeds_only_where_something_was_compared_or_failure_was_expected(
    raising: bool, option: list[str], code: int, says: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "x.csv").write_text("t,v\n1,1\n5,2\n")
    if raising:
        monkeypatch.setattr(judged_by, "run_local", broken("in-process"))
        monkeypatch.setattr(evaluators.Trial, "oracle", broken("by definition"))
    command = ["penstock", "check", SQL, "-s", f"s={tmp_path}/x.csv", "--time", "t", "--evaluator", "local", *option]
    for form in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", [*command, *form])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == code
        printed = capsys.readouterr().out
        if form:
            found = json.loads(printed)
            assert (found["passes"], found["agrees"]) == (code == 0, not raising)
            assert found["evaluators"][0]["both_raised"] is raising
        else:
            assert says in printed


def test_dead_letters_are_compared_by_the_columns_that_came_to_their_operator() -> None:
    selected = failed("Select", "x", '{"a": 1}')
    expected = Counter([failed("Join", "Division by zero", '{"a": 1, "b": null, "c": 2}'), selected])
    got = Counter([failed("Join", "Division by zero", '{"c": 2, "a": 1}'), selected])
    mine, theirs = by_known_columns(expected, got)
    assert mine == theirs
    wrong = Counter([failed("Join", "Division by zero", '{"c": 2, "a": 3}'), selected])
    mine, theirs = by_known_columns(expected, wrong)
    assert mine != theirs
