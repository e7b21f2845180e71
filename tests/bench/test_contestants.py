"""The benchmark compares equal work: every contestant's fingerprint is the oracle's."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench import contestants
from penstock.bench.claims import Claim
from penstock.bench.data import Rows, make_rows
from penstock.flow.flow import Flow
from penstock.model.batch import Batch
from penstock.model.progress import bounded
from penstock.reference import evaluate


def oracle(rows: Rows, ratio: int) -> contestants.Fingerprint:
    flow = Flow().stream("main", rows.table, time="ts", progress=bounded("1 hour"))
    plan = flow.query(contestants.query(ratio)).plan
    info = flow.catalog.stream("main")
    assert info is not None
    arrivals = [("main", row) for row in Batch(info.schema, table=rows.table.cast(info.schema.arrow)).rows]
    payloads = [p for p, _, _ in evaluate(plan, arrivals)]
    wid, _, _, k, n, m = zip(*payloads, strict=True)
    return contestants.fingerprint(wid, k, n, m)


@pytest.mark.parametrize("ratio", [1, 7, 60])
def test_in_process_and_duckdb_give_the_oracles_answer(ratio: int, tmp_path: Path) -> None:
    rows = make_rows(str(tmp_path), 3000, keys=7)
    expected = oracle(rows, ratio)
    assert contestants.in_process(rows, ratio).fingerprint == expected
    pytest.importorskip("duckdb", reason="DuckDB is only installed for benchmarks")
    assert contestants.duckdb_batch(rows, ratio).fingerprint == expected


def test_rows_keep_within_their_disorder(tmp_path: Path) -> None:
    rows = make_rows(str(tmp_path), 2000, keys=5, skew=1.1)
    query = Flow().stream("main", rows.table, time="ts", progress=bounded("5 seconds")).query(contestants.query(10))
    assert query.collect().num_rows > 0
    assert query.late.num_rows == 0


@pytest.mark.parametrize(
    ("value", "bar", "better", "holds"),
    [(2.0, 1.5, "higher", True), (1.5, 1.5, "higher", True), (1.4, 1.5, "higher", False), (1.6, 1.5, "lower", False)],
)
def test_a_claim_holds_when_its_bar_is_reached(value: float, bar: float, better: str, holds: bool) -> None:
    claim = Claim("x", value, bar, better)  # type: ignore[arg-type]
    assert claim.holds is holds
    assert claim.as_json() == {"name": "x", "value": value, "bar": bar, "better": better, "holds": holds}
