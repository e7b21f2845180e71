"""`penstock serve`: a script as a service, with a line that moves on a terminal and JSON lines for its SELECTs.

A service has no end at which its rows could be shown together, so they are printed when they come, also with `--json`;
that asks for how it ended as one more line, the last one.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pyarrow as pa

from penstock.cli.show import err, note, print_json, working
from penstock.flow.flow_run import FlowRun
from penstock.flow.query import Query
from penstock.flow.script import Script
from penstock.flow.serving import Served
from penstock.model.conform import as_json


def run_serve(script: Script, at_signal: str, *, as_json: bool) -> Served:
    """Serve until it is over, and say how it ended."""
    with _warnings(), working("serving", quiet=as_json) as progress:

        def watch(run: FlowRun) -> None:
            note(progress, run.progress.summary)

        moves = not progress.disable
        with _deaf_when_over() as told:
            served = script.serve(_printing, at_signal=at_signal, on_start=told, watch=watch if moves else None)
    if as_json:
        failures = {name: error.message for name, error in served.failures.items()}
        counts = dict(vars(served.run.progress.counts))
        ended = {"status": served.status, "signals": list(served.signals), "exit_code": served.exit_code}
        print_json({**ended, "failures": failures, "counts": counts})
    else:
        counted = served.run.progress.summary.partition("; ")[2]  # the status is told already
        err.print(f"{served.summary}; {counted}", highlight=False, markup=False, soft_wrap=True)
    return served


@contextmanager
def _deaf_when_over() -> Iterator[Callable[[FlowRun], None]]:
    """One more signal does not change how a service ended that is over, while the process comes to its end.

    Until then signals that the service gives back have their ordinary effect. It is told the run when that begins.
    """
    runs: list[FlowRun] = []
    before: dict[int, Any] = {}

    def hear(number: int, frame: FrameType | None) -> None:
        if not runs or runs[0].is_active:
            signal.signal(number, before[number] or signal.SIG_DFL)
            os.kill(os.getpid(), number)

    if threading.current_thread() is not threading.main_thread():
        yield runs.append
        return
    for taken in (signal.SIGTERM, signal.SIGINT):
        before[taken] = signal.getsignal(taken)
        signal.signal(taken, hear)
    try:
        yield runs.append
    except BaseException:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        raise
    for number in before:  # what is written in Python would be gone before the process is
        signal.signal(number, signal.SIG_IGN)


def _printing(query: Query) -> Callable[[pa.Table], None]:
    """A sink that prints a row as one line of JSON, as soon as it has come."""

    def write(table: pa.Table) -> None:
        sys.stdout.write("".join(as_json(row) + "\n" for row in table.to_pylist()))
        sys.stdout.flush()

    return write


@contextmanager
def _warnings() -> Iterator[None]:
    """What is to be known while it goes on: connections that end, readers that are cut off, queries that fail."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    handler.setLevel(logging.WARNING)
    logger = logging.getLogger("penstock")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
