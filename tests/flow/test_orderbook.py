"""Real replicas: four captures of one feed, merged in every pair and all four; each update comes out once."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

import penstock as pk
from penstock.flow.merged_stream import MergedStream
from penstock.model.elements import Element, Insert, linear
from penstock.model.properties import StreamProperties
from penstock.model.time import END_OF_TIME
from tests import orderbook
from tests.orderbook import CAPTURES, arrivals, updates

pytestmark = orderbook.needed
KEYED = StreamProperties(key=frozenset({"symbol", "seq", "side", "price"}))
GROUPS = [*combinations(CAPTURES, 2), CAPTURES]


class Replay:
    """Captures played back by when they were received; they may be cut off, and attach late."""

    def __init__(self, captures: tuple[int, ...], policy: str) -> None:
        self.policy = policy
        self.plans = {f"capture {c}": arrivals(c) for c in captures}
        self.late: dict[str, int] = {}
        self.pushed: set[Insert] = set()

    def cut_off(self, name: str) -> None:
        """It stops half way."""
        self.plans[name] = self.plans[name][: len(self.plans[name]) // 2]

    def attach_late(self, name: str) -> None:
        """It begins after a third; what is newer than the disorder allows has not been sent before."""
        plan = self.plans[name]
        self.plans[name] = plan[len(plan) // 3 :]
        first = next(e for _, e in self.plans[name] if isinstance(e, Insert))
        self.late[name] = first.vs + orderbook.disorder()

    def run(self) -> tuple[MergedStream, list[Element]]:
        order: list[tuple[float, int, str, Element]] = sorted(
            (at, i, name, e) for name, plan in self.plans.items() for i, (at, e) in enumerate(plan)
        )
        left = Counter(name for _, _, name, _ in order)
        early = [n for n in self.plans if n not in self.late]
        merge: MergedStream = pk.merge({n: [] for n in early}, properties=KEYED, policy=self.policy)
        output: list[Element] = []
        for _, _, name, element in order:
            if name in self.late and name not in merge.merge.inputs:
                merge.attach(name, complete_from=self.late[name])
            output += merge.push(name, element)
            if isinstance(element, Insert):
                self.pushed.add(element)
            left[name] -= 1
            if not left[name]:
                if len(merge.merge.inputs) > 1:
                    merge.detach(name)
                else:
                    output += merge.push(name, linear("vs", END_OF_TIME))
        assert merge.missteps == []
        return merge, output


def once(output: list[Element]) -> set[Insert]:
    """The updates that came out; none of them twice, none revised."""
    found = [e for e in output if not isinstance(e, pk.Punctuation)]
    assert all(isinstance(e, Insert) for e in found)
    assert len(found) == len(set(found))
    return set(found)  # type: ignore[arg-type]


def whole(*captures: int) -> set[Insert]:
    return {u for c in captures for _, u in updates(c)}


@pytest.mark.parametrize("captures", GROUPS, ids=str)
@pytest.mark.parametrize("policy", ["first seen", "half frozen", "quorum"])
def test_captures_merge_to_the_feed(captures: tuple[int, ...], policy: str) -> None:
    _, output = Replay(captures, policy).run()
    assert once(output) == whole(*captures)


@pytest.mark.parametrize("captures", GROUPS, ids=str)
def test_one_cut_off_and_one_attached_late_leave_no_gap(captures: tuple[int, ...]) -> None:
    """The first is cut off half way, the last attaches after a third; between them they have everything."""
    replay = Replay(captures, "first seen")
    replay.cut_off(f"capture {captures[0]}")
    replay.attach_late(f"capture {captures[-1]}")
    _, output = replay.run()
    assert once(output) == replay.pushed
    assert once(output) >= whole(*captures[1:-1])
    if 3 not in (captures[0], captures[-1]):
        assert once(output) == whole(*captures)


def test_a_capture_that_is_cut_off_does_not_matter_beside_a_whole_one() -> None:
    replay = Replay((1, 2), "first seen")
    replay.cut_off("capture 1")
    assert once(replay.run()[1]) == whole(2)


def test_the_output_follows_whichever_capture_is_first() -> None:
    """With all four, every update comes out when the first of them brings it."""
    received: dict[Insert, float] = {}
    for capture in CAPTURES:
        for at, update in updates(capture):
            received[update] = min(at, received.get(update, at))
    merge: MergedStream = pk.merge({f"capture {c}": [] for c in CAPTURES}, properties=KEYED)
    everything: list[tuple[float, int, str, Element]] = sorted(
        (at, i, f"capture {c}", e) for c in CAPTURES for i, (at, e) in enumerate(arrivals(c))
    )
    for at, _, name, element in everything:
        for out in merge.push(name, element):
            if isinstance(out, Insert):
                assert at == received[out]
