"""Brokers for tests: each in a process of its own, which is ended with the tests."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


@contextlib.contextmanager
def own_broker() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker of its own, with its address."""
    command = [sys.executable, str(HERE / "kafka_broker.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdin is not None
        assert broker.stdout is not None
        try:
            yield broker, broker.stdout.readline().strip()
        finally:
            broker.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                broker.wait(10)
            broker.kill()


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The address of a broker."""
    with own_broker() as (_, address):
        yield address


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Redis that this fixture starts, if one is installed."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed: on Debian and Ubuntu, apt-get install redis-server")
    import redis

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = tmp_path_factory.mktemp("redis")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(home), "--daemonize", "no"]
    with (home / "log").open("w") as log, subprocess.Popen([program, *options], stdout=log, stderr=log) as server:
        try:
            url = f"redis://127.0.0.1:{port}/0"
            client: Any = redis.Redis.from_url(url)
            until = time.monotonic() + 20
            while True:
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    assert time.monotonic() < until, (home / "log").read_text()
            yield url
        finally:
            server.kill()
