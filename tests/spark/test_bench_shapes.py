"""The benchmark of shapes on Spark runs, and notices another result than the in-process engine's."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.bench.micro_batches import MicroBatches
from penstock.bench.shape_streams import ShapeStreamsBench
from penstock.errors import InternalError


@pytest.mark.slow
def test_it_runs_and_notices_another_result(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report = ShapeStreamsBench(spark, 400, lambda line: None, [(1000, "text")], rounds=1).run()
    assert [c.name for c in report.claims if c.value <= 0] == []
    assert len(report.rows) == 1
    checked = MicroBatches._check
    monkeypatch.setattr(MicroBatches, "_check", lambda self, sql, given: checked(self, sql, given.slice(1)))
    with pytest.raises(InternalError, match="not what comes out in-process"):
        ShapeStreamsBench(spark, 400, lambda line: None, [(1000, "text")], rounds=1).run()
