"""Idle sources are asked for promises only where something waits, and nothing comes out later for that."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.time import END_OF_TIME
from tests.profiles import examples

COLUMNS = "t bigint, k bigint"
WINDOW = "[RANGE 6, SLIDE 3, WA t]"
BOTH = "SELECT t, k FROM s UNION ALL SELECT t, k FROM r"
JOINED = "s JOIN r ON s.k = r.k AND r.t BETWEEN s.t - 5 AND s.t + 1"
QUERIES = (
    f"SELECT k, count(*) AS n {WINDOW} FROM s GROUP BY k",
    f"SELECT count(*) AS n {WINDOW} FROM ({BOTH}) u",
    BOTH,
    "SELECT s.t, s.k, r.t AS other FROM s JOIN r ON s.k = r.k AND s.t = r.t",
    "SELECT s.t, s.k, r.t AS other FROM s LEFT JOIN r ON s.k = r.k AND r.t BETWEEN s.t - 2 AND s.t",
    f"SELECT k, count(*) AS n {WINDOW} FROM ({BOTH} UNION ALL SELECT t, k FROM r WHERE k = 1) u GROUP BY k",
    "SELECT DISTINCT t, k FROM s",
    f"SELECT max(n) AS m [RANGE 6, SLIDE 6, WA window_end] FROM (SELECT count(*) AS n {WINDOW} FROM s) w",
    "SELECT count(*) AS n [RANGE 6, SLIDE 3, WA u] FROM (SELECT t + 7 AS u FROM s) d",
    f"SELECT count(*) AS n [RANGE 6, SLIDE 3, WA u] FROM (SELECT t, t - 7 AS u FROM ({BOTH}) d) e",
    f"SELECT k, count(*) AS n FROM ({BOTH}) u GROUP BY k, t div 5",
    "SELECT count(*) AS n [RANGE 2, SLIDE 1, WA u] FROM (SELECT floor(t / 5) AS u FROM s) d",
    f"SELECT count(*) AS n [RANGE 6, SLIDE 3, WA u] FROM (SELECT greatest(s.t, r.t) AS u FROM {JOINED}) d",
    f"SELECT count(*) AS n [RANGE 6, SLIDE 3, WA u] FROM (SELECT least(s.t, r.t) AS u FROM {JOINED}) d",
    f"SELECT count(*) AS n [RANGE 6, SLIDE 3, WA u] FROM (SELECT r.t AS u FROM {JOINED}) d",
    f"SELECT count(*) AS n FROM (SELECT s.t, least(s.t, r.t) AS u FROM {JOINED}) d GROUP BY u",
    "SELECT x.t, x.k FROM SEQ(s x, NOT r y) OVER [6 FOLLOWING x]",
    "SELECT count(*) AS n [RANGE 6, SLIDE 3, WA y.t] FROM SEQ(s x, NOT r y) OVER [6 FOLLOWING x]",
    "SELECT x.t, y.t AS other FROM SEQ(s x, NOT r n, s y) OVER [9 FOLLOWING x] MODE CHRONICLE",
    "SELECT x.t, y.t AS other FROM SEQ(s x, r y, NOT s n) OVER [9 FOLLOWING x] MODE CONTINUOUS",
)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is idle is asked again at once: time goes on by being asked."""
    monkeypatch.setattr("penstock.runtime.pulling.PAUSE", 0)


class Moments:
    """Goes on by one when everybody was polled so often."""

    def __init__(self, polls: int) -> None:
        self.polls, self.count = polls, 0

    @property
    def now(self) -> int:
        return self.count // self.polls


class Scripted:
    """Has a row from a moment on, and keeps what it promises."""

    def __init__(self, moments: Moments, rows: list[tuple[int, int, int]], end: int) -> None:
        """Rows by the moment at which they come; it promises nothing that a row to come would break."""
        self.moments, self.rows, self.end = moments, sorted(rows), end
        self.asked: list[int] = []

    def poll(self) -> Any:
        self.moments.count += 1
        if self.rows and self.rows[0][0] <= self.moments.now:
            _, t, k = self.rows.pop(0)
            return {"t": t, "k": k}
        return pk.END if self.moments.now >= self.end else pk.IDLE

    def promise(self, now: int) -> int | None:
        self.asked.append(self.moments.now)
        return min([3 * self.moments.now, *(t for _, t, _ in self.rows)])


