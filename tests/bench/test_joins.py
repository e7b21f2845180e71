"""The joins benchmark: who takes part, of whom a bar is asked, and that results are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.bench.joins import BARS, BY_HAND, PARTS, PEERS, Case, JoinsBench, Outcome, Sides, in_process
from penstock.errors import InternalError

CASES = (Case(1000, 1),)
WINDOWED = "Bytewax's windowed join"


def slower(times: float) -> object:
    def run(sides: Sides) -> Outcome:
        found = in_process(sides)
        return replace(found, seconds=found.rows / 1e6 * times)

    return run


def test_a_bar_is_asked_of_bytewaxs_own_join_and_the_lead_on_what_is_written_by_hand_is_told() -> None:
    contestants = {"in-process": slower(1), WINDOWED: slower(120), BY_HAND: slower(20)}
    found = JoinsBench(2000, lambda line: None, CASES, contestants).run()  # type: ignore[arg-type]
    (row,) = found.rows
    assert row["lead on that"] == pytest.approx(20)
    (claim,) = found.claims
    assert WINDOWED in claim.name
    assert (claim.bar, claim.holds) == (100.0, True)
    assert claim.value == pytest.approx(120)
    assert found.absent == ["DuckDB batch", "Flink SQL"]


def test_other_pairs_are_an_error() -> None:
    def wrong(sides: Sides) -> Outcome:
        return replace(in_process(sides), fingerprint=(1, 2, 3, 4))

    with pytest.raises(InternalError, match="by hand gives another result"):
        JoinsBench(2000, lambda line: None, CASES, {"in-process": in_process, BY_HAND: wrong}).run()


def test_whoever_has_a_bar_or_fewer_rows_takes_part() -> None:
    assert set(BARS) <= set(PEERS)
    assert set(PARTS) <= set(PEERS)
