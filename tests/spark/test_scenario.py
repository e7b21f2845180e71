"""The judge of the runs that are killed is computed by hand; the oracle, which it does not know, agrees with it."""

from __future__ import annotations

from collections import Counter

from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.reference import evaluate, judge
from penstock.sql.binder import bind
from tests.spark import scenario


def test_the_oracle_says_the_same() -> None:
    schema = schema_of([("ts", "timestamp"), ("srcIP", "string"), ("len", "int")], "ts")
    catalog = Catalog()
    catalog.add_stream(StreamInfo("main", schema, scenario.PROGRESS, StreamProperties()))
    batches = [scenario.rows_of_file(number) for number in range(20)]
    fate = judge(scenario.PROGRESS, schema.time_index, batches, granularity="batch", domain=schema.domain)
    tdb = evaluate(bind(scenario.SQL.format(condition="true"), catalog), [("main", row) for row in fate.on_time])
    expected = scenario.expected(20)
    assert expected["results"] == Counter({payload: count for (payload, _, _), count in tdb.items()})
    assert expected["late"] == Counter(("main", bound, *row) for row, bound in fate.late)
    assert (Counter(fate.on_time), list(fate.late)) == (Counter(scenario.judged(20)[0]), scenario.judged(20)[1])


def test_there_are_rows_of_every_fate() -> None:
    expected = scenario.expected()
    assert all(sum(rows.values()) >= 6 for rows in expected.values())
    assert None in {row[3] for row in expected["results"]}
