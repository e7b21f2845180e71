"""The benchmark of Nexmark on Spark: its files are the events in order, its queries are cut, its claim is a mean."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from penstock.bench.micro_batches import AT_ONCE, BATCHES, WARM
from penstock.bench.nexmark import NexmarkQuery, queries
from penstock.bench.nexmark_events import make_events
from penstock.bench.nexmark_rates import FLINK, read_events
from penstock.bench.nexmark_streams import STARTED, NexmarkStreamsBench, rate_of, write_parts
from penstock.plan.planner import spark_streaming

STAGES = {"q4": 2, "q5": 2, "q7": 2}
QUERIES = queries()


def test_files_are_the_events_in_order(tmp_path: Path) -> None:
    events = make_events(1001)
    write_parts(events, tmp_path / "parts")
    files = sorted((tmp_path / "parts").iterdir())
    assert len(files) == BATCHES * AT_ONCE
    assert [f.stat().st_mtime for f in files] == sorted(f.stat().st_mtime for f in files)
    assert pa.concat_tables(read_events(file).to_table() for file in files) == events


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)
def test_every_query_is_cut(query: NexmarkQuery) -> None:
    asked = query.script(make_events(10)).query
    assert spark_streaming(asked.plan, asked.catalog, staged=True).stages == STAGES.get(query.name, 1)


def test_the_first_micro_batches_and_those_without_rows_do_not_count() -> None:
    made = [(10, 5000)] * WARM + [(100, 200), (0, 90), (300, 200)]
    progress = [SimpleNamespace(numInputRows=rows, batchDuration=ms) for rows, ms in made]
    assert rate_of(SimpleNamespace(recentProgress=progress)) == 1000


def test_the_claim_is_the_geometric_mean() -> None:
    bench = NexmarkStreamsBench(None, 100, queries=QUERIES[:2])
    first, second = (query.name for query in bench.queries)
    bench.rates = {(STARTED, first): 100.0, (STARTED, second): 200.0}
    assert list(bench._claims()) == []  # of an absent peer nothing is claimed
    assert [row.get("of Flink SQL's rate") for row in bench._table()] == [None, None]
    bench.rates |= {(FLINK, first): 400.0, (FLINK, second): 200.0}
    (claim,) = bench._claims()
    assert claim.value == pytest.approx(0.5)
    assert not claim.holds
    assert [row["of Flink SQL's rate"] for row in bench._table()] == [0.25, 1.0]
