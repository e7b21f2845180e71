"""Random lives of merges: every algorithm, policy, driver and lag; inputs that come, go, begin again and skip.

After every element the output satisfies the compatibility conditions and agrees with the history; at the end it is
equivalent and has ended, without a misstep and without an alarm. A merge that drops or doubles one event is found out.
`make fuzz` runs each of these a thousandfold.
"""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from penstock.model.tdb import Event
from penstock.model.time import END_OF_TIME
from penstock.operators.merge.base import LogicalMerge
from penstock.operators.merge.choose import ALGORITHMS
from penstock.operators.merge.divergence import PATIENCE, Watch
from penstock.operators.merge.ordered import OrderedMerge
from penstock.operators.merge.policies import NAMES
from penstock.operators.merge.trail import Trail
from penstock.testing.churn import KINDS, LAST_START, ChurnReplica, ChurnTrial, Mutation, Violation, history

DRIVERS = ("leading", "majority", "other")
LAGS = (0, 3)
POLICIES = tuple(NAMES.values())
REVISABLE = ("R3", "R4")
CELLS = [(name, None) for name in ALGORITHMS if name not in REVISABLE] + list(product(REVISABLE, POLICIES))


def built(name: str, inputs: int, policy: str | None, driver: str, lag: int, patience: int = PATIENCE) -> LogicalMerge:
    kind = ALGORITHMS[name]
    names = ["steady", "other", "third", "fourth"][:inputs]
    watch = Trail(patience=patience) if issubclass(kind, OrderedMerge) else Watch(patience=patience)
    if policy is None:
        return kind(names, watch=watch)  # type: ignore[call-arg]
    return kind(names, watch=watch, policy=policy, driver=driver, lag=lag)  # type: ignore[call-arg]


@pytest.mark.parametrize(("name", "policy"), CELLS)
@settings(phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_whatever_inputs_do_the_output_is_right(name: str, policy: str | None, seed: int) -> None:
    rng = random.Random(seed)
    patience = rng.choice([0, 1, 3, PATIENCE])
    merge = built(name, rng.randint(1, 4), policy, rng.choice(DRIVERS), rng.choice([0, 1, 3, 10]), patience)
    ChurnTrial(merge, name, seed, churn=rng.random() < 0.8).play()


def violation_of(trial: ChurnTrial) -> str:
    """What is found, which begins with "after" if the conditions found it and not only the outcome."""
    try:
        trial.play()
    except Violation as violation:
        return str(violation)
    return ""


LIES: list[Mutation] = ["drop", "double"]


@pytest.mark.parametrize(("name", "policy"), CELLS)
@pytest.mark.parametrize("mutation", LIES)
def test_a_merge_that_lies_is_found_out_in_every_cell(name: str, policy: str | None, mutation: Mutation) -> None:
    for driver, lag, churn in product(DRIVERS if policy else DRIVERS[:1], LAGS if policy else LAGS[:1], (False, True)):
        lies = 0
        for seed in range(4):
            trial = ChurnTrial(built(name, 3, policy, driver, lag), name, seed, churn=churn, mutation=mutation)
            found = violation_of(trial)
            assert found.startswith("after") == trial.liar.lied, (driver, lag, churn, seed, found)
            lies += trial.liar.lied
        assert lies, (driver, lag, churn)


def lied(rng: random.Random, events: list[Event]) -> list[Event]:
    """One event less, another end, or one more."""
    payload, vs, ve = events[rng.randrange(len(events))]
    place = events.index((payload, vs, ve))
    rest = events[:place], events[place + 1 :]
    return rng.choice(
        [
            [*rest[0], *rest[1]],
            [*rest[0], (payload, vs, vs + 11 if ve == END_OF_TIME else ve + 1), *rest[1]],
            [*events, (("y",), LAST_START + 1, LAST_START + 3)],
        ]
    )


@pytest.mark.parametrize(("name", "policy"), CELLS)
@settings(phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_an_input_that_lies_is_told_whoever_leaves(name: str, policy: str | None, seed: int) -> None:
    """It may leave itself, once the output has been decided, and so may those who contradict it, but for one."""
    rng = random.Random(seed)
    events = history(rng, KINDS[name], floats=rng.random() < 0.3) or [(("a",), 1, 5)]
    merge = built(name, 3, policy, rng.choice(DRIVERS), rng.choice([0, 1, 3, 10]))
    honest = rng.choice(["steady", "third"])
    told = {n: lied(rng, events) if n == "other" else events for n in merge.inputs}
    replicas = {n: ChurnReplica(rng, told[n], KINDS[name]) for n in merge.inputs}
    while replicas:
        each = rng.choice(list(replicas))
        if rng.random() < 0.05 and each not in ("other", honest):
            merge.detach(each)
            del replicas[each]
            continue
        merge.push(each, replicas[each].next())
        if replicas[each].ended:
            del replicas[each]
            if rng.random() < 0.5 and each != honest and (merge.ended or each != "other"):
                merge.detach(each)
    assert merge.divergences, (events, told["other"])  # type: ignore[attr-defined]


def test_the_kinds_are_those_of_the_algorithms() -> None:
    assert KINDS.keys() == ALGORITHMS.keys()
