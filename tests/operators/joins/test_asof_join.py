"""As-of join by itself: after every batch and punctuation what can be out is out and promised, and no more is kept."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any
from unittest import mock

import numpy as np
import pytest

from penstock.model.batch import Batch, Row, rows_of, table_of
from penstock.model.elements import Punctuation, linear
from penstock.model.frontier import Frontier
from penstock.model.schema import Field, Schema, schema_of
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates.word_table import hashed
from penstock.operators.joins import asof_join, keys, latest_keeper
from penstock.operators.joins.asof_join import AsOfJoin, AsOfNames
from penstock.operators.joins.forms import Side
from penstock.operators.joins.latest_keeper import Latest
from penstock.operators.joins.tie_order import in_order, order_of
from penstock.operators.operator import Output

NOTHING = -(10**9)


def side_of(time: str) -> Schema:
    return schema_of([("ts", time), ("k", "bigint"), ("v", "double")], "ts")


def join(kind: str, latest: Latest, side: Schema, *, keyed: bool) -> AsOfJoin:
    places = (1,) if keyed else ()
    fields = [Field(f"{prefix}_{f.name}", f.type) for prefix in "lr" for f in side.fields]
    schema = Schema((*fields, Field("t", side["ts"].type, hidden=True)), "t")
    sides = Side(side, "ts", places, kind == "left"), Side(side, "ts", places, keeps=False)
    right = "r_ts" if latest.low is not None and kind == "inner" else ""
    return AsOfJoin(schema, sides, latest, AsOfNames("l_ts", right, "t"))


class Expected:
    """What has come so far, and what must be out by the definitions."""

    def __init__(self, kind: str, latest: Latest, *, keyed: bool) -> None:
        self.kind, self.latest, self.keyed = kind, latest, keyed
        self.rows: tuple[list[Row], list[Row]] = ([], [])
        self.bounds = [NOTHING, NOTHING]

    def step(self, operator: AsOfJoin, side: Schema, chance: random.Random, reached: list[int]) -> list[Output]:
        """A bound or a few rows, of one side or the other, to which the operator answers."""
        port = chance.randint(0, 1)
        reached[port] += chance.randint(0, 4)
        if chance.random() < 0.4:
            self.bounds[port] = max(self.bounds[port], reached[port] - chance.randint(0, 6))
            return list(operator.punctuate(port, linear("ts", self.bounds[port])))
        values = [0.0, -0.0, math.nan, 1.5, -2.5, None]
        rows: list[Row] = [
            (max(reached[port] - chance.randint(0, 6), self.bounds[port], 0), chance.choice([1, 2, 2, None]),
             chance.choice(values))
            for _ in range(chance.randint(1, 5))
        ]  # fmt: skip
        self.rows[port].extend(rows)
        batch = Batch(side, rows) if chance.random() < 0.5 else Batch(side, table=table_of(side, rows))
        return list(operator.process(port, batch))

    def key(self, row: Row) -> object:
        return row[1] if self.keyed else "all"

    def found(self, row: Row) -> list[Row]:
        """What a row of the left meets of what has come."""
        if self.key(row) is None:
            return []
        time: Any = row[0]
        low = -math.inf if self.latest.low is None else time + self.latest.low
        near = [r for r in self.rows[1] if self.key(r) == self.key(row) and r[0] <= time + self.latest.high]  # type: ignore[operator]
        near.sort(key=lambda r: (r[0], *(rank(v) for v in r)))  # type: ignore[arg-type]
        return [r for r in near[-self.latest.most :] if r[0] >= low]  # type: ignore[operator]

    def waits(self, row: Row) -> bool:
        return self.key(row) is not None and row[0] + self.latest.high >= self.bounds[1]  # type: ignore[operator]

    def out(self) -> Counter[Row]:
        made: list[Row] = []
        for row in self.rows[0]:
            if not self.waits(row):
                met = [(*row, *other, max(row[0], other[0])) for other in self.found(row)]  # type: ignore[type-var]
                made += met or ([(*row, None, None, None, row[0])] if self.kind == "left" else [])
        return Counter(map(exact, made))

    def least(self) -> int:
        """No result that is still to come has a left time below this."""
        return min([self.bounds[0], *(row[0] for row in self.rows[0] if self.waits(row))])  # type: ignore[type-var]

    def kept(self) -> Counter[Row]:
        """The rows of the right that a row of the left may still meet, and those between, for the one that waits."""
        since = self.least() + self.latest.high
        mine = [r for r in self.rows[1] if self.key(r) is not None]
        groups = {self.key(r) for r in mine}
        kept = [r for r in mine if r[0] > since]  # type: ignore[operator]
        for key in groups:
            below = [r for r in mine if self.key(r) == key and r[0] <= since]  # type: ignore[operator]
            below.sort(key=lambda r: (r[0], *(rank(v) for v in r)))  # type: ignore[arg-type]
            kept += below[-self.latest.most :]
        low = self.latest.low
        return Counter(exact(r) for r in kept if low is None or r[0] >= self.least() + low)  # type: ignore[operator]


def rank(value: Any) -> tuple[float, ...]:
    if value is None:
        return (-1,)
    return (1,) if math.isnan(value) else (0, value, math.copysign(1, value))


def exact(row: Row) -> Row:
    """Values that can be counted, and zeros told apart."""
    return tuple(repr(v) if isinstance(v, float) else v for v in row)


def rows_kept(operator: AsOfJoin) -> Counter[Row]:
    kept = [row for number in operator._bounds().runs for row in rows_of(operator.run(number).table)]
    return Counter(map(exact, [*kept, *operator.loose()]))


@pytest.mark.parametrize("kind", ["inner", "left"])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_what_can_be_out_is_out_and_nothing_is_kept_for_nothing(kind: str, most: int) -> None:
    chance = random.Random(f"{kind}{most}")
    for _ in range(80):
        high = chance.choice([0, 0, -1, 3])
        low = chance.choice([None, None, high - 4, high])
        check(kind, Latest(most, high, low), chance, keyed=chance.random() < 0.7)


def check(kind: str, latest: Latest, chance: random.Random, *, keyed: bool) -> None:
    side = side_of(chance.choice(["bigint", "timestamp"]))
    operator, expected = join(kind, latest, side, keyed=keyed), Expected(kind, latest, keyed=keyed)
    out: Counter[Row] = Counter()
    promised, reached = Frontier(), [0, 0]
    collide, slack = chance.random() < 0.3, chance.choice([0, 0, 0.5])
    with (
        mock.patch.object(asof_join, "FEW_ROWS", chance.choice([0, 2, 9])),
        mock.patch.multiple(latest_keeper, SLACK=slack, MELTING=chance.choice([1, 8, 64])),
        mock.patch.object(keys, "hashed", lambda words: hashed(words) * np.uint64(not collide)),
    ):
        for _ in range(chance.randint(5, 30)):
            for each in expected.step(operator, side, chance, reached):
                if isinstance(each, Punctuation):
                    assert promised.add(each), "a promise that says nothing new"
                    continue
                assert isinstance(each, Batch)
                for row in each.rows:
                    values = dict(zip(operator.schema.names, row, strict=True))
                    assert not any(_condemns(p, values) for p in promised)
                    out[exact(row)] += 1
            assert out == expected.out()
            if min(expected.bounds) > NOTHING:
                assert promised.bound("l_ts") == promised.bound("t") == expected.least()
            if expected.bounds[0] > NOTHING:
                assert not expected.kept() - rows_kept(operator)
                known = operator._bounds()
                operator.give_up(known)
                if slack == 0 and not (known.runs and len(operator.loose())):  # in both forms, either has the latest
                    assert rows_kept(operator) == expected.kept()
    for port in (0, 1):
        list(operator.punctuate(port, linear("ts", END_OF_TIME)))
    assert not [key for key in operator.pages.keys() if key.startswith(("run", "loose", "wait"))]  # noqa: SIM118


def _condemns(promise: Punctuation, values: dict[str, Any]) -> bool:
    return all(values[name] is not None and values[name] < bound for name, bound in promise.bounds)


def test_runs_hold_little_more_than_what_may_still_be_met() -> None:
    """Ten keys: however long it goes on, there are the latest rows of each, those of a batch, and as many again."""
    side = side_of("bigint")
    operator = join("inner", Latest(2), side, keyed=True)
    most = 0
    for at in range(300):
        rows: list[Row] = [(at * 40 + i, i % 10, 1.0) for i in range(40)]
        list(operator.process(1, Batch(side, table=table_of(side, rows))))
        list(operator.punctuate(1, linear("ts", at * 40 + 40)))
        list(operator.punctuate(0, linear("ts", at * 40)))
        most = max(most, rows_kept(operator).total())
    assert most <= 2 * (20 + 40)


@pytest.mark.parametrize("low", [None, -5])
def test_runs_are_searched_by_numbers_of_64_bits(low: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy takes others, too, but makes an object of every row that it compares with them."""
    searched = np.searchsorted

    def told(ascending: Any, sought: Any, **side: Any) -> Any:
        assert np.asarray(ascending).dtype != object
        assert np.asarray(sought).dtype != object
        return searched(ascending, sought, **side)

    monkeypatch.setattr(np, "searchsorted", told)
    side = side_of("bigint")
    operator = join("inner", Latest(1, 3, low), side, keyed=True)
    list(operator.process(1, Batch(side, table=table_of(side, [(at, at % 3, 1.0) for at in range(100)]))))
    for bound in (-(2**62), 0, 20, 90, 2**62, END_OF_TIME - 2):
        list(operator.punctuate(0, linear("ts", bound)))
    assert rows_kept(operator).total() == (3 if low is None else 0)


