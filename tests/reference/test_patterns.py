"""Patterns by the oracle, worked out by hand: three steps in every context, and what must not come.

A row is written as its step and its time, `a1`; the timeline of most tests is

    a1 a2 b3 a4 b5 c6 c7 b8 c9
"""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.reference.evaluation import evaluate

TIMELINE = "a1 a2 b3 a4 b5 c6 c7 b8 c9"


def found(steps: str, timeline: str, mode: str = "", within: int | None = None) -> list[str]:
    """What comes of a pattern of steps that are called after the kinds of rows they are, `NOT` in capitals."""
    flow = pk.Flow().stream("s", [], schema="ts bigint, kind string, row string", time="ts")
    names = [f"{'NOT ' if kind.isupper() else ''}s AS {kind}" for kind in steps]
    where = " AND ".join(f"{kind}.kind = '{kind.lower()}'" for kind in steps)
    coming = [kind for kind in steps if kind.islower()]
    over = f"OVER [{within} FOLLOWING {steps[0]}]" if within else f"OVER [UNLIMITED PRECEDING {coming[-1]}]"
    chosen = ", ".join(f"{kind}.row AS {kind}" for kind in coming)
    query = flow.query(f"SELECT {chosen} FROM SEQ({', '.join(names)}) {over} {mode} WHERE {where}")
    arrivals = [("s", (int(row[1:].rstrip("'")), row[0], row)) for row in timeline.split()]
    result = []
    for (values, time, _), count in evaluate(query.plan, arrivals).items():
        shown = ["+".join(value) if isinstance(value, tuple) else str(value) for value in values]
        result += [f"{' '.join(shown)} @{time}"] * count
    return sorted(result)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("MODE RECENT", ["a4 b5 c6 @6", "a4 b5 c7 @7", "a4 b8 c9 @9"]),
        ("MODE CHRONICLE", ["a1 b3 c6 @6", "a2 b5 c7 @7", "a4 b8 c9 @9"]),
        ("MODE CONTINUOUS", ["a1 b3 c6 @6", "a2 b3 c6 @6", "a4 b5 c6 @6"]),
        ("MODE CUMULATIVE", ["a1+a2+a4 b3+b5 c6 @6"]),
    ],
)
def test_three_steps(mode: str, expected: list[str]) -> None:
    assert found("abc", TIMELINE, mode) == expected


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("MODE RECENT", ["a4 b5 c6 @6", "a4 b5 c7 @7"]),  # a4 is five before c9
        ("MODE CHRONICLE", ["a2 b5 c6 @6"]),  # b3 has gone on with a1, which is over at c6
        ("MODE CONTINUOUS", ["a2 b3 c6 @6", "a4 b5 c6 @6"]),
        ("MODE CUMULATIVE", ["a2+a4 b3+b5 c6 @6"]),
    ],
)
def test_within_four(mode: str, expected: list[str]) -> None:
    assert found("abc", TIMELINE, mode, within=4) == expected


def test_what_is_collected_takes_part() -> None:
    # b1 is after no a, a6 before no b; n ends what was before it, and begins nothing.
    assert found("abc", "b1 a2 b4 a6 c7", "MODE CUMULATIVE") == ["a2 b4 c7 @7"]
    assert found("aNbc", "a1 n2 a3 b4 c5", "MODE CUMULATIVE") == ["a3 b4 c5 @5"]
    assert found("abNc", "a1 b2 n3 c4 b5 c6", "MODE CUMULATIVE") == ["a1 b5 c6 @6"]


def test_rows_of_the_time_of_a_result_are_used_up() -> None:
    assert found("ab", "a1 a3 b3 b4", "MODE CUMULATIVE") == ["a1 b3 @3"]
    assert found("ab", "a1 b3 a4 b4 b6", "MODE CUMULATIVE") == ["a1 b3 @3", "a4 b6 @6"]  # b4 has ended nothing


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("MODE RECENT", ["a4 c6 @6"]),
        ("MODE CHRONICLE", ["a4 c6 @6"]),
        ("MODE CONTINUOUS", ["a4 c6 @6"]),
        ("MODE CUMULATIVE", ["a4 c6 @6"]),
    ],
)
def test_nothing_in_between(mode: str, expected: list[str]) -> None:
    assert found("aNc", "a1 a2 n3 a4 c6 n7 c8", mode) == expected


def test_what_is_of_one_time_is_not_in_between() -> None:
    assert found("aNc", "a1 n1 c3 n3") == ["a1 c3 @3"]
    assert found("aNc", "a1 n2 c3") == []


def test_nothing_afterwards() -> None:
    # (1, 5] has b5, (2, 6] has b5; (6, 10] has nothing, nor has (20, 24]
    assert found("aB", "a1 a2 b5 a6 b11 a20", within=4) == ["a20 @24", "a6 @10"]


def test_nothing_after_the_last_of_two() -> None:
    # c must not come in (2, 5] after a1 b2, nor in (4, 7] after a3 b4.
    assert found("abC", "a1 b2 a3 b4 c7", "MODE CHRONICLE", within=4) == ["a1 b2 @5"]
    assert found("abC", "a1 b2 a3 b4 c5 c8", "MODE CHRONICLE", within=4) == []
    assert found("abC", "a1 c2 b2 a3 b4 c8", "MODE CHRONICLE", within=4) == ["a1 b2 @5", "a3 b4 @7"]


def test_rows_of_one_time_do_not_follow_one_another_and_the_lesser_is_the_earlier() -> None:
    assert found("ab", "a1 a1' b1 b2 b2'", "MODE CHRONICLE") == ["a1 b2 @2", "a1' b2' @2"]
    assert found("ab", "a1 a1' b2", "MODE RECENT") == ["a1' b2 @2"]
