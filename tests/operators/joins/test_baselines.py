"""The order-preserving rivals of OA-Join: what is settled is out, in the order of the left's time, and no sooner."""

from __future__ import annotations

import random
from collections import Counter
from unittest import mock

import pytest

from penstock.errors import PlanError
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, linear
from penstock.model.time import END_OF_TIME
from penstock.operators.joins import baselines
from penstock.operators.joins.baselines import OPIBJoin, OPOBJoin, OrderPreserving
from penstock.operators.state import MemoryPages, seal, unseal
from tests.operators.joins.test_oa_join import Expected, join, rows_of_a_side, some_near

ORDERED = ["inner", "left", "semi", "anti"]


@pytest.mark.parametrize("rival", [OPOBJoin, OPIBJoin])
@pytest.mark.parametrize("kind", ORDERED)
def test_all_below_the_bound_is_out_and_in_order(rival: type[OrderPreserving], kind: str) -> None:
    source = random.Random(ORDERED.index(kind))
    for _ in range(40):
        with mock.patch.object(baselines, "AT_ONCE", source.choice([1, 3, 1000])):
            check(rival, kind, source, keyed=source.random() < 0.7)


def check(rival: type[OrderPreserving], kind: str, source: random.Random, *, keyed: bool) -> None:
    side, near = rows_of_a_side(source.choice(["bigint", "timestamp"])), some_near(source)

    def made() -> OrderPreserving:
        return rival(join(kind, near, side, keyed=keyed))

    operator, expected = made(), Expected(kind, near, keyed=keyed)
    out: list[Row] = []
    reached, promised = [0, 0], -(10**9)
    for number in range(source.randint(5, 25)):
        if source.random() < 0.2:
            operator = restored(operator, made())
        given = expected.step(operator, side, source, reached, number)
        for each in given:
            if isinstance(each, Punctuation):
                promised = max(promised, each.value)
            else:
                assert isinstance(each, Batch)
                out.extend(each.rows)
        assert_ordered(out, expected, promised)
    for port in (0, 1):
        for each in operator.punctuate(port, linear("ts", END_OF_TIME)):
            out.extend(each.rows if isinstance(each, Batch) else ())
    expected.bounds = [10**9, 10**9]
    assert Counter(out) == expected.out()
    assert not [key for key in operator.pages.keys() if key.startswith(("run", "loose", "held"))]  # noqa: SIM118


def assert_ordered(out: list[Row], expected: Expected, promised: int) -> None:
    """Results are in order, and all of an earlier time of the left than is promised are out, and nothing else."""
    times = [row[0] for row in out]
    assert times == sorted(times)  # type: ignore[type-var]
    if min(expected.bounds) >= 0:
        sooner = expected.possible[expected.possible[:, 1] >= expected.bounds[1]][:, 0]
        assert promised == min(int(sooner.min()), expected.bounds[0])
    assert Counter(out) == Counter({row: n for row, n in expected.out().items() if row[0] < promised})  # type: ignore[operator]


def restored(operator: OrderPreserving, fresh: OrderPreserving) -> OrderPreserving:
    pages = {key: seal(operator, key, operator.pages.get(key), "join") for key in operator.pages.keys()}  # noqa: SIM118
    fresh.attach(MemoryPages({key: unseal(fresh, key, data, "join") for key, data in pages.items()}))
    return fresh


@pytest.mark.parametrize("rival", [OPOBJoin, OPIBJoin])
def test_results_without_a_row_of_the_left_have_no_place_in_its_order(rival: type[OrderPreserving]) -> None:
    side = rows_of_a_side("bigint")
    with pytest.raises(PlanError, match="in the order of that time"):
        rival(join("right", some_near(random.Random(1)), side, keyed=True))
