"""Key joins: results are those of a join that does not know of the key, and rows that have met one are gone."""

from __future__ import annotations

import random
from collections import Counter
from unittest import mock

import pytest

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, linear
from penstock.model.frontier import Frontier
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.joins import oa_join
from penstock.operators.joins.nearness import Within
from penstock.operators.joins.oa_join import OAJoin
from penstock.operators.joins.once import AGAIN
from penstock.operators.operator import Output, Rejected
from tests.operators.joins.test_oa_join import (
    KINDS,
    Expected,
    _condemns,
    assert_prompt,
    join,
    rows_of_a_side,
    some_near,
)

SIDE = rows_of_a_side("bigint")
ONCE = [(True, False), (False, True), (True, True)]


def key_join(kind: str, near: Within | object, once: tuple[bool, bool]) -> OAJoin:
    made = join(kind, near, SIDE, keyed=True)  # type: ignore[arg-type]
    return OAJoin(made.schema, made.sides, made.near, made.promised, kind, once=once)


def kept(operator: OAJoin, port: int) -> int:
    return len(operator._loose(port)) + sum(len(operator._run(n)) for n in operator._bounds().runs[port])


class KeyedRows:
    """Rows of two sides; on one of which the other's rows meet one at most, keys come once."""

    def __init__(self, source: random.Random, once: tuple[bool, bool]) -> None:
        self.source, self.unique, self.used = source, (once[1], once[0]), (set[int](), set[int]())

    def rows(self, port: int, reached: int, bound: int, number: int) -> list[Row]:
        made: list[Row] = []
        for i in range(self.source.randint(1, 4)):
            key: int | None = self.source.choice([None, *range(max(0, reached // 2 - 3), reached // 2 + 4)])
            if key is not None and self.unique[port]:
                if key in self.used[port]:
                    continue
                self.used[port].add(key)
            made.append((max(reached - self.source.randint(0, 6), bound, 0), key, number * 10 + i))
        return made


@pytest.mark.parametrize("once", ONCE)
@pytest.mark.parametrize("kind", KINDS)
def test_results_are_those_without_the_key(kind: str, once: tuple[bool, bool]) -> None:
    source = random.Random(KINDS.index(kind) + 10 * ONCE.index(once))
    for _ in range(25):
        near = some_near(source)
        operator, expected = key_join(kind, near, once), Expected(kind, near, keyed=True)
        rows, out, promised, reached = KeyedRows(source, once), Counter[Row](), Frontier(), [0, 0]
        with mock.patch.object(oa_join, "FEW_ROWS", source.choice([0, 0, 2, 9])):
            for number in range(source.randint(5, 30)):
                port = source.randint(0, 1)
                reached[port] += source.randint(0, 4)
                if source.random() < 0.3:
                    bound = max(expected.bounds[port], reached[port] - source.randint(0, 6))
                    expected.bounds[port] = bound
                    given = list(operator.punctuate(port, linear("ts", bound)))
                else:
                    batch = rows.rows(port, reached[port], expected.bounds[port], number)
                    expected.rows[port].extend(batch)
                    given = list(operator.process(port, Batch(SIDE, batch)))
                take(given, operator.schema, promised, out)
                assert out == expected.out()
                assert_prompt(operator, expected, promised)
                assert_freed(operator, expected, once)
            for port in (0, 1):
                take(list(operator.punctuate(port, linear("ts", END_OF_TIME))), operator.schema, promised, out)
        assert not [key for key in operator.pages.keys() if key.startswith(("run", "loose"))]  # noqa: SIM118


def take(given: list[Output], schema: Schema, promised: Frontier, out: Counter[Row]) -> None:
    for each in given:
        if isinstance(each, Punctuation):
            assert promised.add(each)
            continue
        assert isinstance(each, Batch)
        for row in each.rows:
            values = dict(zip(schema.names, row, strict=True))
            assert not any(_condemns(p, values) for p in promised)
            out[row] += 1


def assert_freed(operator: OAJoin, expected: Expected, once: tuple[bool, bool]) -> None:
    """A side whose rows meet one at most keeps less than twice those that have met none.

    Those that are settled may be there too, since runs of which less than half is settled are kept as they are.
    """
    pairs = [(a, b) for a in expected.rows[0] for b in expected.rows[1] if expected.meet(a, b)]
    for port in (0, 1):
        if once[port]:
            met = {id(pair[port]) for pair in pairs}
            alone = [row for row in expected.rows[port] if id(row) not in met]
            assert kept(operator, port) <= 2 * len(alone)
            assert all(not each.met for each in operator._loose(port))


@pytest.mark.parametrize("few", [0, 100])
def test_a_row_that_meets_its_partner_is_never_kept_and_one_that_waited_leaves(few: int) -> None:
    with mock.patch.object(oa_join, "FEW_ROWS", few):
        operator = key_join("inner", Within(0, 100), (True, False))
        list(operator.process(1, Batch(SIDE, [(5, k, k) for k in range(10)])))
        list(operator.process(0, Batch(SIDE, [(1, k, k) for k in range(10)])))
        assert (kept(operator, 0), kept(operator, 1)) == (0, 10)
        list(operator.process(0, Batch(SIDE, [(1, k, k) for k in range(10, 20)])))
        assert kept(operator, 0) == 10
        list(operator.process(1, Batch(SIDE, [(5, k, k) for k in range(10, 20)])))
        assert kept(operator, 0) == 0


def test_a_second_partner_is_told_of_where_it_is_seen() -> None:
    with mock.patch.object(oa_join, "FEW_ROWS", 0):
        operator = key_join("inner", Within(0, 100), (True, False))
        list(operator.process(0, Batch(SIDE, [(1, k, k) for k in range(10)])))
        first = list(operator.process(1, Batch(SIDE, [(5, 3, 0)])))
        assert [len(each) for each in first if isinstance(each, Batch)] == [1]
        (again,) = operator.process(1, Batch(SIDE, [(6, 3, 1)]))
    assert isinstance(again, Rejected)
    assert again.batch.rows == [(6, 3, 1)]
    assert list(again.reasons) == [AGAIN]


@pytest.mark.parametrize("once", ONCE)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_declared_unique_and_is_not_is_accounted_for_once(kind: str, once: tuple[bool, bool]) -> None:
    """Rows of a side either fail, once, or come out: in pairs, or by themselves where such rows do."""
    source = random.Random(KINDS.index(kind) + 10 * ONCE.index(once))
    failures = 0
    for size in (1, 3, 40, 40, 60, 5000):
        operator = key_join(kind, Within(-30, 30), once)
        rows = [doubled_rows(source, port, 200 if size < 100 else 5200) for port in (0, 1)]
        cut = [(port, own[at : at + size]) for port, own in enumerate(rows) for at in range(0, len(own), size)]
        source.shuffle(cut)
        given: list[Output] = []
        for port, batch in cut:
            given += operator.process(port, Batch(SIDE, batch))
        for port in (0, 1):
            given += operator.punctuate(port, linear("ts", END_OF_TIME))
        failed = Counter(row for each in given if isinstance(each, Rejected) for row in each.batch.rows)
        out = [row for each in given if isinstance(each, Batch) for row in each.rows]
        assert max(failed.values(), default=1) == 1
        failures += len(failed)
        for port in (0, 1):
            of_port = {row for row in rows[port] if row[1] is not None}
            assert_accounted(operator, port, of_port, failed, out)
    assert failures


def doubled_rows(source: random.Random, port: int, size: int) -> list[Row]:
    """Rows of one side, told from those of the other; of some keys there are several."""
    keys = [source.choice([None, *range(size)]) if source.random() < 0.98 else 7 for _ in range(size)]
    return [(source.randint(0, 40), key, port * 10_000 + at) for at, key in enumerate(keys)]


def assert_accounted(operator: OAJoin, port: int, rows: set[Row], failed: Counter[Row], out: list[Row]) -> None:
    if not operator.is_of_pairs:
        found = Counter(out)
        assert max(found.values(), default=1) == 1
        assert not found.keys() & failed.keys()
        return
    half = slice(0, 3) if port == 0 else slice(3, 6)
    other = slice(3, 6) if port == 0 else slice(0, 3)
    paired = {row[half] for row in out if row[half][0] is not None and row[other][0] is not None}
    alone = Counter(row[half] for row in out if row[half][1] is not None and row[other][0] is None)
    assert max(alone.values(), default=1) == 1
    assert not alone.keys() & paired
    assert not failed.keys() & (alone.keys() | paired)
    if operator.sides[port].keeps:
        assert alone.keys() | paired | (failed.keys() & rows) == rows
