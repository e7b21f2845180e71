"""What ordinary code looks like; it is checked by mypy --strict and never run."""

import asyncio
import logging
from collections.abc import AsyncIterator

import penstock as pk

logging.basicConfig(level="INFO")
rows = [{"ts": "2026-01-01 10:00:05", "host": "a"}, {"ts": "2026-01-01 10:00:20", "host": "b"}]


def talkers(flow: pk.Flow) -> pk.Query:
    flow.stream("main", rows, time="ts", progress=pk.bounded("15 seconds"))
    return flow.query("SELECT host, count(*) AS n [RANGE 1 minute, SLIDE 1 minute, WA ts] FROM main GROUP BY host")


query = talkers(pk.Flow())
print(query.explain(), query.schema, query.properties, query.columns)
print(query.collect().num_rows, query.late.num_rows, query.dead_letters.num_rows, query.counts["late"])
query.show(5)
print(query.to_pandas().head())
for element in query.elements():
    if isinstance(element, pk.Insert):
        print(element.payload)
for table in query.batches():
    print(table.num_rows)


async def follow() -> int:
    seen = 0
    async for table in query.batches():
        seen += table.num_rows
    return seen


async def numbers() -> AsyncIterator[dict[str, int]]:
    for t in range(3):
        yield {"t": t}


async def store(table: object) -> None:
    await asyncio.sleep(0)


async def serve() -> list[object]:
    live = pk.Flow().stream("live", numbers(), time="t", schema="t bigint").query("SELECT t FROM live")
    rows = pk.channel(max_held=10)
    async with live.start(rows) as run:
        found: list[object] = [row["t"] async for row in rows]
        await run
    await live.start(store)
    return found


print(asyncio.run(follow()), asyncio.run(serve()))
with query.start("out.parquet", late="late.csv", max_dead=0.01) as run:
    while not run.wait(timeout=1.0):
        progress: pk.RunProgress = run.progress
        print(run.status, progress["late"], progress.counts.on_time, progress.frontier["main"], progress.lag)
error: pk.PenstockError | None = run.exception
print(repr(run), error)


def on_spark(spark: object) -> pk.Run:
    query = talkers(pk.Flow(spark, path="flows"))
    query.df.show()
    started = query.start("results", trigger={"availableNow": True}, name="talkers", retention=pk.Retention(records=9))
    started.finish()
    return started