def played(rng: random.Random, queries: list[str], *, always: bool) -> tuple[dict[tuple[str, int], list[Any]], int]:
    """The rows that come out at each moment, by query, and how often sources were asked."""
    moments, sources, flow = Moments(16), [], pk.Flow()
    for name in "sr":
        rows = [(m := rng.randint(0, 12), max(0, 3 * m + rng.randint(-5, 5)), rng.randint(0, 1)) for _ in range(12)]
        source = Scripted(moments, rows[: rng.randint(0, 12)], 16)
        sources.append(source)
        flow.stream(name, source, time="t", schema=COLUMNS, progress=pk.bounded(12))
    run = SharedExecution(flow.catalog, {f"q{at}": flow.query(sql).plan for at, sql in enumerate(queries)})
    if always:
        run.demand.wants = lambda stream: True  # type: ignore[method-assign]
    found: dict[tuple[str, int], list[Any]] = {}
    for name, item in run.run({name: flow._sources[name].open for name in run.streams}):
        if isinstance(item, Batch) and moments.now < 16:
            found.setdefault((name, moments.now), []).extend(item.rows)
    return {key: sorted(rows, key=repr) for key, rows in found.items()}, sum(len(source.asked) for source in sources)


@examples(40)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(QUERIES), min_size=1, max_size=3, unique=True))
def test_everything_comes_out_when_it_would_if_all_were_asked_always(seed: int, queries: list[str]) -> None:
    on_demand, few = played(random.Random(seed), queries, always=False)
    always, many = played(random.Random(seed), queries, always=True)
    assert on_demand == always
    assert few <= many


def asked(run: SharedExecution) -> set[str]:
    return {name for name in run.streams if run.demand.wants(name)}


def a_run(*queries: str) -> SharedExecution:
    flow = pk.Flow()
    for name in "sr":
        flow.stream(name, [], time="t", schema=COLUMNS)
    return SharedExecution(flow.catalog, {f"q{at}": flow.query(sql).plan for at, sql in enumerate(queries)})


def rows(run: SharedExecution, stream: str, *times: int) -> None:
    schema = run.graph.sources[stream][0].operator.schema
    run.feed(stream, Batch(schema, [(t, 0) for t in times]))


def test_of_a_union_the_input_that_was_promised_least_is_asked() -> None:
    run = a_run(f"SELECT count(*) AS n {WINDOW} FROM ({BOTH}) u")
    assert asked(run) == {"s", "r"}, "nothing is known of either"
    rows(run, "s", 1, 10)
    assert asked(run) == {"r"}, "s is at 10, and r at nothing"
    run.feed("r", linear("t", 12))
    assert asked(run) == {"s"}, "r has come further, and could help no more"
    run.feed("s", linear("t", 15))
    assert asked(run) == {"r"}, "the last window that holds 10 ends at 15"
    run.feed("r", linear("t", 15))
    assert asked(run) == set(), "everything is out"
    rows(run, "r", 20)
    assert asked(run) == {"s"}


def test_of_a_join_all_inputs_are_asked_that_have_not_come_far_enough() -> None:
    run = a_run(QUERIES[4])
    rows(run, "s", 10)
    run.feed("r", linear("t", 10))
    assert asked(run) == {"s", "r"}
    run.feed("r", linear("t", 12))
    assert asked(run) == {"s", "r"}, "r has come further than s, and its promises let rows of s go"
    for name in "sr":
        run.feed(name, linear("t", 15))
    assert asked(run) == set(), "what r may bring meets nothing that has come"


def test_a_stream_is_asked_for_any_query_that_waits_for_it() -> None:
    run = a_run("SELECT t FROM s WHERE k = 1", f"SELECT count(*) AS n {WINDOW} FROM s", "SELECT t FROM r")
    rows(run, "s", 4)
    assert asked(run) == {"s", "r"}
    run.feed("s", linear("t", 5))
    assert "s" in asked(run), "a window is open until 9"
    run.remove("q1")
    assert "s" not in asked(run), "nobody waits for that any more"


def test_after_a_restart_what_was_open_is_waited_for() -> None:
    run = a_run(f"SELECT count(*) AS n {WINDOW} FROM s")
    rows(run, "s", 4)
    again = a_run(f"SELECT count(*) AS n {WINDOW} FROM s")
    again.restore(run.snapshot())
    assert asked(again) == {"s"}
    again.feed("s", linear("t", 9))
    assert asked(again) == set()
    flow = pk.Flow().stream("s", [], time="t", schema=COLUMNS)
    alone: Any = flow.query(f"SELECT count(*) AS n {WINDOW} FROM s")
    before, after = alone.execution(), alone.execution()
    before.feed("s", Batch(before.graph.sources["s"][0].operator.schema, [(4, 0)]))
    after.restore(before.snapshot())
    assert after.demand.wants("s"), "its snapshot does not say how far rows went"


