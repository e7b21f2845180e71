"""Inputs that are not replicas are found out, with the first event on which they differ; the driver decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import MergeError
from penstock.model.elements import Adjust, Element, Insert, linear
from penstock.model.tdb import TDB, tdb
from penstock.model.time import END_OF_TIME
from penstock.operators.merge.base import LogicalMerge
from penstock.operators.merge.baselines import CleanseThenR1
from penstock.operators.merge.choose import ALGORITHMS
from penstock.operators.merge.divergence import Divergence, Watch
from penstock.operators.merge.ordered import R0, R1, R2, OrderedMerge
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.trail import Trail
from penstock.testing.replicas import histories, replicas

P, Q = ("p",), ("q",)
END = linear("vs", END_OF_TIME)


def run(merge: LogicalMerge, *arrivals: tuple[str, Element]) -> list[Element]:
    return [out for name, element in arrivals for out in merge.push(name, element)]


@given(data=st.data())
def test_replicas_raise_no_alarm(data: st.DataObject) -> None:
    events = data.draw(histories())
    names = ["a", "b", "c"]
    queues = {n: data.draw(replicas(events)) for n in names}
    merge = R3(names, watch=Watch("stop"), driver=data.draw(st.sampled_from(["leading", "majority", "b"])))
    output: list[Element] = []
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        output += merge.push(name, queues[name].pop(0))
    assert merge.divergences == []
    assert tdb(output) == TDB(events)


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ([Insert(P, 1, 9)], Divergence("b", P, 1, 5, 9)),
        ([], Divergence("b", P, 1, 5, None)),
        ([Insert(P, 1, 5), Insert(Q, 2, 4)], Divergence("b", Q, 2, None, 4)),
        ([Insert(P, 1, 5), Insert(Q, 2, 4), Adjust(Q, 2, 4, 2), Insert(Q, 3, 4)], Divergence("b", Q, 3, None, 4)),
    ],
)
@pytest.mark.parametrize("first", ["a", "b then a"])
def test_another_end_a_missing_and_an_extra_event_are_found(
    theirs: list[Element], expected: Divergence, first: str
) -> None:
    """Whether the input that differs is behind, or spoke first but did not drive the bound."""
    a: list[tuple[str, Element]] = [("a", Insert(P, 1, 5)), ("a", END)]
    b: list[tuple[str, Element]] = [("b", e) for e in theirs]
    arrivals = [*a, *b, ("b", END)] if first == "a" else [*b, *a, ("b", END)]
    merge = R3(["a", "b"], watch=Watch())
    output = run(merge, *arrivals)
    assert merge.divergences[0] == expected
    assert tdb(output) == TDB([(P, 1, 5)])


def test_an_alarm_may_stop_the_merge() -> None:
    merge = R3(["a", "b"], watch=Watch("stop"))
    run(merge, ("a", Insert(P, 1, 5)), ("a", END), ("b", Insert(P, 1, 6)))
    with pytest.raises(MergeError, match=r"not replicas.*\n?.*b has \[1, 6\) where the output has \[1, 5\)"):
        merge.push("b", END)


def arrivals() -> list[tuple[str, Element]]:
    """Input a is wrong and fast; b and c agree."""
    return [
        ("a", Insert(P, 1, 9)), ("a", END),
        ("b", Insert(P, 1, 5)), ("b", END),
        ("c", Insert(P, 1, 5)), ("c", END),
    ]  # fmt: skip


def test_the_leading_input_is_followed_by_default() -> None:
    assert tdb(run(R3(["a", "b", "c"]), *arrivals())) == TDB([(P, 1, 9)])


def test_the_majority_may_be_followed() -> None:
    merge = R3(["a", "b", "c"], driver="majority", watch=Watch())
    assert tdb(run(merge, *arrivals())) == TDB([(P, 1, 5)])
    assert [d.input for d in merge.divergences] == ["a"]


def test_a_named_input_may_be_followed() -> None:
    merge = R3(["a", "b", "c"], driver="c", watch=Watch())
    output = run(merge, *arrivals())
    assert tdb(output) == TDB([(P, 1, 5)])
    assert output[-1] == END


def test_what_is_kept_for_a_stalled_input_is_bounded() -> None:
    merge = R3(["a", "stalled"], watch=Watch(patience=10))
    for t in range(100):
        run(merge, ("a", Insert(P, 2 * t, 2 * t + 1)), ("a", linear("vs", 2 * t + 2)))
    assert merge.watch is not None
    assert merge.watch.unchecked > 80


def three(algorithm: str, **options: object) -> LogicalMerge:
    return ALGORITHMS[algorithm](["a", "b", "c"], watch=Watch(**options))  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize("algorithm", ["R3", "R4", "R3-"])
def test_what_waited_for_an_input_that_leaves_is_compared(algorithm: str) -> None:
    merge = three(algorithm)
    run(merge, ("a", Insert(P, 1, 5)), ("a", END), ("b", Insert(P, 1, 9)), ("b", END))
    assert merge.divergences == []  # type: ignore[attr-defined]
    merge.detach("c")
    assert merge.divergences == [Divergence("b", P, 1, 5, 9)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("algorithm", ["R3", "R4", "R3-"])
@pytest.mark.parametrize("parting", ["detach", "restart"])
def test_an_input_is_compared_before_it_leaves_or_begins_again(algorithm: str, parting: str) -> None:
    merge = three(algorithm)
    run(merge, ("a", Insert(P, 1, 5)), ("a", linear("vs", 50)), ("b", Insert(P, 1, 9)), ("b", linear("vs", 8)))
    getattr(merge, parting)("b")
    assert merge.divergences == [Divergence("b", P, 1, 5, 9)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("algorithm", ["R3", "R4", "R3-", "Cleanse + R1", "R2"])
def test_an_input_that_attached_late_answers_for_what_it_brings(algorithm: str) -> None:
    """Complete from 40 on, it need not have what ends before, and must not have what nobody has."""
    watch = Trail() if issubclass(ALGORITHMS[algorithm], OrderedMerge) else Watch()
    merge = ALGORITHMS[algorithm](["a"], watch=watch)  # type: ignore[call-arg]
    run(merge, ("a", Insert(P, 1, 5)), ("a", linear("vs", 50)))
    merge.attach("late", complete_from=40)
    run(merge, ("late", Insert(Q, 30, 100)), ("late", END), ("a", END))
    assert merge.divergences == [Divergence("late", Q, 30, None, 100)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("algorithm", ["R3", "R4", "R3-"])
def test_events_without_an_end_that_were_given_up_accuse_nobody(algorithm: str) -> None:
    merge = three(algorithm, patience=3)
    events = [Insert((str(t),), t, END_OF_TIME) for t in range(6)]
    for name in "abc":
        run(merge, *[(name, e) for e in events], (name, END))
    assert merge.divergences == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(("algorithm", "kind"), [("R1", R1), ("R2", R2)])
def test_very_many_ties_that_are_given_up_while_they_come_accuse_nobody(algorithm: str, kind: type[R1 | R2]) -> None:
    watch = Trail(patience=5)
    merge = kind(["a", "b"], watch=watch)
    ties = [Insert((str(n),), 10, 20) for n in range(12)]
    run(merge, *[("a", e) for e in ties[:8]], ("b", linear("vs", 5)), *[("a", e) for e in ties[8:]], ("a", END))
    run(merge, *[("b", e) for e in ties], ("b", END))
    assert merge.divergences == []
    assert watch.unchecked == 12


def test_what_is_given_up_is_counted_once() -> None:
    watch = Trail(patience=10)
    merge = R1(["a", "b"], watch=watch)
    for t in range(60):
        run(merge, ("a", Insert(P, t, t + 1)), ("a", linear("vs", t)))
    assert watch.unchecked == 50


def test_of_ordered_inputs_both_what_is_lacking_and_what_is_new_are_told() -> None:
    merge = R0(["a", "b"], watch=Trail())
    for name, payload in (("a", P), ("b", Q)):
        run(merge, (name, Insert(payload, 1, 5)), (name, END))
    assert merge.divergences == [Divergence("b", P, 1, 5, None), Divergence("b", Q, 1, None, 5)]


def test_zeros_in_their_last_bits_neither_double_nor_lose_when_cleansed() -> None:
    merge = CleanseThenR1(["a", "b"], watch=Trail())
    output: list[Element] = []
    for name, zero in (("a", 0.0), ("b", 5.5e-17)):
        output += run(merge, (name, Insert(("g", zero), 1, 5)), (name, Insert(("g", 1.5e-5), 1, 9)))
        output += run(merge, (name, linear("vs", 6 if name == "a" else 10)))
    output += run(merge, ("b", END), ("a", END))
    assert tdb(output) == TDB([(("g", 0.0), 1, 5), (("g", 1.5e-5), 1, 9)])
    assert merge.divergences == []


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_what_is_put_aside_counts_nowhere_else(algorithm: str) -> None:
    merge = ALGORITHMS[algorithm](["a", "b"])
    run(merge, ("a", Insert(P, 1, 5)), ("a", Adjust(Q, 3, 5, 6)), ("a", linear("vs", 6)), ("a", Insert(Q, 2, 9)))
    assert (merge.counts.inserts_in, merge.counts.adjusts_in, merge.counts.missteps) == (1, 0, 2)
