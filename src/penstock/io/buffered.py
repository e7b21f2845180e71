"""A sink that is written to beside its run, by a thread of its own, with a bound on what waits for it.

Whoever writes waits only when so many tables wait already: then the sink holds up its run, until it takes one, or is
cut off. What waits is written before it is closed or abandoned; what waits when it is cut off is lost, and whoever
writes to it is told. What the sink raises is raised to whoever writes next, or closes it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError, reason_of
from penstock.io.awaited import CoroutineSink
from penstock.io.channel import Channel
from penstock.io.sinks import ResumableSink, Sink

LOGGER = logging.getLogger("penstock.run")


def _inner(sink: Sink) -> Sink:
    """The sink that the user gave, which may be written to beside the run."""
    return sink.sink if isinstance(sink, BufferedSink) else sink


def channel_of(sink: Sink) -> Channel | None:
    """The channel that a sink is."""
    inner = _inner(sink)
    return inner if isinstance(inner, Channel) else None


def cancel_all(sinks: Iterable[Sink]) -> bool:
    """Have coroutines cancelled that sinks await; whether there are any."""
    cancelled = [inner.cancel() for inner in map(_inner, sinks) if isinstance(inner, CoroutineSink)]
    return any(cancelled)


def tell_failure(sink: Sink, error: PenstockError) -> None:
    """Whoever iterates over results learns why there are no more; of other sinks the run itself tells."""
    channel = channel_of(sink)
    if channel is not None:
        channel.fail(error)


class BufferedSink:
    """At most so many tables wait for a sink."""

    def __init__(self, sink: Sink, most: int, name: str) -> None:
        """`name` is whose results these are."""
        self.sink, self.most, self.name = sink, most, name
        self._waiting: deque[pa.Table] = deque()
        self._changed = threading.Condition()
        self._is_over = self._is_cut = self._is_writing = False
        self._reason: PenstockError | None = None
        """Why it was cut off."""
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=f"penstock-sink-{name}", daemon=True)

    @property
    def held(self) -> int:
        """How many tables were given to it and are not written."""
        return len(self._waiting) + self._is_writing

    def write(self, table: pa.Table) -> None:
        """Take a table, as soon as there is room."""
        with self._changed:
            while len(self._waiting) >= self.most and not self._is_cut and self._error is None:
                self._changed.wait()
            self._check()
            if self._thread.ident is None:
                self._thread.start()
            self._waiting.append(table)
            self._changed.notify_all()

    def flush(self) -> None:
        """Until nothing waits, or nothing will be written any more."""
        with self._changed:
            while (self._waiting or self._is_writing) and not self._is_cut and self._error is None:
                self._changed.wait()

    def cut(self, reason: PenstockError) -> None:
        """Write nothing any more, and let nobody wait: whoever does, or comes, is told the reason."""
        with self._changed:
            self._is_cut, self._reason = True, reason
            self._waiting.clear()
            self._changed.notify_all()

    def position(self) -> Any:
        """Where the sink is when nothing waits for it; None of one that has no positions."""
        self.flush()
        with self._changed:
            self._check()
        return self.sink.position() if isinstance(self.sink, ResumableSink) else None

    def resume(self, position: Any) -> None:
        """Go on from a position, if the sink can."""
        if isinstance(self.sink, ResumableSink):
            self.sink.resume(position)

    def close(self) -> None:
        """No more comes, and what came is whole."""
        self._end()
        with self._changed:
            self._check()
        self.sink.close()

    def abandon(self) -> bool:
        """No more comes; one that was cut off is abandoned when it comes back."""
        self._end()
        with self._changed:
            if self._is_cut and self._is_writing:
                return True
        return self.sink.abandon()

    def _end(self) -> None:
        self.flush()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
        if self._reason is not None:
            raise self._reason

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._is_over and not self._is_cut:
                    self._changed.wait()
                if not self._waiting:
                    return
                table, self._is_writing = self._waiting.popleft(), True
                self._changed.notify_all()
            try:
                self.sink.write(table)
            except BaseException as error:  # handed to whoever writes next, or closes it
                self._error = error
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                if self._is_cut and self._is_over:
                    self._abandon()
                if self._is_cut or self._error is not None:
                    return

    def _abandon(self) -> None:
        """The one that was cut off; why it was is known, so what else is wrong with it comes second."""
        try:
            self.sink.abandon()
        except Exception as error:
            LOGGER.error("run %s: and then: %s", self.name, reason_of(error))
