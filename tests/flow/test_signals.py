"""What a signal handler raises while a query runs in the main thread reaches the program, and costs no row."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import DeadLetterError

WINDOW = "[RANGE 10, SLIDE 10, WA t] FROM s"
ROWS = [{"t": t, "v": t} for t in range(30)]


class TimeIsUp(Exception):
    """A time limit."""


@pytest.fixture(params=[TimeIsUp, SystemExit, KeyboardInterrupt], ids=lambda kind: kind.__name__)
def raised(request: pytest.FixtureRequest) -> Iterator[type[BaseException]]:
    """What the handler of SIGALRM raises."""

    def handler(number: int, frame: Any) -> None:
        raise request.param("now")

    before = signal.signal(signal.SIGALRM, handler)
    yield request.param
    signal.signal(signal.SIGALRM, before)


class Interrupted:
    """An aggregate, and a function, in which the signal comes once."""

    def __init__(self, where: str) -> None:
        self.where, self.comes = where, True

    def at(self, where: str) -> None:
        if where == self.where and self.comes:
            self.comes = False
            os.kill(os.getpid(), signal.SIGALRM)

    def lift(self, value: int) -> int:
        self.at("lift")
        return value

    def combine(self, left: int, right: int) -> int:
        self.at("combine")
        return left + right

    def lower(self, partial: int) -> int:
        self.at("lower")
        return partial

    def __call__(self, value: int) -> bool:
        self.at("function")
        return value > 0


def flow(source: Any, code: Interrupted) -> pk.Flow:
    made = pk.Flow().stream("s", source, time="t", schema="t bigint, v bigint")
    return made.aggregate("total", code, "bigint").function("positive", code, "boolean")


QUERIES = [
    ("lift", f"SELECT total(v) AS x {WINDOW}"),
    ("combine", f"SELECT total(v) AS x {WINDOW}"),
    ("lower", f"SELECT total(v) AS x {WINDOW}"),
    ("lower", f"SELECT v, total(t) AS x {WINDOW} GROUP BY v"),
    ("function", "SELECT positive(v) AS x FROM s"),
    ("function", "SELECT t FROM s WHERE positive(v)"),
    ("function", "SELECT CASE WHEN positive(v) THEN 1 ELSE 2 END AS x FROM s WHERE v < 100"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "sql"), QUERIES)
@pytest.mark.parametrize("kind", ["list", "table"])
def test_a_batch_is_interrupted(raised: type[BaseException], where: str, sql: str, kind: str) -> None:
    code = Interrupted(where)
    query = flow(ROWS if kind == "list" else pa.Table.from_pylist(ROWS), code).query(sql)
    with pytest.raises(raised, match="now"):
        query.collect(max_dead=0)
    assert not code.comes
    assert query.counts["dead"] == query.counts["failed"] == 0
    again = query.collect(max_dead=0)  # and the next time nothing is missing
    assert again.num_rows > 0


def test_the_reading_of_a_source_is_interrupted(raised: type[BaseException]) -> None:
    def rows() -> Iterator[dict[str, int]]:
        yield {"t": 1, "v": 1}
        os.kill(os.getpid(), signal.SIGALRM)
        yield {"t": 2, "v": 2}

    with pytest.raises(raised, match="now"):
        flow(rows(), Interrupted("")).query("SELECT t FROM s").collect()


@pytest.mark.parametrize("kind", ["list", "table"])
def test_the_condition_of_a_join_is_interrupted(raised: type[BaseException], kind: str) -> None:
    source: Any = ROWS if kind == "list" else pa.Table.from_pylist(ROWS)
    code = Interrupted("function")
    made = flow(source, code).stream("z", source, time="t", schema="t bigint, v bigint")
    sql = "SELECT s.t FROM s JOIN z ON s.v = z.v AND z.t BETWEEN s.t AND s.t + 5 AND positive(s.v + z.v)"
    query = made.query(sql)
    with pytest.raises(raised, match="now"):
        query.collect(max_dead=0)
    assert not code.comes


def test_the_predicate_of_punctuation_is_interrupted(raised: type[BaseException]) -> None:
    code = Interrupted("function")
    made = pk.Flow().function("positive", code, "boolean")
    made.stream("s", ROWS, time="t", schema="t bigint, v bigint", progress=pk.punctuated("positive(v - 28)"))
    with pytest.raises(raised, match="now"):
        made.query("SELECT t FROM s").collect()
    assert not code.comes


@pytest.mark.parametrize("sql", [sql for _, sql in QUERIES[4:]])
def test_a_row_that_is_pushed_is_interrupted(raised: type[BaseException], sql: str) -> None:
    code = Interrupted("function")
    execution = flow(ROWS, code).query(sql).execution()
    push = execution.pusher("s")
    with pytest.raises(raised, match="now"):
        push((1, 1))
    push((2, 2))

    assert execution.counts.failed == 0


def test_what_the_code_raises_by_itself_still_costs_its_row() -> None:
    """Also where it exits, and where a handler is there that was not called."""

    class Exiting(Interrupted):
        def lower(self, partial: int) -> int:
            sys.exit(3)

    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    try:
        query = flow(ROWS, Exiting("")).query(f"SELECT total(v) AS x {WINDOW}")
        assert query.collect().num_rows == 0
        assert query.dead_letters["reason"].to_pylist() == ["A user function raised (total): SystemExit: 3"] * 3
        with pytest.raises(DeadLetterError):
            query.collect(max_dead=0)
    finally:
        signal.signal(signal.SIGALRM, before)
