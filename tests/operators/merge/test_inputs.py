"""Inputs that come, go, stall, begin again and contradict themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import MergeError
from penstock.model.elements import Adjust, Element, Insert, linear
from penstock.model.properties import StreamProperties
from penstock.model.tdb import TDB, tdb
from penstock.model.time import END_OF_TIME
from penstock.operators.merge.base import LogicalMerge
from penstock.operators.merge.choose import ALGORITHMS, choose
from penstock.operators.merge.ordered import R0, R1, R2
from penstock.operators.merge.policies import NAMES
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.r4 import R4
from penstock.testing.asserts import assert_same
from penstock.testing.replicas import histories, ordered_replicas
from tests.operators.merge.test_against_oracle import one_per_start

P, Q = ("p",), ("q",)


def stable(bound: int) -> Element:
    return linear("vs", bound)


@pytest.mark.parametrize("algorithm", [R0, R1, R2])
@given(data=st.data())
def test_an_ordered_merge_loses_nothing_to_an_input_that_attaches_ahead(
    algorithm: type[LogicalMerge], data: st.DataObject
) -> None:
    events = sorted(one_per_start(data.draw(histories(max_size=12))), key=lambda e: e[1])
    merge = algorithm(["one"])
    complete_from = data.draw(st.integers(1, 14))
    queues = {"one": data.draw(ordered_replicas(events))}
    attach_at = data.draw(st.integers(0, len(queues["one"])))
    output: list[Element] = []
    pushed = 0
    while any(queues.values()):
        if pushed == attach_at and "two" not in queues:
            merge.attach("two", complete_from)
            queues["two"] = data.draw(ordered_replicas(events, complete_from=complete_from))
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        output += merge.push(name, queues[name].pop(0))
        pushed += 1
    assert_same(TDB(events), tdb(output))


def test_an_input_that_attaches_at_10_does_not_hide_4_to_9() -> None:
    merge = R0(["one"])
    output = [out for vs in (1, 2, 3) for out in merge.push("one", Insert(P, vs, vs + 1))]
    merge.attach("two", complete_from=10)
    output += merge.push("two", Insert(P, 10, 11))
    output += [out for vs in range(4, 11) for out in merge.push("one", Insert(P, vs, vs + 1))]
    assert [e.vs for e in output if isinstance(e, Insert)] == list(range(1, 11))


def test_all_but_one_input_may_fail_at_once() -> None:
    merge = R3([f"in{i}" for i in range(5)])
    output = [out for i in range(5) for out in merge.push(f"in{i}", Insert(P, 1, 5))]
    for i in range(4):
        merge.detach(f"in{i}")
    output += merge.push("in4", Insert(Q, 2, 6)) + merge.push("in4", stable(END_OF_TIME))
    assert tdb(output) == TDB([(P, 1, 5), (Q, 2, 6)])


def test_r1_counts_a_replayed_input_from_its_beginning() -> None:
    merge = R1(["one", "two"])
    tie = [Insert(P, 1, 2), Insert(Q, 1, 2), Insert(P, 1, 2)]
    output = [out for e in tie[:2] for out in merge.push("one", e)]
    merge.restart("one")
    output += [out for e in tie for out in merge.push("one", e)]
    output += [out for e in tie for out in merge.push("two", e)]
    assert output == tie


def test_a_new_copy_that_is_seeded_from_a_snapshot_takes_over() -> None:
    """Jumpstart and cut-over: the new input brings what is alive at 10, then the old one leaves."""
    merge = R3(["old"])
    output = [out for e in (Insert(P, 1, 20), Insert(Q, 2, 5), stable(10)) for out in merge.push("old", e)]
    merge.attach("new", complete_from=10)
    output += merge.push("new", Insert(P, 1, 20))  # from the snapshot: all that ends at or after 10
    merge.detach("old")
    output += merge.push("new", Insert(Q, 12, 15)) + merge.push("new", stable(END_OF_TIME))
    assert tdb(output) == TDB([(P, 1, 20), (Q, 2, 5), (Q, 12, 15)])


# What inputs and users may not do


def reasons(merge: LogicalMerge, *elements: Element) -> list[str]:
    for element in elements:
        merge.push("a", element)
    return [m.reason for m in merge.missteps]


@pytest.mark.parametrize("algorithm", [R3, R4, ALGORITHMS["R3-"]])
def test_an_adjust_of_an_unknown_event_is_put_aside(algorithm: type[LogicalMerge]) -> None:
    assert reasons(algorithm(["a", "b"]), Adjust(P, 3, 5, 7)) == [
        "an adjust of an event that the input has not reported"
    ]


def test_an_adjust_that_names_another_end_is_put_aside() -> None:
    found = reasons(R3(["a"]), Insert(P, 3, 5), Adjust(P, 3, 6, 7))
    assert found == ["an adjust of an event that ends at 5, not at 6"]


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
def test_a_bound_that_goes_back_is_put_aside(algorithm: type[LogicalMerge]) -> None:
    merge = algorithm(["a"])
    assert reasons(merge, stable(9), stable(9), stable(7)) == ["a bound of 7 after one of 9"]
    assert merge.stable == 9


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
def test_an_insert_below_its_own_bound_is_put_aside(algorithm: type[LogicalMerge]) -> None:
    assert reasons(algorithm(["a"]), stable(9), Insert(P, 8, 20)) == ["an insert at 8, below the input's own bound 9"]


def test_a_payload_of_another_schema_is_put_aside() -> None:
    assert reasons(R3(["a"], width=2), Insert(P, 1, 2)) == ["a payload of 1 values where 2 were expected"]


def test_an_adjust_in_an_insert_only_merge_is_put_aside() -> None:
    assert reasons(R2(["a"]), Adjust(P, 1, 2, 3)) == ["an adjust in a stream declared insert-only (R2)"]


def test_the_same_event_twice_breaks_the_key() -> None:
    (reason,) = reasons(R3(["a"]), Insert(P, 1, 2), Insert(P, 1, 2))
    assert "not a key" in reason


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: m.detach("a"), "last input cannot be detached"),
        (lambda m: m.detach("x"), "no such input"),
        (lambda m: m.attach("a"), "an input of that name"),
        (lambda m: m.push("x", stable(1)), "no such input"),
    ],
)
def test_what_a_user_may_not_do_is_an_error(act: object, message: str) -> None:
    with pytest.raises(MergeError, match=message):
        act(R3(["a"]))  # type: ignore[operator]


def test_the_only_joined_input_cannot_leave() -> None:
    merge = R3(["a"])
    merge.attach("b", complete_from=10)
    with pytest.raises(MergeError, match="No other input has joined"):
        merge.detach("a")


def test_a_policy_by_name() -> None:
    for name in NAMES.values():
        assert R3(["a"], policy=name).policy.name == name
    with pytest.raises(MergeError, match="no such policy"):
        R3(["a"], policy="boldly")


# Which algorithm

KEY = frozenset({"k"})


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (StreamProperties(ordered=True, strictly_ordered=True), "R0"),
        (StreamProperties(ordered=True, deterministic_ties=True), "R1"),
        (StreamProperties(ordered=True, key=KEY), "R2"),
        (StreamProperties(key=KEY), "R3"),
        (StreamProperties(ordered=True, key=KEY, insert_only=False), "R3"),
        (StreamProperties(ordered=True), "R4"),
        (StreamProperties(insert_only=False), "R4"),
    ],
)
def test_the_weakest_right_algorithm_is_chosen(properties: StreamProperties, expected: str) -> None:
    assert choose(properties).name == expected
    keyed = properties.key is not None or properties.strictly_ordered
    for name in ("R0", "R1", "R2", "R3", "R3-", "R4", "Cleanse + R1"):
        strength = "R3" if name in ("R3-", "Cleanse + R1") else name
        if strength >= expected and (keyed or name in ("R0", "R1", "R4")):
            assert choose(properties, name).name == name
        else:
            with pytest.raises(MergeError, match="would not be right"):
                choose(properties, name)
