"""Lines over TCP, on this machine: from a server, from many clients, and to many readers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import PenstockError, SourceError
from penstock.io.connections import FIRST, MOST
from penstock.io.live_lines import Lines
from penstock.runtime.polled import END, IDLE

ROWS = "SELECT * FROM s"
COLUMNS = "t bigint, k string"


def over(source: Any) -> pk.Query:
    flow = pk.Flow().stream("s", source, time="t", schema=COLUMNS, progress=pk.bounded(1000))
    return flow.query(ROWS, name="q")


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def asked_until(source: Any, wanted: Callable[[Any], bool]) -> Any:
    """What a source gives that somebody waits for; how often it was asked before does not matter."""
    while not wanted(given := source.poll()):
        assert given is IDLE, given
    return given


def are_lines(given: object) -> bool:
    return isinstance(given, Lines)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# Many clients


def test_many_clients_are_one_stream_and_what_is_no_row_is_a_dead_letter() -> None:
    source, rows, letters = pk.listen(0, max_line=60), pk.channel(), pk.channel()
    run = over(source).start(rows, dead_letters=letters)
    with connected(source.port) as one, connected(source.port) as other:
        one.sendall(b'{"t": 1, "k": "a"}\n{"t": 2,')
        assert next(rows)["k"] == "a"
        other.sendall(b'{"t": 3, "k": "\xc3\xa4"}\r\n')
        assert next(rows)["k"] == "ä"
        one.sendall(b' "k": "b"}\n')
        assert next(rows)["k"] == "b"
        other.sendall(b"\xff\n\n[1]\n" + b"x" * 61 + b'\n{"t": "no time"}\n{"t": 9')
        found = [next(letters)["reason"] for _ in range(4)]
        other.close()
        found.append(next(letters)["reason"])
        one.sendall(b'{"t": 4}\n')  # the others go on
        assert next(rows)["t"] == 4
        assert len(source.clients) == 1
    assert sorted(found) == [
        "a line of 61 bytes, where 60 are allowed",
        "not UTF-8",
        "not a JSON object",
        "t is not a bigint: 'no time'",
        "the connection ended within a line",
    ]
    run.stop()
    with pytest.raises(OSError, match="refused"):
        connected(source.port)
    again = over(source).start(rows := pk.channel())
    again.process_available()  # by then it has the same port
    with connected(source.port) as one:
        one.sendall(b'{"t": 5}\n')
        assert next(rows)["t"] == 5
    again.stop()


def test_delimited_text_with_and_without_a_header() -> None:
    named, bare = pk.listen(0, format="csv", header=True, delimiter=";"), pk.listen(0, format="csv")
    rows = pk.channel()
    with over(named).start(rows), connected(named.port) as one, connected(named.port) as other:
        one.sendall(b"k;t\nx;1\n")
        assert next(rows) == {"t": 1, "k": "x"}
        other.sendall(b"t;k\n2;y\n")
        assert next(rows) == {"t": 2, "k": "y"}
    rows = pk.channel()
    with over(bare).start(rows), connected(bare.port) as one:
        one.sendall(b"3,z\n")
        assert next(rows) == {"t": 3, "k": "z"}


def test_more_clients_than_are_read_wait_for_their_turn() -> None:
    source, rows = pk.listen(0, max_clients=1), pk.channel()
    with over(source).start(rows), connected(source.port) as one, connected(source.port) as other:
        other.sendall(b'{"t": 2}\n')
        one.sendall(b'{"t": 1}\n')
        assert next(rows)["t"] == 1
        one.close()
        assert next(rows)["t"] == 2


def test_while_a_sink_stands_still_its_senders_have_to_wait() -> None:
    source = pk.listen(0)
    stands, goes_on = threading.Event(), threading.Event()
    taken: list[int] = []

    def sink(table: pa.Table) -> None:
        stands.set()
        assert goes_on.wait(60)
        taken.extend(table["t"].to_pylist())

    line = b'{"t": 1, "k": "' + b"x" * 1000 + b'"}\n'
    most = 64 << 20
    with over(source).start(sink) as run, connected(source.port) as one:
        one.sendall(line)
        assert stands.wait(60)  # from here on nobody reads
        one.setblocking(False)
        sent, over_ = 0, memoryview(line * 64)
        with contextlib.suppress(BlockingIOError):
            while sent < most:
                sent += one.send(over_[sent % len(line) :])
        assert sent < most
        assert run.progress["read"] == 1
        goes_on.set()
        one.setblocking(True)
        if sent % len(line):
            one.sendall(line[sent % len(line) :])
            sent += len(line) - sent % len(line)
        one.shutdown(socket.SHUT_WR)
        assert one.recv(1) == b""  # it was read to its end
        run.process_available()
        assert len(taken) == 1 + sent // len(line)


# A server


def test_a_connection_that_ends_is_made_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = pk.socket("127.0.0.1", server.getsockname()[1], clock=clock)
        source.begin(lambda: None)
        source.poll()
        first, _ = server.accept()
        first.sendall(b'{"t": 1}\n{"t"')
        assert asked_until(source, are_lines).lines == [b'{"t": 1}']
        first.close()
        lost = asked_until(source, are_lines)
        assert [letter.reason for letter in lost.dead] == ["the connection ended within a line"]
        assert f"tried again in {FIRST:g} s" in caplog.text
        server.settimeout(0)
        assert source.poll() is IDLE
        with pytest.raises(BlockingIOError):
            server.accept()  # the time has not come
        clock.now = FIRST
        server.settimeout(30)
        source.poll()
        second, _ = server.accept()
        second.sendall(b'{"t": 2}\n')
        assert asked_until(source, are_lines).lines == [b'{"t": 2}']
        second.close()
        source.halt()
        assert source.poll() is END
        source.close()


def test_it_waits_longer_each_time_and_gives_up_if_it_was_told_to(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    clock, waits = Clock(), []  # nobody listens there any more
    source = pk.socket("127.0.0.1", port, attempts=8, clock=clock)
    source.begin(lambda: None)

    def ask() -> None:
        while True:
            before = source._next
            assert source.poll() is IDLE
            if source._next != before:
                waits.append(source._next - clock.now)
                clock.now = source._next

    with pytest.raises(
        SourceError, match=rf"no connection(?s:.*)127.0.0.1:{port}(?s:.*)refused; tried 8 times in a row"
    ):
        ask()
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, MOST, MOST]
    source.close()


def test_without_reconnecting_the_end_of_the_connection_is_that_of_the_stream() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            accepted, _ = server.accept()
            accepted.sendall(b'{"t": 1, "k": "a"}\n{"t": 2, "k": "b"}\n')
            accepted.close()

        serving = threading.Thread(target=serve)
        serving.start()
        assert over(pk.socket("127.0.0.1", port, reconnect=False)).collect()["k"].to_pylist() == ["a", "b"]
        serving.join()
    with pytest.raises(SourceError, match=rf"127.0.0.1:{port}"):
        over(pk.socket("127.0.0.1", port, reconnect=False)).collect()
    run = over(pk.socket("127.0.0.1", port, attempts=1)).start([])
    with pytest.raises(SourceError, match="start what listens there"):
        run.wait()
    assert run.status == "failed"


def test_what_cannot_be_connected() -> None:
    with pk.publish(0)._listener as taken, pytest.raises(SourceError, match=r"cannot be listened at(?s:.*)0 takes any"):
        pk.listen(taken.getsockname()[1])
    for make, message in (
        (lambda: pk.socket("localhost", 70000), "An address is a name and a number"),
        (lambda: pk.listen(0, format="xml"), "no such format"),
        (lambda: pk.listen(0, header=1), "true or false"),  # type: ignore[arg-type]
        (lambda: pk.listen(0, header=True), "Only delimited text has a header"),
        (lambda: pk.listen(0, max_clients=0), "At least one client"),
        (lambda: pk.listen(0, max_line=0), "at least one"),
        (lambda: pk.socket("localhost", 1, attempts=0), "a number of times"),
        (lambda: pk.publish(0, max_held=0), "at least one"),
        (lambda: pk.publish(0, linger=-1), "a number of seconds"),
    ):
        with pytest.raises(PenstockError, match=message):
            make()


# Readers


def lines_of(reader: socket.socket, count: int) -> list[bytes]:
    file = reader.makefile("rb")
    return [file.readline() for _ in range(count)]


def test_results_go_to_whoever_is_connected() -> None:
    sink = pk.publish(0)
    tap = pk.listen(0)
    run = over(tap).start(sink)
    with connected(sink.port) as one, connected(sink.port) as other, connected(tap.port) as sender:
        assert sink.wait_for(2, 30)
        sender.sendall(b'{"t": 1, "k": "\xc3\xa4"}\n')
        assert lines_of(one, 1) == lines_of(other, 1) == ['{"t": 1, "k": "ä"}\n'.encode()]
        other.close()
        sender.sendall(b'{"t": 2}\n')
        assert lines_of(one, 1) == [b'{"t": 2, "k": null}\n']
        run.stop()
        assert one.recv(1) == b""
    with pytest.raises(SourceError, match="port was given back"):
        sink.write(pa.table({"t": [1]}))
    assert sink.readers == []


def test_a_slow_reader_is_cut_off_by_name_and_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    sink = pk.publish(0, max_held=1 << 17)
    table = pa.table({"t": range(1000), "k": ["x" * 50] * 1000})
    size = len("".join(f'{{"t": {t}, "k": "{"x" * 50}"}}\n' for t in range(1000)))
    with connected(sink.port) as slow, connected(sink.port) as fast:
        name = ":".join(map(str, slow.getsockname()))
        assert sink.wait_for(2, 30)
        file = fast.makefile("rb")
        for _ in range(1000):
            sink.write(table)
            assert len(file.read(size)) == size  # all that comes
            if sink.cut_off:
                break
        assert sink.cut_off == [name]
        assert f"{name} was cut off" in caplog.text
        assert sink.readers == [":".join(map(str, fast.getsockname()))]
    sink.close()


def test_at_the_end_a_reader_has_some_time_for_what_waits() -> None:
    table = pa.table({"t": range(10), "k": ["x" * 100_000] * 10})
    sink = pk.publish(0, max_held=1 << 30, linger=0)
    with connected(sink.port) as slow:
        assert sink.wait_for(1, 30)
        while next(iter(sink._readers.values())).held < 1 << 24:  # more than the system takes
            sink.write(table)
        sink.close()
        assert sink.cut_off == [":".join(map(str, slow.getsockname()))]
    patient, found = pk.publish(0, max_held=1 << 30, linger=60), bytearray()
    with connected(patient.port) as reader:
        assert patient.wait_for(1, 30)
        for _ in range(30):
            patient.write(table)
        closing = threading.Thread(target=patient.close)
        closing.start()
        while data := reader.recv(1 << 16):
            found += data
        closing.join()
    assert found.count(b"\n") == 300
    assert patient.cut_off == []
