"""Why a run has failed, said first.

Spark wraps a failure several times: an error in a user's function arrives as the text of a Python traceback, in a Java
exception, in a Python exception, in a Java exception again. What somebody needs to know is the innermost: an error of
Penstock's own with its four parts, else the exception that ended the last traceback, else what Spark says itself.
It is found in the text, since that is all that crosses processes, and is the same through Spark Connect.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException

from penstock.errors import RunError

_OWN = re.compile(r"^penstock\.errors\.\w+: (?P<what>.*)$", re.MULTILINE)
_PARTS = (("where", "  where: "), ("got", "  got:   "), ("hint", "  try:   "))
_CONTINUED = " " * 9
_JAVA = re.compile(r"^(?:: |Caused by: )(?P<type>[\w.$]+)(?:: (?P<text>.*))?$", re.MULTILINE)
_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\] ")
_PLACE = re.compile(r'^ +File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)$')
_WRAPPERS = (
    "PythonException",
    "Py4JJavaError",
    "Py4JException",
    "StreamingQueryException",
    "SparkConnectException",
    "SparkException",
)
_WRAPPING = ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "PYTHON_EXCEPTION")
_OTHER_PYTHON = re.compile(r"No module named '(penstock|pyarrow|pandas|numpy)|PYTHON_VERSION_MISMATCH")

_WORKER_DIED = re.compile(
    r"Python worker exited unexpectedly|java\.io\.EOFException|SocketException: (?:Connection reset|Broken pipe)"
    r"|reading the port number from pyspark\.daemon"
)
_DRIVER_WORKER = "driver worker exited unexpectedly"
"""Of the process in which Spark asks Python for the state of an operator, before the first micro-batch."""
_UNCAPTURED = "Py4JJavaError"
"""An error of Java that PySpark has no class for."""
_STATE = re.compile(
    r"\[(?:CANNOT_LOAD_STATE_STORE|STREAMING_STATEFUL_OPERATOR_MISSING_STATE|STATE_STORE_\w+|INVALID_STATE_STORE|STDS_FAILED_TO_READ)"
)
_FULL = "No space left on device"
_FILE = re.compile(r"(?<=file:)/[^\s,;'\"]*/state/[^\s,;'\"]+")
_UNCONNECTED = "Python worker failed to connect back"
_NO_PYTHON = re.compile(r'Cannot run program "(?P<program>[^"]*)"')
_ERRNO = re.compile(r"\[Errno (\d+)\]")


@dataclass(frozen=True)
class _Ended:
    """How a Python traceback ended: the exception, and the line of code that raised it."""

    reason: str
    place: str


def failure_of(streaming: Any, name: str) -> RunError | None:
    """Why a streaming query has failed, or None if it has not."""
    error = streaming.exception()
    if error is None or isinstance(error, RunError):
        return error
    return explained(str(error), name)


@contextlib.contextmanager
def told(name: str) -> Iterator[None]:
    """Errors of Spark inside are raised with their reason first."""
    try:
        yield
    except PySparkException as error:
        raise explained(str(error), name) from None
    except Exception as error:
        if type(error).__name__ != _UNCAPTURED:
            raise
        raise explained(str(error), name) from None


def explained(stack: str, name: str) -> RunError:
    """The error that a text of Spark's tells of."""
    where = f"query {name}"
    own = _own(stack)
    if own is not None:
        own["where"] = f"{where}: {own['where']}" if "where" in own else where
        return RunError(**own, stack=stack)
    ended = _last_traceback(stack)
    if _FULL in stack and ended is None:
        return RunError(
            "There is no space left on a disk.",
            where=where,
            got=": ".join(_of_spark(stack)).strip(": "),
            hint="free some, where the flow lives or where Spark has its temporary files, and start the query again: "
            "it goes on where it was",
            stack=stack,
        )
    if _STATE.search(stack):
        return _of_state(stack, where)
    if ended is not None:
        at = f"{where}, {ended.place}" if ended.place else where
        return RunError(_with_errno(ended.reason), where=at, hint=_hint(stack), stack=stack)
    if _WORKER_DIED.search(stack):
        return RunError(
            "A Python worker of Spark has died.",
            where=where,
            got=": ".join(_of_spark(stack)).strip(": "),
            hint="it was killed, as a rule for lack of memory, or a library in it has crashed; run.exception.stack has "
            "all that Spark says",
            stack=stack,
        )
    if _DRIVER_WORKER in stack:
        return RunError(
            "The Python that Spark asks for the state of the query did not start, or has died.",
            where=where,
            got=": ".join(_of_spark(stack)).strip(": "),
            hint=f"it may be another one: start the session with PYSPARK_PYTHON={sys.executable}; what it lacks is in "
            "the log of the driver",
            stack=stack,
        )
    reason, root = _of_spark(stack)
    return RunError(reason, where=where, got=root, hint=_hint(stack), stack=stack)


