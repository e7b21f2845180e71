"""Results for whoever connects to a port, as JSON lines, without encryption or a login.

Each reader is given what comes from the moment on in which it was accepted. What it has not taken waits for it, up to
`max_held` bytes; one that takes less than comes is cut off then, with its address in the log and in `cut_off`, and
holds up neither the run nor the others. At the end of the run readers have `linger` seconds for what waits for them.
"""

from __future__ import annotations

import logging
import selectors
import socket as sockets
import threading
import time
from collections import deque
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import SourceError, StreamError
from penstock.io.connections import bound, checked_port
from penstock.model.conform import as_json
from penstock.model.elements import is_whole

LOGGER = logging.getLogger("penstock.sinks")


class _Reader:
    """One who is connected."""

    def __init__(self, socket: sockets.socket, name: str) -> None:
        self.socket, self.name = socket, name
        self.waiting: deque[memoryview] = deque()
        self.held = 0
        """So many bytes wait."""


class Published:
    """A port where results are to be had."""

    def __init__(self, port: int, host: str, max_held: int, linger: float) -> None:
        """Made by `publish`; the port is taken from here on."""
        self.max_held, self.linger = max_held, linger
        self.cut_off: list[str] = []
        """Who did not take what came."""
        self._listener = bound(host, port)
        self.port: int = self._listener.getsockname()[1]
        self._readers: dict[sockets.socket, _Reader] = {}
        self._changed = threading.Condition()
        self._is_ending = self._is_over = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._bell, self._rung = sockets.socketpair()
        self._bell.setblocking(False)
        self._rung.setblocking(False)
        self._selector.register(self._rung, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._work, name=f"penstock-port-{self.port}", daemon=True)
        self._thread.start()

    @property
    def readers(self) -> list[str]:
        """Who is connected."""
        with self._changed:
            return [reader.name for reader in self._readers.values()]

    def wait_for(self, count: int, timeout: float | None = None) -> bool:
        """Until at least so many are connected; whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._readers) >= count or self._is_over, timeout)

    def write(self, table: pa.Table) -> None:
        """Give rows to all who are connected."""
        if not table.num_rows:
            return
        data = "".join(as_json(row) + "\n" for row in table.to_pylist()).encode()
        with self._changed:
            if self._is_ending:
                raise SourceError(
                    "The port was given back.", where=f"port {self.port}", hint="pk.publish(…) makes another for a run"
                )
            for reader in list(self._readers.values()):
                if reader.held + len(data) > self.max_held:
                    self._cut(reader)
                    continue
                reader.waiting.append(memoryview(data))
                reader.held += len(data)
        self._ring()

    def close(self) -> None:
        """What waits is given to who takes it; then all connections and the port are closed."""
        with self._changed:
            self._is_ending = True
        self._ring()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def abandon(self) -> bool:
        """The same: what was given is given."""
        self.close()
        return True

    def _ring(self) -> None:
        try:
            self._bell.send(b"x")
        except OSError:  # it rings already, or nobody listens any more
            return

    def _cut(self, reader: _Reader) -> None:
        LOGGER.warning("port %d: %s was cut off: %d bytes waited for it", self.port, reader.name, reader.held)
        self.cut_off.append(reader.name)
        self._leave(reader)

    def _leave(self, reader: _Reader) -> None:
        with self._changed:
            if self._readers.pop(reader.socket, None) is not None:
                self._selector.unregister(reader.socket)
                reader.socket.close()
                self._changed.notify_all()

    # The thread

    def _work(self) -> None:
        until: float | None = None
        try:
            while True:
                with self._changed:
                    if self._is_ending:
                        until = time.monotonic() + self.linger if until is None else until
                        if not any(reader.held for reader in self._readers.values()):
                            return
                        if time.monotonic() >= until:
                            for reader in [r for r in self._readers.values() if r.held]:
                                self._cut(reader)
                            return
                    for reader in self._readers.values():
                        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if reader.held else 0)
                        self._selector.modify(reader.socket, events)
                for key, events in self._selector.select(None if until is None else max(until - time.monotonic(), 0)):
                    self._serve(key.fileobj, events)
        finally:
            self._end()

    def _serve(self, ready: object, events: int) -> None:
        if ready is self._listener:
            self._accept()
        elif ready is self._rung:
            self._rung.recv(4096)
        elif isinstance(ready, sockets.socket) and (reader := self._readers.get(ready)) is not None:
            try:
                if events & selectors.EVENT_READ and not reader.socket.recv(4096):
                    self._leave(reader)
                elif events & selectors.EVENT_WRITE:
                    self._send(reader)
            except BlockingIOError:
                return
            except OSError as error:
                LOGGER.info("port %d: %s has gone: %s", self.port, reader.name, error)
                self._leave(reader)

    def _send(self, reader: _Reader) -> None:
        with self._changed:
            while reader.waiting:
                sent = reader.socket.send(reader.waiting[0])
                reader.held -= sent
                if sent < len(reader.waiting[0]):
                    reader.waiting[0] = reader.waiting[0][sent:]
                    return
                reader.waiting.popleft()

    def _accept(self) -> None:
        try:
            accepted, address = self._listener.accept()
        except OSError:  # it has gone again
            return
        accepted.setblocking(False)
        with self._changed:
            self._readers[accepted] = _Reader(accepted, f"{address[0]}:{address[1]}")
            self._selector.register(accepted, selectors.EVENT_READ)
            self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._is_ending = self._is_over = True
            for reader in list(self._readers.values()):
                self._leave(reader)
            self._changed.notify_all()
        self._selector.close()
        for each in (self._listener, self._rung, self._bell):
            each.close()


@dataclass(frozen=True)
class Port:
    """Where results are to be had, from the moment on in which a run begins."""

    host: str
    port: int
    max_held: int | None = None

    def open(self) -> Published:
        """The sink."""
        return publish(self.port, self.host, **({} if self.max_held is None else {"max_held": self.max_held}))


def publish(port: int, host: str = "127.0.0.1", *, max_held: int = 1 << 20, linger: float = 5.0) -> Published:
    """A sink that gives results, as JSON lines, to whoever connects to a port.

    Args:
        port: 0 takes one that is free; `.port` tells which.
        host: from where readers can connect: this machine, or `0.0.0.0` for any, without encryption or a login.
        max_held: so many bytes may wait for a reader; one that would have more waiting is cut off.
        linger: so many seconds readers have at the end to take what waits for them.
    """
    where = checked_port(host, port)
    if not is_whole(max_held) or max_held < 1:
        raise StreamError("So many bytes may wait, at least one.", where=where, got=f"max_held={max_held!r}"[:200])
    if isinstance(linger, bool) or not isinstance(linger, int | float) or not 0 <= linger < float("inf"):
        raise StreamError("A time to linger is a number of seconds.", where=where, got=f"linger={linger!r}"[:200])
    return Published(port, host, max_held, linger)
