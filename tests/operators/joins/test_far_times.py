"""Joins at the ends of 64 bits and of the calendar: pairs are those of Python's integers, by rows and by columns."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from penstock.model.batch import Batch, Row, table_of
from penstock.model.elements import Punctuation, linear
from penstock.model.frontier import Frontier
from penstock.model.schema import Field, Schema, schema_of
from penstock.model.time import END_OF_TIME, Domain, longest, usable
from penstock.operators.joins.asof_join import AsOfJoin, AsOfNames
from penstock.operators.joins.forms import Side
from penstock.operators.joins.latest_keeper import Latest
from penstock.operators.joins.multi_forms import MultiForms
from penstock.operators.joins.multi_join import MultiJoinOperator
from penstock.operators.joins.nearness import InWindow, Within, times_moved
from penstock.operators.joins.probing import Probing
from penstock.operators.joins.reach import MultiPromised, Reach, reach_of
from penstock.operators.operator import Operator, Output
from tests.operators.joins.test_oa_join import is_near
from tests.operators.joins.test_oa_join import join as oa_join

Apart = tuple[int, int, int, int]
MANY = 5000
"""More than is packed, and than is looked up at once."""
PADDING = {100 + port for port in range(6)}
"""Keys that only one side has."""
DOMAINS = {"bigint": Domain.INTEGER, "timestamp": Domain.TIMESTAMP}


def side_of(time: str) -> Schema:
    return schema_of([("ts", time), ("k", "bigint"), ("id", "bigint")], "ts")


def some_time(chance: random.Random, domain: Domain) -> int:
    """Near the ends, near what is the longest length from them, and anywhere."""
    first, last = usable(domain)
    most = longest(domain)
    near = chance.choice(
        [first, last, 0, first + most, last - most, first // 2, last // 2, chance.randint(first, last)]
    )
    return min(max(near + chance.randint(-3, 3), first), last)


def some_length(chance: random.Random, domain: Domain) -> int:
    most = longest(domain)
    return chance.choice([0, 1, 3, most - 1, most, most // 2, chance.randint(0, most)])


def some_band(chance: random.Random, domain: Domain) -> tuple[int, int]:
    low, high = sorted(chance.choice([-1, 1]) * some_length(chance, domain) for _ in range(2))
    return low, high


def rows_of(chance: random.Random, domain: Domain, port: int, padding: int) -> list[Row]:
    """A few rows that may meet, among others, of a key that no other side has."""
    few: list[Row] = [(some_time(chance, domain), chance.choice([1, 2]), i) for i in range(chance.randint(3, 9))]
    made: list[Row] = [(some_time(chance, domain), 100 + port, 1000 + i) for i in range(padding)]
    return [*few, *made]


def fed(operator: Operator, sides: list[list[Row]], schema: Schema, chance: random.Random, size: int) -> Counter[Row]:
    """What comes of rows in batches of a size, in order of time or not, with bounds as soon as may be."""
    out: Counter[Row] = Counter()
    promised = Frontier()

    def take(given: list[Output]) -> None:
        for each in given:
            if isinstance(each, Punctuation):
                assert promised.add(each), "a promise that says nothing new"
                continue
            assert isinstance(each, Batch)
            for row in each.rows:
                values = dict(zip(operator.schema.names, row, strict=True))
                assert not any(all(values[n] is not None and values[n] < b for n, b in p.bounds) for p in promised)
                out[row] += 1

    queues = []
    for port, rows in enumerate(sides):
        ordered = sorted(rows) if chance.random() < 0.6 else chance.sample(rows, len(rows))  # type: ignore[type-var]
        batches = [ordered[at : at + size] for at in range(0, len(ordered), size)]
        queues += [(at / len(batches) + chance.random() / 2, port, batch) for at, batch in enumerate(batches)]
    queues.sort(key=lambda each: each[0])
    for at, (_, port, batch) in enumerate(queues):
        take(
            list(
                operator.process(
                    port, Batch(schema, batch) if size == 1 else Batch(schema, table=table_of(schema, batch))
                )
            )
        )
        rest = [row[0] for _, p, rows in queues[at + 1 :] if p == port for row in rows]
        if size > 1 or chance.random() < 0.3:
            bound: int = min(rest, default=END_OF_TIME)  # type: ignore[type-var, assignment]
            take(list(operator.punctuate(port, linear("ts", bound))))
    for port in range(len(sides)):
        take(list(operator.punctuate(port, linear("ts", END_OF_TIME))))
    return out


def check(
    seed: str, size: int, made: Callable[[random.Random, str], tuple[Operator, int, Callable[..., Counter[Row]]]]
) -> None:
    chance = random.Random(f"{seed}{size}")
    for _ in range(60 if size == 1 else 12):
        time = chance.choice(["bigint", "timestamp"])
        operator, ports, expected = made(chance, time)
        sides = [rows_of(chance, DOMAINS[time], port, MANY if size > 1 else 0) for port in range(ports)]
        found = fed(operator, sides, side_of(time), chance, size)
        real = [[row for row in rows if row[1] < 100] for rows in sides]  # type: ignore[operator]
        met = Counter({row: n for row, n in found.items() if not PADDING & {*row[1::3]}})
        assert met == expected(real)


@pytest.mark.parametrize("by", [0, 5, 2**60, 2**62, 2**63 - 1, 2**63, 2**63 + 7, 2**64 - 1])
def test_times_are_moved_no_further_than_to_the_ends(by: int) -> None:
    times = [-(2**62), -(2**61) - 1, -7, 0, 6, 2**61, 2**62]
    for way in (by, -by):
        expected = [max(-(2**63), min(time + way, 2**63 - 1)) for time in times]
        assert times_moved(np.array(times), way).tolist() == expected


SIZES = [1, MANY + 9, 1700]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["inner", "left", "full", "anti"])
def test_bands_and_windows(kind: str, size: int) -> None:
    def made(chance: random.Random, time: str) -> tuple[Operator, int, Callable[..., Counter[Row]]]:
        domain = DOMAINS[time]
        near = Within(*some_band(chance, domain))
        if chance.random() < 0.3:
            near = InWindow(max(some_length(chance, domain), 1), chance.choice([0, 3, some_length(chance, domain)]))  # type: ignore[assignment]

        def expected(sides: list[list[Row]]) -> Counter[Row]:
            lefts, rights = sides
            pairs = [(a, b) for a in lefts for b in rights if a[1] == b[1] and is_near(near, a[0], b[0])]  # type: ignore[arg-type]
            alone = [[r for r in own if r not in [p[s] for p in pairs]] for s, own in enumerate(sides)]
            if kind == "anti":
                return Counter(alone[0])
            found: list[Row] = [(*a, *b, max(a[0], b[0])) for a, b in pairs]  # type: ignore[type-var]
            found += [(*row, None, None, None, row[0]) for row in alone[0]] if kind in ("left", "full") else []
            return Counter([*found, *[(None, None, None, *r, r[0]) for r in alone[1]]] if kind == "full" else found)

        return oa_join(kind, near, side_of(time), keyed=True), 2, expected

    check(kind, size, made)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["inner", "left"])
def test_the_latest(kind: str, size: int) -> None:
    def made(chance: random.Random, time: str) -> tuple[Operator, int, Callable[..., Counter[Row]]]:
        low, high = some_band(chance, DOMAINS[time])
        latest = Latest(chance.choice([1, 2, 5]), high, chance.choice([None, low]))
        side = side_of(time)
        fields = [Field(f"{prefix}_{f.name}", f.type) for prefix in "lr" for f in side.fields]
        schema = Schema((*fields, Field("t", side["ts"].type, hidden=True)), "t")
        sides = Side(side, "ts", (1,), kind == "left"), Side(side, "ts", (1,), keeps=False)
        right = "r_ts" if latest.low is not None and kind == "inner" else ""

        def expected(sides: list[list[Row]]) -> Counter[Row]:
            found: list[Row] = []
            for row in sides[0]:
                time: int = row[0]  # type: ignore[assignment]
                near = sorted(r for r in sides[1] if r[1] == row[1] and r[0] <= time + high)[-latest.most :]  # type: ignore[operator,type-var]
                near = [r for r in near if latest.low is None or r[0] >= time + latest.low]  # type: ignore[operator]
                alone: list[Row] = [(*row, None, None, None, time)] if kind == "left" else []
                found += [(*row, *r, max(time, r[0])) for r in near] or alone  # type: ignore[type-var]
            return Counter(found)

        return AsOfJoin(schema, sides, latest, AsOfNames("l_ts", right, "t")), 2, expected

    check(kind, size, made)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ports", [2, 4, 6])
def test_several_inputs_each_as_far_from_the_one_before_as_may_be(ports: int, size: int) -> None:
    """What the bands come to together is longer than each: with six inputs, longer than times have room for."""

    def made(chance: random.Random, time: str) -> tuple[Operator, int, Callable[..., Counter[Row]]]:
        apart: list[Apart] = []
        for at in range(1, ports):
            most = longest(DOMAINS[time])
            low, high = some_band(chance, DOMAINS[time]) if chance.random() < 0.2 else (-most, most)
            apart.append((at - 1, at, low, high))
        side = side_of(time)
        sides = tuple(Side(side, "ts", (1,), keeps=False) for _ in range(ports))
        fields = [Field(f"{name}_{f.name}", f.type) for name in "abcdef"[:ports] for f in side.fields]
        schema = Schema((*fields, Field("t", side["ts"].type, hidden=True)), "t")
        origins = [*[((at,), place) for at in range(ports) for place in range(3)], (tuple(range(ports)), -1)]
        reach = Reach(reach_of(ports, apart), (True,) * ports)
        promised = MultiPromised(tuple(f"{name}_ts" for name in "abcdef"[:ports]), "t", apart[-1][:2])
        probing = Probing(ports, (tuple((at, 1) for at in range(ports)),))

        def expected(sides: list[list[Row]]) -> Counter[Row]:
            found: list[Row] = []
            for rows in product(*[[r for r in own if r[1] == 1] for own in sides]):
                found += one(rows)
            for rows in product(*[[r for r in own if r[1] == 2] for own in sides]):
                found += one(rows)
            return Counter(found)

        def one(rows: tuple[Row, ...]) -> list[Row]:
            if all(low <= rows[b][0] - rows[a][0] <= high for a, b, low, high in apart):  # type: ignore[operator]
                return [(*[v for row in rows for v in row], max(row[0] for row in rows))]  # type: ignore[type-var]
            return []

        return (
            MultiJoinOperator(MultiForms(schema, sides, origins, []), sides, probing, reach, promised),
            ports,
            expected,
        )

    check(str(ports), size, made)
