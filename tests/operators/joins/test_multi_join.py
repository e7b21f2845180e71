"""MJoin by itself: promises are the most that can be promised, and rows are kept while they may still be met."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from unittest import mock

import numpy as np
import pytest

from penstock.model.batch import Batch, Row, rows_of, table_of
from penstock.model.elements import Punctuation, linear
from penstock.model.frontier import Frontier
from penstock.model.schema import Field, Schema, schema_of
from penstock.model.time import END_OF_TIME
from penstock.operators.joins import multi_join
from penstock.operators.joins.forms import Side
from penstock.operators.joins.multi_forms import MultiForms
from penstock.operators.joins.multi_join import MultiJoinOperator
from penstock.operators.joins.probing import STALE, Probing
from penstock.operators.joins.reach import MultiPromised, Reach, reach_of

SIDE = schema_of([("ts", "bigint"), ("k", "bigint"), ("id", "bigint")], "ts")
DOMAIN = np.arange(-12, 45)
Apart = tuple[int, int, int, int]


def join(apart: list[Apart], *, keyed: bool) -> MultiJoinOperator:
    keys = (1,) if keyed else ()
    sides = tuple(Side(SIDE, "ts", keys, keeps=False) for _ in range(3))
    fields = [Field(f"{name}_{f.name}", f.type) for name in "abc" for f in SIDE.fields]
    schema = Schema((*fields, Field("t", SIDE["ts"].type, hidden=True)), "t")
    origins = [*[((at,), place) for at in range(3) for place in range(3)], ((0, 1, 2), -1)]
    classes = (((0, 1), (1, 1), (2, 1)),) if keyed else ()
    reach = Reach(reach_of(3, apart), (True, True, True))
    promised = MultiPromised(("a_ts", "b_ts", "c_ts"), "t", apart[-1][:2])
    return MultiJoinOperator(MultiForms(schema, sides, origins, []), sides, Probing(3, classes), reach, promised)


def some_apart(chance: random.Random) -> list[Apart]:
    """A band between the first two, one between the third and one of these, and perhaps one with the other."""
    pairs = [(0, 1), (chance.randint(0, 1), 2)]
    pairs += [(1 - pairs[1][0], 2)] * (chance.random() < 0.3)
    made = []
    for first, second in pairs:
        low = chance.randint(-4, 3)
        made.append((first, second, low, low + chance.randint(0, 5)))
    return made


class Expected:
    def __init__(self, apart: list[Apart], *, keyed: bool) -> None:
        self.keyed, self.apart = keyed, apart
        self.rows: list[list[Row]] = [[], [], []]
        self.bounds = [-(10**9)] * 3
        grid = np.array(np.meshgrid(DOMAIN, DOMAIN, DOMAIN, indexing="ij")).reshape(3, -1)
        fit = np.ones(grid.shape[1], np.bool_)
        for first, second, low, high in apart:
            fit &= (grid[second] - grid[first] >= low) & (grid[second] - grid[first] <= high)
        self.possible = grid[:, fit]

    def out(self) -> Counter[Row]:
        found = []
        for rows in product(*self.rows):
            near = all(low <= rows[b][0] - rows[a][0] <= high for a, b, low, high in self.apart)  # type: ignore[operator]
            same = not self.keyed or (rows[0][1] is not None and rows[0][1] == rows[1][1] == rows[2][1])
            if near and same:
                found.append((*rows[0], *rows[1], *rows[2], max(row[0] for row in rows)))  # type: ignore[type-var]
        return Counter(found)

    def still(self) -> np.ndarray:
        """The times of results that may still come: with a row of one input at least that is still to come."""
        return self.possible[:, (self.possible >= np.array(self.bounds)[:, None]).any(axis=0)]

    def least(self) -> dict[str, int]:
        open_ = self.still()
        if not open_.shape[1]:
            return dict.fromkeys(("a_ts", "b_ts", "c_ts", "t"), END_OF_TIME)
        values = (*open_, open_.max(axis=0))
        return {name: int(each.min()) for name, each in zip(("a_ts", "b_ts", "c_ts", "t"), values, strict=True)}

    def needed(self, port: int) -> Counter[Row]:
        """The rows that may be in a result that is still to come, with a new row of another input."""
        bounds = np.array(self.bounds)[:, None]
        fresh = self.possible >= bounds
        fresh[port] = False
        times = set(self.possible[port, fresh.any(axis=0)].tolist())
        return Counter(row for row in self.rows[port] if row[0] in times and not (self.keyed and row[1] is None))


def held(operator: MultiJoinOperator, port: int) -> Counter[Row]:
    runs = operator._bounds().runs[port]
    kept = [row for number in runs for row in rows_of(operator._run(number).table)]
    return Counter([*kept, *operator._loose(port)])


@pytest.mark.parametrize("seed", range(40))
def test_what_can_be_out_is_out_and_what_can_be_promised_is(seed: int) -> None:
    chance = random.Random(seed)
    apart, keyed = some_apart(chance), chance.random() < 0.7
    expected = Expected(apart, keyed=keyed)
    if not expected.possible.shape[1]:
        return  # the rule makes no operator of bands that cannot hold together
    operator = join(apart, keyed=keyed)
    out: Counter[Row] = Counter()
    promised, reached = Frontier(), [0, 0, 0]
    few = chance.choice([0, 2, 9])
    with mock.patch.multiple(multi_join, FEW_ROWS=few, MELTING=chance.choice([1, 64]), MOST=chance.choice([1, 9])):
        for number in range(40):
            port = chance.randint(0, 2)
            reached[port] += chance.randint(0, 3)
            if chance.random() < 0.5:
                expected.bounds[port] = max(expected.bounds[port], reached[port] - chance.randint(0, 4))
                made = list(operator.punctuate(port, linear("ts", expected.bounds[port])))
            else:
                rows: list[Row] = [
                    (max(reached[port] - chance.randint(0, 4), expected.bounds[port], 0),
                     chance.choice([1, 2, None]), 10 * number + i) for i in range(chance.randint(1, 3))
                ]  # fmt: skip
                expected.rows[port] += rows
                by_rows = few == 9 or chance.random() < 0.6
                batch = Batch(SIDE, rows) if by_rows else Batch(SIDE, table=table_of(SIDE, rows))
                made = list(operator.process(port, batch))
            for each in made:
                if isinstance(each, Punctuation):
                    assert promised.add(each), "a promise that says nothing new"
                    continue
                assert isinstance(each, Batch)
                out.update(each.rows)
                for row in each.rows:
                    values = dict(zip(operator.schema.names, row, strict=True))
                    assert not any(p.condemns(values) for p in promised)
            assert out == expected.out()
            if min(expected.bounds) >= 0 and max(reached) < 30:
                assert {name: promised.bound(name) for name in expected.least()} == expected.least()
                assert_joint(operator, expected, promised)
            for at in range(3):
                assert not expected.needed(at) - held(operator, at)
                if few == 9:  # loose rows are given up at once
                    assert held(operator, at) == expected.needed(at)
    for port in range(3):
        list(operator.punctuate(port, linear("ts", END_OF_TIME)))
    assert operator.rows_held() == 0


def assert_joint(operator: MultiJoinOperator, expected: Expected, promised: Frontier) -> None:
    """Of the two times that are promised together, nothing that may come is below both bounds."""
    open_ = expected.still()
    for promise in promised:
        if len(promise.bounds) == 2:
            places = ["abc".index(name[0]) for name, _ in promise.bounds]
            below = [open_[at] < bound for at, (_, bound) in zip(places, promise.bounds, strict=True)]
            assert not (below[0] & below[1]).any(), promise


def test_bounds_follow_through_other_streams() -> None:
    """b is 2 to 4 after a, and c no more than 1 off b: so c is 1 to 5 after a."""
    most = reach_of(3, [(0, 1, 2, 4), (1, 2, -1, 1)])
    assert (most[0][2], -most[2][0]) == (5, 1)


def test_it_looks_first_where_it_has_met_least() -> None:
    probing = Probing(3, (((0, 0), (1, 0)), ((0, 1), (2, 1))))
    probing.told(frozenset({0}), 1, 10, 50)
    assert probing.next(frozenset({0})).other == 2  # not measured yet
    probing.told(frozenset({0}), 2, 10, 500)
    assert probing.next(frozenset({0})).other == 1
    for _ in range(STALE):
        probing.told(frozenset({0}), 1, 10, 2000)
    assert probing.next(frozenset({0})).other in (1, 2)
    assert (frozenset({0}), 1) not in probing.measures  # it is measured anew


def test_a_stream_with_two_columns_of_a_class_is_compared_by_both() -> None:
    probing = Probing(3, (((0, 0), (0, 1), (1, 0), (2, 0)),))
    step = probing.next(frozenset({0}))
    assert (step.columns, step.sources) == ((0, 0), ((0, 0), (0, 1)))
    assert probing.next(frozenset({0, 1})).sources == ((0, 0),)
    assert probing._step(frozenset({1}), 0).columns == (0, 1)
