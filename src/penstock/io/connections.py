"""Lines that come over TCP, without encryption or a login: from a server that is connected to, or from many clients.

What is not read stays with the system, and when that holds enough of it the sender has to wait: a run that is held up
holds its senders up, and holds nothing itself but the line that has not ended. A line that a connection leaves behind
when it ends is a dead letter, since nobody knows what is missing. There is no position to go back to: what was sent
while nobody was connected, or was read by a run that was killed, does not come again.

*Connecting*: `pk.socket` tries again when it is refused or its connection ends, at first after a second, then after
two, four and so on up to thirty, and from the beginning once something has come; for ever, or so many times in a row.
"""

from __future__ import annotations

import logging
import os
import select
import socket as sockets
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.errors import SourceError, StreamError, reason_of
from penstock.io.live_lines import (
    MAX_LINE,
    LineCutter,
    Lines,
    check_function,
    check_text,
    check_truths,
    checked_limit,
    line_form,
)
from penstock.model.elements import is_whole
from penstock.model.formats import TextFormat
from penstock.model.lines import header_names
from penstock.runtime.polled import END, IDLE

CHUNK = 1 << 16
FIRST, MOST = 1.0, 30.0
"""So many seconds pass before it is tried again, at first and at most."""
PATIENCE = 10.0
"""After so many seconds an attempt to connect has failed."""
LEFT = "the connection ended within a line"
LOGGER = logging.getLogger("penstock.sources")


class Connection:
    """The lines of one connection."""

    def __init__(self, socket: sockets.socket, name: str, form: TextFormat, *, header: bool, max_line: int) -> None:
        """Of a socket that does not block; with a `header` its first line has the names of fields."""
        self.socket, self.name, self.form = socket, name, form
        self._cutter = LineCutter(max_line)
        self._needs_header = header
        self._header: tuple[str, ...] | None = None
        self.is_over = False

    def read(self) -> Lines | None:
        """Lines that have ended by now; None if there are none."""
        try:
            data = self.socket.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            return self._end(reason_of(error))
        if not data:
            return self._end("")
        lines, dead = self._cutter.cut(data)
        while lines and self._needs_header:
            line = lines.pop(0)
            if line.strip():
                self._header, self._needs_header = tuple(header_names(line, self.form.delimiter, self.name)), False
        return Lines(self.form, self._header, lines, dead, where=self.name) if lines or dead else None

    def _end(self, why: str) -> Lines | None:
        self.is_over = True
        self.socket.close()
        LOGGER.info("%s: the connection ended%s", self.name, f": {why}" if why else "")
        dead = self._cutter.drop(LEFT)
        return Lines(self.form, None, [], dead) if dead else None

    def close(self) -> None:
        """Nobody reads it any more."""
        if self._cutter.pending:
            LOGGER.warning("%s: %d bytes of a line that had not ended are not read", self.name, self._cutter.pending)
        self.socket.close()


