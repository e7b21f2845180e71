"""Promises of groups through OA-Join: what they settle is out at once, and what they allow to promise is promised."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from unittest import mock

import pytest

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, linear
from penstock.model.frontier import Frontier
from penstock.model.schema import Field, Schema, schema_of
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.joins import finding, kept_rows, oa_join
from penstock.operators.joins.forms import Side
from penstock.operators.joins.nearness import Nearness
from penstock.operators.joins.oa_join import OAJoin
from penstock.operators.joins.promised import Promised
from penstock.operators.operator import Output
from penstock.operators.state import seal, unseal
from tests.operators.joins.test_oa_join import KINDS, is_near, some_near

SIDE = schema_of([("ts", "bigint"), ("k", "bigint"), ("g", "string"), ("id", "bigint")], "ts")
PAIRS = Schema(
    (*[Field(f"{side}_{f.name}", f.type) for side in "lr" for f in SIDE.fields], Field("t", SIDE["ts"].type, True)), "t"
)
DOMAIN = range(-15, 60)
Constants = dict[str, object]


def join(kind: str, near: Nearness, *, keyed: bool) -> OAJoin:
    keys = (1,) if keyed else ()
    sides = Side(SIDE, "ts", keys, kind in ("left", "full", "anti")), Side(SIDE, "ts", keys, kind in ("right", "full"))
    of_pairs = kind not in ("semi", "anti")
    schema = PAIRS if of_pairs else Schema(PAIRS.fields[:4], "l_ts")
    names = ("l_ts" if kind not in ("right", "full") else "", "r_ts" if kind in ("inner", "right") else "")
    return OAJoin(schema, sides, near, Promised(*names, str(schema.time), of_pairs), kind)


class Story:
    """What has come and was promised, and what follows from it by the definitions."""

    def __init__(self, kind: str, near: Nearness, *, keyed: bool) -> None:
        self.kind, self.near, self.keyed = kind, near, keyed
        self.rows: tuple[list[Row], list[Row]] = ([], [])
        self.said: tuple[list[tuple[Constants, int]], list[tuple[Constants, int]]] = ([], [])
        self.frontiers = Frontier(), Frontier()

    def meet(self, left: Row, right: Row) -> bool:
        same = not self.keyed or (left[1] == right[1] and left[1] is not None)
        return same and is_near(self.near, left[0], right[0])  # type: ignore[arg-type]

    def bound(self, port: int, constants: Constants) -> int:
        """What was promised of the rows of a side with these constants."""
        told = [bound for about, bound in self.said[port] if about.items() <= constants.items()]
        return max(told, default=MIN_TICK)

    def may_come(self, port: int, row: Row) -> bool:
        return row[0] >= self.bound(port, {"k": row[1], "g": row[2]})  # type: ignore[operator]

    def settled(self, side: int, row: Row) -> bool:
        """Whether no row that can still come, of whatever `g`, would meet."""
        if self.keyed and row[1] is None:
            return True
        others = [(y, row[1] if self.keyed else 99, "other", 0) for y in DOMAIN]
        pairs = [((row, other) if side == 0 else (other, row), other) for other in others]
        return not any(self.may_come(1 - side, other) for pair, other in pairs if self.meet(*pair))

    def met(self) -> tuple[list[tuple[Row, Row]], list[set[int]]]:
        pairs = [(a, b) for a in self.rows[0] for b in self.rows[1] if self.meet(a, b)]
        return pairs, [{id(pair[side]) for pair in pairs} for side in (0, 1)]

    def out(self) -> Counter[Row]:
        pairs, met = self.met()
        if self.kind == "semi":
            return Counter(row for row in self.rows[0] if id(row) in met[0])
        alone = [[r for r in self.rows[s] if id(r) not in met[s] and self.settled(s, r)] for s in (0, 1)]
        if self.kind == "anti":
            return Counter(alone[0])
        found = [(*a, *b, max(a[0], b[0])) for a, b in pairs]  # type: ignore[type-var]
        nulls = (None,) * 4
        found += [(*row, *nulls, row[0]) for row in alone[0] if self.kind in ("left", "full")]
        found += [(*nulls, *row, row[0]) for row in alone[1] if self.kind in ("right", "full")]
        return Counter(found)

    # Groups

    def named(self, port: int, constants: Constants) -> Iterator[Constants]:
        """The names of constants of a side in the output."""
        options = []
        for name, value in constants.items():
            sides = {port, 1 - port} if name == "k" and self.keyed else {port}
            options.append([(f"{'lr'[s]}_{name}", value) for s in sides if s == 0 or self.kind not in ("semi", "anti")])
        yield from (dict(chosen) for chosen in product(*options))

    def may_be_missing(self, named: Constants) -> bool:
        """Whether a null may be that of a row without a partner, of which nothing is said."""
        nulls = {name[0] for name, value in named.items() if value is None}
        return ("r" in nulls and self.kind in ("left", "full")) or ("l" in nulls and self.kind in ("right", "full"))

    def least(self, named: Constants) -> dict[str, int]:
        """The least times of what can still come out with constants, by trying everything."""
        own: list[Constants] = [{n[2:]: v for n, v in named.items() if n[0] == side} for side in "lr"]
        closed = [dict(each) for each in own]
        for side in (0, 1):
            if self.keyed and "k" in own[1 - side]:
                closed[side]["k"] = own[1 - side]["k"]
        _, met = self.met()
        futures = [[x for x in DOMAIN if x >= self.bound(s, closed[s])] for s in (0, 1)]
        kept = [[(row[0], id(row) in met[s]) for row in self.rows[s] if _has(row, closed[s])
                 and not self.settled(s, row)] for s in (0, 1)]  # fmt: skip
        if self.kind in ("semi", "anti"):  # a row of the left that has met one is done with
            kept[0] = [(x, is_met) for x, is_met in kept[0] if not is_met]
        found: list[tuple[int, int, int]] = []
        if not (self.keyed and None in [closed[s].get("k", 0) for s in (0, 1)]):
            old = [[x for x, _ in each] for each in kept]
            cases = [(futures[0], futures[1]), (futures[0], old[1]), (old[0], futures[1])]
            near = [(x, y) for xs, ys in cases for x in xs for y in ys if is_near(self.near, x, y)]  # type: ignore[arg-type]
            if self.kind == "semi":
                found += [(x, END_OF_TIME, x) for x, _ in near]  # type: ignore[misc]
            elif self.kind != "anti":
                found += [(x, y, max(x, y)) for x, y in near]  # type: ignore[misc]
        for side, kinds in ((0, ("left", "full", "anti")), (1, ("right", "full"))):
            if self.kind in kinds and all(n[0] == "lr"[side] for n in named):
                alone = [*futures[side], *(x for x, is_met in kept[side] if not is_met)]
                attributes = [*futures[side], *(x for x, _ in kept[side])]
                found += [(END_OF_TIME, END_OF_TIME, x) for x in alone]  # type: ignore[misc]
                found += [(x, END_OF_TIME, END_OF_TIME) if side == 0 else (END_OF_TIME, x, END_OF_TIME)
                          for x in attributes]  # type: ignore[misc] # fmt: skip
        return {
            name: min((values[at] for values in found), default=END_OF_TIME)
            for at, name in enumerate(("l_ts", "r_ts", "t"))
        }


def _has(row: Row, constants: Constants) -> bool:
    return all(row[SIDE.index(name)] == value for name, value in constants.items())


def promise_of(constants: Constants, bound: int) -> Punctuation:
    return Punctuation((("ts", bound),), tuple(sorted(constants.items())))


class Trial:
    """One join, fed at random."""

    def __init__(self, kind: str, source: random.Random) -> None:
        near, keyed = some_near(source), source.random() < 0.85
        self.source, self.reached = source, [0, 0]
        self.operator, self.story = join(kind, near, keyed=keyed), Story(kind, near, keyed=keyed)
        self.out: Counter[Row] = Counter()
        self.promised = Frontier()

    def step(self, number: int) -> None:
        port = self.source.randint(0, 1)
        self.reached[port] += self.source.randint(0, 3)
        drawn, renewed = self.source.random(), None
        if drawn < 0.2:
            bound = max(self.reached[port] - self.source.randint(0, 6), self.story.bound(port, {}))
            given = self._say(port, {}, bound)
        elif drawn < 0.5:
            about = self._constants()
            bound = END_OF_TIME if self.source.random() < 0.4 else self.reached[port] + self.source.randint(-3, 9)
            is_new = not self.story.frontiers[port].implies(promise_of(about, bound))
            given, renewed = self._say(port, about, bound), (port, about) if is_new else None
        else:
            given = self._rows(port, number)
        self.take(given)
        assert self.out == self.story.out()
        self.check(renewed)

    def _constants(self) -> Constants:
        about: Constants = {"k": self.source.choice([1, 2, 2, None]), "g": self.source.choice(["x", "y", None])}
        for name in self.source.choice([["g"], ["g"], ["g"], ["k"], []]):
            del about[name]
        return about

    def _say(self, port: int, about: Constants, bound: int) -> list[Output]:
        promise = promise_of(about, bound) if about else linear("ts", bound)
        if not self.story.frontiers[port].add(promise):
            return []
        self.story.said[port].append((about, bound))
        return list(self.operator.punctuate(port, promise))

    def _rows(self, port: int, number: int) -> list[Output]:
        drawn: list[Row] = [
            (max(self.reached[port] + self.source.randint(-6, 6), 0), self.source.choice([1, 2, 2, None]),
             self.source.choice(["x", "y", None]), number * 10 + i)
            for i in range(self.source.randint(1, 4))
        ]  # fmt: skip
        rows = [row for row in drawn if self.story.may_come(port, row)]
        self.story.rows[port].extend(rows)
        return list(self.operator.process(port, Batch(SIDE, rows)))

    def take(self, given: list[Output]) -> None:
        for each in given:
            if isinstance(each, Punctuation):
                assert self.promised.add(each), f"says nothing new: {each}"
                continue
            assert isinstance(each, Batch)
            for row in each.rows:
                values = dict(zip(self.operator.schema.names, row, strict=True))
                assert not [p for p in self.promised if p.condemns(values)]
                self.out[row] += 1

    def check(self, renewed: tuple[int, Constants] | None) -> None:
        """What is promised of groups is never too much; it is the most when they were spoken of, and at their end."""
        names = {self.operator.promised.left, self.operator.promised.right, self.operator.promised.time} - {""}
        fresh = list(self.story.named(*renewed)) if renewed is not None else []
        for port in (0, 1):
            for about, _ in self.story.said[port]:
                for named in self.story.named(port, about) if about else ():
                    if self.story.may_be_missing(named):
                        continue
                    least = self.story.least(named)
                    for name in names:
                        exact = least["t" if name == self.operator.schema.time and name == "t" else name]
                        told = self.promised.bound(name, named)
                        assert told <= exact, (name, named)
                        if exact >= 0 and (named in fresh or exact == END_OF_TIME):  # below, nothing was said yet
                            assert told == exact, (name, named)

    def restored(self) -> None:
        """Go on with what another operator reads of the pages."""
        other = join(self.story.kind, self.story.near, keyed=self.story.keyed)
        for key in self.operator.pages.keys():  # noqa: SIM118
            page = unseal(other, key, seal(self.operator, key, self.operator.pages.get(key), "join"), "join")
            other.pages.put(key, page)
        self.operator = other


@pytest.mark.parametrize("kind", KINDS)
def test_what_groups_allow_is_out_and_promised(kind: str) -> None:
    source = random.Random(KINDS.index(kind))
    for _ in range(25):
        trial = Trial(kind, source)
        few, groups = source.choice([0, 0, 2, 9]), source.choice([0, 4])
        with (
            mock.patch.object(oa_join, "FEW_ROWS", few),
            mock.patch.object(kept_rows, "FEW_GROUPS", groups),
            mock.patch.multiple(finding, MANY=source.choice([1, 4096]), PASSES=-(10**9)),
        ):
            for number in range(source.randint(5, 25)):
                trial.step(number)
                if source.random() < 0.1:
                    trial.restored()
            for port in (0, 1):
                trial.take(trial._say(port, {}, END_OF_TIME))
        pages = trial.operator.pages.keys()
        assert not [key for key in pages if key.startswith(("run", "loose", "groups"))]


def test_what_ends_on_both_sides_is_forgotten() -> None:
    trial = Trial("inner", random.Random(1))
    trial.operator, trial.story = join("inner", trial.story.near, keyed=True), trial.story
    for k in range(50):
        for port in (0, 1):
            trial.take(list(trial.operator.process(port, Batch(SIDE, [(k, k, "x", k)]))))
        for port in (0, 1):
            trial.take(list(trial.operator.punctuate(port, promise_of({"k": k}, END_OF_TIME))))
    for k in range(50):
        for name in ("l_k", "r_k"):
            assert trial.promised.bound("t", {name: k}) == END_OF_TIME
    pages = trial.operator.pages
    assert [len(pages.get(key)) for key in ("promises0", "promises1", "promises")] == [0, 0, 0]
    assert set(pages.keys()) <= {"promises0", "promises1", "promises", "bounds"}
