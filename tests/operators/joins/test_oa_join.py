"""OA-Join by itself: after every batch and every punctuation exactly what can be out is out, and promised."""

from __future__ import annotations

import random
from collections import Counter
from unittest import mock

import numpy as np
import pytest

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, linear
from penstock.model.frontier import Frontier
from penstock.model.schema import Field, Schema, schema_of
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates.word_table import hashed
from penstock.operators.joins import columns, finding, index, keys, oa_join
from penstock.operators.joins.finding import Form
from penstock.operators.joins.forms import Side
from penstock.operators.joins.nearness import InWindow, Nearness, Within
from penstock.operators.joins.oa_join import OAJoin
from penstock.operators.joins.promised import Promised
from penstock.operators.operator import Operator, Output
from penstock.operators.state import seal, unseal


def rows_of_a_side(time: str) -> Schema:
    return schema_of([("ts", time), ("k", "bigint"), ("id", "bigint")], "ts")


def pairs_of(side: Schema) -> Schema:
    fields = [Field(f"{prefix}_{f.name}", f.type) for prefix in "lr" for f in side.fields]
    return Schema((*fields, Field("t", side["ts"].type, hidden=True)), "t")


KINDS = ["inner", "left", "right", "full", "semi", "anti"]
FORMS: list[Form] = ["adaptive", "adaptive", "indexed", "scanned"]
DOMAIN = np.arange(-20, 80)


def join(kind: str, near: Nearness, side: Schema, *, keyed: bool, form: Form = "adaptive") -> OAJoin:
    keys = (1,) if keyed else ()
    left = Side(side, "ts", keys, kind in ("left", "full", "anti"))
    right = Side(side, "ts", keys, kind in ("right", "full"))
    of_pairs = kind not in ("semi", "anti")
    schema = pairs_of(side) if of_pairs else Schema(pairs_of(side).fields[:3], "l_ts")
    names = ("l_ts" if kind not in ("right", "full") else "", "r_ts" if kind in ("inner", "right") else "")
    return OAJoin(schema, (left, right), near, Promised(*names, str(schema.time), of_pairs), kind, form=form)


def is_near(near: Nearness, left: int, right: int) -> bool:
    if isinstance(near, Within):
        return near.low <= right - left <= near.high
    return (left - near.origin) // near.width == (right - near.origin) // near.width


class Expected:
    """What has come so far, and what must be out by the definitions."""

    def __init__(self, kind: str, near: Nearness, *, keyed: bool) -> None:
        self.kind, self.near, self.keyed = kind, near, keyed
        self.rows: tuple[list[Row], list[Row]] = ([], [])
        self.bounds = [-(10**9), -(10**9)]
        pairs = [(int(x), int(y)) for x in DOMAIN for y in DOMAIN if is_near(near, int(x), int(y))]
        self.possible = np.array(pairs)

    def step(
        self, operator: Operator, side: Schema, source: random.Random, reached: list[int], number: int
    ) -> list[Output]:
        """A bound or a few rows, of one side or the other, to which an operator answers."""
        port = source.randint(0, 1)
        reached[port] += source.randint(0, 4)
        if source.random() < 0.35:
            bound = max(self.bounds[port], reached[port] - source.randint(0, 6))
            self.bounds[port] = bound
            return list(operator.punctuate(port, linear("ts", bound)))
        rows: list[Row] = [
            (max(reached[port] - source.randint(0, 6), self.bounds[port], 0),
             source.choice([1, 2, 2, None]), number * 10 + i)
            for i in range(source.randint(1, 4))
        ]  # fmt: skip
        self.rows[port].extend(rows)
        return list(operator.process(port, Batch(side, rows)))

    def meet(self, left: Row, right: Row) -> bool:
        same = not self.keyed or (left[1] == right[1] and left[1] is not None)
        return same and is_near(self.near, left[0], right[0])  # type: ignore[arg-type]

    def settled(self, side: int, row: Row) -> bool:
        """Whether no row that is still to come can be near."""
        time, other = row[0], self.bounds[1 - side]
        if self.keyed and row[1] is None:
            return True
        near = self.possible[self.possible[:, side] == time][:, 1 - side]
        return not (near >= other).any()

    def out(self) -> Counter[Row]:
        lefts, rights = self.rows
        pairs = [(a, b) for a in lefts for b in rights if self.meet(a, b)]
        met = [{id(pair[side]) for pair in pairs} for side in (0, 1)]
        if self.kind == "semi":
            return Counter(row for row in lefts if id(row) in met[0])
        alone = [[r for r in self.rows[s] if id(r) not in met[s] and self.settled(s, r)] for s in (0, 1)]
        if self.kind == "anti":
            return Counter(alone[0])
        found = [(*a, *b, max(a[0], b[0])) for a, b in pairs]  # type: ignore[type-var]
        if self.kind in ("left", "full"):
            found += [(*row, None, None, None, row[0]) for row in alone[0]]
        if self.kind in ("right", "full"):
            found += [(None, None, None, *row, row[0]) for row in alone[1]]
        return Counter(found)

    def least(self, what: str) -> int:
        """The least value of an attribute that a result to come may have, whatever comes, by trying all."""
        x, y = self.possible[:, 0], self.possible[:, 1]
        open_ = (x >= self.bounds[0]) | (y >= self.bounds[1])
        values = {"l_ts": x, "r_ts": y, "t": np.maximum(x, y)}[what][open_]
        alone: list[np.ndarray] = []
        for side, kinds in ((0, ("left", "full", "anti", "semi")), (1, ("right", "full"))):
            if self.kind in kinds:  # a row that is kept, or comes, and has no partner
                near = self.possible[self.possible[:, 1 - side] >= self.bounds[1 - side]][:, side]
                alone += [near, DOMAIN[self.bounds[side] <= DOMAIN]]
        if self.kind in ("semi", "anti"):
            values = np.empty(0, np.int64)
        everything = np.concatenate([values, *alone])
        return int(everything.min()) if len(everything) else END_OF_TIME


