"""The contexts of a pattern: which sequences of one key wait for which step, and what a row makes of them.

A context is given the rows of its key in order of time; of one time, those of later steps first and those that must
not come last, so that no row meets another of its own time. Steps are counted from 0 among those that come; `gap` n is
between step n and the next one.

`low` is a time before which no row comes
any more; sequences that began more than `within` before it are given up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.model.batch import Row


class Chain(NamedTuple):
    """A sequence: the times of its first and its last row, and the rows.

    Of a step whose rows are collected it has all of them in place of one.
    """

    first: int
    last: int
    rows: tuple[Any, ...]


@dataclass(frozen=True)
class Shape:
    """What contexts know of their pattern: how many steps come, and the places of the times in their rows."""

    times: tuple[int, ...]
    within: int | None

    @property
    def count(self) -> int:
        """How many steps come."""
        return len(self.times)

    def is_over(self, first: int, time: int) -> bool:
        """Whether a row of a time is too late for what began with another."""
        return self.within is not None and time - first > self.within

    def chain(self, rows: Iterable[Row]) -> Chain:
        """A sequence of these rows."""
        made: tuple[Any, ...] = tuple(tuple(row) for row in rows)
        return Chain(made[0][self.times[0]], made[-1][self.times[len(made) - 1]], made)


class ContextState(ABC):
    """What is kept of one key."""

    def __init__(self, shape: Shape) -> None:
        """Nothing at first."""
        self.shape = shape

    @abstractmethod
    def take(self, step: int, time: int, row: Row) -> list[Chain]:
        """A row of a step; the sequences that it completes."""

    @abstractmethod
    def forbid(self, gap: int, time: int) -> None:
        """A row of a step that must not come between two others."""

    @abstractmethod
    def forget(self, low: int) -> None:
        """No row before `low` comes any more, of whatever step."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it is as if nothing had come."""

    @abstractmethod
    def next_wake(self) -> int | None:
        """The first value of `low` with which something can be given up; None if there is none."""

    @abstractmethod
    def to_plain(self) -> Any:
        """As plain data."""

    @abstractmethod
    def restore(self, data: Any) -> None:
        """The other way."""
