"""What readers and writers of a form of stream have in common: a bound, and a state that can be kept and taken up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.model.time import END_OF_TIME, MIN_TICK


class FormState(ABC):
    """What is remembered of a stream in some form, up to its bound."""

    form = ""

    def __init__(self) -> None:
        """Nothing has come."""
        self.bound = MIN_TICK

    def _has_passed(self, tick: int) -> bool:
        return tick < self.bound or self.bound == END_OF_TIME

    @property
    @abstractmethod
    def size(self) -> int:
        """How many events are kept."""

    @abstractmethod
    def to_plain(self) -> Any:
        """The state as plain data."""

    @abstractmethod
    def from_plain(self, data: Any) -> None:
        """Take up a state."""
