"""Inputs that are not replicas are found out, with the first event on which they differ; the driver decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.algorithms.merge.divergence import Divergence, Watch
from penstock.algorithms.merge.r3 import R3
from penstock.errors import MergeError
from penstock.model.elements import Adjust, Element, Insert, linear
from penstock.model.tdb import TDB, tdb
from penstock.model.time import END_OF_TIME
from penstock.testing.replicas import histories, replicas

P, Q = ("p",), ("q",)
END = linear("vs", END_OF_TIME)


def run(merge: R3, *arrivals: tuple[str, Element]) -> list[Element]:
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