def test_whoever_reads_elements_is_given_all_promises() -> None:
    class Meter:
        def __init__(self) -> None:
            self.rows, self.asked = [{"t": 3, "k": 0}], 0

        def poll(self) -> Any:
            return self.rows.pop() if self.rows else pk.IDLE if self.asked < 5 else pk.END

        def promise(self, now: int) -> int:
            self.asked += 1
            return 10 * self.asked

    flow = pk.Flow().stream("m", Meter(), time="t", schema=COLUMNS)
    found = [each.value for each in flow.query("SELECT t FROM m").elements() if isinstance(each, pk.Punctuation)]
    assert found == [3, 10, 20, 30, 40, 50, END_OF_TIME]


class Slow:
    """Gives rows at once, and then one tick more of promise each time it is asked."""

    def __init__(self, *times: int) -> None:
        self.rows = [{"t": t, "k": 0} for t in times]
        self.polls, self.promised = 0, 0

    def poll(self) -> Any:
        self.polls += 1
        if self.rows:
            return self.rows.pop(0)
        return pk.IDLE if self.polls < 500 else pk.END

    def promise(self, now: int) -> int:
        self.promised += 1
        return self.promised


def promised(sql: str, s: tuple[int, ...], r: tuple[int, ...]) -> tuple[int, int]:
    """How far two idle sources were asked, each a tick at a time."""
    sources, flow = {"s": Slow(*s), "r": Slow(*r)}, pk.Flow()
    for name, source in sources.items():
        flow.stream(name, source, time="t", schema=COLUMNS, progress=pk.bounded(1000))
    query = flow.query(sql)
    run = SharedExecution(flow.catalog, {"q": query.plan})
    for _ in run.run({name: flow._sources[name].open for name in run.streams}):
        pass
    return sources["s"].promised, sources["r"].promised


@pytest.mark.parametrize(
    ("sql", "to_s", "to_r"),
    [
        ("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s", 30, 0),
        ("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM (SELECT t + 7 AS u FROM s) d", 23, 0),
        ("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM (SELECT t - 7 AS u FROM s) d", 27, 0),
        (f"SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM (SELECT t, t + 7 AS u FROM ({BOTH}) d) e", 23, 23),
        (
            "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM (SELECT t + 7 AS u FROM s) d UNION ALL "
            "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM r",
            23,
            30,
        ),
        ("SELECT count(*) AS n FROM s GROUP BY floor(t / 6)", 24, 0),
        ("SELECT count(*) AS n [RANGE 2, SLIDE 1, WA u] FROM (SELECT t div 6 AS u FROM s) d", 30, 0),
        (
            f"SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM (SELECT greatest(s.t, r.t) AS u FROM {JOINED}) d",
            30,
            30,
        ),
        (f"SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM (SELECT least(s.t, r.t) AS u FROM {JOINED}) d", 35, 31),
        ("SELECT x.t FROM SEQ(s x, NOT r y) OVER [6 FOLLOWING x]", 27, 27),
        ("SELECT x.t FROM SEQ(s x, NOT r n, s y)", 21, 21),
        (
            "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA u] FROM "
            "(SELECT x.t, y.t AS u FROM SEQ(s x, NOT r y) OVER [6 FOLLOWING x]) d",
            30,
            30,
        ),
        ("SELECT count(*) AS n [RANGE 2, SLIDE 1, WA row_num] FROM s", 0, 0),
    ],
)
def test_an_idle_source_is_asked_until_it_has_said_what_is_waited_for_and_no_more(
    sql: str, to_s: int, to_r: int
) -> None:
    assert promised(sql, (20, 12), (13, 20)) == (to_s, to_r)


def test_what_a_negation_does_not_wait_for_is_not_asked() -> None:
    sql = "SELECT x.t FROM SEQ(s x, NOT r y) OVER [6 FOLLOWING x]"
    assert promised(sql, (), (20,)) == (1, 21), "a first word of s: what must not come ends nothing alone"
    assert promised(sql, (5,), (20,)) == (12, 21), "nothing came until 11"
    assert promised(sql, (5,), ()) == (12, 12)


def test_a_stream_is_not_asked_for_its_time_where_windows_are_on_another_attribute() -> None:
    flow = pk.Flow().stream(
        "m", [], time="t", schema="t bigint, u bigint", progress={"t": pk.bounded(3), "u": pk.bounded(3)}
    )
    on_u, on_t = (f"SELECT count(*) AS n [RANGE 6, SLIDE 3, WA {name}] FROM m" for name in "ut")
    assert asked(SharedExecution(flow.catalog, {"q": flow.query(on_u).plan})) == set()
    run = SharedExecution(flow.catalog, {"q": flow.query(on_u).plan, "p": flow.query(on_t).plan})
    assert asked(run) == {"m"}
    run.remove("p")
    assert asked(run) == set()
