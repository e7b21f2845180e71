"""When the clock of a query on Spark ticks, and what a tick says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from penstock.engines.spark.clock import (
    PERIOD,
    POLLED,
    SILENT_SINCE,
    ClockMapper,
    ClockReader,
    Moment,
    Waiting,
    bound_by_clock,
    silences,
)
from penstock.engines.spark.trackers import plain_tracker
from penstock.engines.spark.wire import Note, load_note
from penstock.model.time import MIN_TICK, SECOND
from penstock.model.timestamps import Silence
from penstock.operators.state import MemoryPages
from penstock.storage.files import place_of
from penstock.storage.log import Record, RecordLog

START = 1_000_000 * SECOND


class Clock:
    """Stands where it was set."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def put(home: Path, number: int, wakes: int | None, **state: Any) -> None:
    RecordLog(place_of(str(home)) / "log").put(Record("r", number, number, state={"clock": wakes, **state}))


def test_the_position_moves_only_while_something_waits(tmp_path: Path) -> None:
    clock = Clock()
    reader = ClockReader(str(tmp_path), clock=clock)
    at = reader.initialOffset()

    def looked() -> dict[str, int]:
        clock.seconds += PERIOD
        return reader.latestOffset(at, None)

    assert looked() == at, "there is no record"
    put(tmp_path, 0, None)
    assert looked() == at, "nothing waits"
    put(tmp_path, 1, START + 10 * SECOND)
    assert looked() == at, "what waits, waits for a later time"
    clock.seconds = 1_000_011.0
    at = looked()
    assert at == {"now": 1_000_012 * SECOND}
    clock.seconds += PERIOD / 2
    assert reader.latestOffset(at, None) == at, "it has looked just now"
    clock.seconds = 1_000_000.0
    assert looked() == at, "the clock went back"
    put(tmp_path, 2, None)
    clock.seconds = 1_000_020.0
    assert looked() == at


def test_while_rows_wait_in_queues_it_moves_with_every_micro_batch(tmp_path: Path) -> None:
    clock = Clock()
    reader = ClockReader(str(tmp_path), has_queues=True, clock=clock)
    at = reader.initialOffset()

    def looked(later: float = POLLED) -> dict[str, int]:
        clock.seconds += later
        return reader.latestOffset(at, None)

    put(tmp_path, 0, None, asks=True)
    at = looked()
    assert at == {"now": int((1_000_000 + POLLED) * SECOND)}
    at = looked()
    assert at == {"now": int((1_000_000 + 2 * POLLED) * SECOND)}, "it still waits"
    assert looked(POLLED / 2) == at, "there was no micro-batch in between"
    assert looked(-1) == {"now": at["now"] + 1}, "what waits goes on though the clock went back"
    put(tmp_path, 1, 0, asks=False)
    at = looked(2)
    assert at == {"now": int((1_000_001 + 2.5 * POLLED) * SECOND)}, "a stream waits for the clock"
    assert looked() == looked() == at, "for which it moves no more often than otherwise"
    put(tmp_path, 2, 0, asks=True)
    assert looked(POLLED / 2) == at
    at = looked(PERIOD)
    assert at == {"now": int((1_000_002 + 5 * POLLED) * SECOND)}, "in the end it is seen, however often somebody asks"
    put(tmp_path, 3, None, asks=False)
    assert looked(10) == at


@pytest.mark.parametrize(("streams", "told"), [((), {"a": Note()}), (("b", "c"), {n: Note(clock=9) for n in "bc"})])
def test_every_bucket_is_told_of_a_tick(streams: tuple[str, ...], told: dict[str, Note]) -> None:
    tick = pa.RecordBatch.from_pydict({"now": [9]})
    packets = [row for batch in ClockMapper(3, streams, "a")(iter([tick])) for row in batch.to_pylist()]
    for stream, note in told.items():
        own = [row for row in packets if row["port"] == stream]
        assert len({row["bucket"] for row in own}) == len(own) == 3
        assert all(load_note(row["body"]) == note for row in own)
    assert len(packets) == 3 * len(told)


