"""The queries of the benchmark differ, and give together what each gives alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench import queries as bench
from penstock.bench.data import make_rows
from penstock.errors import InternalError
from penstock.operators.aggregates.family import FamilyAggregate


def test_fifty_queries_are_fifty(tmp_path: Path) -> None:
    texts = bench.texts()
    assert len(set(texts)) == bench.MANY
    flow = bench.flow_over(make_rows(str(tmp_path), 4000, keys=5).table)
    bench.check(flow, texts[:12])


def test_a_wrong_result_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = bench.flow_over(make_rows(str(tmp_path), 4000, keys=5).table)
    taken = FamilyAggregate.process
    monkeypatch.setattr(FamilyAggregate, "process", lambda self, port, batch: taken(self, port, batch.part(1, 4000)))
    with pytest.raises(InternalError, match="something else together"):
        bench.check(flow, bench.texts()[:2])
