"""What a signal handler raises is told from what the code raises that it interrupts."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.model.interrupts import is_from_signal, let_through


class Alarm(Exception):
    """What handlers raise."""


def plain(number: int, frame: Any) -> None:
    raise Alarm


def whatever(*given: Any) -> None:
    raise Alarm


def tidy(number: int, frame: Any) -> None:
    del number, frame
    raise Alarm


def rebound(number: Any, frame: Any) -> None:
    number = signal.Signals(number).name
    raise Alarm(number)


def nested(number: int, frame: Any) -> None:
    plain(0, None)


def once(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise Alarm


def exiting(number: int, frame: Any) -> None:
    sys.exit(3)


def told(what: str, number: int, frame: Any) -> None:
    raise Alarm(what)


def told_tidily(what: str, number: int, frame: Any) -> None:
    del number, frame
    raise Alarm(what)


class Handler:
    def method(self, number: int, frame: Any) -> None:
        raise Alarm

    def __call__(self, number: int, frame: Any) -> None:
        del number, frame
        raise Alarm


HANDLERS = {
    "function": plain, "any values": whatever, "deleted": tidy, "rebound": rebound, "nested": nested, "once": once,
    "exit": exiting, "partial": functools.partial(told, "x"), "partial, deleted": functools.partial(told_tidily, "x"),
    "method": Handler().method, "object": Handler(), "lambda": lambda number, frame: plain(number, None),
}  # fmt: skip


@pytest.fixture(params=HANDLERS.values(), ids=HANDLERS)
def handled(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, request.param)
    yield
    signal.signal(signal.SIGALRM, before)


def work(value: int) -> int:
    os.kill(os.getpid(), signal.SIGALRM)
    return value


def by_a_generator(value: int) -> int:
    return sum(work(each) for each in range(value))


def caught(function: Callable[..., object], *given: object) -> BaseException:
    try:
        function(*given)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.usefixtures("handled")
@pytest.mark.parametrize("function", [work, by_a_generator])
def test_what_a_handler_raises_is_known(function: Callable[[int], int]) -> None:
    error = caught(function, 1)
    assert isinstance(error, Alarm | SystemExit)
    assert is_from_signal(error)
    with pytest.raises(type(error)):
        let_through(error)


def inspecting(frame: Any) -> None:
    """Is given a frame, and is no handler."""
    raise ValueError


def tidy_too(value: int, other: int) -> None:
    del value
    raise ValueError


def test_what_the_code_raises_by_itself_is_not_taken_for_that() -> None:
    before = signal.signal(signal.SIGALRM, tidy)
    try:
        for error in (
            caught(int, "x"), caught(inspecting, sys._getframe()), caught(tidy_too, 1, 2),
            caught(tidy_too, 14, sys._getframe()), caught(sys.exit, 1),
        ):  # fmt: skip
            assert not is_from_signal(error)
            let_through(error)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_in_other_threads_there_are_no_handlers() -> None:
    found: list[bool] = []

    def aside() -> None:
        found.append(is_from_signal(caught(plain, signal.SIGALRM, sys._getframe())))

    thread = threading.Thread(target=aside)
    thread.start()
    thread.join()
    assert found == [False]
