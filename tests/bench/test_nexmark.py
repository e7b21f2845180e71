"""Nexmark's queries give what DuckDB gives, which has all rows at once, on events of either kind."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pytest

from penstock.bench import nexmark, nexmark_rates
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
    pytest.importorskip("duckdb", reason="DuckDB is only installed for benchmarks")
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


def test_files_of_other_engines_are_of_the_same_queries() -> None:
    names = {query.name for query in QUERIES}
    for engine in ("duckdb", "flink"):
        assert {path.stem for path in (nexmark.home() / engine).glob("q*.sql")} == names


def test_every_query_of_the_suite_is_run_or_left_out_with_a_reason() -> None:
    page = (ROOT / "docs" / "nexmark.md").read_text()
    left_out = page.split("## What is left out")[1].split("\n## ")[0]
    missing = set(re.findall(r"^\| (q\d+) ", left_out, re.MULTILINE))
    assert missing.isdisjoint(query.name for query in QUERIES)
    assert missing | {query.name for query in QUERIES} == {f"q{number}" for number in range(24)}


def test_generated_events_are_of_nexmarks_shape(generated: pa.Table) -> None:
    kinds = Counter(generated["type"].to_pylist())
    assert kinds == {"person": 200, "auction": 600, "bid": 9200}
    for kind, own in (("person", "name"), ("auction", "seller"), ("bid", "price")):
        mine = generated.filter(pc.equal(generated["type"], kind))
        assert mine[own].null_count == 0
        assert generated[own].null_count == generated.num_rows - mine.num_rows
    bids = Counter(generated["auction"].drop_null().to_pylist())
    hot = sum(count for auction, count in bids.items() if auction % 100 == 0)
    assert 0.45 < hot / kinds["bid"] < 0.6
    assert generated["ts"].to_pylist() != sorted(generated["ts"].to_pylist())
    assert generated.equals(make_events(10_000, seed=3))
    assert not generated.equals(make_events(10_000, seed=4))


def test_the_benchmark_reads_a_file_and_compares_row_by_row(tmp_path: Path, generated: pa.Table) -> None:
    path = tmp_path / "events.csv"
    nexmark_rates.write_events(generated, path)
    query = next(q for q in QUERIES if q.name == "q17")
    _, found = nexmark_rates.in_process(query, path)
    expected = query.script(generated).collect()
    assert nexmark_rates.are_same(found, expected)
    folder = tmp_path / "results"
    folder.mkdir()
    ours = nexmark_rates.in_milliseconds(found).drop_columns(["wid"])
    nexmark_rates.write_events(ours.slice(5), folder / "part-1")
    nexmark_rates.write_events(ours.slice(0, 5), folder / "part-0")
    written = nexmark_rates.written(folder, ours.schema)
    assert nexmark_rates.are_same(ours, written)
    assert not nexmark_rates.are_same(ours, written.slice(1))
    assert not nexmark_rates.are_same(ours, pa.concat_tables([written.slice(1), written.slice(1, 1)]))


def test_a_run_without_peers_claims_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENSTOCK_BENCH_HOME", str(tmp_path))
    report = nexmark_rates.NexmarkBench(2000, lambda line: None, QUERIES[:2]).run()
    assert [row["query"] for row in report.rows] == ["q0 Pass through", "q1 Currency conversion"]
    assert [row["results"] for row in report.rows] == [1840, 1840]
    assert (report.claims, report.absent) == ([], ["Flink SQL"])
