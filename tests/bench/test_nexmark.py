"""Nexmark's queries give what DuckDB gives, which has all rows at once, on events of either kind."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.json
import pytest

from penstock.bench import nexmark
from penstock.bench.nexmark_events import SCHEMA, make_events

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT.parent / "shared" / "data" / "nexmark_50k.jsonl.gz"
QUERIES = nexmark.queries()
named = pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)


@pytest.fixture(scope="module")
def generated() -> pa.Table:
    return make_events(10_000, seed=3)


@pytest.fixture(scope="module")
def sample() -> pa.Table:
    with gzip.open(SAMPLE) as lines:
        options = pyarrow.json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
        return pyarrow.json.read_json(lines, parse_options=options)


def rows(table: pa.Table, names: list[str]) -> list[tuple[object, ...]]:
    """As plain values in some order: times as microseconds, floats by what a sum's order leaves of them."""
    columns = []
    for name in names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us")).cast(pa.int64())
        values = column.to_pylist()
        columns.append([float(f"{v:.9g}") for v in values] if pa.types.is_floating(column.type) else values)
    return sorted(zip(*columns, strict=True), key=repr)


def compare(query: nexmark.NexmarkQuery, events: pa.Table) -> int:
    script = query.script(events)
    found, expected = script.collect(), nexmark.by_duckdb(query, events)
    assert script.query.counts["on_time"] == events.num_rows
    assert rows(found, expected.column_names) == rows(expected, expected.column_names)
    return expected.num_rows


@named
def test_generated_events_give_what_duckdb_gives(query: nexmark.NexmarkQuery, generated: pa.Table) -> None:
    assert compare(query, generated) > 0


@pytest.mark.slow
@pytest.mark.skipif(not SAMPLE.exists(), reason="needs the sample in ../shared/data")
@named
def test_the_sample_gives_what_duckdb_gives(query: nexmark.NexmarkQuery, sample: pa.Table) -> None:
    compare(query, sample)
