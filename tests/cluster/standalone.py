"""A standalone Spark cluster of one master and some workers, each a process of this machine, from the pyspark wheel."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark

from tests.processes import command_of, members

HOME = Path(pyspark.__file__).parent
DEADLINE = 180.0
"""Seconds until a process that has not come up is given up."""


class StandaloneCluster:
    """The processes of a cluster. `spark-class` becomes the JVM, so that a process's id is the JVM's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"spark://127.0.0.1:{_free_port()}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    def start_master(self) -> None:
        """Start the master and wait until it leads."""
        port = self.url.rsplit(":", 1)[1]
        self._start("master.Master", "master", "elected leader", "--port", port)

    def start_worker(self, host: str = "127.0.0.1") -> None:
        """Start one more worker of one core and wait until the master knows it.

        Spark takes workers with different addresses for different machines.
        """
        name = f"worker{len(self.workers)}"
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name))
        ready = "Successfully registered with master"
        self.workers.append(self._start("worker.Worker", name, ready, *size, self.url, host=host))

    def kill_worker(self, number: int) -> None:
        """Kill a worker at once, its executors with it."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].wait()

    def executors(self) -> list[int]:
        """The processes in which Spark runs tasks, of all workers."""
        return [pid for pid in self._members() if "CoarseGrainedExecutorBackend" in " ".join(command_of(pid))]

    def python_workers(self) -> list[int]:
        """The Python processes of all executors, those that start others among them."""
        return [pid for pid in self._members() if "pyspark.daemon" in command_of(pid)]

    def executor_of(self, pid: int) -> int | None:
        """The executor that a Python worker belongs to; None if it has outlived its executor."""
        executors = self.executors()
        while pid not in executors:
            try:
                pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            except FileNotFoundError:
                return None
        return pid

    def _members(self) -> list[int]:
        return [pid for worker in self.workers for pid in members(worker.pid)]

    def stop(self) -> None:
        """End every process."""
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(
        self, role: str, name: str, ready: str, *arguments: str, host: str = "127.0.0.1"
    ) -> subprocess.Popen[bytes]:
        log = self.folder / f"{name}.log"
        place = ("--host", host, "--webui-port", "0")
        command = [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{role}", *place, *arguments]
        environment = {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - no thread of the tests holds a lock here
            )
        self.processes.append(process)
        until(lambda: ready in log.read_text(errors="replace"), f"{name} is up", alive=process)
        return process


def until(condition: Callable[[], bool], what: str, *, alive: subprocess.Popen[bytes] | None = None) -> None:
    """Wait for a condition, up to the deadline."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if alive is not None and alive.poll() is not None:
            raise RuntimeError(f"ended with {alive.returncode} before {what}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"not so after {DEADLINE:.0f} seconds: {what}")
        time.sleep(0.05)


@contextlib.contextmanager
def standalone_cluster(workers: int = 2, *, apart: bool = False) -> Iterator[StandaloneCluster]:
    """A cluster that is gone afterwards, whatever happens; `apart`: Spark takes each worker for another machine."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-cluster-"))
    cluster = StandaloneCluster(folder)
    try:
        cluster.start_master()
        for number in range(workers):
            cluster.start_worker(f"127.0.0.{1 + number}" if apart else "127.0.0.1")
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    """On Linux, let no JVM outlive a test process that was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
