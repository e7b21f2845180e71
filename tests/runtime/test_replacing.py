"""A query that is replaced while it runs is what the oracle says: old answers up to a time, new ones from there on.

```
arrivals   ....................X...............      X: the replacement is asked for
old plan   ========================|                 results that start before the split
new plan                           |===========      results from there on
```
Random queries take each other's places while rows of two streams come, by batches, by Arrow and one by one, out of
order, one stream ahead of the other or silent, under every strategy, several times in a row, some of them abandoned.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.engines.local.shared import SharedExecution
from penstock.errors import CheckpointError, StreamError
from penstock.model.batch import Batch, table_of
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.tdb import TDB
from penstock.model.time import MIN_TICK, Domain
from penstock.plan.nodes import Node, Source
from penstock.plan.same_columns import differences, fitted
from penstock.reference.lateness import judge
from penstock.reference.replacement import Generation, is_whole_from, replaced
from penstock.runtime.strategies import strategy_of
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.profiles import examples

COLUMNS = "ts bigint, k bigint, v bigint"
WINDOWS = (
    "SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k",
    "SELECT k, sum(v) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k",
    "SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k HAVING count(*) > 1",
    "SELECT k, sum(v) AS n [RANGE 21, SLIDE 7, WA ts, ORIGIN 3] FROM s WHERE v > 0 GROUP BY k",
    "SELECT k, max(v) AS n [RANGE 3, SLIDE 3, WA ts] FROM s GROUP BY k",
    "SELECT k, count(DISTINCT v) AS n [RANGE 12, SLIDE 4, WA ts] FROM s UNION u GROUP BY k",
    "SELECT v AS k, count(*) AS n [RANGE 4, SLIDE 9, WA ts] FROM u GROUP BY v",
    "SELECT k, max(n) AS n [RANGE 20, SLIDE 10, WA window_end] FROM "
    "(SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k) x GROUP BY k",
    "SELECT k, count(*) AS n [RANGE 8, SLIDE 2, WA ts] FROM (SELECT ts, k FROM s WHERE EXISTS "
    "(SELECT 1 FROM u WHERE u.k = s.k AND u.ts BETWEEN s.ts - 4 AND s.ts + 2)) i GROUP BY k",
)
ROWS = (
    "SELECT k, v FROM s WHERE v > 1",
    "SELECT k, v + 1 AS v FROM s",
    "SELECT k, v FROM s UNION ALL SELECT k, v FROM u",
    "SELECT v AS k, k AS v FROM u WHERE k < 2",
    "SELECT s.k, u.v FROM s JOIN u ON s.k = u.k AND u.ts BETWEEN s.ts - 3 AND s.ts + 5",
    "SELECT s.k, u.v FROM s LEFT JOIN u ON s.k = u.k AND u.ts BETWEEN s.ts AND s.ts + 5",
    "SELECT s.k, u.v FROM s JOIN u ON s.k = u.k AND floor(s.ts / 7) = floor(u.ts / 7)",
    "SELECT s.k, u.v FROM s ASOF JOIN u ON s.k = u.k AND u.ts <= s.ts AND u.ts >= s.ts - 6",
    "SELECT x.k, y.v FROM SEQ(s x, u y) PARTITION BY k OVER [9 PRECEDING y] MODE CONTINUOUS",
    "SELECT x.k, y.v FROM SEQ(s x, NOT s n, u y) PARTITION BY k OVER [9 PRECEDING y] WHERE n.v = 0",
    "SELECT k, n AS v FROM (SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k) i WHERE n > 1",
    "SELECT DISTINCT k, v FROM s",
)
TIMES = (
    "SELECT s.ts AS x, u.ts AS y FROM s JOIN u ON s.k = u.k AND u.ts BETWEEN s.ts - 3 AND s.ts + 5",
    "SELECT u.ts AS x, s.ts AS y FROM s JOIN u ON s.k = u.k AND u.ts BETWEEN s.ts - 8 AND s.ts",
    "SELECT s.ts AS x, u.ts AS y FROM s JOIN u ON s.k = u.k AND floor(s.ts / 9) = floor(u.ts / 9)",
    "SELECT s.ts AS x, u.ts AS y FROM s JOIN u ON s.v = u.v AND u.ts BETWEEN s.ts + 2 AND s.ts + 5",
)
STRATEGIES = ("dfs", "bfs", "round_robin", "dfs(batch=4)")
ROW = st.tuples(st.sampled_from("ssu"), st.integers(-5, 90), st.integers(0, 2), st.integers(0, 3))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["rows", "rows", "arrow", "single", "burst", "replace", "replace", "abandon", "again", "other"]
        ),
        st.integers(0, 11),
    ),
    min_size=6,
    max_size=24,
)


def flow() -> pk.Flow:
    made = pk.Flow()
    for name in ("s", "u"):
        made.stream(name, [], time="ts", schema=COLUMNS, progress=pk.bounded(6))
    return made


def strategy(name: str) -> Any:
    return pk.dfs(batch=4) if "(" in name else strategy_of(name, "")


def assert_kept(taken: list[Batch | Punctuation], time: str | None) -> None:
    """No row contradicts a promise, and bounds on the time are new; what is beside it may be said again."""
    promised, kept = Frontier(), []
    for each in taken:
        if isinstance(each, Punctuation):
            is_new = promised.add(each)
            if not is_new and not (each.is_linear and each.attribute == time):
                continue
        kept.append(each)
    assert_sound(kept)


class Played:
    """A query that others take the place of while rows flow."""

    def __init__(self, sql: str, use: str = "dfs") -> None:
        self.flow, self.strategy = flow(), strategy(use)
        self.first = self.flow.query(sql).plan
        self.plans: dict[str, Node] = {"q": self.first}
        self.run = SharedExecution(self.flow.catalog, self.plans)
        self.run.use(self.strategy)
        self.arrivals: list[Any] = []
        self.lates = 0
        """How many rows were late in runs before this one."""
        self.taken: list[Batch | Punctuation] = []
        self.generations = [Generation(self.first)]
        self.unshared: list[Generation] = []
        """Those that saw nothing of what came before them."""

    def plan(self, sql: str) -> Node:
        plan = self.flow.query(sql).plan
        assert not differences(self.first, plan)
        return fitted(self.first, plan)

    def keep(self, given: list[Any]) -> None:
        self.taken += [element for name, element in given if name == "q"]

    def feed(self, rows: list[Any], form: str) -> None:
        for stream in "su":
            own = [tuple(row) for name, *row in rows if name == stream]
            if not own or stream not in self.run.graph.sources:
                continue
            self.arrivals += [(stream, row) for row in own]
            schema = self.run.graph.sources[stream][0].operator.schema
            if form == "single":
                push = self.run.pusher(stream)
                for row in own:
                    push(row)
                self.keep(self.run.take())
            elif form == "burst":
                for _ in self.run.burst(stream, [Batch(schema, [row]) for row in own]):
                    pass
                self.keep(self.run.take())
            else:
                made = Batch(schema, table=table_of(schema, own)) if form == "arrow" else Batch(schema, own)
                self.keep(self.run.feed(stream, made))

    def replace(self, sql: str) -> None:
        if "q" in self.run.replacements.under_way:
            with pytest.raises(StreamError, match="being replaced already"):
                self.run.replace("q", self.plan(sql))
            return
        plan = self.plan(sql)
        prospect = self.run.can_replace("q", plan)
        made = self.run.replace("q", plan)
        assert made.split == prospect.split
        own = Generation(plan, made.split, len(self.arrivals))
        if made.split is not None and made.split > MIN_TICK:
            assert self.generations[-1].split is None or made.split >= self.generations[-1].split
        self.generations.append(own)
        if all(label.startswith("Source") for label in prospect.shared):  # else operators at work have seen more
            self.unshared.append(own)

    def abandon(self) -> None:
        if "q" not in self.run.replacements.under_way:
            return
        if self.run.graph.is_begun("q"):
            with pytest.raises(StreamError, match="cannot be abandoned any more"):
                self.run.abandon("q")
            return
        self.run.abandon("q")
        self.generations.pop()

    def begin_again(self) -> None:
        """Go on in another process, so to say: results that nobody has taken come there."""
        saved = self.run.snapshot()
        self.lates += self.run.counts.late
        plans = dict(self.run.plans)
        following = {name: each.new for name, each in self.run.replacements.under_way.items()}
        self.run = SharedExecution(self.flow.catalog, plans)
        self.run.restore(saved, following)
        self.run.use(self.strategy)
        self.keep(self.run.take())

    def check(self) -> None:
        self.keep(self.run.close())
        late = self.late()
        for own in self.unshared:
            if own.split is not None:
                assert is_whole_from(own.plan, self.arrivals, own.activated, own.split, late=late)
        assert_kept(self.taken, self.first.schema.time)
        assert_same(replaced(self.generations, self.arrivals, late=late), tdb_of(self.taken))
        assert not self.run.replacements.under_way
        assert not self.run.graph.handovers
        assert self.run.counts.unaccounted == 0
        assert self.lates + self.run.counts.late == len(late)

    def late(self) -> list[int]:
        """The places of rows that were late for their own streams."""
        found = []
        for stream in "su":
            places = [at for at, (name, _) in enumerate(self.arrivals) if name == stream]
            rows = [[self.arrivals[at][1]] for at in places]
            judged = judge(pk.bounded(6), 0, rows, granularity="row", domain=Domain.INTEGER)
            found += [at for at, (_, is_late) in zip(places, judged.data, strict=True) if is_late]
        return sorted(found)


@pytest.mark.parametrize("texts", [WINDOWS, ROWS, TIMES], ids=["windows", "rows", "times"])
@examples(150)
@given(data=st.data(), rows=st.lists(ROW, max_size=60), steps=STEPS, rng=st.randoms(use_true_random=False))
def test_a_replaced_query_is_what_the_oracle_says(
    texts: tuple[str, ...], data: st.DataObject, rows: list[Any], steps: list[Any], rng: random.Random
) -> None:
    played = Played(data.draw(st.sampled_from(texts)), data.draw(st.sampled_from(STRATEGIES)))
    played.run.add({"both": played.flow.query("SELECT ts FROM s UNION ALL SELECT ts FROM u").plan})
    skew = data.draw(st.sampled_from([0, 25, -25]))
    delay = {"s": 0, "u": skew}
    rows = sorted(rows, key=lambda row: row[1] + rng.randint(0, 9) + delay[row[0]])
    for step, number in steps:
        if step == "replace":
            played.replace(texts[number % len(texts)])
        elif step == "abandon":
            played.abandon()
        elif step == "again":
            played.begin_again()
        elif step == "other":
            if "other" in played.run.plans:
                played.run.remove("other")
            else:
                played.run.add({"other": played.flow.query(texts[number % len(texts)]).plan})
        else:
            part, rows = rows[: number * 2], rows[number * 2 :]
            played.feed(part, step)
    played.feed(rows, "rows")
    played.check()


class Alone(Played):
    """The same of a query that runs by itself, and reads its own streams alone."""

    def __init__(self, sql: str) -> None:
        super().__init__(sql)
        self.run: Any = LocalExecution(self.first, self.flow.catalog)

    def keep(self, given: list[Any]) -> None:
        self.taken += given

    @property
    def is_under_way(self) -> bool:
        return self.run.replacing is not None and bool(self.run.replacing.replacements.under_way)

    def replace(self, sql: str) -> None:
        plan = self.plan(sql)
        if self.is_under_way:
            with pytest.raises(StreamError, match="being replaced already"):
                self.run.replace(plan)
            return
        made = self.run.replace(plan)
        self.generations.append(Generation(plan, made.split, len(self.arrivals)))

    def abandon(self) -> None:
        if not self.is_under_way or self.run.graph.is_begun(self.run.name):
            return
        self.run.abandon()
        self.generations.pop()

    def begin_again(self) -> None:
        if self.run.replacing is not None and self.run.graph.handovers:
            with pytest.raises(CheckpointError, match="no room for two"):
                self.run.snapshot()
            return
        saved = self.run.snapshot()
        self.lates += self.run.counts.late
        again: Any = LocalExecution(self.run.plan, self.flow.catalog)
        again.restore(saved)
        self.run = again
        self.keep(self.run.take())

    def check(self) -> None:
        self.keep(self.run.close())
        late = self.late()
        assert_kept(self.taken, self.first.schema.time)
        assert_same(replaced(self.generations, self.arrivals, late=late), tdb_of(self.taken))
        assert not self.is_under_way
        assert self.run.counts.unaccounted == 0
        assert self.lates + self.run.counts.late == len(late)


@pytest.mark.parametrize("texts", [WINDOWS, ROWS], ids=["windows", "rows"])
@examples(100)
@given(data=st.data(), rows=st.lists(ROW, max_size=60), steps=STEPS, rng=st.randoms(use_true_random=False))
def test_so_is_one_that_runs_by_itself(
    texts: tuple[str, ...], data: st.DataObject, rows: list[Any], steps: list[Any], rng: random.Random
) -> None:
    of_both = [sql for sql in texts if " u" in sql and " s" in sql]
    played = Alone(data.draw(st.sampled_from(of_both)))
    rows = sorted(rows, key=lambda row: row[1] + rng.randint(0, 9))
    for step, number in steps:
        if step == "replace":
            played.replace(texts[number % len(texts)])
        elif step == "abandon":
            played.abandon()
        elif step == "again":
            if {n.name for n in played.run.plan.walk() if isinstance(n, Source)} == {"s", "u"}:
                played.begin_again()
        elif step != "other":
            part, rows = rows[: number * 2], rows[number * 2 :]
            played.feed(part, "rows" if step == "single" else step)  # a pusher is made for one plan
    played.feed(rows, "rows")
    played.check()


def test_at_once_does_not_reach_behind_the_last_split() -> None:
    """The plan that speaks reads a stream that is behind: of times before its split the one before it has spoken."""
    played = Played(ROWS[1])
    played.feed([("s", t, 0, 1) for t in range(30)], "rows")
    played.run.add({"u": played.flow.query("SELECT ts FROM u").plan})
    played.replace(ROWS[3])  # of u alone
    played.feed([("s", 60, 0, 1)], "rows")
    assert played.generations[-1].split == 30
    assert not played.run.replacements.under_way
    played.replace(ROWS[3].replace("k < 2", "k < 3"))
    assert played.generations[-1].split is None
    played.feed([("u", t, 0, 1) for t in range(10, 50)], "rows")
    played.check()
    assert len([e for e in tdb_of(played.taken) if e[1] < 30]) == 30


GROUPS = (
    "SELECT k, sum(v) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k",
    "SELECT k, count(*) AS n [RANGE 14, SLIDE 7, WA ts] FROM s WHERE v > 0 GROUP BY k",
    "SELECT v AS k, count(*) AS n [RANGE 6, SLIDE 3, WA ts] FROM s GROUP BY v",
    "SELECT k, max(v) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k HAVING count(*) > 1",
)
PLAIN = ("SELECT ts, k, v FROM s WHERE v > 1", "SELECT ts, k, v FROM s", "SELECT ts, v AS k, k AS v FROM s")
PROMISE = st.tuples(st.integers(0, 60), st.none() | st.integers(0, 2), st.none(), st.just(True))
MARKED = st.tuples(st.integers(0, 60), st.integers(0, 2), st.integers(0, 3), st.just(False))


def events(given: list[Batch | Punctuation]) -> list[Any]:
    return [event for event, times in tdb_of(given).items() for _ in range(times)]


@pytest.mark.parametrize("texts", [GROUPS, PLAIN], ids=["windows", "rows"])
@examples(150)
@given(data=st.data(), rows=st.lists(MARKED | MARKED | PROMISE, max_size=40))
def test_what_was_promised_of_groups_holds_for_the_new_query_too(
    texts: tuple[str, ...], data: st.DataObject, rows: list[Any]
) -> None:
    made = pk.Flow().stream("s", [], time="ts", schema=COLUMNS + ", p boolean", progress=pk.punctuated("p", per=["k"]))
    old, new = (made.query(data.draw(st.sampled_from(texts))).plan for _ in range(2))
    at = data.draw(st.integers(0, len(rows)))
    run = SharedExecution(made.catalog, {"q": old})
    alone = [LocalExecution(plan, made.catalog) for plan in (old, new)]
    schema = run.graph.sources["s"][0].operator.schema
    taken: list[Batch | Punctuation] = []
    whole: list[list[Batch | Punctuation]] = [[], []]
    before: list[Batch | Punctuation] = []
    after: list[Batch | Punctuation] = []
    split: int | None = MIN_TICK
    for place, row in enumerate([*rows, None]):
        if place == at:
            split = run.replace("q", fitted(old, new)).split
            taken += [each for _, each in run.take()]
        batch = None if row is None else Batch(schema, [row])
        taken += [each for _, each in (run.close() if batch is None else run.feed("s", batch))]
        for of_one, one in zip(whole, alone, strict=True):
            given_now = one.close() if batch is None else one.feed("s", batch)
            of_one.extend(given_now)
            before += given_now if place < at and one is alone[0] else []
            after += given_now if place >= at and one is alone[1] else []
    assert_kept(taken, old.schema.time)
    if split is None:
        assert_same(TDB([*events(before), *events(after)]), tdb_of(taken))
        return
    expected = [e for e in events(whole[0]) if e[1] < split]
    expected += [e for e in events(whole[1]) if e[1] >= split]
    assert_same(TDB(expected), tdb_of(taken))
