"""The join experiments over a few packets: all joins count the same as the oracle, every figure is told and drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.time import SECOND
from penstock.papers import adaptive_joins, packets, window_joins
from penstock.papers.adaptive_joins import CASES, FORMS, AdaptiveExperiment
from penstock.papers.packets import Arrivals
from penstock.papers.window_joins import JOINS, START, JoinExperiment, Outcome, execution, timed


def test_links_carry_the_two_directions_of_the_same_flows_and_keep_what_they_promise() -> None:
    with mock.patch.multiple(packets, RATE=100, AT_ONCE=50):
        given = list(Arrivals.of(20, START))
    seen: dict[str, set[tuple[object, ...]]] = {"M1": set(), "M2": set()}
    bounds = {"M1": 0, "M2": 0}
    for link, item in given:
        if isinstance(item, Punctuation):
            bounds[link] = item.value
        else:
            assert item.times().min() >= bounds[link]
            seen[link] |= {row[1:5] for row in item.rows}
    turned = {(target, source, target_port, source_port) for source, target, source_port, target_port in seen["M2"]}
    assert seen["M1"] & turned
    assert not seen["M1"] & seen["M2"]


@pytest.mark.parametrize("n", [1, 9])
def test_every_join_counts_what_brute_force_does(n: int) -> None:
    with mock.patch.multiple(packets, RATE=10, AT_ONCE=10, FLOWS=10):
        arrivals = Arrivals.of(75, START)
        found = {join: timed(n, join, arrivals).counts for join in JOINS}
    m1, m2 = (Batch(packets.SCHEMA, table=table).rows for table in arrivals.tables)
    by_flow: dict[tuple[object, ...], list[int]] = {}
    for ts, source, target, source_port, target_port, _ in m2:
        by_flow.setdefault((target, source, target_port, source_port), []).append(ts)  # type: ignore[arg-type]
    counts: dict[int, int] = {}
    for ts, *flow, _ in m1:
        near = sum(abs(other - ts) <= n * SECOND for other in by_flow.get(tuple(flow), ()))  # type: ignore[operator]
        wid = ts // (60 * SECOND)  # type: ignore[operator]
        counts[wid] = counts.get(wid, 0) + near
    for own in found.values():
        assert {row[0]: row[-1] for row in own} == {wid: count for wid, count in counts.items() if count}


def test_the_joins_that_are_compared_are_the_ones_that_run() -> None:
    names = {join: {type(node.operator).__name__ for node in execution(1, join).graph.nodes} for join in JOINS}
    for join, operator in {"OA-Join": "OAJoin", "OPOB": "OPOBJoin", "OPIB": "OPIBJoin"}.items():
        assert {o for o in names[join] if o.endswith("Join")} == {operator}


@pytest.mark.parametrize(("figure", "claims"), [("7-6", 3), ("7-7", 1)])
def test_a_figure_has_all_measures_of_both_joins_and_is_plotted(figure: str, claims: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots are made where matplotlib is installed")
    from penstock.papers.plots import plot_joins

    with mock.patch.multiple(packets, RATE=400, AT_ONCE=400), mock.patch.object(window_joins, "RATE", 400):
        report = JoinExperiment(figure, 13 * 800, lambda line: None, sizes=(2,), rounds=1).run()
    assert [(row["n, s"], row["join"]) for row in report.rows] == [
        (n, join) for n in (2,) for join in ("OA-Join", "OPOB" if figure == "7-6" else "OPIB")
    ]
    assert all(row["memory, bytes"] > 0 and row["median latency, ms"] > 0 for row in report.rows)
    assert len(report.claims) == claims
    plot_joins(report.rows, tmp_path / "joins.svg")
    assert (tmp_path / "joins.svg").read_text().startswith("<?xml")


def test_joins_run_in_turn_and_the_least_time_and_the_median_latency_are_told() -> None:
    ran: list[str] = []
    seconds = iter([3.0, 8.0, 9.0, 2.0, 5.0, 7.0])

    def outcome(n: int, join: str, arrivals: object) -> Outcome:
        ran.append(join)
        took = next(seconds)
        return Outcome(took, [took / 1000], [(0, 1)])

    with mock.patch.multiple(window_joins, timed=outcome, most_bytes=lambda n, join, arrivals: 1):
        report = JoinExperiment("7-6", 8000, lambda line: None, sizes=(1,), rounds=3).run()
    assert ran == ["OA-Join", "OPOB", "OPOB", "OA-Join", "OA-Join", "OPOB"]
    told = {row["join"]: (row["time, s"], row["median latency, ms"]) for row in report.rows}
    assert told == {"OA-Join": (2.0, 3.0), "OPOB": (7.0, 8.0)}


def test_skew_is_of_several_kinds() -> None:
    shares = {}
    for case in CASES:
        left, right = (np.unique(table["k"].to_numpy(), return_counts=True)[1] for table in case.sides(20_000))
        shares[case.name] = len(left), len(right), left.max()
    assert shares["skewed keys"][0] > 9000
    assert shares["skewed keys"][2] > 5
    assert shares["skewed, few keys on the right"][:2] == (pytest.approx(20_000, rel=0.02), 1000)
    assert shares["skewed, as in Zipf's law"][2] > 3 * shares["in step, many keys"][2]


def test_forms_of_the_adaptive_join_are_told_in_every_case() -> None:
    cases = tuple(replace(case, late=min(case.late, 1), batch=500) for case in CASES[2:])
    with mock.patch.object(adaptive_joins, "ROUNDS", 1):
        report = AdaptiveExperiment(2000, lambda line: None, cases, least=0).run()
    assert [(row["case"], row["form"]) for row in report.rows] == [(c.name, f) for c in cases for f in FORMS]
    assert len(report.claims) == 2 + 3 + 1