def test_a_tick_is_read_once(tmp_path: Path) -> None:
    reader = ClockReader(str(tmp_path))
    assert reader.partitions({"now": 5}, {"now": 5}) == []
    (moment,) = reader.partitions({"now": 5}, {"now": 9})
    assert list(reader.read(moment)) == [(9,)]
    assert isinstance(moment, Moment)


def plan_of(sql: str, **options: Any) -> tuple[Any, Any]:
    flow = pk.Flow()
    for name in ("a", "b"):
        flow.stream(name, [], time="ts", schema="ts timestamp, k int", **(options if name == "b" else {}))
    query: Any = flow.query(sql)
    return query.plan, flow.catalog


UNION = """SELECT count(*) AS n [RANGE 60 seconds, SLIDE 60 seconds, WA ts]
    FROM (SELECT ts FROM a UNION ALL SELECT ts FROM b)"""


@pytest.mark.parametrize(
    ("reached", "greatest", "expected"),
    [
        (None, {}, None),  # nothing has come, so nothing waits
        (None, {"a": START + 5 * SECOND}, 0),  # b never spoke: any time says something
        (START, {"a": START + 5 * SECOND}, START + 2 * SECOND),  # the clock says more once it is past the lull
        (START + 59 * SECOND, {"a": START + 5 * SECOND}, None),  # the only window is closed (a minute ends at +20)
    ],
)
def test_the_clock_wakes_for_what_waits(reached: int | None, greatest: dict[str, int], expected: int | None) -> None:
    plan, catalog = plan_of(UNION, lull="2 seconds")
    found = silences(plan, catalog)
    assert found == {"b": Silence(None, 2 * SECOND)}
    trackers = {} if reached is None else {"b": plain_tracker(None, reached)}
    assert Waiting(plan, found).wakes(trackers, {**greatest, "": START}) == expected


@pytest.mark.parametrize(
    ("fired", "said", "expected"),
    [(None, MIN_TICK, 0), (7, MIN_TICK, 8 * 10 * SECOND - 1), (7, START, None)],
    ids=["never", "in period 7", "all is said"],
)
def test_the_clock_wakes_for_a_timer_that_has_something_to_say(
    fired: int | None, said: int, expected: int | None
) -> None:
    plan, catalog = plan_of(UNION, progress=pk.timer("10 seconds"), max_ahead="1 hour")
    found = silences(plan, catalog)
    assert found == {"b": Silence()}, "while it is silent nothing is known"
    trackers = {"b": plain_tracker((START, (START, said, fired)), None)}
    assert Waiting(plan, found).wakes(trackers, {"a": START + 5 * SECOND}) == expected
    assert Waiting(plan, found).wakes({}, {"a": START + 5 * SECOND}) is None, "no row has come"


def test_nothing_is_closed_for_good_in_a_plan_without_windows() -> None:
    plan, catalog = plan_of("SELECT a.ts FROM a JOIN b ON a.k = b.k AND a.ts = b.ts", timestamps=pk.external())
    waiting = Waiting(plan, silences(plan, catalog))
    assert waiting.wakes({"b": plain_tracker(None, START)}, {"a": START + 5}) == 0
    assert waiting.wakes({"b": plain_tracker(None, START + 6)}, {"a": START + 5}) is None


def test_external_times_go_on_from_the_first_tick_that_finds_silence() -> None:
    silence, pages = Silence(skew=3), MemoryPages()
    assert bound_by_clock(silence, pages, MIN_TICK, 100) == MIN_TICK, "nothing has come ever"
    pages.delete(SILENT_SINCE)
    assert [bound_by_clock(silence, pages, 40, now) for now in (100, 110, 105)] == [37, 47, 42]
    pages.delete(SILENT_SINCE)  # rows have come
    assert bound_by_clock(silence, pages, 60, 120) == 57