def _of_state(stack: str, where: str) -> RunError:
    """State that Spark could not read: which file, if that is told, and what is wrong with it."""
    reason, root = _of_spark(stack)
    file = _FILE.search(f"{reason} {root}") or _FILE.search(stack[stack.rfind("Caused by: ") :])
    return RunError(
        "State of the query in Spark's checkpoint is damaged or gone.",
        where=f"{where}, {file[0]}" if file is not None else f"{where}, checkpoint/state",
        got=f"{reason}: {root}" if root else reason,
        hint="restore the home of the query as a whole, with checkpoint and log, from a copy of one moment; or start "
        "over with another flow path and another folder",
        stack=stack,
    )


def _own(stack: str) -> dict[str, str] | None:
    """The parts of the last error of ours in a text."""
    found = list(_OWN.finditer(stack))
    if not found:
        return None
    parts = {"what": found[-1]["what"]}
    current = ""
    for line in stack[found[-1].end() + 1 :].splitlines():
        begun = next(((key, mark) for key, mark in _PARTS if line.startswith(mark)), None)
        if begun is not None:
            current = begun[0]
            parts[current] = line.removeprefix(begun[1])
        elif current and line.startswith(_CONTINUED):
            parts[current] += f"\n{line}"
        else:
            break
    return parts


def _last_traceback(stack: str) -> _Ended | None:
    """How the last traceback ended that did not end in an exception of Spark's which only wraps another."""
    found: _Ended | None = None
    inside, place = False, ""
    for line in stack.splitlines():
        if line.endswith("Traceback (most recent call last):"):
            inside, place = True, ""
        elif inside and (at := _PLACE.match(line)) is not None:
            place = f"{at['file']}, line {at['line']}, in {at['name']}"
        elif inside and line and not line.startswith(" "):
            inside = False
            kind, _, text = line.partition(": ")
            short = kind.rpartition(".")[2]
            if short not in _WRAPPERS and " " not in kind:
                found = _Ended(f"{short}: {text}" if text else short, place)
    return found


def _of_spark(stack: str) -> tuple[str, str]:
    """What Spark says, and the cause at the bottom of it."""
    java = [(m["type"].rpartition(".")[2], m["text"] or "") for m in _JAVA.finditer(stack)]
    root = ": ".join(p for p in java[-1] if p) if java else ""
    said = [text for _, text in java] + stack.splitlines()
    for text in said:
        for condition in _CONDITION.finditer(text):
            if condition["name"] not in _WRAPPING:
                reason = text[condition.start() :]
                return reason, root if root and root not in reason and reason not in root else ""
    first = next((line for line in stack.splitlines() if line.strip()), "The run has failed.")
    return root or first, ""


def _with_errno(reason: str) -> str:
    """The reason with what the system's number in it means, which not every library says."""
    number = _ERRNO.search(reason)
    meaning = os.strerror(int(number[1])) if number is not None else ""
    return f"{reason} ({meaning})" if meaning and meaning not in reason else reason


def _hint(stack: str) -> str:
    if _OTHER_PYTHON.search(stack):
        return f"Spark's workers run another Python: start the session with PYSPARK_PYTHON={sys.executable}"
    missing = _NO_PYTHON.search(stack)
    if missing is not None:
        return (
            f"there is no {missing['program']} where Spark's workers run: start the session with PYSPARK_PYTHON set to "
            f"a Python that is there and has penstock, such as {sys.executable}"
        )
    if _UNCONNECTED in stack:
        return (
            "a worker of Spark was started and did not reach its JVM: if it was killed, start the query again; else "
            f"start the session with SPARK_LOCAL_IP=127.0.0.1 on one machine and PYSPARK_PYTHON={sys.executable}, see "
            "that no firewall is between ports of the machine, and on a busy one give it longer with "
            "spark.python.authenticate.socketTimeout=60s"
        )
    return "run.exception.stack has all that Spark says"
