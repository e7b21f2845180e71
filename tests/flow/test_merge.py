"""`pk.merge` as users meet it: queries and elements in, one stream out, with what happened on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import penstock as pk
from penstock.errors import CheckpointError, DivergenceError, MergeError
from penstock.flow.merged_stream import MergedStream
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
    first: MergedStream = pk.merge({"a": [], "b": []}, properties=KEYED)
    output = [out for e in ONE[:3] for out in first.push("a", e)]
    second: MergedStream = pk.merge({"a": [], "b": []}, properties=KEYED)
    second.restore(first.snapshot())
    output += [out for e in TWO for out in second.push("b", e)]
    assert pk.tdb(output) == pk.tdb(ONE)
    with pytest.raises(CheckpointError, match="another merge"):
        pk.merge([ONE]).restore(first.snapshot())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "boldly"}, "no such policy"),
        ({"policy": "half frosen"}, "did you mean 'half frozen'"),
        ({"policy": "quorum many"}, "a number, such as quorum 0.7"),
        ({"policy": None}, "no such policy"),
        ({"algorithm": "R9"}, "no such merge"),
        ({"algorithm": "R3-", "lag": 3, "properties": KEYED}, "R3- has no policies"),
        ({"driver": "majorty"}, "did you mean 'majority'"),
        ({"driver": "input_3"}, "did you mean 'input_"),
        ({"on_divergence": "bogus"}, "one of report, stop, ignore"),
        ({"lag": -5}, "0 or more"),
        ({"lag": True}, "0 or more"),
        ({"lag": 1.5}, "0 or more"),
    ],
)
def test_options_that_make_no_sense_are_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(MergeError, match=message):
        pk.merge([ONE, TWO], **options)
    with pytest.raises(MergeError, match="at least one input"):
        pk.merge([])


def test_what_r0_to_r2_do_not_have_is_done_with_an_index() -> None:
    strict = StreamProperties(ordered=True, strictly_ordered=True)
    assert pk.merge([ONE, TWO], properties=strict).choice.name == "R0"
    lagging = pk.merge([ONE, TWO], properties=strict, lag=3)
    assert lagging.choice.name == "R3"
    assert "not R0, which has no place for a lag" in lagging.explain()
    ties = StreamProperties(ordered=True, deterministic_ties=True)
    assert pk.merge([ONE, TWO], properties=ties, driver="majority").choice.name == "R4"


# Queries


def summed(rows: list[dict[str, object]]) -> Any:
    flow = pk.Flow().stream("s", rows, time="ts", progress=pk.bounded(100))
    return flow.query("SELECT k, sum(x) AS total [RANGE 10, SLIDE 10, WA ts] FROM s GROUP BY k")


XS: list[dict[str, object]] = [{"ts": t, "k": "ab"[t % 2], "x": 0.1 * (t + 1)} for t in range(40)]


@pytest.mark.parametrize("algorithm", [None, "R3", "R4", "R3-", "Cleanse + R1"])
def test_sums_of_the_same_rows_in_another_order_are_one(algorithm: str | None) -> None:
    """Their last bits differ; the first one wins, nothing is doubled, nothing taken back, nobody accused."""
    one, other = summed(XS), summed(XS[::-1])
    assert one.collect() != other.collect()
    merge = pk.merge({"a": one, "b": other}, algorithm=algorithm, on_divergence="stop")
    output = list(merge)
    assert pk.equivalent(output, one.elements())
    assert sum(isinstance(e, Insert) for e in output) == 8
    assert merge.counts.adjusts_out == 0
    assert merge.divergences == merge.missteps == []


def test_a_replica_that_lost_a_row_is_told_by_default() -> None:
    merge = pk.merge({"a": query(ROWS, pk.ordered()), "b": query(ROWS[:-1], pk.ordered())})
    assert pk.tdb(merge).size == 8
    (found,) = {d.vs for d in merge.divergences}
    assert found == 40


def test_queries_with_other_columns_are_no_replicas() -> None:
    flow = pk.Flow().stream("s", ROWS, time="ts", progress=pk.ordered())
    other = flow.query("SELECT k, max(ts) AS n [RANGE 10, SLIDE 10, WA ts] FROM s GROUP BY k")
    longer = flow.query("SELECT k, count(*) AS m [RANGE 10, SLIDE 10, WA ts] FROM s GROUP BY k")
    assert pk.merge([query(ROWS, pk.ordered()), other])  # a count and a maximum are both bigint
    with pytest.raises(MergeError, match=r"same columns.*\n?.*input_2: .*`m` bigint"):
        pk.merge([query(ROWS, pk.ordered()), longer])
    merge = pk.merge([query(ROWS, pk.ordered())])
    with pytest.raises(MergeError, match="same columns"):
        merge.attach("late", longer)


def test_an_ungrouped_aggregate_is_strictly_ordered_so_r0_merges_it() -> None:
    def counted(rows: list[dict[str, object]], progress: object) -> Any:
        flow = pk.Flow().stream("s", rows, time="ts", progress=progress)  # type: ignore[arg-type]
        return flow.query("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM s")

    ordered, disordered = counted(ROWS, pk.ordered()), counted(ROWS[::-1], pk.bounded(100))
    merge = pk.merge([ordered, disordered], on_divergence="stop")
    assert merge.choice.name == "R0"
    assert pk.equivalent(merge, ordered.elements())


# Sources


def test_whoever_is_first_wins_while_another_sleeps() -> None:
    """The slow input gives nothing until the merged stream has said everything."""
    done = threading.Event()

    def slow() -> Iterator[Element]:
        assert done.wait(30)
        yield from TWO

    seen = []
    for element in pk.merge({"slow": slow(), "fast": iter(ONE)}, properties=KEYED):
        seen.append(element)
        if element == stable(END_OF_TIME):
            done.set()
    assert done.is_set()
    assert pk.tdb(seen) == pk.tdb(ONE)


def test_a_source_attaches_while_the_merge_is_read_and_joins() -> None:
    def first() -> Iterator[Element]:
        yield from ONE[:3]
        assert attached.wait(30)
        raise OSError("gone")

    attached = threading.Event()
    merge = pk.merge({"a": first()}, properties=KEYED)
    seen = []
    for element in merge:
        seen.append(element)
        if element == stable(4):
            merge.attach("late", [Insert(P, 1, 5), Insert(Q, 6, 8), stable(7), stable(END_OF_TIME)], complete_from=4)
            assert merge.joined == {"a": True, "late": True}
            attached.set()
    assert pk.tdb(seen) == pk.tdb(ONE)
    assert seen[-1] == stable(END_OF_TIME)
    assert merge.joined["late"]


def test_an_input_that_fails_leaves_and_the_last_one_is_an_error() -> None:
    def failing() -> Iterator[Element]:
        yield Insert(P, 1, 5)
        raise OSError("gone")

    merge = pk.merge({"a": failing(), "b": TWO}, properties=KEYED, driver="a")
    assert pk.tdb(merge) == pk.tdb(TWO)
    assert merge.ended
    assert isinstance(merge.failures["a"], OSError)
    with pytest.raises(MergeError, match=r"A source failed, and no other input can go on") as caught:
        list(pk.merge({"a": failing()}, properties=KEYED))
    assert caught.value.hint.startswith("put the source right and merge again")


def test_many_elements_are_read_no_further_ahead_than_they_are_wanted() -> None:
    given = 0

    def endless() -> Iterator[Element]:
        nonlocal given
        for t in range(10**6):
            given += 1
            yield Insert(P, t, t + 1)

    reading = iter(pk.merge([endless()], properties=KEYED))
    for _ in range(10):
        next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert given < 10_000


def test_missteps_are_counted_and_the_last_are_kept() -> None:
    merge = pk.merge([[]], properties=KEYED)
    merge.push("input_1", stable(5000))
    for t in range(3000):
        merge.push("input_1", Insert(P, t, t + 1))
    assert (merge.counts.missteps, len(merge.missteps)) == (3000, 1000)
    assert merge.missteps[-1].element == Insert(P, 2999, 3000)


@pytest.mark.parametrize("policy", ["first seen", "half frozen", "conservative"])
@pytest.mark.parametrize("bound", [None, 5])
def test_inputs_that_stop_without_an_end_are_told(
    policy: str, bound: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    event = pk.Insert(("x",), 7, 9)
    elements: list[Any] = [event] if bound is None else [pk.linear("vs", bound), event]
    merge = pk.merge({"a": elements, "b": elements}, policy=policy)
    out = [e for e in merge if isinstance(e, pk.Insert)]
    assert sorted(merge.failures) == ["a", "b"]
    for name, error in merge.failures.items():
        assert error.what == "The input stopped without having ended."
        assert error.where == name
        assert error.got == ("no bound" if bound is None else "its last bound is 5")
    if policy == "first seen":
        assert out == [event]
        assert not caplog.records
    else:
        assert out == []
        assert "holds back 1 events: every input stopped, and none has ended (a, b)" in caplog.text


def test_an_input_that_stops_while_another_ends_is_told() -> None:
    end = pk.linear("vs", pk.END_OF_TIME)
    merge = pk.merge({"a": [pk.Insert(("x",), 1, 2)], "b": [pk.Insert(("x",), 1, 2), end]}, policy="conservative")
    assert [e for e in merge if isinstance(e, pk.Insert)] == [pk.Insert(("x",), 1, 2)]
    assert list(merge.failures) == ["a"]
    assert merge.ended


def test_a_payload_that_cannot_be_compared_is_put_aside() -> None:
    for algorithm in ("R3", "R4"):
        key = frozenset({"x"}) if algorithm == "R3" else None
        merge = pk.merge({"a": [], "b": []}, properties=pk.StreamProperties(key=key, insert_only=False))
        assert merge.choice.name == algorithm
        assert merge.push("a", pk.Insert(([1],), 1, 2)) == []
        assert merge.push("b", pk.Adjust(({},), 1, 2, 3)) == []
        assert [m.reason.split(":")[0] for m in merge.missteps] == ["a payload that cannot be compared"] * 2
        assert (merge.counts.missteps, merge.counts.taken) == (2, 0)


@pytest.mark.parametrize("fails", [True, False])
def test_an_input_that_lied_is_told_when_the_one_that_all_waited_for_has_gone(fails: bool) -> None:
    others = threading.Barrier(3)

    def played(elements: list[Element]) -> Iterator[Element]:
        yield from elements
        others.wait(30)

    def gone() -> Iterator[Element]:
        others.wait(30)
        if fails:
            raise OSError("gone")
        yield from ()

    honest, lying = [Insert(P, 1, 5), stable(END_OF_TIME)], [Insert(P, 1, 9), stable(END_OF_TIME)]
    inputs = {"a": played(honest), "b": played(lying), "c": gone()}
    with pytest.raises(DivergenceError, match="not replicas"):
        list(pk.merge(inputs, properties=KEYED, on_divergence="stop"))


def test_a_snapshot_is_of_inputs_by_name() -> None:
    merge = pk.merge({"a": [], "b": []}, properties=KEYED)
    other = pk.merge({"x": ONE, "z": TWO}, properties=KEYED)
    with pytest.raises(CheckpointError, match="of other inputs") as error:
        other.restore(merge.snapshot())
    assert error.value.got == "inputs x, z; the snapshot has a, b"
    merge.detach("b")
    with pytest.raises(CheckpointError, match="of other inputs"):
        pk.merge({"a": ONE, "b": TWO}, properties=KEYED).restore(merge.snapshot())


@pytest.mark.parametrize("options", [{"driver": "a", "away": ["a"]}, {"driver": "c"}, {}, {"driver": "majority"}])
def test_a_snapshot_from_while_the_driver_was_away_is_restored(options: dict[str, Any]) -> None:
    first = pk.merge({"a": [], "b": [], "c": []}, properties=KEYED, driver="a")
    output = first.push("b", Insert(P, 1, 5)) + first.push("c", Insert(P, 1, 5)) + first.detach("a")
    output += first.push("b", stable(3))
    later = pk.merge({"b": [], "c": []}, properties=KEYED, **options)
    assert later.restore(first.snapshot()) == []
    output += later.push("b", stable(END_OF_TIME)) + later.push("c", stable(END_OF_TIME))
    assert output == [Insert(P, 1, 5), stable(3), stable(END_OF_TIME)]


def test_another_driver_speaks_when_a_snapshot_is_restored() -> None:
    first = pk.merge({"a": [], "b": []}, properties=KEYED, driver="a")
    assert first.push("b", Insert(P, 1, 5)) + first.push("b", stable(9)) == [Insert(P, 1, 5)]
    assert pk.merge({"a": [], "b": []}, properties=KEYED, driver="b").restore(first.snapshot()) == [stable(9)]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_an_empty_replica_empties_nothing(order: str) -> None:
    rows = {"a": [{"ts": t} for t in range(35)], "b": []}
    made = {n: pk.Flow().stream("s", rows[n], time="ts", schema="ts bigint").query("SELECT ts FROM s") for n in order}
    assert len(pk.tdb(pk.merge(made))) == 35
    given = {"a": ONE, "b": [stable(END_OF_TIME)]}
    assert pk.tdb(pk.merge({n: given[n] for n in order}, properties=KEYED)) == pk.tdb(ONE)


@pytest.mark.parametrize("ends", [(1, 2**63), (-(2**63) - 1, 5), (2**63, 2**63 + 1)])
def test_an_event_beyond_time_is_put_aside(ends: tuple[int, int]) -> None:
    merge = pk.merge({"a": [Insert(P, *ends), stable(END_OF_TIME)]}, properties=KEYED)
    assert list(merge) == [stable(END_OF_TIME)]
    assert [m.reason for m in merge.missteps] == ["an event beyond the ends of time"]
