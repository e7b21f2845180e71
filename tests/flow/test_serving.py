"""A flow as a service: until its sources end, a signal comes, or nothing is left; told by an exit status."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import deque
from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import RunError, SourceError, StreamError
from penstock.flow.flow_run import FlowRun

COUNT = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s"
ROWS = "SELECT t FROM s"


class Tap:
    """A source that is asked."""

    def __init__(self, *times: int) -> None:
        self.items: deque[Any] = deque({"t": t} for t in times)
        self.breaks: Exception | None = None

    def poll(self) -> Any:
        if self.breaks is not None:
            raise self.breaks
        return self.items.popleft() if self.items else pk.IDLE


def over(source: Any) -> pk.Flow:
    return pk.Flow().stream("s", source, time="t", schema="t bigint")


def told(*numbers: signal.Signals) -> Any:
    """What sends signals to this process, once everything that is there was read."""

    def send(run: FlowRun) -> None:
        run.process_available()
        for number in numbers:
            os.kill(os.getpid(), number)

    return send


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_at_a_signal_what_was_read_is_finished_and_handlers_are_given_back(number: signal.Signals) -> None:
    before, found = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)], []
    flow = over(Tap(1, 2, 13))
    served = flow.serve({flow.query(COUNT): found}, on_start=told(number), name="counting")
    assert [row["n"] for row in found] == [2, 1]  # the open window too
    assert (served.status, served.signals, served.exit_code) == ("finished", (number.name,), 0)
    assert served.summary == f"counting: finished at {number.name}; exit status 0"
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)] == before


class Alarm(Exception):
    """What a handler of the user's raises."""


def test_a_second_signal_after_it_has_returned_is_whose_it_was_before() -> None:
    """Also when it is served again in between."""
    got: list[int] = []

    def own(number: int, frame: Any) -> None:
        got.append(number)

    before = signal.signal(signal.SIGTERM, own)
    try:
        for _ in range(2):
            flow = over(Tap(1))
            assert flow.serve({flow.query(ROWS): []}, on_start=told(signal.SIGTERM)).signals == ("SIGTERM",)
            os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        assert got == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("comes", ["when the first is taken", "when the first is given back"])
def test_a_signal_that_comes_as_handlers_change_hands_leaves_none_behind(
    comes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alarm(number: int, frame: Any) -> None:
        raise Alarm

    sets, calls = signal.signal, 0
    before = {number: sets(number, alarm) for number in (signal.SIGTERM, signal.SIGINT)}

    def interrupted(number: Any, handler: Any) -> Any:
        nonlocal calls
        calls += 1
        found = sets(number, handler)
        if calls == 1 and comes == "when the first is taken":
            os.kill(os.getpid(), signal.SIGINT)  # which is not ours yet
        if calls == 3 and comes == "when the first is given back":
            os.kill(os.getpid(), number)
        return found

    try:
        monkeypatch.setattr(signal, "signal", interrupted)
        flow = over(Tap(1))
        with pytest.raises(Alarm):
            flow.serve({flow.query(ROWS): []}, on_start=told(signal.SIGTERM))
        assert [signal.getsignal(n) for n in before] == [alarm, alarm]
    finally:
        monkeypatch.undo()
        for number, handler in before.items():
            sets(number, handler)


def test_what_another_handler_raises_meanwhile_ends_it() -> None:
    """A handler of a signal that is not taken over, while the main thread waits, or watches."""

    def alarm(number: int, frame: Any) -> None:
        raise Alarm

    runs: list[FlowRun] = []
    before = signal.signal(signal.SIGALRM, alarm)
    try:
        for watch in (None, lambda run: os.kill(os.getpid(), signal.SIGALRM)):
            flow = over(Tap(1))
            if watch is None:
                signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(Alarm):
                flow.serve({flow.query(ROWS): []}, on_start=runs.append, watch=watch)
    finally:
        signal.signal(signal.SIGALRM, before)
    for run in runs:
        run.wait(60)
    assert [run.status for run in runs] == ["stopped", "stopped"]


def test_stopping_leaves_windows_open_for_the_snapshot() -> None:
    found: list[Any] = []
    flow = over(Tap(1, 2, 13))
    served = flow.serve({flow.query(COUNT, name="q"): found}, on_start=told(signal.SIGTERM), at_signal="stop")
    assert ([row["n"] for row in found], served.status, served.exit_code) == ([2], "stopped", 0)
    flow = over([{"t": 14}])
    flow.start({flow.query(COUNT, name="q"): found}, snapshot=served.run.snapshot()).wait()
    assert [row["n"] for row in found] == [2, 2]


def test_a_second_signal_cuts_it_short() -> None:
    stands = threading.Event()
    released = threading.Event()

    def sink(table: pa.Table) -> None:
        stands.set()
        assert released.wait(60)

    def send(run: FlowRun) -> None:
        assert stands.wait(60)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)

    def after(run: FlowRun) -> None:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # the third one has its ordinary effect
            released.set()

    flow = over(Tap(1, 2, 13))
    served = flow.serve({flow.query(ROWS): sink}, on_start=send, watch=after)
    assert served.signals == ("SIGTERM", "SIGINT")
    assert served.exit_code == 128 + signal.SIGINT


