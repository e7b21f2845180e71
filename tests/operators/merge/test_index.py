"""The calendar of a merge: nodes come out in the order in which they came to wait, whatever they waited for before."""

from __future__ import annotations

import random

import pytest

from penstock.operators.merge.index import Calendar, IndexNode
from penstock.operators.merge.parts import CalendarPart


def node(name: str) -> IndexNode:
    return IndexNode((name,), 0, 9, 1, 0)


def restored(calendar: Calendar[IndexNode]) -> Calendar[IndexNode]:
    """The same calendar after a snapshot."""
    part = CalendarPart(Calendar, "calendar", (), (), frozenset())
    parts: list[IndexNode] = []

    def number(value: IndexNode) -> int:
        parts.append(value)
        return len(parts) - 1

    found: Calendar[IndexNode] = Calendar()
    part.read(found, part.write(calendar, number), parts)
    return found


@pytest.mark.parametrize("way", ["as it is", "swept", "restored"])
def test_an_entry_that_was_left_behind_gives_nobody_a_better_place(way: str) -> None:
    """p waits for 5, then for 3; q waits for 5; p is looked at and waits for 5 again: q is before p."""
    calendar: Calendar[IndexNode] = Calendar()
    p, q = node("p"), node("q")
    calendar.enter(5, p)
    calendar.wait(3, p)
    calendar.enter(5, q)
    if way == "swept":
        calendar._sweep()
    elif way == "restored":
        calendar = restored(calendar)
    assert calendar.take(4) == [p]
    calendar.wait(5, p)
    assert list(calendar.waiting()) == [q, p]
    assert calendar.take(6) == [q, p]


@pytest.mark.parametrize("seed", range(20))
def test_a_restored_calendar_gives_the_same_nodes_in_the_same_order(seed: int) -> None:
    rng = random.Random(seed)
    whole: Calendar[IndexNode] = Calendar()
    disturbed: Calendar[IndexNode] = Calendar()
    nodes = [(node(str(i)), node(str(i))) for i in range(6)]
    for _ in range(200):
        mine, other = rng.choice(nodes)
        time = rng.randrange(8)
        if rng.random() < 0.7:
            whole.wait(time, mine)
            disturbed.wait(time, other)
        else:
            assert [n.payload for n in whole.take(time)] == [n.payload for n in disturbed.take(time)]
        disturbed = restored(disturbed)
