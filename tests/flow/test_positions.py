"""Sources that can be gone on with: a snapshot and the positions of its streams are of one moment."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import PenstockError, SourceError, StreamError
from penstock.runtime.kept_positions import positions_in
from tests.profiles import examples

COLUMNS = "t bigint, k bigint, v bigint"
TOTAL = "SELECT k, sum(v) AS total, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s GROUP BY k"


def rows(count: int) -> list[dict[str, int]]:
    return [{"t": t, "k": t % 3, "v": t * t} for t in range(count)]


def by_hand(given: list[dict[str, int]]) -> Counter[tuple[int, int, int, int]]:
    """Every window of ten, without anything of Penstock."""
    total: Counter[tuple[int, int]] = Counter()
    count: Counter[tuple[int, int]] = Counter()
    for row in given:
        group = (row["t"] // 10 * 10 + 10, row["k"])
        total[group] += row["v"]
        count[group] += 1
    return Counter((end, k, total[end, k], n) for (end, k), n in count.items())


def told(found: list[dict[str, Any]]) -> Counter[tuple[int, int, int, int]]:
    return Counter((r["window_end"], r["k"], r["total"], r["n"]) for r in found)


class Numbered:
    """Rows by their numbers, so many with each poll; pauses at `until`, and ends after the last one."""

    def __init__(self, items: list[Any], until: int | None = None, at_once: int = 1) -> None:
        self.items, self.at, self.at_once = items, 0, at_once
        self.until = len(items) if until is None else until

    def position(self) -> Any:
        return {"next": self.at}

    def seek(self, position: Any) -> None:
        self.at = position["next"]

    def poll(self) -> Any:
        if self.at >= len(self.items):
            return pk.END
        if self.at >= self.until:
            return pk.IDLE
        found = self.items[self.at : min(self.at + self.at_once, self.until)]
        self.at += len(found)
        return found if self.at_once > 1 else found[0]


class Iterated:
    """The same as an iterable, which is read by a thread of its own; after `until` it blocks until it is let go."""

    def __init__(self, items: list[Any], until: int | None = None) -> None:
        self.items, self.at, self.until = items, 0, until
        self.reached, self.go_on = threading.Event(), threading.Event()

    def position(self) -> Any:
        return self.at

    def seek(self, position: Any) -> None:
        self.at = position

    def __iter__(self) -> Iterator[Any]:
        while self.at < len(self.items):
            if self.at == self.until:
                self.reached.set()
                self.go_on.wait(60)
            self.at += 1
            yield self.items[self.at - 1]


def flow_of(**sources: Any) -> pk.Flow:
    flow = pk.Flow()
    for name, source in sources.items():
        flow.stream(name, source, time="t", schema=COLUMNS)
    return flow


@examples(8)
@given(st.integers(0, 60), st.integers(1, 7), st.integers(0, 60))
def test_a_run_goes_on_where_its_snapshot_was_taken(count: int, at_once: int, cut: int) -> None:
    """The results before the snapshot and those after it are all, each once."""
    given_rows, cut = rows(count), min(cut, count)
    first: list[Any] = []
    source = Numbered(given_rows, cut, at_once)
    flow = flow_of(s=source)
    with flow.start({flow.query(TOTAL, name="total"): first}) as run:
        run.process_available()
        run.stop()
        snapshot = run.snapshot()
    assert positions_in(snapshot) == {"s": {"next": cut}}
    second: list[Any] = []
    flow = flow_of(s=Numbered(given_rows, at_once=at_once))
    flow.start({flow.query(TOTAL, name="total"): second}, snapshot=snapshot).wait()
    assert told(first) + told(second) == by_hand(given_rows)


def test_what_is_read_ahead_does_not_count() -> None:
    """The thread has read on while the query was held up by its sink: the position is that of what was taken."""
    items, held, release = rows(100), threading.Event(), threading.Event()
    source = Iterated(items, until=50)
    flow = flow_of(s=source)
    first: list[Any] = []

    def hold_up(table: Any) -> None:
        first.extend(table.to_pylist())
        held.set()
        release.wait(60)

    run = flow.start({flow.query(TOTAL, name="total"): hold_up})
    assert held.wait(60)  # the row of t = 10 has closed the first window
    stopping = threading.Thread(target=run.stop)
    assert source.reached.wait(60)
    run._asked.set()
    release.set()
    stopping.start()
    stopping.join(60)
    source.go_on.set()
    snapshot = run.snapshot()
    taken = positions_in(snapshot)["s"]
    assert run.progress["read"] == taken <= 50
    second: list[Any] = []
    flow = flow_of(s=Iterated(items))
    flow.start({flow.query(TOTAL, name="total"): second}, snapshot=snapshot).wait()
    assert told(first) + told(second) == by_hand(items)


def test_several_streams_have_positions_of_one_moment() -> None:
    union = TOTAL.replace("FROM s", "FROM s UNION z")
    given_rows = rows(40)
    first: list[Any] = []
    flow = flow_of(s=Numbered(given_rows, 25), z=Numbered(given_rows, 13, at_once=4))
    with flow.start({flow.query(union, name="total"): first}) as run:
        run.process_available()
        run.stop()
        snapshot = run.snapshot()
    assert positions_in(snapshot) == {"s": {"next": 25}, "z": {"next": 13}}
    second: list[Any] = []
    flow = flow_of(s=Numbered(given_rows), z=Numbered(given_rows))
    flow.start({flow.query(union, name="total"): second}, snapshot=snapshot).wait()
    assert told(first) + told(second) == by_hand(given_rows + given_rows)


def test_the_execution_of_one_query_has_positions_too() -> None:
    given_rows = rows(40)
    query: Any = flow_of(s=Numbered(given_rows, 25)).query(TOTAL)
    first: list[Any] = []
    run = query.start(first)
    run.process_available()
    run.stop()
    snapshot = run.snapshot()
    again: Any = flow_of(s=Numbered(given_rows)).query(TOTAL)
    execution = again.execution()
    execution.restore(snapshot)
    second = [row for b in again.items(execution) if hasattr(b, "visible") for row in b.visible().to_pylist()]
    assert told(first) + told(second) == by_hand(given_rows)


def test_what_comes_together_is_taken_as_one() -> None:
    """Good and bad rows of one poll, so that no snapshot is between them."""
    good = rows(4)
    flow = flow_of(s=Numbered([*good[:2], {"t": None, "k": 1, "v": 1}, *good[2:]], at_once=5))
    found: list[Any] = []
    run = flow.start({flow.query(TOTAL, name="total"): found})
    run.wait()
    assert (run.progress["read"], run.progress["dead"], run.progress.batches) == (5, 1, 1)
    assert told(found) == by_hand(good)


def test_where_a_source_begins_is_in_the_first_snapshot() -> None:
    source = Numbered(rows(30), until=7)
    source.at = 7
    flow = flow_of(s=source)
    with flow.start({flow.query(TOTAL, name="total"): []}) as run:
        run.process_available()
        run.stop()
        assert positions_in(run.snapshot()) == {"s": {"next": 7}}


def test_a_source_that_cannot_go_back_is_told() -> None:
    flow = flow_of(s=Numbered(rows(30), until=7))
    with flow.start({flow.query(TOTAL, name="total"): []}) as run:
        run.process_available()
        run.stop()
        snapshot = run.snapshot()
    flow = flow_of(s=rows(30))
    with pytest.raises(StreamError, match="source cannot go back to it") as told_so:
        flow.start({flow.query(TOTAL, name="total"): []}, snapshot=snapshot).wait()
    assert told_so.value.got == "{'next': 7}"


def test_positions_that_are_none_are_told() -> None:
    class Odd(Numbered):
        def position(self) -> Any:
            return object()

    class Broken(Numbered):
        def seek(self, position: Any) -> None:
            raise OSError("no such segment")

    flow = flow_of(s=Odd(rows(3)))
    with pytest.raises(StreamError, match="A position is plain data"):
        flow.start({flow.query(TOTAL, name="total"): []}).wait()
    flow = flow_of(s=Numbered(rows(30), until=7))
    with flow.start({flow.query(TOTAL, name="total"): []}) as run:
        run.process_available()
        run.stop()
        snapshot = run.snapshot()
    flow = flow_of(s=Broken(rows(30)))
    with pytest.raises(SourceError, match="The source of a stream failed") as failed:
        flow.start({flow.query(TOTAL, name="total"): []}, snapshot=snapshot).wait()
    assert "no such segment" in failed.value.got
    with pytest.raises(PenstockError, match="source with a position gives rows with lives as elements"):
        pk.Flow().stream("s", Iterated([]), time="vs", schema="vs bigint, ve bigint", lives=("vs", "ve"))
