"""What a query gives as it comes, for `for` and for `async for`.

Nothing runs before the first one is asked for, and no more than what is asked for. `async for` has a thread of its own
that runs the query while the event loop goes on; if the loop gives up waiting (a timeout, a cancelled task), what comes
meanwhile is there when it asks again. Asynchronous sources of the query run in that event loop.

Who leaves early closes it, or leaves that to a `with` block, or lets go of it: then the query stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from penstock.errors import UnsupportedError
from penstock.io.event_loops import at_home

if TYPE_CHECKING:
    from penstock.flow.replacement import Replacement, ReplacementCheck

T = TypeVar("T")


class Results(Iterator[T], AsyncIterator[T], Generic[T]):
    """An iterator over what comes in portions."""

    def __init__(
        self,
        portions: Generator[Iterable[T], None, None],
        leave: Callable[[], object] = lambda: None,
        *,
        is_prompt: bool = True,
        replacing: Any = None,
    ) -> None:
        """What is iterated over, portion by portion.

        `leave`, from any thread, has it end; `is_prompt` if that is so also while a source is silent.
        `replacing` lets another query take the place of the one that gives these.
        """
        self._replacing = replacing
        self._portions, self._leave, self._is_prompt = portions, leave, is_prompt
        self._ready: deque[T] = deque()
        self._pending: Future[Iterable[T] | None] | None = None
        self._pump: Pump | None = None
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
                self._pump = Pump()
            if self._pending is None:
                self._pending = self._pump.ask(partial(next, self._portions, None))
            pending = self._pending
            try:
                portion = await asyncio.shield(asyncio.wrap_future(pending))
            except Exception:
                self._is_over = True  # a failure is told once
                raise
            if self._pending is pending:  # of several tasks that wait for it, the first one takes it
                self._pending = None
                self._take(portion)
        return self._ready.popleft()

    def can_replace(self, sql: Any, *, mapping: Mapping[str, str] | None = None) -> ReplacementCheck:
        """Whether the query can be replaced by another one now; see `Run.replace`. Ask between two of its results."""
        found: ReplacementCheck = self._replaceable().can_replace(sql, mapping)
        return found

    def replace(self, sql: Any, *, mapping: Mapping[str, str] | None = None) -> Replacement:
        """Replace the query by another one: what comes is its results up to a time, and the new one's from there on.

        See `Run.replace`.
        """
        found: Replacement = self._replaceable().replace(sql, mapping)
        return found

    def _replaceable(self) -> Any:
        if self._replacing is None:
            raise UnsupportedError("These results are of a run on Spark, which cannot be replaced.", hint="pk.Flow()")
        return self._replacing

    def close(self) -> None:
        """No more is wanted: the query stops, at once or when the source that it waits for gives something."""
        self._close()

    def _close(self) -> Future[Any] | None:
        """What will come of it, if that is up to another thread."""
        self._ready.clear()
        self._is_over = True
        self._pending = None
        self._leave()
        pump, self._pump = self._pump, None
        if pump is not None:
            return pump.end(self._portions.close)
        with contextlib.suppress(ValueError):  # another thread is in it, and finds its end there
            self._portions.close()
        return None

    async def aclose(self) -> None:
        """The same; when it returns, the sources are closed too, unless one is waited for that cannot be told."""
        closing = self._close()
        if closing is not None and self._is_prompt:
            await asyncio.shield(asyncio.wrap_future(closing))

    def __del__(self) -> None:
        if not self._is_over:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Pump:
    """A thread that does one thing after the other; it holds up no interpreter that wants to end."""

    def __init__(self) -> None:
        """For whoever runs the event loop here."""
        self._asked: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        with at_home():
            work = partial(copy_context().run, _work, self._asked)
        threading.Thread(target=work, name="penstock-results", daemon=True).start()

    def ask(self, what: Callable[[], Any]) -> Future[Any]:
        """What will come of it."""
        future: Future[Any] = Future()
        self._asked.put((future, what))
        return future

    def end(self, last: Callable[[], Any]) -> Future[Any]:
        """Do that, and then nothing more."""
        future = self.ask(last)
        self._asked.put(None)
        return future


def _work(asked: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]) -> None:
    while (next_one := asked.get()) is not None:
        future, what = next_one
        try:
            found = what()
        except BaseException as error:
            _settle(future.set_exception, error)
        else:
            _settle(future.set_result, found)
            del found
        del future, what, next_one  # they are not kept while nothing is asked


def _settle(say: Callable[[Any], None], value: Any) -> None:
    with contextlib.suppress(InvalidStateError):  # nobody waits any more
        say(value)
