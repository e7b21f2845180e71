"""Small runs in which something was once lost, doubled, accused or never ended."""

from __future__ import annotations

import pytest

from penstock.errors import MergeError
from penstock.model.elements import Adjust, Element, Insert, linear
from penstock.model.plain import decode, encode
from penstock.model.tdb import TDB, tdb
from penstock.model.time import END_OF_TIME
from penstock.operators.merge.base import LogicalMerge
from penstock.operators.merge.baselines import CleanseThenR1, R3Minus
from penstock.operators.merge.divergence import Watch
from penstock.operators.merge.index import SPARE
from penstock.operators.merge.ordered import R0, R1, R2, OrderedMerge
from penstock.operators.merge.pages import flatten, unflatten
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.r4 import R4
from penstock.operators.merge.trail import Trail

X, Y, W = ("x",), ("y",), ("w",)


def stable(bound: int) -> Element:
    return linear("vs", bound)


END = stable(END_OF_TIME)


def run(merge: LogicalMerge, *arrivals: tuple[str, Element]) -> list[Element]:
    return [out for name, element in arrivals for out in merge.push(name, element)]


# Replicas that are empty

EVERY = [R0, R1, R2, R3, R4, R3Minus, CleanseThenR1]


def watched(algorithm: type[LogicalMerge], *inputs: str, **options: str) -> LogicalMerge:
    alarm = Trail() if issubclass(algorithm, OrderedMerge) else Watch()
    return algorithm(inputs, watch=alarm, **options)  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize("algorithm", EVERY)
