"""A streaming query whose JVM is gone has failed and says so; one that was stopped processes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import StreamingQueryException

from penstock.engines.spark.failure import failure_of
from penstock.engines.spark.watched import WatchedQuery
from penstock.errors import RunError


class Query:
    """Answers as a streaming query does, until its JVM is killed."""

    lastProgress = None

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.active = error, True

    def _ask(self, answer: Any = None) -> Any:
        if self.error is not None:
            raise self.error
        return answer

    @property
    def isActive(self) -> bool:
        return bool(self._ask(self.active))

    def exception(self) -> Any:
        return self._ask()

    def awaitTermination(self, timeout: float | None = None) -> Any:
        return self._ask(not self.active)

    def processAllAvailable(self) -> None:
        self._ask()

    def stop(self) -> None:
        self.active = False
        self._ask()


KILLED = [
    ConnectionRefusedError(111, "Connection refused"),
    Py4JNetworkError("Answer from Java side is empty"),
    Py4JError("An error occurred while calling o1.isActive"),
    EOFError(),
]
WAITING: list[Callable[[WatchedQuery], Any]] = [
    lambda q: q.processAllAvailable(),
    lambda q: q.awaitTermination(),
    lambda q: q.awaitTermination(3),
]


@pytest.mark.parametrize("error", KILLED, ids=repr)
def test_a_run_whose_jvm_is_gone_has_failed(error: Exception) -> None:
    query = WatchedQuery(Query(error), "talkers")
    assert not query.isActive
    failure = failure_of(query, "talkers")
    assert failure is not None
    assert (failure.what, failure.where) == ("The JVM of Spark is gone.", "query talkers")
    assert type(error).__name__ in failure.got
    assert "start the query again" in failure.hint
    for wait in WAITING:
        with pytest.raises(RunError, match="The JVM of Spark is gone"):
            wait(query)
    query.stop()
    assert failure_of(query, "talkers") is failure


@pytest.mark.parametrize("wait", WAITING)
def test_who_waits_is_told(wait: Callable[[WatchedQuery], Any]) -> None:
    with pytest.raises(RunError, match="The JVM of Spark is gone"):
        wait(WatchedQuery(Query(KILLED[0]), "q"))


def test_a_run_that_was_stopped_before_stays_stopped() -> None:
    query = Query()
    watched = WatchedQuery(query, "q")
    watched.stop()
    query.error = KILLED[0]
    assert (watched.isActive, watched.exception()) == (False, None)
    watched.stop()
    assert watched.exception() is None


def test_a_run_that_is_stopped_processes_nothing() -> None:
    watched = WatchedQuery(Query(), "talkers")
    watched.processAllAvailable()
    watched.stop()
    with pytest.raises(RunError, match=r"The run is stopped\.\n.*query talkers\n.*query\.start") as raised:
        watched.processAllAvailable()
    assert raised.value.what == "The run is stopped."


def test_a_connection_that_the_query_itself_has_lost_is_its_own_failure() -> None:
    error = StreamingQueryException("java.net.ConnectException: Connection refused")
    with pytest.raises(StreamingQueryException):
        WatchedQuery(Query(error), "q").awaitTermination()


def test_the_rest_is_as_spark_has_it() -> None:
    assert WatchedQuery(Query(), "q").lastProgress is None
