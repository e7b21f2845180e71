"""What is asked of a migration, on cases that can be done by hand."""

from __future__ import annotations

from collections import Counter

from penstock.model.snapshots import snapshot_equivalent
from penstock.model.tdb import TDB
from penstock.reference.migration import Migration, are_snapshot_equivalent, unlike
from penstock.reference.snapshot_plans import (
    Count,
    Difference,
    Distinct,
    Input,
    Join,
    Project,
    Select,
    SnapshotPlan,
    Union,
    Window,
)

A, B = ("a",), ("b",)
LEFT, RIGHT = Input(0), Input(1)
#      0    5    10   15   20
#  0   aaaaaaaaaa
#           aaaaaaaaaa
#  1        aaaaaaaaaa
#                bbbbb
STREAMS = ([(A, 0, 10), (A, 5, 15)], [(A, 5, 15), (B, 10, 15)])


def at(plan: SnapshotPlan, instant: int) -> dict[object, int]:
    return dict(plan.at(STREAMS, instant))


def test_a_plan_is_relational_algebra_at_every_instant() -> None:
    assert at(LEFT, 4) == {A: 1}
    assert at(LEFT, 5) == {A: 2}
    assert at(Union(LEFT, RIGHT), 10) == {A: 2, B: 1}
    assert at(Join(LEFT, RIGHT, ((0, 0),)), 7) == {("a", "a"): 2}
    assert at(Join(LEFT, RIGHT, ()), 10) == {("a", "a"): 1, ("a", "b"): 1}
    assert at(Distinct(LEFT), 5) == {A: 1}
    assert at(Count(LEFT, ()), 5) == {(2,): 1}
    assert at(Count(Union(LEFT, RIGHT), (0,)), 10) == {("a", 2): 1, ("b", 1): 1}
    assert at(Count(LEFT, ()), 20) == {}
    assert at(Difference(LEFT, RIGHT), 7) == {A: 1}
    assert at(Difference(RIGHT, LEFT), 7) == {}
    assert at(Select(RIGHT, 0, frozenset("b")), 10) == {B: 1}
    assert at(Project(Join(LEFT, RIGHT, ()), (1,)), 10) == {A: 1, B: 1}


def test_a_window_makes_every_instant_last() -> None:
    streams = [[(A, 0, 1), (B, 3, 5)]]
    plan = Window(LEFT, 3)
    seen = [dict(plan.at(streams, t)) for t in range(9)]
    # b is there at 3 and at 4, so from 4 to 6 both of these last
    assert seen == [{A: 1}, {A: 1}, {A: 1}, {A: 1, B: 1}, {B: 2}, {B: 2}, {B: 2}, {B: 1}, {}]
    assert Window(Window(LEFT, 3), 4).reach(0) == 7
    assert Join(Window(LEFT, 3), RIGHT, ()).reach(1) == 0
    assert plan.reach(1) is None


def test_snapshots_are_equal_however_events_are_cut() -> None:
    whole, cut, other = TDB([(A, 0, 9)]), TDB([(A, 0, 4), (A, 4, 9)]), TDB([(A, 0, 5), (A, 4, 9)])
    assert are_snapshot_equivalent(whole, cut)
    assert snapshot_equivalent(whole, cut)
    assert not are_snapshot_equivalent(whole, other)
    (difference,) = unlike(lambda t: Counter({A: 1} if 0 <= t < 9 else {}), other, range(12))
    assert (difference.instant, difference.extra, difference.missing) == (4, {A: 1}, {})


def test_a_split_is_possible_once_nothing_matters_that_came_before() -> None:
    arrivals = [(0, (A, 0, 10)), (0, (A, 8, 20))]

    def migration(split: int) -> Migration:
        return Migration(LEFT, Count(LEFT, ()), split, 1, arrivals, 1)

    assert migration(9).first_split() == 10
    assert not migration(9).is_possible()
    assert migration(10).is_possible()
    right = TDB([(A, 0, 10), (A, 8, 10), ((1,), 10, 20)])
    assert migration(10).unlike(right) == []
    assert [u.instant for u in migration(12).unlike(right)] == [10, 11]


def test_where_nothing_came_any_split_will_do() -> None:
    assert Migration(LEFT, LEFT, 5, 0, [(0, (A, 0, 10))], 1).first_split() is None
    assert Migration(LEFT, LEFT, 5, 0, [], 1).unlike(TDB()) == []