@pytest.mark.parametrize("when", range(5))
def test_an_empty_replica_empties_nothing_whenever_it_ends(algorithm: type[LogicalMerge], when: int) -> None:
    said: list[tuple[str, Element]] = [("a", Insert(X, 1, 2)), ("a", stable(3)), ("a", Insert(Y, 4, 5)), ("a", END)]
    merge = watched(algorithm, "a", "b")
    output = run(merge, *said[:when], ("b", END), *said[when:])
    assert tdb(output) == TDB([(X, 1, 2), (Y, 4, 5)])
    assert output[-1] == END
    assert [(d.input, d.vs) for d in merge.divergences] == [("b", 1), ("b", 4)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("algorithm", [R3, R4])
def test_an_empty_replica_has_no_vote_and_one_that_is_named_is_believed(algorithm: type[LogicalMerge]) -> None:
    said = [("b", END), ("c", END), ("a", Insert(X, 1, 2)), ("a", END)]
    assert tdb(run(watched(algorithm, "b", "c", "a", driver="majority"), *said)) == TDB([(X, 1, 2)])
    assert tdb(run(watched(algorithm, "b", "c", "a", driver="b"), *said)) == TDB([])


@pytest.mark.parametrize("algorithm", EVERY)
def test_where_all_are_empty_the_output_ends_with_the_last_or_when_it_leaves(algorithm: type[LogicalMerge]) -> None:
    merge = watched(algorithm, "a", "b")
    assert run(merge, ("b", END)) == []
    assert run(merge, ("a", END)) == [END]
    other = watched(algorithm, "a", "b")
    assert run(other, ("b", END)) == []
    assert other.detach("a") == [END]


# Majority by key


def keyed(*arrivals: tuple[str, Element], policy: str = "half frozen") -> tuple[TDB, R3]:
    merge = R3(["a", "b", "c"], driver="majority", policy=policy, key=(0,), watch=Watch())
    return tdb(run(merge, *arrivals)), merge


@pytest.mark.parametrize("policy", ["half frozen", "first seen", "conservative"])
@pytest.mark.parametrize("end", [2, 50])
def test_a_row_that_all_report_with_other_values_is_there_with_those_of_the_first(end: int, policy: str) -> None:
    said = [(name, Insert(("k", value), 1, end)) for name, value in (("a", 1.0), ("b", 2.0), ("c", 3.0))]
    bounds = [(name, stable(bound)) for bound in (5, 60) for name in "bca"]
    output, merge = keyed(*said, *bounds, *[(name, END) for name in "bca"], policy=policy)
    assert output == TDB([(("k", 1.0), 1, end)])
    assert [d.input for d in merge.divergences] == ["b", "c", "b", "c"]  # what they lack, and what only they have


def test_the_values_that_most_inputs_give_are_believed_and_most_decide_whether_there_is_a_row() -> None:
    most = [("a", Insert(("k", 1), 1, 2)), ("b", Insert(("k", 2), 1, 2)), ("c", Insert(("k", 2), 1, 2))]
    ends = [(name, END) for name in "abc"]
    assert keyed(*most, *ends)[0] == TDB([(("k", 2), 1, 2)])
    other = [(name, Insert(("m", 0), 1, 2)) for name in "abc"]
    m = (("m", 0), 1, 2)
    assert keyed(*other, *most[:1], *ends)[0] == TDB([m])
    assert keyed(*other, *most[:2], *ends)[0] == TDB([m, (("k", 1), 1, 2)])
    late = [*other, most[0], ("a", END), ("b", END), most[2], ("c", END)]
    assert keyed(*late)[0] == TDB([m, (("k", 1), 1, 2)])


def test_those_that_have_an_event_decide_on_its_end() -> None:
    """Two of three have the key, with other values; the one that is believed moves its end."""
    merge = R3(["a", "b", "c"], driver="majority", policy="half frozen", key=(0,))
    said = [("a", Insert(("k", 1), 1, 90)), ("b", Insert(("k", 2), 1, 90))]
    output = run(merge, *said, *[(name, stable(5)) for name in "abc"], ("a", Adjust(("k", 1), 1, 90, 40)))
    output += run(merge, *[(name, stable(60)) for name in "abc"], *[(name, END) for name in "abc"])
    assert tdb(output) == TDB([(("k", 1), 1, 40)])


# Majority without a key


def test_a_bag_that_was_undecided_when_its_bound_passed_is_counted_when_the_verdict_comes() -> None:
    merge = R4(["a", "b", "c"], policy="half frozen", driver="majority")
    output = run(
        merge,
        ("a", Insert(X, 1, 50)), ("a", stable(10)),
        ("b", Insert(X, 1, 60)), ("b", stable(10)), ("b", Adjust(X, 1, 60, 50)),
        ("c", Insert(X, 1, 50)), ("c", stable(10)),
        ("a", END), ("b", END), ("c", END),
    )  # fmt: skip
    assert tdb(output) == TDB([(X, 1, 50)])


def test_votes_that_differ_wait_for_the_third_and_then_count() -> None:
    """a has two, b has one: the output waits at 1 until c says that there are two."""
    merge = R4(["a", "b", "c"], policy="half frozen", driver="majority")
    output = run(
        merge,
        ("a", Insert(X, 1, 50)), ("a", Insert(X, 1, 50)), ("a", stable(10)),
        ("b", Insert(X, 1, 50)), ("b", stable(10)),
    )  # fmt: skip
    assert output == [stable(1)]
    output += run(merge, ("c", Insert(X, 1, 50)), ("c", Insert(X, 1, 50)), ("c", stable(10)))
    assert output == [stable(1), Insert(X, 1, 50), Insert(X, 1, 50), stable(10)]
    output += run(merge, ("a", END), ("c", END))
    assert tdb(output) == TDB([(X, 1, 50), (X, 1, 50)])


def test_a_phantom_that_is_taken_back_does_not_stay() -> None:
    merge = R4(["a", "b", "c"], driver="majority")
    output = run(
        merge,
        ("a", Insert(X, 1, 70)), ("a", Insert(X, 1, 50)), ("a", Adjust(X, 1, 70, 1)), ("a", stable(10)),
        ("b", Insert(X, 1, 60)), ("b", stable(10)), ("b", Adjust(X, 1, 60, 50)),
        ("c", Insert(X, 1, 50)), ("c", END), ("a", END), ("b", END),
    )  # fmt: skip
    assert tdb(output) == TDB([(X, 1, 50)])


# Joining


@pytest.mark.parametrize("algorithm", [R3, R4])
def test_with_a_lag_an_input_joins_by_what_is_decided(algorithm: type[LogicalMerge]) -> None:
    merge = algorithm(["a"], lag=10)  # type: ignore[call-arg]
    output = run(merge, ("a", Insert(X, 1, 5)), ("a", stable(8)))
    output += merge.attach("b", 8)
    output += run(merge, ("b", stable(40)))
    assert not merge.inputs["b"].joined
    output += run(merge, ("a", stable(18)))
    assert merge.inputs["b"].joined
    output += run(merge, ("b", END))
    assert tdb(output) == TDB([(X, 1, 5)])


def test_a_late_input_need_not_know_what_was_final_before() -> None:
    merge = R4(["a"])
    output = run(merge, ("a", Insert(X, 1, 5)), ("a", Insert(X, 1, 50)), ("a", stable(10)))
    output += merge.attach("b", 10)
    output += run(merge, ("b", Insert(X, 1, 40)), ("b", stable(45)), ("b", END))
    assert tdb(output) == TDB([(X, 1, 5), (X, 1, 40)])


# Ends


@pytest.mark.parametrize("algorithm", [R3, R4])
def test_the_output_ends_when_the_named_driver_leaves_after_the_other_ended(algorithm: type[LogicalMerge]) -> None:
    merge = algorithm(["a", "b"], driver="a")  # type: ignore[call-arg]
    output = run(merge, ("b", Insert(X, 1, 5)), ("b", END))
    assert not merge.ended
    output += merge.detach("a")
    assert merge.ended
    assert output == [Insert(X, 1, 5), END]


@pytest.mark.parametrize("algorithm", [R3, R4])
def test_the_output_ends_when_a_majority_leaves_after_the_third_ended(algorithm: type[LogicalMerge]) -> None:
    merge = algorithm(["a", "b", "c"], driver="majority")  # type: ignore[call-arg]
    output = run(merge, ("c", Insert(X, 1, 5)), ("c", END))
    output += merge.detach("a")
    assert not merge.ended
    output += merge.detach("b")
    assert merge.ended
    assert tdb(output) == TDB([(X, 1, 5)])


def test_while_a_named_driver_has_not_joined_the_leading_input_stands_in() -> None:
    merge = R3(["a", "b"], driver="a")
    output = run(merge, ("a", Insert(X, 1, 5)), ("b", Insert(X, 1, 5)), ("a", stable(3)))
    output += merge.restart("a", 50)
    output += run(merge, ("a", END), ("b", Insert(Y, 20, 30)), ("b", stable(60)))
    assert merge.ended
    assert tdb(output) == TDB([(X, 1, 5), (Y, 20, 30)])


def test_the_only_joined_input_cannot_begin_again_ahead_of_the_output() -> None:
    merge = R3(["a"])
    run(merge, ("a", stable(10)))
    with pytest.raises(MergeError, match="No other input has joined yet"):
        merge.restart("a", 50)
    merge.restart("a", 10)


# Alarms


@pytest.mark.parametrize("algorithm", [R3, R4, R3Minus])
def test_an_input_that_begins_again_or_attaches_late_is_not_accused(algorithm: type[LogicalMerge]) -> None:
    merge = algorithm(["a", "b"], watch=Watch("stop"))  # type: ignore[call-arg]
    story: list[Element] = [Insert(X, 1, 5), stable(8), Insert(Y, 10, 30), stable(20)]
    output = run(merge, *[(n, e) for e in story for n in "ab"])
    output += merge.restart("b")
    output += merge.attach("c", 20)
    output += run(merge, *[("b", e) for e in story], ("c", Insert(Y, 10, 30)), ("c", END), ("b", END), ("a", END))
    assert tdb(output) == TDB([(X, 1, 5), (Y, 10, 30)])
    assert merge.divergences == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("algorithm", [R0, R1, R2, R3, R4, R3Minus])
def test_an_input_that_skips_what_it_was_told_to_skip_is_not_accused(algorithm: type[LogicalMerge]) -> None:
    watch = Watch("stop") if algorithm in (R3, R4, R3Minus) else Trail("stop")
    merge = algorithm(["a", "b"], watch=watch)  # type: ignore[call-arg]
    run(merge, ("a", Insert(X, 1, 5)), ("a", Insert(Y, 6, 30)), ("a", stable(20)))
    assert merge.behind() == {"b": 20}
    run(merge, ("b", Insert(Y, 6, 30)), ("b", END), ("a", END))
    assert merge.divergences == []  # type: ignore[attr-defined]


STORIES: dict[str, list[Element]] = {
    "another end": [Insert(X, 1, 9), Insert(Y, 3, 5)],
    "one missing": [Insert(Y, 3, 5)],
    "one too many": [Insert(X, 1, 5), Insert(W, 2, 5), Insert(Y, 3, 5)],
    "another payload": [Insert(X, 1, 5), Insert(W, 3, 5)],
}


@pytest.mark.parametrize("theirs", STORIES.values(), ids=STORIES)
@pytest.mark.parametrize("algorithm", [R0, R1, R2, R3, R4, R3Minus])
def test_every_algorithm_tells_when_an_input_differs(algorithm: type[LogicalMerge], theirs: list[Element]) -> None:
    watch = Watch() if algorithm in (R3, R4, R3Minus) else Trail()
    merge = algorithm(["a", "b"], watch=watch)  # type: ignore[call-arg]
    run(merge, *[("a", e) for e in (Insert(X, 1, 5), Insert(Y, 3, 5), END)], *[("b", e) for e in (*theirs, END)])
    assert {d.input for d in merge.divergences} == {"b"}  # type: ignore[attr-defined]


# Order and repeats


@pytest.mark.parametrize("algorithm", [R0, R1, R2])
def test_disorder_is_put_aside_and_told(algorithm: type[LogicalMerge]) -> None:
    merge = algorithm(["a"])
    output = run(merge, *[("a", Insert(X, vs, vs + 1)) for vs in (1, 5, 3, 4, 7)])
    assert [e.vs for e in output if isinstance(e, Insert)] == [1, 5, 7]
    assert [m.element for m in merge.missteps] == [Insert(X, 3, 4), Insert(X, 4, 5)]
    assert merge.missteps[0].reason.startswith("a start of 3 after one of 5 in a stream declared")
    assert (merge.counts.inserts_in, merge.counts.missteps) == (3, 2)


def test_a_repeat_is_put_aside_where_there_can_be_none() -> None:
    merge = R2(["a", "b"])
    output = run(merge, ("a", Insert(X, 1, 2)), ("a", Insert(X, 1, 2)), ("b", Insert(X, 1, 2)), ("b", Insert(X, 1, 2)))
    assert output == [Insert(X, 1, 2)]
    assert [m.input for m in merge.missteps] == ["a", "b"]
    strict = R0(["a"])
    assert run(strict, ("a", Insert(X, 1, 2)), ("a", Insert(Y, 1, 2))) == [Insert(X, 1, 2)]
    assert len(strict.missteps) == 1


def test_r1_neither_doubles_nor_loses_when_an_input_is_replayed_without_a_word() -> None:
    w4, x5, y5 = Insert(W, 4, 9), Insert(X, 5, 9), Insert(Y, 5, 9)
    again = R1(["a", "b"])
    assert run(again, *[("a", e) for e in (w4, x5, y5, w4, x5, y5)]) == [w4, x5, y5]
    other = R1(["a", "b"])
    assert run(other, *[("a", w4), ("a", x5)], *[("b", e) for e in (w4, x5, w4, x5)], ("a", y5)) == [w4, x5, y5]
    beyond = R1(["a", "b"])
    assert run(beyond, *[("a", e) for e in (w4, stable(5), x5, y5, w4, x5, y5)]) == [w4, stable(5), x5, y5]


@pytest.mark.parametrize("bound", [[], [stable(5)]], ids=["disorder", "below its bound"])
def test_r1_goes_on_counting_after_an_insert_that_was_put_aside(bound: list[Element]) -> None:
    late, x5, y5, w5 = Insert(("late",), 4, 5), Insert(X, 5, 6), Insert(Y, 5, 6), Insert(W, 5, 6)
    merge = R1(["a", "b"], watch=Trail())
    output = run(merge, *[("a", e) for e in (*bound, x5, late, y5, late, late, w5, END)])
    output += run(merge, *[("b", e) for e in (x5, y5, w5, END)])
    assert [e for e in output if isinstance(e, Insert)] == [x5, y5, w5]
    assert [m.element for m in merge.missteps] == [late] * 3
    assert not merge.divergences


def test_r1_knows_a_replay_after_it_went_on_from_a_snapshot() -> None:
    w4, x5, y5 = Insert(W, 4, 9), Insert(X, 5, 9), Insert(Y, 5, 9)
    merge = R1(["a"])
    output = run(merge, *[("a", e) for e in (w4, x5, y5, w4)])
    (again,) = unflatten(decode(encode(flatten(merge))), R1(["a"]))
    assert output + run(again, ("a", x5), ("a", y5)) == [w4, x5, y5]


# What is kept


@pytest.mark.parametrize("algorithm", [R3, R4])
def test_the_calendar_does_not_grow_with_the_adjusts_of_an_event(algorithm: type[LogicalMerge]) -> None:
    merge = algorithm(["a", "b"])
    run(merge, ("a", Insert(X, 1, 30_000)), ("b", Insert(X, 1, 30_000)), ("a", stable(2)))
    for end in range(30_000, 20_000, -1):
        run(merge, ("a", Adjust(X, 1, end, end - 1)))
    for end in range(20_000, 29_000):
        run(merge, ("a", Adjust(X, 1, end, end + 1)))
    calendar = merge.index.due  # type: ignore[attr-defined]
    assert calendar.entries <= SPARE + 3
    assert len(calendar._times) <= SPARE + 3
    assert tdb([Insert(X, 1, 30_000), *run(merge, ("a", END))]) == TDB([(X, 1, 29_000)])


def test_r3_minus_gives_up_what_its_driver_does_not_have() -> None:
    merge = R3Minus(["a", "b"])
    output = run(merge, ("b", Insert(X, 1, 5)), ("a", Insert(Y, 1, 5)), ("a", END))
    assert tdb(output) == TDB([(Y, 1, 5)])
    assert not any(merge.ends.values())


def test_what_push_gives_is_the_callers() -> None:
    merge = R3(["a"], policy="half frozen")
    kept = merge.push("a", Insert(X, 1, 5))
    merge.push("a", END)
    assert kept == []


def test_half_frozen_comes_out_when_the_driver_has_passed_it_whatever_the_lag() -> None:
    merge = R3(["a"], policy="half frozen", lag=100)
    assert run(merge, ("a", Insert(X, 1, 500)), ("a", stable(2))) == [Insert(X, 1, 500), stable(-98)]
    bags = R4(["a"], policy="half frozen", lag=100)
    two = run(bags, ("a", Insert(X, 1, 500)), ("a", Insert(X, 1, 7)), ("a", stable(2)))
    assert sorted(e.ve for e in two if isinstance(e, Insert)) == [7, 500]


# Floats

THIRD = (0.1 + 0.2, "k")
SAME = (0.3, "k")


@pytest.mark.parametrize("algorithm", [R0, R1, R2, R3, R4, R3Minus])
def test_floats_that_differ_in_their_last_bits_are_one_and_the_first_wins(algorithm: type[LogicalMerge]) -> None:
    watch = Watch("stop") if algorithm in (R3, R4, R3Minus) else Trail("stop")
    merge = algorithm(["a", "b"], watch=watch)  # type: ignore[call-arg]
    output = run(merge, ("a", Insert(THIRD, 1, 5)), ("b", Insert(SAME, 1, 5)), ("b", END), ("a", END))
    assert output == [Insert(THIRD, 1, 5), END]


@pytest.mark.parametrize("algorithm", [R3, R4, R3Minus, CleanseThenR1])
@pytest.mark.parametrize("cut", [False, True])
def test_an_adjust_finds_its_event_whatever_the_last_bits_of_its_floats(
    algorithm: type[LogicalMerge], cut: bool
) -> None:
    first, again = ("x", 0.1 + 0.2), ("x", 0.3)
    merge = algorithm(["a"])
    output = run(merge, ("a", Insert(first, 1, 5)), ("a", Insert(("x", 0.4), 1, 5)))
    if cut:
        (merge,) = unflatten(decode(encode(flatten(merge))), algorithm(["a"]))
    output += run(merge, ("a", Adjust(again, 1, 5, 9)), ("a", Adjust(("x", 0.4), 1, 5, 1)), ("a", END))
    assert tdb(output) == TDB([(first, 1, 9)])
    assert not merge.missteps


def test_values_that_differ_by_more_are_two_events_and_told() -> None:
    merge = R3(["a", "b"], watch=Watch())
    run(merge, ("a", Insert((0.3, "k"), 1, 5)), ("a", END), ("b", Insert((0.3001, "k"), 1, 5)), ("b", END))
    assert len(merge.divergences) == 2


def test_a_key_that_has_come_with_other_values_is_not_doubled() -> None:
    merge = R2(["a", "b"], key=(1,))
    output = run(merge, ("a", Insert((5, "k"), 1, 5)), ("b", Insert((6, "k"), 1, 5)))
    assert output == [Insert((5, "k"), 1, 5)]
    assert "the output has other values for this key: (5, 'k')" in merge.missteps[0].reason
    watched = R2(["a", "b"], key=(1,), watch=Trail())
    run(watched, ("a", Insert((5, "k"), 1, 5)), ("a", END), ("b", Insert((6, "k"), 1, 5)), ("b", END))
    assert [d.payload for d in watched.divergences] == [(5, "k"), (6, "k")]
