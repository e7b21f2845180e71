"""Queries that are almost right give a result or an error of our own, with a place, and soon. `make fuzz`: 20,000."""

from __future__ import annotations

import random
import re
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.errors import PenstockError
from penstock.model.batch import Batch, Row
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema, schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.nodes import WindowAggregate
from penstock.plan.windows import SlidingWindow
from penstock.sql.binder import bind
from tests.sql.mutations import corpus, mutated

COLUMNS = [
    ("k", "string"), ("v", "int"), ("d", "double"), ("b", "boolean"), ("length", "int"), ("srcIP", "string"),
    ("x", "decimal(10,2)"), ("destIP", "string"), ("destPort", "int"), ("len", "int"), ("n", "bigint"),
    ("temp", "double"), ("host", "string"), ("kind", "string"), ("w", "string"), ("i", "int"), ("j", "int"),
    ("c", "decimal(8,2)"), ("clock", "timestamp"),
]  # fmt: skip
VALUES = (
    "a",
    3,
    1.5,
    True,
    4,
    "x",
    Decimal("1.50"),
    "y",
    80,
    60,
    2**40,
    -0.5,
    "h",
    None,
    "ab",
    2**31 - 1,
    -1,
    Decimal("0.25"),
    10**15,
)
NUMBERED = schema_of([("t", "bigint"), ("ts", "timestamp"), *COLUMNS], "t")
TIMED = schema_of([("ts", "timestamp"), ("t", "bigint"), *COLUMNS], "ts")
TIMES = (1, 10**15, 10**15 + 10**8)
STREAMS = {
    **dict.fromkeys(("s", "sensor", "clean", "readings"), NUMBERED),
    **dict.fromkeys(("main", "packets", "Main1", "Main2", "Control", "M", "M1", "M2", "C", "visits"), TIMED),
}
LONGEST = 5.0
MOST_WINDOWS = 10_000


def catalog() -> Catalog:
    result = Catalog()
    for name, schema in STREAMS.items():
        result.add_stream(StreamInfo(name, schema, ordered(), StreamProperties()))
    return result


def rows(schema: Schema) -> list[Row]:
    return [(at, at, *VALUES) for at in TIMES[:2]] + [(TIMES[2], None, *(None for _ in VALUES))]


def try_query(sql: str) -> str:
    """What becomes of a query: 'bound', 'run', or the class of an error of our own; anything else is raised."""
    own = catalog()
    try:
        plan = bind(sql, own)
    except PenstockError as error:
        place = re.search(r"line (\d+), column (\d+)", error.message)
        if place is None or min(int(place[1]), int(place[2])) < 1:
            raise AssertionError(f"no place: {error.message}") from error
        return type(error).__name__
    windows = [n.window for n in plan.walk() if isinstance(n, WindowAggregate)]
    if any(isinstance(w, SlidingWindow) and w.range // w.slide > MOST_WINDOWS for w in windows):
        return "bound"  # every row would be in so many windows, all of which are results
    try:
        for columnar in (False, True):
            execution = LocalExecution(plan, own)
            for name in execution.graph.sources:
                schema = next(s for n, s in STREAMS.items() if n.lower() == name.lower())
                batch = Batch(schema, rows(schema))
                execution.feed(name, Batch(schema, table=batch.table) if columnar else batch)
            execution.close()
    except PenstockError as error:
        return f"run: {type(error).__name__}"
    return "run"


def test_the_corpus_is_what_the_pages_print() -> None:
    assert len(corpus()) > 40
    assert sum(try_query(sql) == "run" for sql in corpus()) > 35


@pytest.mark.parametrize("part", range(10))
@given(seed=st.integers(0, 2**63))
def test_only_errors_of_our_own(part: int, seed: int) -> None:
    sql = mutated(random.Random(seed * 10 + part))
    started = time.process_time()
    try_query(sql)
    assert time.process_time() - started < LONGEST, sql
