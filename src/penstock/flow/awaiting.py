"""Runs in asyncio: `await run`, and `async with query.start(…) as run`.

What blocks is done by a thread of its own, so that the event loop goes on, in which sources and sinks of the run may
have their coroutines.

A block that is left because its task was cancelled waits `GRACE` for what the run's coroutines have at hand. A sink
that stands still is then cancelled too, so that one cancellation ends the block and the run; what it had not taken is
lost, and the run says so.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Self, TypeVar

from penstock.flow.results import Pump

T = TypeVar("T")
GRACE = 1.0
"""So many seconds a coroutine sink has for what it was given, once the task is cancelled that leaves the run."""


def begun_aside(function: Callable[[], T]) -> asyncio.Future[T]:
    """What a function will give that may block; it goes on when nobody waits for it any more."""
    return asyncio.wrap_future(Pump().end(function))


async def aside(function: Callable[[], T]) -> T:
    """What a function gives that may block, likewise."""
    return await asyncio.shield(begun_aside(function))


class Awaitable(ABC):
    """What can be waited for, and left, in an event loop."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> bool:
        """Until it is over."""

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __await__(self) -> Generator[object, None, Self]:
        """Until it is over; if it has failed, that is raised. Who is cancelled meanwhile leaves it running."""
        yield from aside(self.wait).__await__()
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        leaving = begun_aside(lambda: self.__exit__(kind, error, trace))
        leaving.add_done_callback(_seen)
        try:
            if kind is not None and issubclass(kind, asyncio.CancelledError):
                await self._leave_soon(leaving)
            await asyncio.shield(leaving)
        except asyncio.CancelledError:  # while it is left
            if not leaving.done() and self._cancel_sinks():
                await asyncio.wait({leaving})
            raise

    async def _leave_soon(self, leaving: asyncio.Future[None]) -> None:
        """Until it is left, or a sink was cancelled that stands still."""
        await asyncio.wait({leaving}, timeout=GRACE)
        if not leaving.done():
            self._cancel_sinks()

    def _cancel_sinks(self) -> bool:
        """Cancel what sinks await; whether any does."""
        return False


def _seen(left: asyncio.Future[None]) -> None:
    """That it failed is logged by the run, also when nobody waits any more."""
    if not left.cancelled():
        left.exception()
