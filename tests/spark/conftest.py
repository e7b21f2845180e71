"""One Spark session for all tests, of the mode that was chosen; no query outlives its test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.spark.modes import chosen, open_session


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    with open_session(chosen()) as spark:
        yield spark


@pytest.fixture
def spark(session: SparkSession) -> Iterator[SparkSession]:
    yield session
    for query in session.streams.active:
        query.stop()
