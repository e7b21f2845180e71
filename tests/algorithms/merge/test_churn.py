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

from penstock.algorithms.merge.base import LogicalMerge
from penstock.algorithms.merge.choose import ALGORITHMS
from penstock.algorithms.merge.divergence import Watch
from penstock.algorithms.merge.ordered import OrderedMerge
from penstock.algorithms.merge.policies import NAMES
from penstock.algorithms.merge.trail import Trail
from penstock.testing.churn import KINDS, Mutation, Trial, Violation

DRIVERS = ("leading", "majority", "other")
LAGS = (0, 3)
POLICIES = tuple(NAMES.values())
REVISABLE = ("R3", "R4")
CELLS = [(name, None) for name in ALGORITHMS if name not in REVISABLE] + list(product(REVISABLE, POLICIES))


def built(name: str, inputs: int, policy: str | None, driver: str, lag: int) -> LogicalMerge:
    kind = ALGORITHMS[name]
    names = ["steady", "other", "third", "fourth"][:inputs]
    watch = Trail() if issubclass(kind, OrderedMerge) else Watch()
    if policy is None:
        return kind(names, watch=watch)  # type: ignore[call-arg]
    return kind(names, watch=watch, policy=policy, driver=driver, lag=lag)  # type: ignore[call-arg]


@pytest.mark.parametrize(("name", "policy"), CELLS)
@settings(phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_whatever_inputs_do_the_output_is_right(name: str, policy: str | None, seed: int) -> None:
    rng = random.Random(seed)
    merge = built(name, rng.randint(1, 4), policy, rng.choice(DRIVERS), rng.choice([0, 1, 3, 10]))
    Trial(merge, name, seed, churn=rng.random() < 0.8).play()


def violation_of(trial: Trial) -> str:
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
            trial = Trial(built(name, 3, policy, driver, lag), name, seed, churn=churn, mutation=mutation)
            found = violation_of(trial)
            assert found.startswith("after") == trial.liar.lied, (driver, lag, churn, seed, found)
            lies += trial.liar.lied
        assert lies, (driver, lag, churn)


def test_the_kinds_are_those_of_the_algorithms() -> None:
    assert KINDS.keys() == ALGORITHMS.keys()