def some_near(source: random.Random) -> Nearness:
    if source.random() < 0.3:
        return InWindow(source.randint(1, 6), source.randint(-3, 3))
    low = source.randint(-5, 5)
    return Within(low, low + source.randint(0, 6))


@pytest.mark.parametrize("kind", KINDS)
def test_what_can_be_out_is_out_and_what_can_be_promised_is(kind: str) -> None:
    source = random.Random(KINDS.index(kind))
    for _ in range(60):
        check(kind, some_near(source), source, keyed=source.random() < 0.7)


def check(kind: str, near: Nearness, source: random.Random, *, keyed: bool) -> None:
    side = rows_of_a_side(source.choice(["bigint", "timestamp"]))
    form: Form = source.choice(FORMS)
    operator, expected = join(kind, near, side, keyed=keyed, form=form), Expected(kind, near, keyed=keyed)
    out: Counter[Row] = Counter()
    promised = Frontier()
    reached = [0, 0]
    few = {"MOST": [1, 5, 1000], "SCANS": [0, 2, 4], "MANY": [1, 4, 4096], "PASSES": [-(10**9), 0, 2]}
    chosen = {name: source.choice(values) for name, values in few.items()}
    bits = source.choice([0, 1, 64])  # of hashes; with few, keys that differ have the same
    with (
        mock.patch.multiple(finding, **chosen),
        mock.patch.object(oa_join, "FEW_ROWS", source.choice([0, 0, 2, 9])),
        mock.patch.object(keys, "hashed", lambda words: hashed(words) >> np.uint64(63) << np.uint64(63) if bits == 1
                          else hashed(words) * np.uint64(bits > 0)),
        mock.patch.multiple(
            index, MANY=source.choice([0, 4096]), LEAST_BITS=source.choice([32, 61]), AT_ONCE=source.choice([1, 3, 100])
        ),
        mock.patch.object(columns, "FEWER", source.choice([0, 0.75, 1])),
    ):  # fmt: skip
        for number in range(source.randint(5, 25)):
            given = expected.step(operator, side, source, reached, number)
            if source.random() < 0.05:
                start_again(operator)
            for each in given:
                if isinstance(each, Punctuation):
                    assert promised.add(each), "a promise that says nothing new"
                    continue
                assert isinstance(each, Batch)
                for row in each.rows:
                    values = dict(zip(operator.schema.names, row, strict=True))
                    assert not any(_condemns(p, values) for p in promised)
                    out[row] += 1
            assert out == expected.out()
            assert_prompt(operator, expected, promised)
    for port in (0, 1):
        list(operator.punctuate(port, linear("ts", END_OF_TIME)))
    assert not [key for key in operator.pages.keys() if key.startswith(("run", "loose"))]  # noqa: SIM118


def start_again(operator: OAJoin) -> None:
    """As if all state had been written, and read by another process."""
    for key in operator.pages.keys():  # noqa: SIM118
        sealed = seal(operator, key, operator.pages.get(key), "the join")
        operator.pages.put(key, unseal(operator, key, sealed, "the join"))


def _condemns(promise: Punctuation, values: dict[str, object]) -> bool:
    return all(values[name] is not None and values[name] < bound for name, bound in promise.bounds)  # type: ignore[operator]


def assert_prompt(operator: OAJoin, expected: Expected, promised: Frontier) -> None:
    """What is promised of each attribute is the most that can be; where nothing was said yet, nothing is."""
    if min(expected.bounds) < 0:
        return
    names = {operator.promised.left, operator.promised.right, operator.promised.time} - {""}
    for name in names:
        what = "l_ts" if operator.schema.time == "l_ts" else name
        assert promised.bound(name) == expected.least(what), name
