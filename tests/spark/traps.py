"""Traps in the functions of a query: whoever comes to a point of it is held there, or kills, once the trap is armed.

A trap is a file, `<point>.armed`, with the number of the call that it snaps at, counted by each task for itself.
Whoever snaps it renames it to `<point>.<process number>.hit`, so there is one, and all can see where it was. A function
that is held goes on when its Python worker has lost its executor: what is left of an attempt that nobody waits for.

A function travels to Spark's workers with all that it needs, since they may not find the tests.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HELD = 180.0
"""Seconds after which a function that nobody has killed goes on."""
STAGED = "staged"
"""The point at which a worker has written a file of results, and has not told of it."""

Passing = Callable[[Any], Any]


class Traps:
    """The traps of one query, in a folder that all of its processes see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def arm(self, point: str, calls: int = 1) -> None:
        """From now on, the task that comes to the point for the so many-th time is caught."""
        partial = self.folder / f".{point}"
        partial.write_text(str(calls))
        partial.rename(self.folder / f"{point}.armed")

    def caught(self, point: str) -> int | None:
        """The process that was caught, until the trap is cleared."""
        found = list(self.folder.glob(f"{point}.*.hit"))
        return int(found[0].name.split(".")[1]) if found else None

    def clear(self) -> None:
        for file in self.folder.iterdir():
            file.unlink()

    def function(self, point: str, *, kills: int | None = None, staging: bool = False) -> Passing:
        """A function that gives what it is given, with a trap in it that holds, or `kills` a process group.

        With `staging`, it lays one also where the worker that it runs in stages files.
        """
        folder = str(self.folder)
        calls: list[object] = []

        def spring(where: str, count: int) -> None:
            armed = f"{folder}/{where}.armed"
            try:
                with open(armed) as file:
                    if count < int(file.read()):
                        return
                os.rename(armed, f"{folder}/{where}.{os.getpid()}.hit")
            except FileNotFoundError:
                return
            if kills is not None:
                os.killpg(kills, signal.SIGKILL)
            parent, until = os.getppid(), time.monotonic() + HELD
            while os.getppid() == parent and time.monotonic() < until:
                time.sleep(0.01)

        def lay() -> None:
            from penstock.storage.folders import Staging

            write: Any = Staging.write
            if getattr(write, "folder", None) == folder:
                return
            plain = getattr(write, "plain", write)  # a worker that served another query has its trap still

            def write_and_spring(self: Any, tables: Any) -> Any:
                written = plain(self, tables)
                spring(STAGED, 1)
                return written

            write_and_spring.folder, write_and_spring.plain = folder, plain  # type: ignore[attr-defined]
            Staging.write = write_and_spring  # type: ignore[method-assign]

        def passing(value: Any) -> Any:
            if staging:
                lay()
            if os.path.exists(f"{folder}/{point}.armed"):
                calls.append(value)
                spring(point, len(calls))
            return value

        return passing
