"""Results of a run that somebody iterates over, row by row, with `for` or `async for`.

A channel is a sink: its run waits when `max_held` rows wait in it, and then reads no further in its sources. It ends
with the run, and raises why the run has failed. Several who iterate share what comes between them. A run that is
stopped or finished waits for nobody: what it still gives is in the channel.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

import pyarrow as pa

from penstock.errors import PenstockError, StreamError
from penstock.model.elements import is_whole


class Channel(Iterator[dict[str, Any]], AsyncIterator[dict[str, Any]]):
    """At most so many rows wait to be taken."""

    def __init__(self, max_held: int = 1000) -> None:
        """For one run of one query."""
        if not is_whole(max_held) or max_held < 1:
            raise StreamError("So many rows may wait in a channel, at least one.", got=f"max_held={max_held!r}"[:200])
        self.max_held = max_held
        self._rows: deque[dict[str, Any]] = deque()
        self._changed = threading.Condition()
        self._is_over = self._is_released = self._is_given = False
        self._error: PenstockError | None = None
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @property
    def held(self) -> int:
        """How many rows wait to be taken."""
        return len(self._rows)

    # What the run does

    def open_sink(self, _schema: pa.Schema | None) -> Self:
        """It is given to a run, which it ends with."""
        if self._is_given:
            raise StreamError(
                "A channel is for one run of one query.",
                where="channel",
                got="one that was given to a run before",
                hint="rows = pk.channel() makes another",
            )
        self._is_given = True
        return self

    def write(self, table: pa.Table) -> None:
        """Put rows in, as soon as there is room."""
        for row in table.to_pylist():
            with self._changed:
                while len(self._rows) >= self.max_held and not self._is_released:
                    self._changed.wait()
                self._rows.append(row)
                self._tell()

    def close(self) -> None:
        """No more comes."""
        with self._changed:
            self._is_over = True
            self._tell()

    def abandon(self) -> bool:
        """No more comes; what came stays there."""
        self.close()
        return True

    def fail(self, error: PenstockError) -> None:
        """The run has failed, and whoever iterates is told after the last row."""
        with self._changed:
            self._error = error

    def release(self) -> None:
        """The run is to end, and waits for nobody."""
        with self._changed:
            self._is_released = True
            self._tell()

    def _tell(self) -> None:
        self._changed.notify_all()
        waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            try:
                loop.call_soon_threadsafe(_settle, future)
            except RuntimeError:  # that loop is closed, and nobody waits in it
                continue

    # Whoever iterates

    def _next(self) -> dict[str, Any] | None:
        """A row, None if there is none yet; the lock is held."""
        if self._rows:
            row = self._rows.popleft()
            self._changed.notify_all()
            return row
        if self._is_over:
            error, self._error = self._error, None
            if error is not None:
                raise error
            raise StopIteration
        return None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> dict[str, Any]:
        with self._changed:
            while (row := self._next()) is None:
                self._changed.wait()
            return row

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> dict[str, Any]:
        while True:
            with self._changed:
                try:
                    row = self._next()
                except StopIteration:
                    raise StopAsyncIteration from None
                if row is not None:
                    return row
                loop = asyncio.get_running_loop()
                future: asyncio.Future[None] = loop.create_future()
                self._waiting.append((loop, future))
            await future


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def channel(max_held: int = 1000) -> Channel:
    """A sink to iterate over: `rows = pk.channel()`, `query.start(rows)`, `async for row in rows`.

    Args:
        max_held: so many rows may wait in it; then the run waits, and its sources with it.
    """
    return Channel(max_held)
