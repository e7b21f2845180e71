"""Processes that a test runs, kills and starts again, with all that belongs to each: the JVM and the Python workers.

Each process is the leader of a session of its own, by which those that it starts are known also when it is gone and
when they, as Spark's daemon of workers does, are in a process group of their own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Processes:
    """What should be running."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.commands: dict[str, list[str]] = {}
        self.left: set[int] = set()
        """Sessions whose leader has ended and was replaced, and whose others were left to end by themselves."""

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        self.commands[name] = list(command)
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
        with self.log_of(name).open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, *command], cwd=ROOT, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        return self.running[name]

    def log_of(self, name: str) -> Path:
        return self.home / f"{name}.log"

    def revive(self) -> list[str]:
        """Start again whoever was killed or has failed, at once, as a supervisor does; who it was."""
        self.left = {session for session in self.left if members(session)}
        ended = [name for name, process in self.running.items() if process.poll() not in (None, 0)]
        for name in ended:
            self.left.add(self.running[name].pid)
            self.start(name, *self.commands[name])
        return ended

    def end(self, name: str) -> None:
        """With all that belongs to it."""
        process = self.running.pop(name)
        kill([process.pid, *members(process.pid)])
        process.wait()

    def end_all(self) -> None:
        for name in list(self.running):
            self.end(name)
        for session in self.left:
            kill(members(session))

    def parts(self, name: str) -> dict[str, list[int]]:
        """The process numbers of a driver, its JVM and its Python workers."""
        leader = self.running[name].pid
        commands = {pid: command_of(pid) for pid in members(leader)}
        return {
            "driver": [leader],
            "JVM": [pid for pid, command in commands.items() if command[0].endswith("java")],
            "worker": [pid for pid, command in commands.items() if "pyspark.daemon" in command],
            "whole": [leader, *commands],
        }


def wait(what: str, done: Callable[[], bool], each: Callable[[], object], seconds: float = 600) -> None:
    """Until it has come about."""
    until = time.monotonic() + seconds
    while not done():
        each()
        assert time.monotonic() < until, f"{what} did not come about"
        time.sleep(0.1)


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def members(session: int) -> list[int]:
    """The living processes of a session, the leader among them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, _, _, own = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(own) == session and state not in "ZX":
                    found.append(int(entry.name))
    return found


def command_of(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return [""]
