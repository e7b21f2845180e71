"""Queries in event loops: asynchronous sources, coroutines as sinks, results for `async for`, cancellation."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import PenstockError, RunError, SourceError, StreamError
from penstock.flow import awaiting
from penstock.io.awaited import AHEAD

COUNT = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s"
ROWS = "SELECT t FROM s"


def over(source: Any) -> pk.Flow:
    return pk.Flow().stream("s", source, time="t", schema="t bigint")


async def numbers(stop: int) -> AsyncIterator[dict[str, int]]:
    for t in range(stop):
        yield {"t": t}
        if t % 7 == 0:
            await asyncio.sleep(0)


class Spring:
    """A source without an end, which says how much was asked of it and whether it was closed."""

    def __init__(self) -> None:
        self.asked = 0
        self.closed = threading.Event()

    async def __aiter__(self) -> AsyncIterator[dict[str, int]]:
        try:
            while True:
                self.asked += 1
                yield {"t": self.asked}
                await asyncio.sleep(0)
        finally:
            self.closed.set()


class Silent:
    """A source that gives one row and nothing more."""

    def __init__(self) -> None:
        self.waits, self.closed = threading.Event(), threading.Event()

    async def __aiter__(self) -> AsyncIterator[dict[str, int]]:
        try:
            yield {"t": 1}
            self.waits.set()
            await asyncio.Event().wait()
        finally:
            self.closed.set()


def times(elements: list[Any]) -> list[int]:
    return [e.vs for e in elements if isinstance(e, pk.Insert)]


def test_an_asynchronous_generator_is_a_stream_inside_a_loop_and_outside() -> None:
    async def inside() -> list[Any]:
        return [element async for element in over(numbers(300)).query(ROWS).elements()]

    assert times(asyncio.run(inside())) == list(range(300))
    assert times(list(over(numbers(300)).query(ROWS).elements())) == list(range(300))
    assert [row["n"] for row in over(numbers(25)).query(COUNT).collect().to_pylist()] == [10, 10, 5]


def test_a_source_runs_in_the_loop_that_the_query_was_started_in() -> None:
    async def main() -> tuple[list[Any], list[Any]]:
        queue: asyncio.Queue[int | None] = asyncio.Queue()  # it belongs to this loop
        seen: list[Any] = []

        async def taken() -> AsyncIterator[dict[str, int]]:
            while (t := await queue.get()) is not None:
                seen.append(asyncio.get_running_loop())
                yield {"t": t}

        async def fed() -> None:
            for t in (3, 5, 8, None):
                await queue.put(t)
                await asyncio.sleep(0)

        feeding = asyncio.create_task(fed())
        found = [element async for element in over(taken()).query(ROWS).elements()]
        await feeding
        assert seen == [asyncio.get_running_loop()] * 3
        rows = pk.channel()
        run = over(numbers(4)).query(ROWS).start(rows)
        shown = [row["t"] async for row in rows]
        await run
        return times(found), shown

    assert asyncio.run(main()) == ([3, 5, 8], [0, 1, 2, 3])


def test_several_streams_are_read_beside_one_another() -> None:
    async def main() -> list[int]:
        first, second = asyncio.Event(), asyncio.Event()

        async def one() -> AsyncIterator[dict[str, int]]:
            yield {"t": 1}
            first.set()
            await second.wait()
            yield {"t": 4}

        async def other() -> AsyncIterator[dict[str, int]]:
            await first.wait()
            yield {"t": 2}
            second.set()

        flow = over(one()).stream("z", other(), time="t", schema="t bigint")
        return times([e async for e in flow.query("SELECT t FROM s UNION z").elements()])

    assert sorted(asyncio.run(main())) == [1, 2, 4], "each could go on when the other had been read"


def test_coroutines_as_a_sink_are_awaited_one_at_a_time_and_in_order() -> None:
    async def main() -> tuple[list[int], int]:
        found: list[int] = []
        inside = most = 0

        async def sink(table: pa.Table) -> None:
            nonlocal inside, most
            inside, most = inside + 1, max(most, inside + 1)
            await asyncio.sleep(0)
            found.extend(table["t"].to_pylist())
            inside -= 1

        run = over(numbers(50)).query(ROWS).start(sink)
        await run
        assert run.status == "finished"
        return found, most

    assert asyncio.run(main()) == (list(range(50)), 1)


def test_a_coroutine_sink_without_a_loop_has_one_of_its_own() -> None:
    found: list[int] = []

    async def sink(table: pa.Table) -> None:
        await asyncio.sleep(0)
        found.extend(table["t"].to_pylist())

    flow = over([{"t": t} for t in range(5)])
    flow.query(ROWS).start(sink).wait()
    assert found == list(range(5))
    run = flow.start({flow.query(ROWS, name="q"): sink}, max_held=2)
    run.wait()
    assert found == [*range(5), *range(5)]


def test_a_function_that_gives_a_coroutine_is_told() -> None:
    async def sink(table: pa.Table) -> None: ...

    run = over([{"t": 1}]).query(ROWS, name="q").start(lambda table: sink(table.slice(0)))
    with pytest.raises(SourceError, match="which nobody awaits"):
        run.wait()


def test_what_a_source_or_a_sink_raises_is_told_with_its_name() -> None:
    async def broken() -> AsyncIterator[dict[str, int]]:
        yield {"t": 1}
        raise OSError("the line is dead")

    async def sink(table: pa.Table) -> None:
        raise OSError("no room")

    async def main() -> None:
        with pytest.raises(SourceError, match=r"stream s\n  got:   OSError: the line is dead"):
            _ = [element async for element in over(broken()).query(ROWS).elements()]
        run = over(numbers(3)).query(ROWS, name="q").start(sink)
        with pytest.raises(
            RunError, match=r"sink of the results failed.*\n  where: query q\n  got:   OSError: no room"
        ):
            await run
        rows = pk.channel()
        over(broken()).query(ROWS, name="q").start(rows)
        assert (await anext(rows))["t"] == 1
        with pytest.raises(SourceError, match="stream s"):
            await anext(rows)
        with pytest.raises(StopAsyncIteration):
            await anext(rows)

    asyncio.run(main())


def test_who_leaves_early_stops_the_query_and_closes_its_sources() -> None:
    async def main() -> None:
        left, let_go, nested = Spring(), Spring(), Silent()
        async with over(left).query(ROWS).elements() as elements:
            async for _ in elements:
                break
        assert left.closed.is_set()  # at once
        async for _ in over(let_go).query(ROWS).elements():
            break
        gc.collect()
        assert await asyncio.to_thread(let_go.closed.wait, 30)
        async with over(nested).query(ROWS).start(pk.channel()) as run:
            assert await asyncio.to_thread(nested.waits.wait, 30)
        assert nested.closed.is_set()
        assert run.status == "stopped"

    asyncio.run(main())


def test_cancellation_closes_everything() -> None:
    async def main() -> str:
        source, run = Silent(), None

        async def consumer() -> None:
            nonlocal run
            rows = pk.channel()
            async with over(source).query(ROWS).start(rows) as run:
                async for _ in rows:
                    pass

        task = asyncio.create_task(consumer())
        assert await asyncio.to_thread(source.waits.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert source.closed.is_set()
        assert run is not None
        return str(run.status)

    assert asyncio.run(main()) == "stopped"


class Standing:
    """A coroutine sink that takes no table but those of which it is said."""

    def __init__(self) -> None:
        self.stands, self.cancelled = asyncio.Event(), False
        self.goes_on = asyncio.Event()
        self.found: list[int] = []

    async def __call__(self, table: pa.Table) -> None:
        self.stands.set()
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        self.found.extend(table["t"].to_pylist())


def started_with(sink: Any, how: str) -> tuple[Any, Any]:
    """A run whose block is left, and the one that has the status."""
    flow = over({"t": t} for t in range(3))
    query = flow.query(ROWS, name="q")
    if how == "query":
        run: Any = query.start(sink)
        return run, run
    together: Any = flow.start({query: sink}, max_held=10 if how == "max_held" else None)
    return (together.runs["q"], together.runs["q"]) if how == "of a flow" else (together, together.runs["q"])


@pytest.mark.parametrize("how", ["query", "flow", "max_held", "of a flow"])
def test_one_cancellation_ends_a_run_whose_sink_stands_still(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaiting, "GRACE", 0.01)

    async def main() -> None:
        sink = Standing()
        block, run = started_with(sink, how)

        async def consumer() -> None:
            async with block:
                await asyncio.Event().wait()

        task = asyncio.create_task(consumer())
        await sink.stands.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (sink.cancelled, sink.found) == (True, [])
        assert run.status == "failed"
        assert run.exception.what == "A sink was cancelled before it had taken its results, which are lost."
        assert run.exception.got.startswith("rows: 1;")
        if how == "of a flow":
            with pytest.raises(StreamError, match="A sink was cancelled"):
                await block._flow_run

    asyncio.run(main())


def test_a_sink_that_goes_on_when_the_task_is_cancelled_loses_nothing() -> None:
    async def main() -> None:
        sink = Standing()
        run = over(Spring()).query(ROWS, name="q").start(sink)

        async def consumer() -> None:
            async with run:
                await asyncio.Event().wait()

        task = asyncio.create_task(consumer())
        await sink.stands.wait()
        task.cancel()
        await asyncio.sleep(0)
        sink.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (run.status, sink.cancelled, sink.found[:1]) == ("stopped", False, [1])

    asyncio.run(main())


def test_a_cancellation_while_a_block_is_left_is_one_too() -> None:
    async def main() -> None:
        sink = Standing()
        run = over({"t": t} for t in range(3)).query(ROWS, name="q").start(sink)
        leaving = asyncio.Event()

        async def consumer() -> None:
            async with run:
                await sink.stands.wait()
                leaving.set()

        task = asyncio.create_task(consumer())
        await leaving.wait()
        await asyncio.sleep(0)
        assert not task.done()  # the sink is waited for
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (sink.cancelled, run.status) == (True, "failed")

    asyncio.run(main())


def test_a_blocking_sink_is_left_by_a_second_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaiting, "GRACE", 0.01)
    stands, goes_on = threading.Event(), threading.Event()

    def sink(table: pa.Table) -> None:
        stands.set()
        assert goes_on.wait(60)

    async def main() -> pk.Run:
        run = over({"t": t} for t in range(3)).query(ROWS, name="q").start(sink)

        async def consumer() -> None:
            async with run:
                await asyncio.Event().wait()

        task = asyncio.create_task(consumer())
        assert await asyncio.to_thread(stands.wait, 60)
        task.cancel()
        await asyncio.wait({task}, timeout=0.05)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        goes_on.set()
        return run

    run = asyncio.run(main())
    run.wait(60)
    assert run.status == "stopped"


def test_a_run_that_its_loop_leaves_behind_says_so() -> None:
    source = Silent()

    async def main() -> pk.Run:
        run = over(source).query(ROWS).start([])
        assert await asyncio.to_thread(source.waits.wait, 30)
        return run

    run = asyncio.run(main())
    with pytest.raises(SourceError, match=r"task that read the source was cancelled(?s:.*)async with"):
        run.wait()
    assert source.closed.is_set()


def test_a_loop_is_not_made_to_wait_for_itself() -> None:
    async def main() -> None:
        flow = over(numbers(3))
        with pytest.raises(StreamError, match=r"wait for itself(?s:.*)asyncio.to_thread"):
            flow.query(ROWS).collect()
        source = Silent()
        run = over(source).query(ROWS, name="q").start([])
        assert await asyncio.to_thread(source.waits.wait, 30)
        for wait in (run.stop, run.wait, run.finish, run.process_available):
            with pytest.raises(StreamError, match="run q, called inside a running event loop"):
                wait()
        await asyncio.to_thread(run.finish)
        assert run.status == "finished"
        flow = over(Silent())
        early = flow.start({flow.query(ROWS, name="q"): []}, name="together")
        with pytest.raises(StreamError, match="run together, called inside"):
            early.stop()  # also before the source was begun
        with pytest.raises(StreamError, match="run together, called inside"):
            early.runs["q"].stop()
        await asyncio.to_thread(early.stop)
        assert (await asyncio.to_thread(over(numbers(3)).query(ROWS).collect)).num_rows == 3

    asyncio.run(main())


def test_a_generator_is_read_once_and_what_can_begin_anew_as_often_as_is_wanted() -> None:
    class Anew:
        def __aiter__(self) -> AsyncIterator[dict[str, int]]:
            return numbers(3)

    query, again = over(numbers(3)).query(ROWS), over(Anew()).query(ROWS)
    assert (query.collect().num_rows, again.collect().num_rows, again.collect().num_rows) == (3, 3, 3)
    with pytest.raises(SourceError, match="read only once"):
        query.collect()


def test_no_more_is_asked_of_a_source_than_may_be_held() -> None:
    async def main() -> int:
        source, gaps, found = Spring(), [], 0
        full = asyncio.Event()
        rows = pk.channel(max_held=5)
        async with over(source).query(ROWS).start(rows):
            assert (await anext(rows))["t"] == 1
            while not (source.asked >= AHEAD and rows.held == 5):  # the consumer stands still
                await asyncio.sleep(0)
            gaps.append(source.asked - 1)
            async for row in rows:
                found = row["t"]
                gaps.append(source.asked - found)
                if found == 1000:
                    full.set()
                    break
        return max(gaps)

    # the rows of the channel, one on its way there, those read ahead, and the one that was taken
    assert asyncio.run(main()) <= 5 + 1 + AHEAD + 1


def test_an_iterable_is_read_no_further_than_said_while_a_sink_stands_still() -> None:
    asked, gaps = 0, []
    reached = threading.Event()

    def spring() -> Any:
        nonlocal asked
        for t in range(1, 5000):
            asked = t
            if t == 256:
                reached.set()
            yield {"t": t}

    def sink(table: pa.Table) -> None:
        assert reached.wait(30)
        gaps.append(asked - table["t"][-1].as_py())

    over(spring()).query(ROWS).start(sink).wait()
    assert max(gaps) <= 257 + 1
    assert len(gaps) == 4999


def test_finishing_takes_all_that_a_source_has_given() -> None:
    source, found = Spring(), []
    stands, goes_on = threading.Event(), threading.Event()

    def sink(table: pa.Table) -> None:
        stands.set()
        assert goes_on.wait(60)
        found.extend(table["t"].to_pylist())

    async def main() -> None:
        run = over(source).query(ROWS).start(sink)
        assert await asyncio.to_thread(stands.wait, 30)
        finishing = asyncio.create_task(asyncio.to_thread(run.finish))
        while source.asked < AHEAD and not source.closed.is_set():
            await asyncio.sleep(0)
        goes_on.set()
        await finishing
        assert run.status == "finished"

    asyncio.run(main())
    assert source.closed.is_set()
    assert found == list(range(1, source.asked + 1))


def test_loops_in_several_threads_and_several_runs_in_one() -> None:
    found: dict[int, list[int]] = {}

    async def one(at: int) -> None:
        found[at] = times([e async for e in over(numbers(100)).query(ROWS).elements()])

    async def main(at: int) -> None:
        await asyncio.gather(one(at), one(at + 1))

    threads = [threading.Thread(target=lambda at=at: asyncio.run(main(at))) for at in (0, 2, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {at: list(range(100)) for at in range(6)}


def test_queries_of_a_flow_join_and_are_iterated_over_in_a_loop() -> None:
    async def main() -> tuple[list[int], list[int]]:
        source: asyncio.Queue[dict[str, int] | None] = asyncio.Queue()

        async def taken() -> AsyncIterator[dict[str, int]]:
            while (row := await source.get()) is not None:
                yield row

        flow = over(taken())
        first, second = pk.channel(), pk.channel()
        async with flow.start({flow.query(ROWS, name="first"): first}) as run:
            await source.put({"t": 1})
            before = [(await anext(first))["t"]]
            run.add(flow.query("SELECT t FROM s WHERE t > 1", name="second"), second)
            for row in ({"t": 2}, {"t": 3}, None):
                await source.put(row)
            return before + [row["t"] async for row in first], [row["t"] async for row in second]

    assert asyncio.run(main()) == ([1, 2, 3], [2, 3])


def test_a_channel_is_checked_and_shared_and_serves_for() -> None:
    with pytest.raises(StreamError, match=r"at least one(?s:.*)max_held=0"):
        pk.channel(max_held=0)
    rows = pk.channel(max_held=2)
    run = over([{"t": t} for t in range(9)]).query(ROWS).start(rows)
    assert [row["t"] for row in rows] == list(range(9))
    run.wait()
    full = pk.channel(max_held=1)
    endless = over({"t": t} for t in range(10**9)).query(ROWS).start(full)
    assert next(full)["t"] == 0
    endless.stop()  # although nobody takes what has come
    assert [row["t"] for row in full][:2] == [1, 2]


def test_a_sink_of_ones_own() -> None:
    class Kept:
        def __init__(self) -> None:
            self.tables: list[pa.Table] = []
            self.end = ""

        def write(self, table: pa.Table) -> None:
            self.tables.append(table)

        def close(self) -> None:
            self.end = "whole"

        def abandon(self) -> bool:
            self.end = "a part"
            return True

    kept = Kept()
    over([{"t": 1}]).query(ROWS).start(kept).wait()
    assert (kept.end, sum(table.num_rows for table in kept.tables)) == ("whole", 1)
    with pytest.raises(PenstockError, match="a path, a list, a function, or a sink"):
        over([{"t": 1}]).query(ROWS).start(42)


def test_a_channel_is_for_one_run() -> None:
    rows = pk.channel()
    over(iter([{"t": 1}])).query(ROWS).start(rows).wait()
    assert [row["t"] for row in rows] == [1]
    with pytest.raises(StreamError, match="A channel is for one run of one query"):
        over(iter([{"t": 1}])).query(ROWS).start(rows)
