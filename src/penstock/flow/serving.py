"""A flow as a service: its queries run until they are over, or until the process is told to stop.

In the main thread SIGTERM and SIGINT are taken over while it serves, and given back afterwards. At the first of them
what was read is finished; at a second one the run is cut short; a third one has its ordinary effect again, for a sink
that never comes back. Nothing is started again: a query that fails leaves with its reason, the others go on, and the
exit status says at the end that not all went well. When no query is left there is nothing to serve.
"""

from __future__ import annotations

import logging
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from penstock.errors import PenstockError, RunError, StreamError, reason_of
from penstock.flow.flow_run import FlowRun
from penstock.flow.run import FAILED
from penstock.io.event_loops import running_loop, would_block
from penstock.model.interrupts import is_from_signal

LOGGER = logging.getLogger("penstock.run")
TICK = 0.5
"""So many seconds pass between two looks of whoever watches."""
FINISH, STOP = "finish", "stop"


@dataclass(frozen=True)
class Served:
    """How serving came to its end."""

    status: str
    """`finished`, `stopped`, or `failed` if the run or any of its queries has."""
    signals: tuple[str, ...]
    """By which it was told to stop, such as `SIGTERM`; none if it came to its end by itself."""
    failures: Mapping[str, PenstockError]
    """Why queries have failed, by their names."""
    exit_code: int
    """0; 1 if something has failed; 128 and the number of the signal if that cut it short."""
    run: FlowRun = field(repr=False)

    @property
    def summary(self) -> str:
        """One line for a log."""
        told = f" at {', '.join(self.signals)}" if self.signals else ""
        failed = "".join(f"; {name}: {reason_of(error)}" for name, error in self.failures.items())
        return f"{self.run.name}: {self.status}{told}; exit status {self.exit_code}{failed}"


def check_serving(at_signal: object, on_start: object, watch: object) -> None:
    """Refuse before anything is started what could not be served."""
    for name, function in (("on_start", on_start), ("watch", watch)):
        if function is not None and not callable(function):
            raise StreamError("This is a function.", where="flow.serve", got=f"{name}={function!r}"[:200])
    if not isinstance(at_signal, str) or at_signal not in (FINISH, STOP):
        raise StreamError(
            "A signal finishes what was read, or stops.",
            where="flow.serve",
            got=f"at_signal={at_signal!r}"[:200],
            hint="'finish' closes open windows and puts them out, 'stop' leaves them open in the snapshot",
        )
    if running_loop() is not None:
        raise would_block("flow.serve")


def serve(
    start: Callable[[], FlowRun],
    at_signal: str,
    on_start: Callable[[FlowRun], object] | None,
    watch: Callable[[FlowRun], object] | None,
) -> Served:
    """Start a run and stay with it."""
    happened: queue.SimpleQueue[int | str] = queue.SimpleQueue()
    told: list[int] = []
    with _signals(happened) as let_go:
        run = start()
        run.when_alone = lambda: happened.put("alone")
        threading.Thread(target=_until_over, args=(run, happened), name="penstock-serving", daemon=True).start()
        if not any(each.is_active for each in run.runs.values()):
            happened.put("alone")  # before anybody looked
        if on_start is not None:
            _call("on_start", on_start, run)
        while (what := _heard(run, happened, watch is not None)) != "over":
            if what == "look" and watch is not None:
                _call("watch", watch, run)
            elif what == "alone":
                _aside(run.stop)
            elif isinstance(what, int):
                told.append(what)
                LOGGER.info("run %s: told to stop by %s", run.name, signal.Signals(what).name)
                _aside(run.finish if len(told) == 1 and at_signal == FINISH else run.stop)
                if len(told) > 1:
                    let_go()
    return _served(run, told)


def _heard(run: FlowRun, happened: queue.SimpleQueue[int | str], looks: bool) -> int | str:
    """What happens next; whoever is interrupted meanwhile, by a signal that is not ours, has the run stopped."""
    try:
        return _next(happened, looks)
    except BaseException:
        _aside(run.stop)
        raise


def _call(name: str, function: Callable[[FlowRun], object], run: FlowRun) -> None:
    """Call the user's function; if it fails nothing is left running."""
    try:
        function(run)
    except BaseException as error:
        run.stop()
        if not isinstance(error, Exception) or is_from_signal(error):
            raise
        raise RunError(
            f"{name} failed, and the run was stopped.", where=f"run {run.name}", got=reason_of(error)
        ) from error


def _served(run: FlowRun, told: list[int]) -> Served:
    failures = {name: each.exception for name, each in run.runs.items() if each.exception is not None}
    failed = run.exception is not None or bool(failures)
    code = 128 + told[-1] if len(told) > 1 else int(failed)
    names = tuple(signal.Signals(number).name for number in told)
    served = Served(FAILED if failed else run.status, names, failures, code, run)
    LOGGER.log(logging.ERROR if failed else logging.INFO, "run %s", served.summary)
    return served


def _until_over(run: FlowRun, happened: queue.SimpleQueue[int | str]) -> None:
    run._thread.join()
    happened.put("over")


def _next(happened: queue.SimpleQueue[int | str], looks: bool) -> int | str:
    try:
        return happened.get(timeout=TICK if looks else None)
    except queue.Empty:
        return "look"


def _aside(function: Callable[[], object]) -> None:
    """Done by another thread, so that signals are heard meanwhile; what goes wrong is the run's failure anyway."""

    def work() -> None:
        try:
            function()
        except PenstockError as error:
            LOGGER.debug("%s", error)

    threading.Thread(target=work, name="penstock-stopping", daemon=True).start()


@contextmanager
def _signals(happened: queue.SimpleQueue[int | str]) -> Iterator[Callable[[], None]]:
    """Signals are put into a queue, and what gives them back to whoever had them before."""
    before: dict[int, Any] = {}

    def take(number: int, frame: FrameType | None) -> None:
        happened.put(number)

    def let_go() -> None:
        """Also if a handler that is back raises meanwhile: then the others are given back before that goes on."""
        try:
            while before:
                number, handler = next(iter(before.items()))
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
                before.pop(number, None)
        except BaseException:
            let_go()
            raise

    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.getsignal(number)
                signal.signal(number, take)
        yield let_go
    finally:
        let_go()
