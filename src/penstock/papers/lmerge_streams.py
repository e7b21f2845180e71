"""The streams of the merge experiments, with the paper's parameters (section VI-B).

`stable_freq`: the share of elements that are bounds. `duration`: how long an event lives. `max_gap`: the greatest step
of application time between elements. `disorder`: the share of events whose start is moved back. A payload is a number
up to 400 and a text of `text` bytes. Revisions come of an aggregate over disordered input in the paper; here an event
gets another end first, with probability `revised`.

Replicas are made from one seed for what happens and another for how it is told, so each has objects of its own, as if
it had come over the network.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from penstock.model.elements import Adjust, Element, Insert, linear
from penstock.model.time import END_OF_TIME

TEXTS = 512


@dataclass(frozen=True)
class Parameters:
    """What a generated stream is like."""

    events: int = 10_000
    stable_freq: float = 0.01
    duration: int = 100_000
    max_gap: int = 20
    disorder: float = 0.2
    revised: float = 0.0
    text: int = 1000
    seed: int = 1


def replica(p: Parameters, told: int = 0) -> Iterator[Element]:
    """One physical stream, to its end; `told` is the seed of how it is told."""
    what, how = random.Random(p.seed), random.Random(f"{p.seed}/{told}")
    texts = random.Random(7)
    alphabet = ["".join(texts.choices("abcdefgh", k=16)) for _ in range(TEXTS)]
    time = 0
    late: list[tuple[int, int, int, Element]] = []  # what is told later than it happened
    order = 0
    for number in range(p.events):
        time += what.randint(1, p.max_gap)
        text = (alphabet[number % TEXTS] * (p.text // 16 + 1))[: p.text - 8] + f"{number:08d}"
        payload = (what.randint(0, 400), text)
        vs, ve = time, time + p.duration
        elements: list[Element] = [Insert(payload, vs, ve)]
        if how.random() < p.revised:
            other = ve + how.randint(1, p.max_gap)
            elements = [Insert(payload, vs, other), Adjust(payload, vs, other, ve)]
        delay = how.randint(1, 20) * p.max_gap if how.random() < p.disorder else 0
        for step, element in enumerate(elements):
            order += 1
            heappush(late, (time + delay + step * how.randint(1, 5 * p.max_gap), order, _time(element), element))
        while late and late[0][0] <= time:
            yield heappop(late)[3]
            if how.random() < p.stable_freq:
                safe = min([time, *[t for _, _, t, _ in late]])
                yield linear("vs", safe)
    while late:
        yield heappop(late)[3]
    yield linear("vs", END_OF_TIME)


def ordered(p: Parameters) -> Iterator[Element]:
    """An insert-only stream whose starts strictly increase; every call makes objects of its own."""
    return replica(Parameters(**{**p.__dict__, "disorder": 0.0, "revised": 0.0}))


def _time(element: Element) -> int:
    return element.lateness_time if isinstance(element, Adjust) else element.vs  # type: ignore[union-attr]


def increasing(elements: Iterator[Element]) -> Iterator[Element]:
    """The same with bounds that do not go back."""
    greatest = None
    for element in elements:
        if not isinstance(element, Insert | Adjust):
            if greatest is not None and element.value <= greatest:
                continue
            greatest = element.value
        yield element
