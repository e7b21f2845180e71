"""A clock that is given, a source that is polled by it, and a consumer that takes its time by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

import penstock as pk
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.runtime import pulling

STEP = 1000
"""So many microseconds pass whenever there is nothing to do."""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources that are idle are asked again at once: it is their own clock that goes on."""
    monkeypatch.setattr(pulling, "PAUSE", 0)


class Played:
    """Rows that come at given times, for as long as it is not later."""

    def __init__(self, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
        self.rows = list(rows)
        self.now = self.at = 0

    def poll(self) -> Any:
        if self.at == len(self.rows):
            return pk.END
        due, row = self.rows[self.at]
        if due > self.now:
            self.now = min(self.now + STEP, due)
            return pk.IDLE
        self.at += 1
        return dict(row)


def consumed(query: Any, source: Played, cost: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a query with when a consumer was through with each, that needs so many microseconds for one."""
    execution = query.execution()
    execution.clock = lambda: source.now
    for item in query.items(execution):
        if isinstance(item, Punctuation):
            continue
        assert isinstance(item, Batch)
        source.now += cost * len(item)
        yield from ((source.now, row) for row in item.visible().to_pylist())
