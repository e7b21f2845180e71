"""Scripts over what comes as it comes: files that are followed, ports, and serving all of it."""

from __future__ import annotations

import fcntl
import json
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.errors import PenstockError
from penstock.flow.flow_run import FlowRun

FOLLOW = """
CREATE STREAM log (t bigint, k string) WITH (source = 'log.jsonl', follow = 'true', time = 't');
"""
COUNT = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM log"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_a_script_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.jsonl").write_text('{"t": 1}\n{"t": 2}\nnonsense\n{"t": 13}\n')
    script = pk.Flow().sql(
        FOLLOW + f"CREATE SINK n WITH (path = 'n.jsonl', dead_letters = 'dead.csv'); INSERT INTO n {COUNT};"
        "INSERT INTO 'rows.csv' SELECT t FROM log; SELECT k, t FROM log"
    )
    shown: list[Any] = []

    def finish(run: FlowRun) -> None:
        run.process_available()
        threading.Thread(target=run.finish).start()

    served = script.serve(lambda query: shown, on_start=finish)
    assert (served.status, served.exit_code) == ("finished", 0)
    assert [row["t"] for row in shown] == [1, 2, 13]
    assert (tmp_path / "n.jsonl").read_text().count("\n") == 2
    assert (tmp_path / "rows.csv").read_text() == '"t"\n1\n2\n13\n'
    assert "not a JSON object" in (tmp_path / "dead.csv").read_text()


def test_ports_are_taken_when_the_script_runs() -> None:
    one, other = free_port(), free_port()
    text = f"""
    CREATE STREAM s (t bigint, k string)
    WITH (source = 'tcp://127.0.0.1:{one}', listen = 'true', time = 't',
    format = 'csv', delimiter = ';', header = 'true');
    CREATE SINK out WITH (path = 'tcp://127.0.0.1:{other}', max_held = '1000000');
    INSERT INTO out SELECT k, t FROM s
    """
    script = pk.Flow().sql(text)
    for port in (one, other):
        socket.create_server(("127.0.0.1", port)).close()  # nobody has it so far
    [run] = script.start()
    run.process_available()
    with socket.create_connection(("127.0.0.1", other), 30) as reader:
        assert run._results.sink.wait_for(1, 30)  # type: ignore[attr-defined]
        with socket.create_connection(("127.0.0.1", one), 30) as sender:
            sender.sendall(b"k;t\nx;7\n")
            assert reader.makefile("rb").readline() == b'{"k": "x", "t": 7}\n'
        run.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("source = 'tcp://nowhere'", "An address is tcp://host:port"),
        ("source = 'tcp://h:1', listen = 'yes'", "true or false"),
        ("source = 'tcp://h:1', listen = 'true', attempts = '3'", r"says nothing here(?s:.*)attempts"),
        ("source = 'tcp://h:1', start = 'end'", r"says nothing here(?s:.*)start"),
        ("source = 'tcp://h:1', attempts = 'few'", "A number is expected"),
        ("source = 'tcp://h:1', max_line = '-1'", "A number is expected"),
        ("source = 'a.jsonl', follow = 'false'", "followed, or read to its end"),
        ("source = 'a.jsonl', follow = 'true', listen = 'true'", "says nothing here"),
        ("source = 'a.jsonl', follow = 'true', format = 'xml'", "no such format"),
    ],
)
def test_options_that_make_no_sense(options: str, message: str) -> None:
    with pytest.raises(PenstockError, match=message):
        pk.Flow().sql(f"CREATE STREAM s (t bigint) WITH (time = 't', {options}); SELECT t FROM s")


def test_what_cannot_be_served_together() -> None:
    made = FOLLOW + "CREATE SINK a WITH (path = 'a.csv', max_dead = '1'); CREATE SINK b WITH (path = 'b.csv', {});"
    made += "INSERT INTO a SELECT t FROM log; INSERT INTO b SELECT k, t FROM log"
    for options in ("max_dead = '2'", "trigger = 'available now'"):
        with pytest.raises(PenstockError, match="share their late rows and dead letters"):
            pk.Flow().sql(made.format(options)).serve()
    with pytest.raises(PenstockError, match=r"Only readers of a port hold something back"):
        pk.Flow().sql(made.format("max_held = '2'"))
    with pytest.raises(PenstockError, match=r"Nothing is to be served"):
        pk.Flow().sql(FOLLOW + COUNT).serve()


@contextmanager
def serving(folder: Path, text: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", "serve", text, *options],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"t": 1}\n{"t": 2}\n')
    with serving(tmp_path, FOLLOW + "SELECT t FROM log") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == '{"t": 1}\n'
        assert process.stdout.readline() == '{"t": 2}\n'
        with log.open("a") as file:
            file.write('{"t": 3}\n')
        assert process.stdout.readline() == '{"t": 3}\n'
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert said.splitlines() == ["flow: finished at SIGTERM; exit status 0; read 3, on time 3"]


def test_as_json_rows_come_as_they_do_and_the_last_line_is_how_it_ended(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"t": 1, "k": "a"}\n{"t": 2}\n')
    text = FOLLOW + "SELECT t FROM log; SELECT k FROM log WHERE t < 2; INSERT INTO 'n.jsonl' SELECT t FROM log"
    with serving(tmp_path, text, "--json") as process:
        assert process.stdout is not None
        found = sorted(process.stdout.readline() for _ in range(3))
        assert found == ['{"k": "a"}\n', '{"t": 1}\n', '{"t": 2}\n']
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=60)
    (last,) = [json.loads(line) for line in out.splitlines()]
    assert (last["status"], last["signals"], last["exit_code"]) == ("finished", ["SIGTERM"], 0)
    assert last["counts"]["on_time"] == 2
    assert said == ""
    assert (tmp_path / "n.jsonl").read_text().count("\n") == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_while_the_command_ends_does_not_change_how_it_ended(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "log.jsonl").write_text('{"t": 1}\n')
    with serving(tmp_path, FOLLOW + "SELECT t FROM log") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == '{"t": 1}\n'
        process.send_signal(number)
        said = process.stderr.readline()
        process.send_signal(number)  # it has said its last word, and the interpreter comes to its end
        rest = process.communicate(timeout=60)[1]
    assert said == f"flow: finished at {number.name}; exit status 0; read 1, on time 1\n"
    assert (process.returncode, rest) == (0, "")


def test_a_third_signal_has_its_ordinary_effect_on_the_command(tmp_path: Path) -> None:
    """A sink that never comes back: the command is killed by it."""
    (tmp_path / "log.jsonl").write_text('{"t": 1, "k": "x"}\n' + '{"t": 2, "k": "y"}\n' * 200_000)
    with serving(tmp_path, FOLLOW + "SELECT t, k FROM log") as process:
        assert process.stdout is not None
        until, waits = time.monotonic() + 60, array("i", [0])
        while waits[0] < 60_000:  # nobody reads, so that the pipe is full in a moment, and the sink stands still
            assert time.monotonic() < until
            fcntl.ioctl(process.stdout, termios.FIONREAD, waits)
        while process.poll() is None:
            assert time.monotonic() < until
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
        assert process.returncode == -signal.SIGTERM


def test_the_command_tells_what_failed_by_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('nonsense\n[]\n{"t": 2}\n')
    text = FOLLOW + "CREATE SINK n WITH (path = 'n.jsonl', max_dead = '1'); INSERT INTO n SELECT t FROM log"
    with serving(tmp_path, text, "--json") as process:
        out, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert '"status": "failed", "signals": [], "exit_code": 1' in out
    assert "ERROR run flow" in said
