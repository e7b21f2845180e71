"""What buckets tell for the record of a micro-batch, without Spark: greatest starts, and the state of progress."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engines.spark.wire import load
from penstock.model.batch import Batch
from penstock.model.progress import bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.sql.binder import bind
from tests.engines.hosted import HostedPlan, bodies

pytestmark = pytest.mark.spark
SCHEMA = schema_of([("ts", "bigint"), ("v", "int")], "ts")


def told(max_ahead: int | None, *batches: list[int] | int) -> list[Any]:
    """The progress after each micro-batch, of a query with one bucket; a number is a bound from outside."""
    catalog = Catalog()
    catalog.add_stream(StreamInfo("s", SCHEMA, bounded(5), StreamProperties(), max_ahead))
    plan = bind("SELECT ts, v FROM s", catalog)
    hosted = HostedPlan(plan, catalog, 1)
    found = []
    for given in batches:
        times, bound = ([], given) if isinstance(given, int) else (given, None)
        said = hosted.run(Batch(SCHEMA, [(t, 0) for t in times]).table, bound=bound)
        found += [load(body) for body in bodies(said, "progress")]
    return found


def test_the_greatest_start_of_each_micro_batch() -> None:
    first, second = told(None, [3, 9, 4], [8])
    assert (first["greatest"], second["greatest"]) == ({"s": 9}, {"s": 8})
    assert second["trackers"] == {"s": (9, None)}


@pytest.mark.parametrize("max_ahead", [None, 100])
def test_a_bound_from_outside_is_no_start_of_a_row(max_ahead: int | None) -> None:
    """So that closing what has come, again and again, closes the same."""
    first, *others = told(max_ahead, [3, 9], 20, 20, [25, 19])
    assert [each["greatest"] for each in (first, *others)] == [{"s": 9}, {}, {}, {"s": 25}]


def test_a_row_from_the_far_future_is_not_the_greatest() -> None:
    (last,) = told(100, [3, 9, 4, 10**9])
    assert last["greatest"] == {"s": 9}