def test_it_ends_with_its_sources_and_is_watched(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "penstock.run")
    tap, seen = Tap(1), []

    def watch(run: FlowRun) -> None:
        seen.append(run.progress["read"])
        tap.items.append(pk.END)

    flow = over(tap)
    served = flow.serve({flow.query(ROWS): []}, watch=watch)
    assert (served.status, served.signals, served.exit_code, seen[0]) == ("finished", (), 0, 1)
    assert "flow: finished; exit status 0" in caplog.text


def test_a_query_that_fails_is_told_and_the_others_go_on() -> None:
    def sink(table: pa.Table) -> None:
        raise OSError("no room")

    found: list[Any] = []
    flow = over(Tap(1, 2, 3))
    served = flow.serve(
        {flow.query(ROWS, name="bad"): sink, flow.query(ROWS, name="good"): found}, on_start=told(signal.SIGTERM)
    )
    assert [row["t"] for row in found] == [1, 2, 3]
    assert (served.status, served.exit_code, list(served.failures)) == ("failed", 1, ["bad"])
    assert "bad: The sink of the results failed" in served.summary
    alone = flow = over(Tap(1))
    served = alone.serve({flow.query(ROWS, name="bad"): sink})  # nobody is left, and no signal comes
    assert (served.status, served.exit_code, served.signals) == ("failed", 1, ())


def test_a_source_that_fails_ends_it() -> None:
    tap = Tap(1)
    flow = over(tap)

    def breaks(run: FlowRun) -> None:
        run.process_available()
        tap.breaks = OSError("the line is dead")

    served = flow.serve({flow.query(ROWS, name="q"): []}, on_start=breaks)
    assert served.exit_code == 1
    assert isinstance(served.run.exception, SourceError)
    assert "stream s" in str(served.run.exception)


def test_beside_the_main_thread_no_signal_is_taken_over() -> None:
    flow, ended = over(Tap(1)), []

    def start(run: FlowRun) -> None:
        threading.Thread(target=run.finish).start()

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=lambda: ended.append(flow.serve({flow.query(ROWS): []}, on_start=start)))
    thread.start()
    thread.join(60)
    assert (ended[0].status, signal.getsignal(signal.SIGTERM)) == ("finished", before)


def test_nothing_is_left_running_when_who_is_called_fails() -> None:
    runs: list[FlowRun] = []

    def start(run: FlowRun) -> None:
        runs.append(run)
        raise OSError("not ready")

    flow = over(Tap(1))
    for called in ("on_start", "watch"):
        with pytest.raises(RunError, match=rf"{called} failed(?s:.*)run flow(?s:.*)OSError: not ready"):
            flow.serve({flow.query(ROWS): []}, **{called: start})
    assert [run.status for run in runs] == ["stopped", "stopped"]


def test_what_cannot_be_served() -> None:
    flow = over(Tap(1))
    with pytest.raises(StreamError, match=r"This is a function(?s:.*)watch=5"):
        flow.serve({flow.query(ROWS): []}, watch=5)  # type: ignore[arg-type]
    with pytest.raises(StreamError, match=r"finishes what was read, or stops(?s:.*)at_signal='die'"):
        flow.serve({flow.query(ROWS): []}, at_signal="die")

    async def inside() -> None:
        flow.serve({flow.query(ROWS): []})

    with pytest.raises(StreamError, match="wait for itself"):
        asyncio.run(inside())