class Client:
    """Connects to a server and reads what it sends."""

    def __init__(
        self, host: str, port: int, form: TextFormat, *, header: bool, max_line: int, reconnect: bool,
        attempts: int | None, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """Made by `socket`."""
        self.host, self.port, self.form, self.reconnect, self.attempts = host, port, form, reconnect, attempts
        self._options: dict[str, Any] = {"header": header, "max_line": max_line}
        self._clock = clock
        self._reset()

    @property
    def name(self) -> str:
        """Where it connects to."""
        return f"{self.host}:{self.port}"

    def _reset(self) -> None:
        self._connecting: sockets.socket | None = None
        self._connection: Connection | None = None
        self._failures, self._next, self._since = 0, float("-inf"), 0.0
        self._is_halted = False

    def begin(self, wake: Callable[[], object]) -> None:
        """It connects when it is asked."""

    def halt(self) -> None:
        """What was not read by now is not read."""
        self._is_halted = True

    def close(self) -> None:
        """The connection is closed."""
        for each in (self._connecting, self._connection):
            if each is not None:
                each.close()
        self._reset()

    def poll(self) -> Any:
        """Lines that have ended since."""
        if self._is_halted:
            return END
        if self._connection is None and not self._connected():
            return IDLE
        assert self._connection is not None
        found = self._connection.read()
        if found is not None and found.lines:
            self._failures = 0
        if self._connection.is_over:
            self._connection = None
            if not self.reconnect:
                self._is_halted = True
                return found if found is not None else END
            self._failed("the connection ended")
        return IDLE if found is None else found

    def _connected(self) -> bool:
        now = self._clock()
        if self._connecting is None:
            if now < self._next:
                return False
            self._since = now
            try:
                self._connecting = self._begun()
            except (OSError, ValueError) as error:  # a name may be none, in its letters
                self._failed(reason_of(error))
                return False
        if not select.select([], [self._connecting], [], 0)[1]:
            if now - self._since > PATIENCE:
                self._failed(f"no answer in {PATIENCE:g} seconds")
            return False
        problem = self._connecting.getsockopt(sockets.SOL_SOCKET, sockets.SO_ERROR)
        if problem:
            self._failed(os.strerror(problem))
            return False
        LOGGER.info("%s: connected", self.name)
        connecting, self._connecting = self._connecting, None
        self._connection = Connection(connecting, self.name, self.form, **self._options)
        return True

    def _begun(self) -> sockets.socket:
        found = sockets.getaddrinfo(self.host, self.port, type=sockets.SOCK_STREAM)
        family, kind, protocol, _, address = found[self._failures % len(found)]
        made = sockets.socket(family, kind, protocol)
        made.setblocking(False)
        made.connect_ex(address)
        return made

    def _failed(self, why: str) -> None:
        """Try again later, or give up."""
        if self._connecting is not None:
            self._connecting.close()
            self._connecting = None
        self._failures += 1
        if not self.reconnect or (self.attempts is not None and self._failures >= self.attempts):
            raise SourceError(
                "There is no connection.",
                where=self.name,
                got=f"{why}; tried {self._failures} times in a row" if self._failures > 1 else why,
                hint="start what listens there; pk.socket(…, attempts=None) tries for ever",
            )
        wait = min(FIRST * 2 ** (self._failures - 1), MOST)
        self._next = self._clock() + wait
        LOGGER.warning("%s: %s; tried again in %g s, and what is sent meanwhile is not seen", self.name, why, wait)


class Listener:
    """Reads what clients send that connect to a port."""

    def __init__(
        self, port: int, host: str, form: TextFormat, *, header: bool, max_line: int, max_clients: int, at_once: bool
    ) -> None:
        """Made by `listen`."""
        self.host, self.port, self.form, self.max_clients = host, port, form, max_clients
        self._options: dict[str, Any] = {"header": header, "max_line": max_line}
        self._clients: deque[Connection] = deque()
        self._is_halted = False
        self._socket: sockets.socket | None = None
        if at_once:
            self._listen()

    @property
    def clients(self) -> list[str]:
        """Who is connected."""
        return [client.name for client in self._clients]

    def begin(self, wake: Callable[[], object]) -> None:
        """Take the port, if it was not taken yet, or was given back."""
        if self._socket is None:
            self._listen()

    def _listen(self) -> None:
        self._socket = bound(self.host, self.port)
        self.port = self._socket.getsockname()[1]

    def halt(self) -> None:
        """What was not read by now is not read."""
        self._is_halted = True

    def close(self) -> None:
        """The port and all connections are given back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        for client in self._clients:
            client.close()
        self._clients.clear()
        self._is_halted = False

    def poll(self) -> Any:
        """Lines of one client; each has its turn."""
        if self._is_halted:
            return END
        self._accept()
        for _ in range(len(self._clients)):
            client = self._clients[0]
            self._clients.rotate(-1)
            found = client.read()
            if client.is_over:
                self._clients.remove(client)
            if found is not None:
                return found
        return IDLE

    def _accept(self) -> None:
        assert self._socket is not None
        while len(self._clients) < self.max_clients:  # others wait until one has left
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            accepted.setblocking(False)
            name = f"{address[0]}:{address[1]}"
            LOGGER.info("%s: connected to port %d", name, self.port)
            self._clients.append(Connection(accepted, name, self.form, **self._options))


def bound(host: str, port: int) -> sockets.socket:
    """A port that is listened at."""
    try:
        made = sockets.create_server((host, port), backlog=128)
    except (OSError, ValueError) as error:  # a name may be none, in its letters
        raise SourceError(
            "The port cannot be listened at.", where=f"{host}:{port}", got=str(error), hint="0 takes any that is free"
        ) from error
    made.setblocking(False)
    return made


def checked_port(host: object, port: object) -> str:
    """An address, as it is shown."""
    check_text("host", host, "an address")
    if not is_whole(port) or not 0 <= port < 1 << 16:  # type: ignore[operator]
        raise StreamError(
            "An address is a name and a number.", got=f"{host!r}, {port!r}"[:200], hint="pk.socket('localhost', 9000)"
        )
    return f"{host}:{port}"


def _checked(host: object, port: object, format: str, delimiter: str | None, header: bool) -> TextFormat:
    where = checked_port(host, port)
    check_truths(where, header=header)
    form = line_form(format, delimiter, ("jsonl", "csv"), where)
    if header and form.kind != "csv":
        raise StreamError("Only delimited text has a header.", where=where, hint="format='csv', or leave it out")
    return form


def socket(
    host: str,
    port: int,
    format: str = "jsonl",
    *,
    delimiter: str | None = None,
    header: bool = False,
    max_line: int = MAX_LINE,
    reconnect: bool = True,
    attempts: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Client:
    """Lines that a server sends, as a stream.

    Args:
        host: a name or an address.
        port: of the server.
        format: `jsonl`, or `csv` with the columns of the stream in their order.
        delimiter: of the fields of CSV.
        header: whether each connection begins with a line that names the fields.
        max_line: a longer line is a dead letter.
        reconnect: whether it connects again when the connection has ended; else that is the end of the stream, and not
            to be connected at first is an error.
        attempts: so many in a row may fail; for ever unless said otherwise.
        clock: seconds, for when it tries again.
    """
    form = _checked(host, port, format, delimiter, header)
    if attempts is not None and (not is_whole(attempts) or attempts < 1):
        raise StreamError("It is tried a number of times.", where=f"{host}:{port}", got=f"attempts={attempts!r}"[:200])
    check_truths(f"{host}:{port}", reconnect=reconnect)
    check_function("clock", clock, f"{host}:{port}")
    limit = checked_limit(max_line, f"{host}:{port}")
    return Client(
        host, port, form, header=header, max_line=limit, reconnect=reconnect, attempts=attempts, clock=clock
    )  # fmt: skip


def listen(
    port: int,
    host: str = "127.0.0.1",
    format: str = "jsonl",
    *,
    delimiter: str | None = None,
    header: bool = False,
    max_line: int = MAX_LINE,
    max_clients: int = 256,
    at_once: bool = True,
) -> Listener:
    """Lines that clients send who connect to a port, as one stream.

    Args:
        port: 0 takes one that is free; `.port` tells which.
        host: from where clients can connect: this machine, or `0.0.0.0` for any, without encryption or a login.
        format: `jsonl`, or `csv` with the columns of the stream in their order.
        delimiter: of the fields of CSV.
        header: whether each connection begins with a line that names the fields.
        max_line: a longer line is a dead letter.
        max_clients: so many are read at a time; others wait until one has left.
        at_once: whether the port is taken now, or when a run begins.
    """
    form, where = _checked(host, port, format, delimiter, header), f"{host}:{port}"
    if not is_whole(max_clients) or max_clients < 1:
        raise StreamError("At least one client is read.", where=where, got=f"max_clients={max_clients!r}"[:200])
    check_truths(where, at_once=at_once)
    limit = checked_limit(max_line, where)
    return Listener(
        port, host, form, header=header, max_line=limit, max_clients=max_clients, at_once=at_once
    )  # fmt: skip
