"""Queues of windows below aggregates: every result is one of the query without a queue, and each key's last comes."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.errors import QueryError, StreamError, UnsupportedError
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.reference import evaluate
from tests.flow.played import Played, consumed, no_pause  # noqa: F401 - a fixture
from tests.profiles import examples

COLUMNS = "ts BIGINT, symbol STRING, venue STRING, price BIGINT"
SUM = "SELECT symbol, sum(price) AS total [RANGE 6, SLIDE 3, WA ts] FROM calm WHERE price <> 3 GROUP BY symbol"
WIDER = "SELECT venue, symbol AS s, count(*) AS n [RANGE 4, SLIDE 2, WA ts] FROM calm GROUP BY venue, symbol"
NESTED = (
    "SELECT symbol, max(total) AS top, count(*) AS n [RANGE 9, SLIDE 6, WA window_end] "
    f"FROM ({SUM}) AS below GROUP BY symbol"
)
ROW = st.tuples(st.integers(0, 3), st.sampled_from("XYZ"), st.sampled_from("ab"), st.integers(0, 5))
STEPS = st.lists(st.one_of(st.lists(ROW, min_size=1, max_size=6), st.integers(1, 6), st.just("snapshot")), max_size=16)


@cache
def flow(windows: str = "lazy", policy: str = "in_place") -> pk.Flow:
    made = pk.Flow().stream("a", [], schema=COLUMNS, time="ts", update_key="symbol", progress=pk.bounded(2))
    return made.conflate("calm", "a", windows=windows, policy=policy)


@cache
def asked(sql: str, windows: str, policy: str) -> Any:
    return flow(windows, policy).query(sql)


def driven(query: Any, steps: list[Any]) -> tuple[list[Row], list[Batch | Punctuation]]:
    """What came, and what came of it, of a consumer that takes rows now and then, through restarts."""
    run, out, came, time = query.execution(), [], [], 0
    for step in steps:
        if step == "snapshot":
            kept, run = run.snapshot(), query.execution()
            run.restore(kept)
        elif isinstance(step, int):
            out += run.release(step)
        else:
            rows = []
            for at, (ahead, *others) in enumerate(step):
                time += ahead
                rows.append((time - at % 2, *others))  # never so late that it is left out
            came += rows
            out += run.feed("a", Batch(run.graph.sources["a"][0].plan.schema, rows))
    return came, [*out, *run.close()]


@pytest.mark.parametrize("windows", ["lazy", "eager"])
@pytest.mark.parametrize("sql", [SUM, WIDER, NESTED])
@given(policy=st.sampled_from(["in_place", "fifo", "linecutting"]), steps=STEPS)
@examples(12)
def test_every_result_is_of_a_whole_window_and_the_last_of_each_key_comes(
    sql: str, windows: str, policy: str, steps: list[Any]
) -> None:
    query = asked(sql, windows, policy)
    came, out = driven(query, steps)
    true = evaluate(query.plan, [("a", row) for row in came])
    found = Counter(e.payload for item in out if isinstance(item, Batch) for e in item.elements())
    assert not found - Counter(payload for payload, _, _ in true)
    key = query.columns.index("symbol" if "symbol" in query.columns else "s")
    for symbol in {payload[key] for payload, _, _ in true}:
        last = max(payload[2] for payload, _, _ in true if payload[key] == symbol)
        of_last = {payload for payload, _, _ in true if payload[key] == symbol and payload[2] == last}
        assert of_last == {payload for payload in found if payload[key] == symbol and payload[2] == last}
    bound = MIN_TICK
    for item in out:
        if isinstance(item, Punctuation):
            assert item.value > bound
            bound = item.value
        else:
            assert (item.times() >= bound).all()
    assert bound == END_OF_TIME


def test_a_consumer_that_is_too_slow_sees_recent_windows() -> None:
    """A row each millisecond of one key, windows of ten; a row costs 3 ms: windows are passed over, none is broken."""
    source = Played((1000 * i, {"ts": i, "symbol": "X", "venue": "a", "price": 1}) for i in range(600))
    made = pk.Flow().stream("a", source, schema=COLUMNS, time="ts", update_key="symbol")
    made.conflate("calm", "a", windows="lazy", budget=1)
    cost: list[int] = []

    def slow(price: int) -> int:
        cost.append(price)
        source.now += 3000
        return price

    made.aggregate("slow_sum", SlowSum(slow), returns="bigint")
    query = made.query("SELECT symbol, slow_sum(price) AS n [RANGE 10, SLIDE 10, WA ts] FROM calm GROUP BY symbol")
    ages = []
    for at, row in consumed(query, source, 0):
        assert row["n"] == 10
        ages.append(at - 1000 * row["window_end"])
    assert len(ages) < 30
    assert max(ages) <= 2 * 10 * 3000 + 15_000


class SlowSum:
    """An aggregate that takes its time for every row."""

    def __init__(self, lift: Any) -> None:
        self.lift = lift

    def combine(self, left: int, right: int) -> int:
        return left + right

    def lower(self, partial: int) -> int:
        return partial


def test_what_is_chosen_and_computed_is_so_before_rows_wait() -> None:
    shown = flow().query(SUM).explain()
    assert shown.index("Conflate lazy windows by symbol") < shown.index("Select (price <> 3)")
    assert "windows that the queue below opens and closes" in shown


@pytest.mark.parametrize(
    ("sql", "what", "hint"),
    [
        ("SELECT * FROM calm", "is read by an aggregate", "without windows="),
        ("SELECT symbol, price FROM calm WHERE price > 1", "is read by an aggregate", "without windows="),
        (
            "SELECT symbol, count(*) [RANGE ALL, SLIDE 6, WA ts] FROM calm GROUP BY symbol",
            "depends on rows that would be dropped", "RANGE and SLIDE",
        ),
        (
            "SELECT symbol, count(*) AS n [RANGE 9, SLIDE 6, WA ts] FROM (SELECT DISTINCT ts, symbol FROM calm) AS d "
            "GROUP BY symbol",
            "remembers rows", "the queue above it",
        ),
    ],
)  # fmt: skip
def test_what_windows_cannot_be_queued_below_is_refused(sql: str, what: str, hint: str) -> None:
    with pytest.raises(QueryError, match=what) as refused:
        flow().query(sql)
    assert hint in refused.value.hint
    assert refused.value.line == 1


@pytest.mark.parametrize(
    "options",
    [{"windows": "last"}, {"windows": 7}, {"windows": "lazy", "policy": "append"}, {"windows": "eager", "lives": True}],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any]) -> None:
    made = pk.Flow().stream("a", [], schema=COLUMNS, time="ts", update_key="symbol")
    with pytest.raises(StreamError, match=r"There is no such way to queue windows|Windows wait in an update queue"):
        made.conflate("calm", "a", **options)


def test_a_query_that_shares_its_operators_has_none() -> None:
    with pytest.raises(UnsupportedError, match="are run for one query"):
        SharedExecution(flow().catalog, {"q": flow().query(SUM).plan})
