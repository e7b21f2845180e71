"""Two tasks at once, where there are two processors: numpy and Arrow let go of the interpreter over large arrays.

The tasks must not write to the same memory, and what comes of them must not depend on which is first; then whoever does
the same work again comes to the same state, with one processor or two. One thread is kept for it, from the first use
on. Who asks while it is at work, from either task or from elsewhere, does both tasks himself, one after the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
LARGE = 32_768
"""From so many rows on it pays; to hand a task over costs about as much as an operation on so many."""


class _Other:
    """The other thread, if it is of use and free."""

    def __init__(self) -> None:
        """A process that is forked off has none of the threads, and begins anew."""
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self.free = Lock()
        self.is_of_use = processors() > 1
        self._pool: ThreadPoolExecutor | None = None

    @property
    def pool(self) -> ThreadPoolExecutor:
        """Made on first use."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "penstock-aggregates")
        return self._pool


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(one: Callable[[], A], other: Callable[[], B]) -> tuple[A, B]:
    """What comes of two tasks, done at once if that is possible."""
    if not _OTHER.free.acquire(blocking=False):
        return one(), other()
    try:
        begun = _OTHER.pool.submit(copy_context().run, other)  # with what numpy is told of infinities here
        try:
            first = one()
        finally:
            begun.exception()  # nobody else may use what the other task is at work on
        return first, begun.result()
    finally:
        _OTHER.free.release()


def at_once(rows: int, one: Callable[[], A], other: Callable[[], B]) -> tuple[A, B]:
    """The same of tasks over so many rows, if these are enough."""
    return side_by_side(one, other) if is_large(rows) else (one(), other())


def is_large(rows: int) -> bool:
    """Whether it is of use to divide work on so many rows in two."""
    return rows >= LARGE and _OTHER.is_of_use


_OTHER = _Other()
