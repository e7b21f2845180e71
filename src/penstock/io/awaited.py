"""Asynchronous sources and sinks: what has `__aiter__`, and coroutine functions.

A source is read by one task, so that timeouts and task groups in a generator are entered and left in the same one. At
most `AHEAD` things are read before they are wanted; then the task waits. When nobody wants more the task is cancelled,
and the generator closed, before the run is over. A coroutine function is awaited for one table after the other. It is
cancelled where the task is that leaves the run, if it stands still.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError, SourceError, StreamError
from penstock.io.event_loops import Home, Started, find_home
from penstock.runtime.polled import END, IDLE

AHEAD = 64
"""So many things may be read of an asynchronous source before they are wanted."""


class AsyncSource:
    """What has `__aiter__`, as a source that is asked."""

    def __init__(self, source: AsyncIterable[object]) -> None:
        """It is read when a run begins."""
        self.source = source
        self._was_read = False
        self._reading: _Reading | None = None

    def begin(self, wake: Callable[[], object]) -> None:
        """Read it, in the loop in which the run was started, or in one of its own."""
        if isinstance(self.source, AsyncIterator):
            if self._was_read:
                raise SourceError(
                    "The source has been read already, and can be read only once.",
                    got=type(self.source).__name__,
                    hint="declare the stream anew with a fresh one",
                )
            self._was_read = True
        self._reading = _Reading(self.source, wake, find_home())

    def poll(self) -> Any:
        """What it has given; `IDLE` if that is nothing so far."""
        assert self._reading is not None
        return self._reading.poll()

    def halt(self) -> None:
        """Read it no further."""
        if self._reading is not None:
            self._reading.halt()

    def close(self) -> None:
        """The task and the generator are closed."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.close()


class _Reading:
    """One reading of a source, from its beginning."""

    def __init__(self, source: AsyncIterable[object], wake: Callable[[], object], home: Home) -> None:
        self._source, self._wake, self._home = source, wake, home
        self._ready: deque[object] = deque()
        self._room = asyncio.Event()
        self._is_full = self._is_halted = self._is_over = False
        self._error: BaseException | None = None
        self._started: Started = home.start(self._read())

    async def _read(self) -> None:
        items = None
        try:
            items = aiter(self._source)
            async for given in items:
                self._ready.append(given)
                if len(self._ready) == 1:
                    self._wake()
                if len(self._ready) >= AHEAD:
                    await self._until_room()
        except BaseException as error:  # told to whoever polls
            self._error = None if self._is_halted and isinstance(error, asyncio.CancelledError) else error
        finally:
            await self._leave(items)

    async def _leave(self, items: Any) -> None:
        """Of what is no generator, nothing is closed."""
        aclose = getattr(items, "aclose", None)
        try:
            if callable(aclose):
                await aclose()
        except Exception as error:
            self._error = self._error or error
        finally:
            self._is_over = True
            self._wake()

    async def _until_room(self) -> None:
        self._room.clear()
        self._is_full = True
        if len(self._ready) >= AHEAD:
            await self._room.wait()
        self._is_full = False

    def poll(self) -> Any:
        is_over = self._is_over  # asked first: what it gave before it ended is in `_ready` by then
        if self._ready:
            given = self._ready.popleft()
            if self._is_full and len(self._ready) <= AHEAD // 2:
                self._home.call(self._room.set)
            return given
        if self._error is not None and is_over:
            error, self._error = self._error, None
            if isinstance(error, Exception):
                raise error
            raise SourceError(
                "The task that read the source was cancelled.",
                got=type(error).__name__,
                hint="leave the run before its event loop ends: async with query.start(…) as run: …",
            ) from error
        return END if is_over or self._is_halted else IDLE

    def halt(self) -> None:
        self._is_halted = True
        self._started.cancel()

    def close(self) -> None:
        self.halt()
        self._started.wait()
        self._ready.clear()
        self._home.close()


def is_coroutine_function(target: object) -> bool:
    """Whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None))  # noqa: B004


class CoroutineSink:
    """Awaits a coroutine function for each table that has rows, one after the other."""

    def __init__(self, function: Callable[[pa.Table], Coroutine[Any, Any, object]]) -> None:
        """The function, whose coroutines run in the loop that runs here, or in one of their own."""
        self.function = function
        self._home = find_home()
        self._home.is_used = True
        self._started: Started | None = None
        self._is_awaited = self._is_cancelled = False

    def write(self, table: pa.Table) -> None:
        """Until it has taken the table."""
        if not table.num_rows:
            return
        if self._home.is_here:
            raise _inside()
        self._is_awaited = True  # before it begins, so that whoever cancels knows of it
        try:
            self._await(table)
        finally:
            self._is_awaited, self._started = False, None

    def _await(self, table: pa.Table) -> None:
        if self._is_cancelled:
            raise _cancelled(table)
        self._started = started = self._home.start(self.function(table))
        if self._is_cancelled:  # just then
            started.cancel()
        try:
            started.result()
        except StreamError as error:
            if self._is_cancelled and started.was_cancelled:
                raise _cancelled(table) from error
            raise

    def cancel(self) -> bool:
        """Have what is awaited cancelled, and give it nothing more; from any thread. Whether anything is awaited."""
        self._is_cancelled = True
        started = self._started
        if started is not None:
            started.cancel()
        return self._is_awaited

    def close(self) -> None:
        """No more comes."""
        self._home.close()

    def abandon(self) -> bool:
        """What was handed over stays there."""
        self._home.close()
        return True


def _cancelled(table: pa.Table) -> PenstockError:
    return StreamError(
        "A sink was cancelled before it had taken its results, which are lost.",
        where="a coroutine function",
        got=f"rows: {table.num_rows}; the task that leaves the run was cancelled",
        hint="a sink that stands still is given a second; start the query again, or from its last snapshot",
    )


def _inside() -> PenstockError:
    return SourceError(
        "A coroutine cannot be awaited by the loop that it runs in.",
        hint="let another thread do this: await asyncio.to_thread(…)",
    )
