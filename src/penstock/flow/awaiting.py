"""Runs in asyncio: `await run`, and `async with query.start(…) as run`.

What blocks is done by a thread of its own, so that the event loop goes on, in which sources and sinks of the run may
have their coroutines.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Self, TypeVar

from penstock.flow.results import Pump

T = TypeVar("T")


async def aside(function: Callable[[], T]) -> T:
    """What a function gives that may block; it goes on when nobody waits for it any more."""
    pump = Pump()
    found: T = await asyncio.shield(asyncio.wrap_future(pump.end(function)))
    return found


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
        await aside(lambda: self.__exit__(kind, error, trace))
