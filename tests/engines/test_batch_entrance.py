"""Rows that are too far ahead in a bounded DataFrame with an order of arrival, without Spark: as the oracle says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.spark.entrance import REACHED, Guard
from penstock.model.batch import Batch, Row
from penstock.model.progress import PerSource, Progress
from penstock.plan.nodes import Source
from penstock.sql.binder import bind
from tests.operators.progress.test_ingest import PROGRESS, SCHEMA, arrivals, catalog, played
from tests.profiles import examples

IN_ORDER = [p for p in PROGRESS if not isinstance(p, PerSource)]


@pytest.mark.parametrize("progress", IN_ORDER, ids=str)
@given(batches=arrivals(), max_ahead=st.sampled_from([0, 9, 70]))
@examples(30)
def test_the_same_rows_are_too_far_ahead_however_they_are_cut(
    progress: Progress, batches: list[list[Row]], max_ahead: int
) -> None:
    own = catalog(progress, max_ahead)
    source = bind("SELECT * FROM s", own)
    assert isinstance(source, Source)
    parts = [b for rows in batches for b in Batch(SCHEMA, rows).table.to_batches()]
    marked: list[dict[str, Any]] = pa.Table.from_batches(Guard(source, own)(iter(parts))).to_pylist() if parts else []
    ahead = [tuple(row[n] for n in SCHEMA.names) for row in marked if row[REACHED] is not None]
    assert len(marked) == sum(map(len, batches))
    assert ahead == list(played(progress, batches, "row", max_ahead).ahead)
    assert all(row["ts"] - row[REACHED] > max_ahead for row in marked if row[REACHED] is not None)
