"""Where streams enter: which rows are late, judged by row and by batch, against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.algorithms.operator import Rejected
from penstock.algorithms.progress.ingest import BatchIngest, Ingest, RowIngest
from penstock.algorithms.progress.trackers import tracker_for
from penstock.engines.local.builder import Builder
from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, linear
from penstock.model.progress import Progress, bounded, ordered, per_source, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.model.time import MIN_TICK, Domain
from penstock.query.binder import bind
from penstock.query.catalog import Catalog, StreamInfo
from penstock.query.nodes import Source
from penstock.reference import judge
from penstock.testing.asserts import assert_sound
from penstock.testing.strategies import cuts
from penstock.testing.strategies import rows as some_rows

SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("v", "int")], "ts")
PROGRESS = [
    ordered(),
    bounded(20),
    bounded(rows=0),
    bounded(rows=2),
    bounded(rows=5),
    punctuated("k = 'a'"),
    per_source("k"),
    per_source("k", idle=15, disorder=6),
    per_source("k", idle=40, sources=["a", "b", "zz"]),
]
every_progress = pytest.mark.parametrize("progress", PROGRESS, ids=str)


def catalog(progress: Progress) -> Catalog:
    result = Catalog()
    result.add_stream(StreamInfo("s", SCHEMA, progress, StreamProperties()))
    return result


def is_punctuation(row: Row) -> bool:
    return row[1] == "a"


@st.composite
def arrivals(draw: st.DrawFn) -> list[list[Row]]:
    rows = draw(some_rows(SCHEMA, max_size=16))
    return [rows[c] for c in draw(cuts(len(rows)))]


def execution(progress: Progress, *, by_row: bool) -> LocalExecution:
    own = catalog(progress)
    return LocalExecution(bind("SELECT * FROM s", own), own, Builder(own, by_row=by_row))


@every_progress
@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "arrow"])
@given(batches=arrivals())
def test_by_row(progress: Progress, columnar: bool, batches: list[list[Row]]) -> None:
    judged = judge(
        progress, 0, batches, granularity="row", is_punctuation=is_punctuation, source_index=1, domain=Domain.INTEGER
    )
    run = execution(progress, by_row=True)
    outputs: list[Batch | Punctuation] = []
    for rows in batches:
        batch = Batch(SCHEMA, rows)
        outputs += run.feed("s", Batch(SCHEMA, table=batch.table) if columnar else batch)
    passed = [row for item in outputs if isinstance(item, Batch) for row in item.rows]
    assert passed == list(judged.on_time)
    assert [bound for _, bound, _ in run.side.late] == [bound for _, bound in judged.late]
    assert len(run.side.dead) == len(judged.backwards)
    bounds = [item.value for item in outputs if isinstance(item, Punctuation)]
    assert max(bounds, default=MIN_TICK) == (judged.bounds[-1] if judged.bounds else MIN_TICK)
    assert_sound(outputs)
    counts = run.counts
    assert counts.read == sum(map(len, batches))
    assert counts.read == counts.on_time + counts.late + counts.dead + counts.punctuation
    assert counts.on_time == len(judged.on_time)
    assert counts.punctuation == len(judged.punctuation) - len(judged.backwards)
    entrance = run.graph.sources["s"][0].operator
    assert isinstance(entrance, Ingest)
    assert entrance.punctuation == counts.punctuation


@every_progress
@given(batches=arrivals(), data=st.data())
def test_by_batch_whatever_the_order_inside(progress: Progress, batches: list[list[Row]], data: st.DataObject) -> None:
    judged = judge(
        progress, 0, batches, granularity="batch", is_punctuation=is_punctuation, source_index=1, domain=Domain.INTEGER
    )
    run = execution(progress, by_row=False)
    graph = run.graph
    source = run.graph.plan
    assert isinstance(source, Source)
    tracker = tracker_for(progress, Domain.INTEGER)
    marks_of = graph.builder.marks_of(source)
    outputs: list[Batch | Punctuation] = []
    for rows, bound in zip(batches, judged.bounds, strict=True):
        shuffled = data.draw(st.permutations(rows))
        cut = data.draw(st.integers(0, len(rows)))
        summary = None
        for part in (Batch(SCHEMA, shuffled[:cut]), Batch(SCHEMA, shuffled[cut:])):
            graph.push("s", part)
            one = tracker.summarise(part.times(), marks_of(part) if marks_of is not None else None)
            summary = one if summary is None else tracker.join(summary, one)
        graph.advance("s", summary)
        outputs += graph.drain()
        bounds = [item.value for item in outputs if isinstance(item, Punctuation)]
        assert max(bounds, default=MIN_TICK) == bound
    passed = [row for item in outputs if isinstance(item, Batch) for row in item.rows]
    assert sorted(passed, key=repr) == sorted(judged.on_time, key=repr)
    rejected = [(r.kind, row, b) for _, r in graph.rejected for row, b in zip(r.batch.rows, r.bounds, strict=True)]
    expected = [("late", *x) for x in judged.late] + [("dead", *x) for x in judged.backwards]
    assert sorted(rejected, key=repr) == sorted(expected, key=repr)
    assert_sound(outputs)


def bounds_of(ingest: RowIngest, times: list[int]) -> list[int]:
    rows: list[Row] = [(t, None, None) for t in times]
    return [x.value for x in ingest.process(0, Batch(SCHEMA, rows)) if isinstance(x, Punctuation)]


def test_only_bounds_that_pass_a_useful_boundary_are_put_out() -> None:
    # a window slides by 10 from 3: boundaries at … 3, 13, 23 …
    ingest = RowIngest(SCHEMA, tracker_for(ordered(), Domain.INTEGER), None, (10, 3))
    assert [bounds_of(ingest, [t]) for t in (1, 2, 3, 12, 13, 40)] == [[1], [], [3], [], [13], [40]]


@pytest.mark.parametrize("kind", [RowIngest, BatchIngest])
def test_a_bound_from_outside_condemns_and_never_goes_back(kind: type[Ingest]) -> None:
    """It must do so by row and by batch: a row that slips below a bound already passed on would vanish."""
    ingest = kind(SCHEMA, tracker_for(bounded(100), Domain.INTEGER))
    assert list(ingest.punctuate(0, linear("ts", 50))) == [linear("ts", 50)]
    assert list(ingest.punctuate(0, linear("ts", 40))) == []
    outputs = list(ingest.process(0, Batch(SCHEMA, [(49, "a", 1), (50, "a", 2)])))
    late = [o for o in outputs if isinstance(o, Rejected)]
    assert [(r.kind, list(r.batch.rows), list(r.bounds)) for r in late] == [("late", [(49, "a", 1)], [50])]
    assert [list(o.rows) for o in outputs if isinstance(o, Batch)] == [[(50, "a", 2)]]


def test_sources_are_the_same_by_rows_and_by_columns() -> None:
    timed = schema_of([("ts", "bigint"), ("k", "timestamp")], "ts")
    own = Catalog()
    own.add_stream(StreamInfo("s", timed, per_source("k"), StreamProperties()))
    source = bind("SELECT * FROM s", own)
    assert isinstance(source, Source)
    marks_of = Builder(own).marks_of(source)
    assert marks_of is not None
    batch = Batch(timed, [(1, 5), (2, None)])
    assert list(marks_of(Batch(timed, table=batch.table))) == list(marks_of(batch)) == [5, None]
    assert np.array_equal(batch.times(), Batch(timed, table=batch.table).times())
