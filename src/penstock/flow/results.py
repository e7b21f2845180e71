"""What a query gives as it comes, for `for` and for `async for`.

Nothing runs before the first one is asked for, and no more than what is asked for. `async for` has a thread of its own
that runs the query while the event loop goes on; if the loop gives up waiting (a timeout, a cancelled task), what comes
meanwhile is there when it asks again. Who leaves early closes it, or leaves that to a `with` block.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class Results(Iterator[T], AsyncIterator[T], Generic[T]):
    """An iterator over what comes in portions."""

    def __init__(self, portions: Generator[Iterable[T], None, None]) -> None:
        """What is iterated over, portion by portion."""
        self._portions = portions
        self._ready: deque[T] = deque()
        self._pending: Future[Iterable[T] | None] | None = None
        self._pump: _Pump | None = None
        self._is_over = False
        self._asking = threading.Lock()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        with self._asking:
            while not self._ready:
                if self._is_over:
                    raise StopIteration
                portion = next(self._portions, None) if self._pending is None else self._pending.result()
                self._pending = None
                self._take(portion)
            return self._ready.popleft()

    def _take(self, portion: Iterable[T] | None) -> None:
        if portion is None:
            self._is_over = True
        else:
            self._ready.extend(portion)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._ready:
            if self._is_over:
                raise StopAsyncIteration
            if self._pump is None:
                self._pump = _Pump()
            if self._pending is None:
                self._pending = self._pump.ask(lambda: next(self._portions, None))
            pending = self._pending
            portion = await asyncio.shield(asyncio.wrap_future(pending))
            if self._pending is pending:  # of several tasks that wait for it, the first one takes it
                self._pending = None
                self._take(portion)
        return self._ready.popleft()

    def close(self) -> None:
        """No more is wanted: the query stops, at once or when the source that it waits for gives something."""
        self._ready.clear()
        self._is_over = True
        pending, self._pending = self._pending, None
        if self._pump is not None:
            if pending is not None:
                pending.cancel()
            self._pump.end(self._portions.close)
        else:
            self._portions.close()

    async def aclose(self) -> None:
        """As `close`."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class _Pump:
    """A thread that does one thing after the other; it holds up no interpreter that wants to end."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="penstock-results", daemon=True).start()

    def ask(self, what: Callable[[], Any]) -> Future[Any]:
        """What will come of it."""
        future: Future[Any] = Future()
        self._asked.put((future, what))
        return future

    def end(self, last: Callable[[], Any]) -> None:
        """Do that, and then nothing more."""
        self.ask(last)
        self._asked.put(None)

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            future, what = asked
            try:
                found = what()
            except BaseException as error:
                _settle(future.set_exception, error)
            else:
                _settle(future.set_result, found)


def _settle(say: Callable[[Any], None], value: Any) -> None:
    with contextlib.suppress(InvalidStateError):  # nobody waits any more
        say(value)
