"""Merges of open/close and positive/negative streams: compatible after every element, equivalent at the end.

Where an open has at most one close, Example 5 of the paper judges: the output is among what the inputs have said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import DivergenceError
from penstock.flow.merged_stream import MergedStream
from penstock.model.elements import Adjust, Punctuation, linear
from penstock.model.form_reading import from_open_close, from_signed
from penstock.model.forms import Close, Formed, Open, Signed, time_of
from penstock.model.snapshots import snapshot_equivalent
from penstock.model.tdb import TDB, Event
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.merge.policies import NAMES
from penstock.reference.merge import OpenClosePrefix, incompatibilities_of_open_close
from penstock.testing.asserts import assert_same
from penstock.testing.formed import opened_and_closed, positive_and_negative, successions
from penstock.testing.replicas import histories, replicas

A, B, C = ("A",), ("B",), ("C",)
END = linear("vs", END_OF_TIME)
POLICIES = sorted(NAMES.values())


def assert_sound(outputs: list[Formed]) -> None:
    """No element is below a bound before it, and bounds go on."""
    bound = MIN_TICK
    for out in outputs:
        if isinstance(out, Punctuation):
            assert out.value > bound
            bound = out.value
        else:
            assert isinstance(out, Open | Close | Signed)
            assert time_of(out) >= bound, outputs


class Run:
    """A merge that is fed in any order and restored from a snapshot now and then."""

    def __init__(self, data: st.DataObject, streams: dict[str, list[Formed]], **options: Any) -> None:
        self.data, self.streams, self.options = data, streams, options
        self.merge = self.made()
        self.outputs: list[Formed] = []
        self.taken: list[tuple[str, Formed]] = []

    def made(self) -> MergedStream:
        found: MergedStream = pk.merge({name: [] for name in self.streams}, **self.options)
        return found

    def play(self, after: Callable[[], None] = lambda: None) -> list[Formed]:
        queues = {name: list(stream) for name, stream in self.streams.items()}
        while any(queues.values()):
            name = self.data.draw(st.sampled_from([n for n, q in queues.items() if q]))
            element = queues[name].pop(0)
            self.taken.append((name, element))
            self.outputs += self.merge.push(name, element)
            after()
            if self.data.draw(st.integers(0, 9)) == 0:
                snapshot = self.merge.snapshot()
                self.merge = self.made()
                self.merge.restore(snapshot)
        assert self.merge.missteps == []
        assert self.merge.divergences == []
        assert self.merge.ended
        return self.outputs


# Example 5


def judged(inputs: dict[str, list[Formed]], taken: list[tuple[str, Formed]], outputs: list[Formed]) -> list[str]:
    """What Example 5 says of an output, after some elements of its inputs."""
    prefixes = {name: OpenClosePrefix() for name in inputs}
    for name, element in taken:
        prefixes[name].take(element)
    output = OpenClosePrefix()
    for element in outputs:
        output.take(element)
    return incompatibilities_of_open_close(list(prefixes.values()), output)


def single(data: st.DataObject, events: list[Event]) -> dict[str, list[Formed]]:
    return {
        f"in{i}": data.draw(opened_and_closed(events, single_close=True)) for i in range(data.draw(st.integers(1, 3)))
    }


@given(data=st.data())
def test_after_every_element_the_output_is_among_what_the_inputs_have_said(data: st.DataObject) -> None:
    events = data.draw(successions())
    streams = single(data, events)
    run = Run(data, streams, form="open/close", single_close=True)

    def compatible() -> None:
        assert not judged(streams, run.taken, run.outputs)

    outputs = run.play(compatible)
    assert_sound(outputs)
    assert_same(TDB(events), pk.tdb(from_open_close(outputs)))  # type: ignore[arg-type]
    assert run.merge.choice.name == "R3"


@given(data=st.data())
def test_what_is_said_first_comes_out_at_once(data: st.DataObject) -> None:
    """Without a single bound, every open and close that any input has said is out."""
    events = [e for e in data.draw(successions()) if e[2] != END_OF_TIME]
    streams = {n: [e for e in s if not isinstance(e, Punctuation)] for n, s in single(data, events).items()}
    merge = pk.merge({n: [] for n in streams}, form="open/close", single_close=True)
    outputs = [out for name, stream in streams.items() for e in stream for out in merge.push(name, e)]
    assert_same(TDB(events), pk.tdb(from_open_close(outputs)))


@given(data=st.data())
def test_an_output_that_is_compatible_can_become_any_input(data: st.DataObject) -> None:
    """The condition suffices: what the output lacks of an input is an extension that makes them equivalent."""
    events = data.draw(successions())
    whole = data.draw(opened_and_closed(events, single_close=True))
    stream = [e for e in whole if not isinstance(e, Punctuation)]
    said = stream[: data.draw(st.integers(0, len(stream)))]
    extension = [e for e in stream if e not in said]
    assert not judged({"in": stream}, [("in", e) for e in stream], said)
    assert pk.tdb(from_open_close([*said, *extension])) == pk.tdb(from_open_close(stream))  # type: ignore[list-item]


class Liar:
    """A merge that tells one thing otherwise."""

    def __init__(self, how: str, lie_at: int) -> None:
        self.how, self.lie_at, self.seen, self.lied = how, lie_at, 0, False

    def tell(self, outputs: list[Formed]) -> Iterator[Formed]:
        for out in outputs:
            of_kind = isinstance(out, Open if self.how in ("open early", "open twice") else Close)
            self.seen += of_kind
            if not of_kind or self.lied or self.seen <= self.lie_at:
                yield out
                continue
            self.lied = True
            match self.how, out:
                case "open early", Open(payload, vs):
                    yield Open(payload, vs - 1)
                case "open twice", Open():
                    yield from (out, out)
                case "close later", Close(payload, ve):
                    yield Close(payload, ve + 1)
                case "close twice", Close(payload, ve):
                    yield from (out, Close(payload, ve + 1))


@pytest.mark.parametrize("how", ["open early", "open twice", "close later", "close twice"])
@given(data=st.data())
def test_a_merge_that_lies_is_found_out(how: str, data: st.DataObject) -> None:
    events = [*data.draw(successions()), (("z",), 1, 3)]
    streams = single(data, events)
    merge = pk.merge({n: [] for n in streams}, form="open/close", single_close=True)
    liar = Liar(how, data.draw(st.integers(0, sum(e[2] != END_OF_TIME for e in events) - 1)))
    outputs: list[Formed] = []
    taken: list[tuple[str, Formed]] = []
    found: list[str] = []
    for name, stream in streams.items():
        for element in stream:
            taken.append((name, element))
            outputs += liar.tell(merge.push(name, element))
            found = found or judged(streams, taken, outputs)
    assert liar.lied
    assert found


def test_a_policy_that_reopens_what_was_closed_is_found_out() -> None:
    """Reflecting every input is right where ends may be revised, and wrong where they may not."""
    streams: dict[str, list[Formed]] = {"one": [Open(A, 1), Close(A, 4)], "other": [Open(A, 1)]}
    taken = [(name, e) for name, stream in streams.items() for e in stream]
    verdicts = []
    for policy in ("first close", "reflect all"):
        merge = pk.merge({"one": [], "other": []}, form="open/close", policy=policy)
        verdicts.append(judged(streams, taken, [out for name, e in taken for out in merge.push(name, e)]))
    assert verdicts[0] == []
    assert any("closed 2 times" in why for why in verdicts[1])


# Every form, revised and mixed


@given(policy=st.sampled_from(POLICIES), data=st.data())
def test_open_close_streams_whose_ends_are_revised(policy: str, data: st.DataObject) -> None:
    events = data.draw(successions())
    streams = {f"in{i}": data.draw(opened_and_closed(events, single_close=False)) for i in range(3)}
    outputs = Run(data, streams, form="open/close", policy=policy).play()
    assert_sound(outputs)
    assert_same(TDB(events), pk.tdb(from_open_close(outputs)))  # type: ignore[arg-type]


@given(policy=st.sampled_from(POLICIES), data=st.data())
def test_positive_and_negative_streams(policy: str, data: st.DataObject) -> None:
    """Tuples come in order of time, and every snapshot is that of the history, repeats and all."""
    events = data.draw(histories(bag=True))
    streams = {f"in{i}": data.draw(positive_and_negative(events)) for i in range(2)}
    outputs = Run(data, streams, form="signed", policy=policy).play()
    assert_sound(outputs)
    times = [out.time for out in outputs if isinstance(out, Signed)]
    assert times == sorted(times)
    assert snapshot_equivalent(list(from_signed(outputs)), TDB(events))  # type: ignore[arg-type]


@pytest.mark.parametrize("gives", ["elements", "open/close", "signed"])
@given(data=st.data())
def test_inputs_of_different_forms_are_told_by_their_elements(gives: str, data: st.DataObject) -> None:
    events = data.draw(successions())
    streams: dict[str, list[Formed]] = {
        "elements": list(data.draw(replicas(events))),
        "opened": data.draw(opened_and_closed(events, single_close=False)),
        "signed": data.draw(positive_and_negative(events)),
    }
    outputs: list[Any] = Run(data, streams, gives=gives).play()
    back: dict[str, Callable[[Any], Any]] = {"elements": list, "open/close": from_open_close, "signed": from_signed}
    assert_same(TDB(events), pk.tdb(back[gives](outputs)))


@given(data=st.data())
def test_any_stream_of_events_can_be_given_as_open_and_close_if_it_ends(data: st.DataObject) -> None:
    """Events of a payload that overlap come one after the other, and hold the bound back meanwhile."""
    events = [(p, vs, ve if ve != END_OF_TIME else 40) for p, vs, ve in data.draw(histories(bag=True))]
    streams: dict[str, list[Formed]] = {f"in{i}": list(data.draw(replicas(events, bag=True))) for i in range(2)}
    outputs = Run(data, streams, gives="open/close").play()
    assert_sound(outputs)
    assert_same(TDB(events), pk.tdb(from_open_close(outputs)))  # type: ignore[arg-type]


# Inputs that come and go, memory, the alarm


def test_example_2_the_papers_streams_are_merged() -> None:
    streams = {
        "S": [Open(A, 1), Open(B, 2), Open(C, 3), Close(A, 4), Close(B, 5), Close(C, 9), END],
        "U": [Open(A, 1), Close(A, 4), Open(B, 2), Close(B, 5), Open(C, 3), Close(C, 9), END],
        "W": [Open(B, 2), Close(B, 6), Open(A, 1), Open(C, 3), Close(A, 4), Close(B, 5), Close(C, 9), END],
    }
    merge = pk.merge(streams, form="open/close")
    assert pk.tdb(from_open_close(merge)) == TDB([(A, 1, 4), (B, 2, 5), (C, 3, 9)])
    assert "gives open/close" in merge.explain()
    assert merge.choice.name == "R3"


def test_an_input_attaches_late_and_the_old_one_leaves() -> None:
    merge = pk.merge({"old": []}, form="open/close", single_close=True)
    outputs = [out for e in [Open(A, 1), Close(A, 4), Open(B, 2), linear("vs", 5)] for out in merge.push("old", e)]
    outputs += merge.attach("new", complete_from=5) + merge.detach("old")
    assert merge.joined == {"new": True}
    for element in [Open(B, 2), Close(B, 7), Open(A, 8), Close(A, 9), END]:
        outputs += merge.push("new", element)
    assert outputs == [
        Open(A, 1), Close(A, 4), Open(B, 2), linear("vs", 5), Close(B, 7), Open(A, 8), Close(A, 9), END,
    ]  # fmt: skip
    assert merge.missteps == []


def test_an_input_begins_again_and_what_it_said_no_longer_binds_it() -> None:
    merge = pk.merge({"a": [], "b": []}, form="signed")
    for element in [Signed(A, 1, 1), Signed(A, 5, -1), linear("vs", 3)]:
        merge.push("a", element)
    merge.restart("a")
    outputs = [out for e in [Signed(A, 1, 1), Signed(A, 5, -1), END] for out in merge.push("a", e)]
    assert outputs == [Signed(A, 5, -1), END]
    assert merge.missteps == []


def test_sources_of_any_form_are_read_side_by_side() -> None:
    sources = {"one": [Open(A, 1), Close(A, 4), END], "two": iter([Signed(A, 1, 1), Signed(A, 4, -1), END])}
    assert list(pk.merge(sources, gives="open/close"))[:2] == [Open(A, 1), Close(A, 4)]


@pytest.mark.parametrize("form", ["open/close", "signed"])
def test_what_is_frozen_is_forgotten(form: str) -> None:
    merge = pk.merge({"a": [], "b": []}, form=form)
    most = 0
    for t in range(0, 6000, 2):
        p = (f"p{t}",)
        told: list[Formed] = (
            [Open(p, t), Close(p, t + 1)] if form == "open/close" else [Signed(p, t, 1), Signed(p, t + 1, -1)]
        )
        for name in ("a", "b"):
            for element in [*told, linear("vs", t + 2)]:
                merge.push(name, element)
        most = max(most, merge._forms.size)
    assert most < 500
    assert merge.counts.missteps == 0


def test_inputs_that_differ_are_told_and_stop_if_so_asked() -> None:
    streams = {"a": [Open(A, 1), Close(A, 4), END], "b": [Open(A, 1), Close(A, 6), END]}
    merge = pk.merge(streams, form="open/close")
    list(merge)
    assert len(merge.divergences) == 1
    with pytest.raises(DivergenceError):
        list(pk.merge(streams, form="open/close", on_divergence="stop"))


def test_an_end_that_was_told_and_turns_out_wrong_is_not_silent() -> None:
    """b drives, and closes A elsewhere after the next event of A is out: single closes were promised in vain."""
    merge = pk.merge({"a": [], "b": []}, form="open/close", single_close=True, driver="b")
    for element in [Open(A, 1), Close(A, 4), Open(A, 5), Close(A, 9)]:
        merge.push("a", element)
    for element in [Open(A, 1), Close(A, 3), Open(A, 5), Close(A, 9), END]:
        merge.push("b", element)
    (misstep,) = merge.missteps
    assert (misstep.input, misstep.element) == ("the output", Adjust(A, 1, 4, 3))
    assert "another end" in misstep.reason
    assert merge.counts.missteps == 1
