"""Event loops of asyncio: where the coroutines of sources and sinks run.

What is started inside a running loop runs its coroutines in that loop, where the user's queues, locks and connections
live; the engine's threads hand things over and wait for it. What is started outside of any has a loop of its own, in a
thread of its own, until it is closed. What would wait inside the very loop that it waits for is refused, since that
would never end.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar, copy_context
from typing import Any

from penstock.errors import StreamError

LOOK = 0.1
"""So many seconds pass before it is looked again whether a loop that is waited for runs at all."""


class Home:
    """An event loop of the user's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop; nothing runs in it for us yet."""
        self.loop = loop
        self.is_used = False
        """Whether coroutines of ours run in it, so that whoever blocks it would wait for ever."""

    @property
    def is_here(self) -> bool:
        """Whether this thread is the one that runs the loop."""
        return running_loop() is self.loop

    def call(self, function: Callable[..., object], *arguments: object) -> bool:
        """Have it called in the loop; whether the loop is still there."""
        try:
            self.loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # it is closed
            return False
        return True

    def start(self, coroutine: Coroutine[Any, Any, object]) -> Started:
        """Run a coroutine as a task of the loop."""
        self.is_used = True
        started = Started(self, coroutine)
        if not self.call(started.begin):
            coroutine.close()
            raise ended()
        return started

    def close(self) -> None:
        """Of the user's own loop nothing is closed."""


class OwnHome(Home):
    """A loop of our own, in a thread of its own."""

    def __init__(self) -> None:
        """It runs from here on."""
        super().__init__(asyncio.new_event_loop())
        threading.Thread(target=self._work, name="penstock-asyncio", daemon=True).start()

    def _work(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()

    def close(self) -> None:
        """Nothing runs in it any more."""
        self.call(self.loop.stop)


class Started:
    """A task that another thread has started."""

    def __init__(self, home: Home, coroutine: Coroutine[Any, Any, object]) -> None:
        """It begins when the loop comes to it."""
        self._home, self._coroutine = home, coroutine
        self._context = copy_context()
        self._context.run(_HOME.set, None)  # what the coroutine starts is at home where it runs
        self._task: asyncio.Task[object] | None = None
        self._is_cancelled = False
        self._done = threading.Event()

    def begin(self) -> None:
        """In the loop."""
        self._task = self._home.loop.create_task(self._coroutine, context=self._context)
        self._task.add_done_callback(lambda _: self._done.set())
        if self._is_cancelled:
            self._task.cancel()

    def cancel(self) -> None:
        """Have it cancelled; from any thread, without waiting for it."""
        self._is_cancelled = True
        if self._task is not None:
            self._home.call(self._task.cancel)

    def wait(self) -> bool:
        """Until it is done; whether it is: not if its loop has ended, or waits here itself."""
        while not self._done.wait(LOOK):
            if self._home.is_here or not self._home.loop.is_running():
                break
        return self._done.is_set()

    @property
    def was_cancelled(self) -> bool:
        """Whether it has ended because somebody cancelled it."""
        return self._task is not None and self._task.cancelled()

    def result(self) -> object:
        """What has come of it; its error is raised."""
        if not self.wait() or self._task is None:
            raise ended()
        if self.was_cancelled:
            raise StreamError(
                "The task was cancelled.", hint="the event loop ends, or somebody cancelled all its tasks"
            )
        return self._task.result()


def ended() -> StreamError:
    """The loop is no longer there."""
    return StreamError(
        "The event loop has ended.", hint="leave the run before the loop: async with query.start(…) as run: …"
    )


_HOME: ContextVar[Home | None] = ContextVar("penstock-home", default=None)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@contextlib.contextmanager
def at_home(home: Home | None = None) -> Iterator[Home | None]:
    """What is begun inside, also in threads that get this context, has its coroutines in the loop that runs here."""
    loop, known = running_loop(), home or _HOME.get()
    if loop is not None:
        home = known if known is not None and known.loop is loop else Home(loop)
    before = _HOME.set(home)
    try:
        yield home
    finally:
        _HOME.reset(before)


def find_home() -> Home:
    """Where coroutines run that are needed here."""
    home, loop = _HOME.get(), running_loop()
    if home is not None:
        return home
    if loop is not None:
        raise would_block("this")
    return OwnHome()


def would_block(what: str) -> StreamError:
    """Whoever waits would hold up the loop that it waits for."""
    return StreamError(
        "The event loop would wait for itself.",
        got=f"{what}, called inside a running event loop, in which a source or sink of it runs",
        hint="async for … in query.batches(); await run; async with query.start(…); or await asyncio.to_thread(…)",
    )
