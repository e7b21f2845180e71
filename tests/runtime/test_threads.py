"""Executions that are fed from several threads at once lose nothing and count right."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch
from penstock.model.schema import schema_of
from penstock.runtime.gate import Gate

THREADS, ROWS = 4, 6_000
SCHEMA = schema_of([("t", "bigint"), ("k", "bigint")], "t")


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Threads change places a thousand times as often as usual, so that what can go wrong does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def execution(progress: object = None) -> LocalExecution:
    flow = pk.Flow().stream(
        "s", iter(()), time="t", schema="t bigint, k bigint", progress=progress or pk.bounded(10 * ROWS)
    )
    query = flow.query(
        "SELECT k, count(*) AS n [RANGE 1000, SLIDE 1000, WA t] FROM s WHERE 10 div (k - 3) < 99 GROUP BY k"
    )
    assert isinstance(query, LocalQuery)
    return query.execution()


def in_threads(work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def row(number: int, i: int) -> tuple[int, int]:
    return i, (number + i) % 7


def expected(rows: Iterator[tuple[int, int]]) -> dict[tuple[int, int], int]:
    counts: dict[tuple[int, int], int] = {}
    for t, k in rows:
        if k != 3:
            counts[t // 1000, k] = counts.get((t // 1000, k), 0) + 1
    return counts


def check(run: LocalExecution, outputs: list[object]) -> None:
    every = [row(n, i) for n in range(THREADS) for i in range(ROWS)]
    found = [r for item in [*outputs, *run.close()] if isinstance(item, Batch) for r in item.rows]
    assert {(r[0], r[3]): r[4] for r in found} == expected(iter(every))
    failed = sum(k == 3 for _, k in every)
    counts = run.counts
    assert (counts.read, counts.on_time, counts.failed) == (THREADS * ROWS, THREADS * ROWS, failed)
    assert run.dead_letters().num_rows == failed


@pytest.mark.parametrize("progress", [pk.bounded(10 * ROWS), pk.per_source("k", disorder=10 * ROWS)], ids=str)
def test_rows_pushed_from_several_threads(progress: object) -> None:
    run = execution(progress)
    push = run.pusher("s")

    def work(number: int) -> None:
        for i in range(ROWS):
            push(row(number, i))

    in_threads(work)
    check(run, [])


@pytest.mark.parametrize("form", ["rows", "arrow"])
def test_batches_fed_from_several_threads(form: str) -> None:
    """Many small ones, so that threads meet inside: who is in the middle of one must not be joined by another."""
    run = execution()
    outputs: list[object] = []

    def work(number: int) -> None:
        for start in range(0, ROWS, 20):
            batch = Batch(SCHEMA, [row(number, i) for i in range(start, start + 20)])
            outputs.extend(run.feed("s", Batch(SCHEMA, table=batch.table) if form == "arrow" else batch))

    in_threads(work)
    check(run, outputs)


def test_batches_fed_and_rows_pushed_from_several_threads() -> None:
    run = execution()
    push = run.pusher("s")
    outputs: list[object] = []

    def work(number: int) -> None:
        if number % 2:
            for i in range(ROWS):
                push(row(number, i))
            return
        for start in range(0, ROWS, 100):
            batch = Batch(SCHEMA, [row(number, i) for i in range(start, start + 100)])
            outputs.extend(run.feed("s", Batch(SCHEMA, table=batch.table)))

    in_threads(work)
    check(run, outputs)


def test_nobody_joins_who_is_inside() -> None:
    """b comes while a is inside, and gets in after a has left."""
    gate = Gate()
    inside, leave = threading.Event(), threading.Event()
    happened: list[str] = []

    def a() -> None:
        with gate.alone(), gate.alone():  # again by the same thread is no wait
            inside.set()
            leave.wait(30)
            happened.append("a leaves")

    def b() -> None:
        with gate.alone():
            happened.append("b is in")

    first, second = threading.Thread(target=a), threading.Thread(target=b)
    first.start()
    assert inside.wait(30)
    second.start()
    second.join(0.1)  # long enough for one that is let in
    leave.set()
    first.join()
    second.join()
    assert happened == ["a leaves", "b is in"]