def test_ties_by_row_and_by_column_are_one_order() -> None:
    import datetime as dt
    from decimal import Decimal

    columns = {
        "boolean": [None, False, True],
        "int": [None, -(2**31), -1, 0, 7],
        "bigint": [None, -(2**63), 0, 2**63 - 1],
        "float": [None, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan],
        "double": [None, -math.inf, -5e-324, -0.0, 0.0, 1e308, math.inf, math.nan],
        "string": [None, "", "A", "a", "ab", "ß", "日本", "\U0001f600"],
        "binary": [None, b"", b"\0", b"a", b"\xff"],
        "date": [None, dt.date(1969, 1, 1), dt.date(1970, 1, 1), dt.date(2070, 1, 1)],
        "timestamp": [None, -5, 0, 10**15],
        "decimal(20,4)": [None, Decimal("-1.5000"), Decimal("0.0000"), Decimal("1.5000")],
        "void": [None],
        "array<double>": [None, (), (None,), (-0.0,), (0.0,), (1.0,), (1.0, None), (1.0, 0.5), (math.nan,)],
        "struct<a:int,b:string>": [None, (None, "x"), (1, None), (1, "a"), (2, "")],
    }
    chance = random.Random(4)
    for _ in range(60):
        kinds = chance.sample(list(columns), 3)
        schema = schema_of([(f"c{n}", kind) for n, kind in enumerate(kinds)])
        rows = [tuple(chance.choice(columns[kind]) for kind in kinds) for _ in range(20)]
        zeros = np.zeros(20, np.int64)
        order = in_order(zeros, zeros, table_of(schema, rows))
        assert [order_of(rows[i]) for i in order] == sorted(map(order_of, rows))
    for values in columns.values():  # the lists above are in order
        assert sorted(values, key=lambda v: order_of((v,))) == values or any(v != v for v in values)  # noqa: PLR0124
        assert [order_of((v,)) for v in values] == sorted(order_of((v,)) for v in values)


def test_zeros_are_told_apart_only_where_all_else_is_equal() -> None:
    schema = schema_of([("x", "double"), ("tags", "array<double>"), ("s", "string")])
    rows = [(0.0, (0.0,), "a"), (-0.0, (-0.0,), "b"), (-0.0, (0.0,), "a"), (0.0, (-0.0,), "a")]
    expected = [(-0.0, (0.0,), "a"), (0.0, (-0.0,), "a"), (0.0, (0.0,), "a"), (-0.0, (-0.0,), "b")]
    assert [str(row) for row in sorted(rows, key=order_of)] == [str(row) for row in expected]
    zeros = np.zeros(len(rows), np.int64)
    assert [str(rows[i]) for i in in_order(zeros, zeros, table_of(schema, rows))] == [str(row) for row in expected]
