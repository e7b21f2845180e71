"""What a client says over and over is logged once in a while."""

from __future__ import annotations

import logging

import pytest

from penstock.io.seldom import EVERY, REMEMBERED, Seldom

LOGGER = logging.getLogger("penstock.test")
DOWN = "FAIL [client-1]: 127.0.0.1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_same_thing_is_logged_once_in_a_while_with_how_often_it_came(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    seldom = Seldom(LOGGER, clock)
    for at in range(3000):
        clock.now = at * EVERY / 1000
        times = f"(after {at % 7}ms in state CONNECT, {at} identical error(s) suppressed)"
        seldom.log(logging.ERROR, "%s %s", DOWN, times)
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 3
    assert caplog.messages[0] == f"{DOWN} (after 0ms in state CONNECT, 0 identical error(s) suppressed)"
    assert all(message.endswith(" (and 999 times more in the meantime)") for message in caplog.messages[1:])


def test_what_is_new_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    seldom = Seldom(LOGGER, Clock())
    for _ in range(3):
        for port in (9092, 9093):
            seldom.warning("broker %s is down", port)
    assert caplog.messages == ["broker 9092 is down", "broker 9093 is down"]


def test_no_more_is_remembered_than_said(caplog: pytest.LogCaptureFixture) -> None:
    seldom = Seldom(LOGGER, Clock())
    for number in [*range(REMEMBERED + 1), 1, 0]:
        seldom.warning("thing %s", number)
    assert len(seldom._said) == REMEMBERED
    assert caplog.messages[-2:] == [f"thing {REMEMBERED}", "thing 0"]  # the first one was forgotten, the second not


def test_what_nobody_hears_is_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "penstock.test")
    seldom = Seldom(LOGGER, Clock())
    seldom.warning("thing")
    caplog.set_level(logging.WARNING, "penstock.test")
    seldom.warning("thing")
    assert caplog.messages == ["thing"]
