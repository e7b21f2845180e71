"""`pk.merge` as users meet it: queries and elements in, one stream out, with what happened on the way."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.errors import CheckpointError, MergeError
from penstock.flow.merging import Merge
from penstock.model.elements import Adjust, Element, Insert, linear
from penstock.model.properties import StreamProperties
from penstock.model.tdb import TDB
from penstock.model.time import END_OF_TIME

P, Q = ("p",), ("q",)
KEYED = StreamProperties(insert_only=False, key=frozenset({"p"}))


def stable(bound: int) -> Element:
    return linear("vs", bound)


ONE = [Insert(P, 1, 9), Adjust(P, 1, 9, 5), stable(4), Insert(Q, 6, 8), stable(END_OF_TIME)]
TWO = [Insert(Q, 6, 7), Insert(P, 1, 5), Adjust(Q, 6, 7, 8), stable(END_OF_TIME)]


def test_two_physical_streams_become_one() -> None:
    merged = list(pk.merge([ONE, TWO]))
    assert pk.tdb(merged) == pk.tdb(ONE) == pk.tdb(TWO)
    assert merged[-1] == stable(END_OF_TIME)


def test_nan_is_one_value_whoever_brings_it() -> None:
    one, other = ([Insert((float("nan"),), 1, 5), stable(END_OF_TIME)] for _ in range(2))
    assert pk.tdb(pk.merge([one, other], properties=KEYED)).size == 1


def query(rows: list[dict[str, object]], progress: object) -> object:
    flow = pk.Flow().stream("s", rows, time="ts", progress=progress)
    return flow.query("SELECT k, count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM s GROUP BY k")


ROWS: list[dict[str, object]] = [{"ts": t, "k": "ab"[t % 2]} for t in range(35)]


def test_replicas_of_a_query_are_merged_by_what_their_plans_promise() -> None:
    ordered, disordered = query(ROWS, pk.ordered()), query(ROWS[::-1], pk.bounded(100))
    merge = pk.merge({"fast": ordered, "slow": disordered})
    assert merge.choice.name == "R2"  # grouped windows come in order, each with a key
    assert pk.tdb(merge) == pk.tdb(ordered.elements())  # type: ignore[attr-defined]
    assert "R2: insert-only, ordered, with a key; not R1, since ties may come in any order" in merge.explain()


def test_elements_of_which_nothing_is_known_need_the_strongest() -> None:
    assert pk.merge([ONE, TWO]).choice.name == "R4"
    assert pk.merge([ONE, TWO], properties=KEYED).choice.name == "R3"
    assert pk.merge([ONE, TWO], properties=KEYED, algorithm="R4").choice.name == "R4"


def test_a_weaker_algorithm_than_is_proven_is_refused() -> None:
    with pytest.raises(MergeError, match="R2 would not be right for these streams"):
        pk.merge([ONE, TWO], properties=KEYED, algorithm="R2")


def test_a_merge_is_fed_by_hand_and_inputs_come_and_go() -> None:
    merge = pk.merge({"a": [], "b": []}, properties=KEYED)
    output = [out for e in ONE[:3] for out in merge.push("a", e)]
    assert merge.behind() == {"b": 4}
    merge.attach("c", complete_from=4)
    merge.detach("a")
    output += [out for e in TWO for out in merge.push("c", e)]
    assert pk.tdb(output) == pk.tdb(ONE)
    assert merge.stable == END_OF_TIME
    assert (merge.counts.inserts_in, merge.counts.inserts_out) == (3, 2)


def test_what_an_input_contradicts_is_told() -> None:
    merge = pk.merge([[Insert(P, 1, 2), stable(9), Insert(Q, 3, 4), stable(END_OF_TIME)]], properties=KEYED)
    assert pk.tdb(merge) == TDB([(P, 1, 2)])
    (misstep,) = merge.missteps
    assert (misstep.input, misstep.reason) == ("input_1", "an insert at 3, below the input's own bound 9")


def test_divergence_is_reported_with_its_event() -> None:
    other = [Insert(P, 1, 6), stable(END_OF_TIME)]
    merge = pk.merge({"a": ONE, "b": other}, properties=KEYED, on_divergence="report")
    list(merge)
    assert str(merge.divergences[0]).startswith(("a has", "b has"))
    assert {d.payload for d in merge.divergences} == {P, Q}


def test_a_restored_merge_goes_on() -> None:
    first: Merge = pk.merge({"a": [], "b": []}, properties=KEYED)
    output = [out for e in ONE[:3] for out in first.push("a", e)]
    second: Merge = pk.merge({"a": [], "b": []}, properties=KEYED)
    second.restore(first.snapshot())
    output += [out for e in TWO for out in second.push("b", e)]
    assert pk.tdb(output) == pk.tdb(ONE)
    with pytest.raises(CheckpointError, match="another merge"):
        pk.merge([ONE]).restore(first.snapshot())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "boldly"}, "no such policy"),
        ({"algorithm": "R9"}, "no such merge"),
        ({"properties": StreamProperties(ordered=True, strictly_ordered=True), "lag": 3}, "R0 has no policies"),
        ({"on_divergence": "report"}, "payload and start are a key"),
    ],
)
def test_options_that_make_no_sense_are_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(MergeError, match=message):
        pk.merge([ONE, TWO], **options)
    with pytest.raises(MergeError, match="at least one input"):
        pk.merge([])
