"""A streaming query of which it can be told that its JVM is gone.

Whoever asks a JVM that was killed is answered by errors of a broken connection. Here that is how the run has failed:
it is no longer active, its exception says so, who waits for it is told, and it can be stopped. A query that was stopped
before stays stopped; Spark lets one wait for what such a query will never process, and here that is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from pyspark.errors import PySparkException

from penstock.errors import RunError

T = TypeVar("T")
_BROKEN = ("Py4JError", "Py4JNetworkError", "_InactiveRpcError", "_MultiThreadedRendezvous")
_BROKEN_CONNECT = "SparkConnectGrpcException"


class WatchedQuery:
    """Stands for a `StreamingQuery`, by the names that it has there."""

    def __init__(self, streaming: Any, name: str) -> None:
        """The query, under the name of the run."""
        self._streaming, self._name = streaming, name
        self._stopped = False
        self._gone: RunError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._streaming, name)

    @property
    def isActive(self) -> bool:
        """Whether it goes on."""
        return bool(self._asked(lambda: self._streaming.isActive, False))

    def exception(self) -> Any:
        """Why it has failed: what Spark says, or that there is no Spark any more."""
        found = self._asked(self._streaming.exception, None)
        return found if self._gone is None or self._stopped else self._gone

    def awaitTermination(self, timeout: float | None = None) -> Any:
        """Until it ends."""
        waited = () if timeout is None else (timeout,)
        ended = self._asked(lambda: self._streaming.awaitTermination(*waited), True)
        self._raise_if_gone()
        return ended

    def processAllAvailable(self) -> None:
        """Until everything that has come is processed, by a query that has not been stopped."""
        if self._stopped and self.exception() is None:
            raise RunError(
                "The run is stopped.",
                where=f"query {self._name}",
                hint="query.start(…) goes on where it has stopped",
            )
        self._asked(self._streaming.processAllAvailable, None)
        self._raise_if_gone()

    def stop(self) -> None:
        """Stop it; one whose JVM is gone has stopped already."""
        self._asked(self._streaming.stop, None)
        self._stopped = self._stopped or self._gone is None

    def _asked(self, question: Callable[[], T], otherwise: T) -> T:
        """The answer of the JVM, or another one if that is gone, which is remembered."""
        if self._gone is not None:
            return otherwise
        try:
            return question()
        except Exception as error:
            if not is_gone(error):
                raise
            self._gone = gone(self._name, error)
            return otherwise

    def _raise_if_gone(self) -> None:
        if self._gone is not None and not self._stopped:
            raise self._gone


@contextlib.contextmanager
def reached(name: str) -> Iterator[None]:
    """Whatever is asked of a JVM inside: if that is gone, it is said so."""
    try:
        yield
    except Exception as error:
        lost = isinstance(error, ConnectionError | EOFError) or not isinstance(error, OSError)  # or it is of a disk
        if not lost or not is_gone(error):
            raise
        raise gone(name, error) from None


def is_gone(error: BaseException) -> bool:
    """Whether an error is that of a connection to a JVM that is not there any more."""
    if isinstance(error, PySparkException):  # it may tell of another connection that a query has lost
        return type(error).__name__ == _BROKEN_CONNECT and "UNAVAILABLE" in str(error)
    return isinstance(error, OSError | EOFError) or type(error).__name__ in _BROKEN


def gone(name: str, error: BaseException) -> RunError:
    """The error for a run whose JVM is gone."""
    said = str(error)
    return RunError(
        "The JVM of Spark is gone.",
        where=f"query {name}",
        got=f"{type(error).__name__}: {said}".splitlines()[0][:300],
        hint="it was killed or has crashed, perhaps for lack of memory: make a new session and start the query again, "
        "which goes on from its checkpoint",
        stack=said,
    )
