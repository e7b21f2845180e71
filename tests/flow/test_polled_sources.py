"""Sources that are asked: idle ones hold nobody up, and may promise how far they have come."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import pytest

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.operators.operator import Outputs

COUNT = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s"
COLUMNS = "t bigint, v bigint"


class Script:
    """Gives what is written in it; a number is a promise, from then on until the next one."""

    def __init__(self, *steps: Any) -> None:
        self.steps = deque(steps)
        self.promised: int | None = None
        self.told: list[int] = []
        self.idle = threading.Event()

    def poll(self) -> Any:
        while self.steps and isinstance(self.steps[0], int):
            self.promised = self.steps.popleft()
        if not self.steps:
            self.idle.set()
            return pk.IDLE
        return self.steps.popleft()

    def promise(self, now: int) -> int | None:
        self.told.append(now)
        return self.promised


def rows(*times: int) -> list[dict[str, int]]:
    return [{"t": t, "v": 1} for t in times]


def test_what_is_polled_is_read_to_its_end() -> None:
    flow = pk.Flow().stream("s", Script(*rows(1, 2), pk.IDLE, *rows(12), pk.END), time="t", schema=COLUMNS)
    assert [(row["window_end"], row["n"]) for row in flow.query(COUNT).collect().to_pylist()] == [(10, 2), (20, 1)]


def test_an_idle_source_may_promise_and_closes_its_windows() -> None:
    script = Script(*rows(1, 2), 10, pk.IDLE, 5, pk.IDLE)  # the second promise goes back and says nothing
    flow = pk.Flow().stream("s", script, time="t", schema=COLUMNS)
    found: list[Any] = []
    run = flow.query(COUNT).start(found)
    assert script.idle.wait(30)
    run.process_available()
    assert [(row["window_end"], row["n"]) for row in found] == [(10, 2)]
    assert run.progress["frontier"] == {"s": "10"}
    run.stop()


def test_an_idle_source_holds_no_other_up() -> None:
    script = Script()
    flow = pk.Flow().stream("s", script, time="t", schema=COLUMNS).stream("z", rows(*range(30)), time="t")
    found: list[Any] = []
    run = flow.start({flow.query(COUNT, name="s"): [], flow.query(COUNT.replace("FROM s", "FROM z"), name="z"): found})
    assert script.idle.wait(30)
    run.process_available()
    assert [row["n"] for row in found] == [10, 10, 10]
    run.stop()


def test_the_clock_is_that_of_the_run() -> None:
    script = Script(*rows(1), pk.IDLE, pk.END)
    flow = pk.Flow().stream("s", script, time="t", schema=COLUMNS)
    query = flow.query(COUNT)
    execution: LocalExecution = query.execution()  # type: ignore[attr-defined]
    execution.clock = lambda: 42
    list(query.items(execution))  # type: ignore[attr-defined]
    assert script.told == [42]


def test_operators_that_ask_are_told_the_time() -> None:
    flow = pk.Flow().stream("s", rows(1), time="t")
    execution: LocalExecution = flow.query("SELECT * FROM s").execution()  # type: ignore[attr-defined]
    entrance = execution.graph.sources["s"][0].operator

    def tick(now: int) -> Outputs:
        yield linear("t", now)

    entrance.tick, entrance.is_ticked = tick, True  # type: ignore[method-assign]
    assert execution.tick(7) == [linear("t", 7)]
    with pytest.raises(StreamError, match="A time is a number of ticks"):
        execution.tick("noon")  # type: ignore[arg-type]


def test_a_promise_condemns_what_comes_below_it() -> None:
    script = Script(*rows(1), 10, pk.IDLE, *rows(3, 11), pk.END)
    query = pk.Flow().stream("s", script, time="t", schema=COLUMNS).query("SELECT * FROM s")
    items = list(query.items())  # type: ignore[attr-defined]
    assert [row[0] for b in items if isinstance(b, Batch) for row in b.rows] == [1, 11]
    assert [p.value for p in items if isinstance(p, Punctuation)][:2] == [1, 10]
    assert query.late["bound"].to_pylist() == [10]


def test_what_cannot_be_polled_is_told() -> None:
    class Broken(Script):
        def promise(self, now: int) -> Any:
            return "soon"

    with pytest.raises(StreamError, match="columns of an iterable are not known"):
        pk.Flow().stream("s", Script(), time="t")
    with pytest.raises(StreamError, match="gives rows with lives as elements"):
        pk.Flow().stream("s", Script(), time="vs", schema="vs bigint, ve bigint", lives=("vs", "ve"))
    with pytest.raises(StreamError, match="A promise is a number of ticks"):
        pk.Flow().stream("s", Broken(pk.IDLE), time="t", schema=COLUMNS).query(COUNT).collect()
