"""Two tasks at once: both are done whatever becomes of them, and nobody waits for himself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Event, get_ident
from unittest import mock

import numpy as np
import pytest

from penstock.operators.aggregates import side_by_side as module
from penstock.operators.aggregates.measures import infinite
from penstock.operators.aggregates.side_by_side import at_once, side_by_side

PATIENCE = 60


@pytest.fixture(autouse=True)
def two_processors() -> Iterator[None]:
    with mock.patch.object(module._OTHER, "is_of_use", True):
        yield


def fail() -> None:
    raise ValueError("it failed")


def test_both_tasks_are_done_at_once() -> None:
    mine, others = Event(), Event()

    def one() -> bool:
        mine.set()
        return others.wait(PATIENCE)

    def other() -> bool:
        others.set()
        return mine.wait(PATIENCE)

    assert side_by_side(one, other) == (True, True)


def test_few_rows_are_left_to_one_thread() -> None:
    assert at_once(module.LARGE - 1, get_ident, get_ident) == (get_ident(), get_ident())
    one, other = at_once(module.LARGE, get_ident, get_ident)
    assert one == get_ident() != other


def test_a_task_that_asks_for_two_does_them_itself() -> None:
    def nested() -> tuple[int, int]:
        return side_by_side(get_ident, get_ident)

    (one, same), (other, also) = side_by_side(nested, nested)
    assert one == same == get_ident()
    assert other == also != one


def test_a_task_that_fails_says_so_when_the_other_has_ended() -> None:
    ended = Event()
    with pytest.raises(ValueError, match="it failed"):
        side_by_side(fail, ended.set)
    assert ended.is_set()
    with pytest.raises(ValueError, match="it failed"):
        side_by_side(lambda: None, fail)
    assert side_by_side(lambda: 1, lambda: 2) == (1, 2)


def test_infinities_that_are_data_are_so_in_both_tasks() -> None:
    with np.errstate(all="raise"), infinite():
        one, other = side_by_side(*[lambda: np.array([np.inf]) - np.inf] * 2)
    assert np.isnan([one, other]).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_process_that_is_forked_off_has_a_thread_of_its_own() -> None:
    def forked() -> int:
        child = os.fork()
        if not child:
            module._OTHER.is_of_use = True
            one, other = side_by_side(get_ident, get_ident)
            os._exit(0 if one != other else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    status, _ = side_by_side(forked, lambda: None)
    assert status == 0
