"""Where streams enter: which rows are late, judged by row and by batch, against the oracle."""

from __future__ import annotations

from typing import Literal
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch, Row, table_of
from penstock.model.elements import Punctuation, groupwise, linear
from penstock.model.frontier import Frontier
from penstock.model.progress import Progress, Punctuated, bounded, estimated, ordered, per_source, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME, MIN_TICK, Domain
from penstock.operators.operator import Rejected
from penstock.operators.progress import sources
from penstock.operators.progress.ingest import BatchIngest, Ingest, RowIngest
from penstock.operators.progress.marks import Coded, SourceMarks
from penstock.operators.progress.promises import Said
from penstock.operators.progress.trackers import tracker_for
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.nodes import Source
from penstock.plan.planner import in_process, spark_streaming
from penstock.reference import Judged, judge
from penstock.runtime.builder import Builder, promises_of
from penstock.runtime.graph import QueryGraph
from penstock.sql.binder import bind
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
    estimated("34%", rows=3),
    punctuated("k = 'a'"),
    punctuated("k = 'a'", whole_stream=True),
    punctuated("k = 'a'", per=["v"]),
    punctuated("k = 'a'", per=["v"], final=True),
    per_source("k"),
    per_source("k", idle=15, disorder=6),
    per_source("k", idle=40, sources=["a", "b", "zz"]),
]
every_progress = pytest.mark.parametrize("progress", PROGRESS, ids=str)
every_shape = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "arrow"])


def catalog(progress: Progress, max_ahead: int | None = None) -> Catalog:
    result = Catalog()
    result.add_stream(StreamInfo("s", SCHEMA, progress, StreamProperties(), max_ahead))
    return result


def is_punctuation(row: Row) -> bool:
    return row[1] == "a"


def is_ambiguous(row: Row) -> bool:
    return row[2] is not None


def of_groups(progress: Progress) -> list[int]:
    """Where the values are that say which rows punctuation is about."""
    return [2] if isinstance(progress, Punctuated) and progress.per else []


def linear_bounds(outputs: list[Batch | Punctuation]) -> list[int]:
    return [item.value for item in outputs if isinstance(item, Punctuation) and item.is_linear]


def promised(outputs: list[Batch | Punctuation]) -> Frontier:
    return Frontier([item for item in outputs if isinstance(item, Punctuation)])


def told(judged: Judged, batches: int) -> Frontier:
    """What the oracle's stream has promised after so many batches."""
    found = Frontier()
    for bound in judged.bounds[batches - 1 : batches]:
        found.add(linear("ts", bound))
        for promise in judged.promises[batches - 1]:
            found.add(groupwise("ts", promise.bound, **{SCHEMA.names[at]: v for at, v in promise.values}))
    return found


def played(
    progress: Progress, batches: list[list[Row]], granularity: Literal["row", "batch"], max_ahead: int | None
) -> Judged:
    return judge(
        progress,
        0,
        batches,
        granularity=granularity,
        is_punctuation=is_punctuation,
        is_ambiguous=None if getattr(progress, "whole_stream", False) or of_groups(progress) else is_ambiguous,
        source_index=1,
        per=of_groups(progress),
        domain=Domain.INTEGER,
        max_ahead=max_ahead,
    )


@st.composite
def arrivals(draw: st.DrawFn) -> list[list[Row]]:
    edges = st.integers(2**62 - 2, 2**62) | st.integers(-(2**62), -(2**62) + 2)
    odd = st.lists(st.integers(-20, 60) | edges, max_size=16)
    rows = draw(some_rows(SCHEMA, max_size=16) | some_rows(SCHEMA, times=odd))
    if draw(st.booleans()):
        rows = [(t, k, None) for t, k, _ in rows]  # punctuation rows that speak for the whole stream
    if rows and draw(st.booleans()):
        rows += rows[draw(st.integers(0, len(rows) - 1)) :]  # a replay
    return [rows[c] for c in draw(cuts(len(rows)))]


limits = st.sampled_from([None, None, 0, 9, 70])


def execution(progress: Progress, *, by_row: bool, max_ahead: int | None = None) -> LocalExecution:
    own = catalog(progress, max_ahead)
    plan = bind("SELECT * FROM s", own)
    return LocalExecution(plan, own, in_process(plan, own) if by_row else spark_streaming(plan, own))


def keep(graph: QueryGraph) -> list[Rejected]:
    """What leaves the graph from now on."""
    kept: list[Rejected] = []
    graph.side = lambda stream, operator, rejected: kept.append(rejected)
    return kept


@every_progress
@every_shape
@given(batches=arrivals(), max_ahead=limits)
def test_by_row(progress: Progress, columnar: bool, batches: list[list[Row]], max_ahead: int | None) -> None:
    judged = played(progress, batches, "row", max_ahead)
    run = execution(progress, by_row=True, max_ahead=max_ahead)
    outputs: list[Batch | Punctuation] = []
    with mock.patch.object(sources, "MIN_COLUMNAR", 1):
        for rows in batches:
            batch = Batch(SCHEMA, rows)
            outputs += run.feed("s", Batch(SCHEMA, table=batch.table) if columnar else batch)
    passed = [row for item in outputs if isinstance(item, Batch) for row in item.rows]
    assert passed == list(judged.on_time)
    expected = [None if bound == END_OF_TIME else bound for _, bound in judged.late]
    assert [bound for _, bound, _ in run.side.late] == expected
    assert run.side.dead == len(judged.backwards) + len(judged.ambiguous) + len(judged.ahead)
    bounds = linear_bounds(outputs)
    assert max(bounds, default=MIN_TICK) == (judged.bounds[-1] if judged.bounds else MIN_TICK)
    assert promised(outputs) == told(judged, len(batches))
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
@given(batches=arrivals(), max_ahead=limits, data=st.data())
def test_by_batch_whatever_the_order_inside(
    progress: Progress, batches: list[list[Row]], max_ahead: int | None, data: st.DataObject
) -> None:
    judged = played(progress, batches, "batch", max_ahead)
    run = execution(progress, by_row=False, max_ahead=max_ahead)
    graph = run.graph
    kept = keep(graph)
    source = run.graph.plan
    assert isinstance(source, Source)
    tracker = tracker_for(progress, Domain.INTEGER, max_ahead)
    marks_of = graph.builder.marks_of(source)
    outputs: list[Batch | Punctuation] = []
    groups = promises_of(source)
    for number, (rows, bound) in enumerate(zip(batches, judged.bounds, strict=True), 1):
        shuffled = data.draw(st.permutations(rows))
        cut = data.draw(st.integers(0, len(rows)))
        summary, said = None, list[Said]()
        parts = (Batch(SCHEMA, shuffled[:cut]), Batch(SCHEMA, shuffled[cut:]))
        for part in parts:
            one = tracker.summarise(part.times(), marks_of(part) if marks_of is not None else None)
            summary = one if summary is None else tracker.join(summary, one)
            if groups is not None and marks_of is not None:
                said += groups.said_in(part, np.asarray(marks_of(part)))
        graph.announce("s", summary)
        for part in parts:
            graph.push("s", part)
        graph.advance("s", summary, said)
        outputs += graph.drain()
        assert max(linear_bounds(outputs), default=MIN_TICK) == bound
        assert promised(outputs) == told(judged, number)
    passed = [row for item in outputs if isinstance(item, Batch) for row in item.rows]
    assert sorted(passed, key=repr) == sorted(judged.on_time, key=repr)
    rejected = [(r.kind, row) for r in kept for row in r.batch.rows]
    expected = [("late", row) for row, _ in judged.late] + [("dead", row) for row, _ in judged.backwards]
    expected += [("dead", row) for row in (*judged.ambiguous, *judged.ahead)]
    assert sorted(rejected, key=repr) == sorted(expected, key=repr)
    bounds_of_late = [b for r in kept if r.kind == "late" for b in r.bounds]
    assert sorted(bounds_of_late) == sorted(bound for _, bound in judged.late)
    assert_sound(outputs)


def steps(outputs: list[Batch | Punctuation]) -> list[Row | int]:
    """Rows and bounds in the order in which they come."""
    return [x for item in outputs for x in (item.rows if isinstance(item, Batch) else [item.value])]


def runs_of(batches: list[list[Row]], sql: str, *, columnar: bool) -> tuple[list[list[Batch | Punctuation]], ...]:
    """What comes of each batch, and at the end: of the batch as a whole, and row by row; the same rows are late."""
    own = catalog(punctuated("k = 'a'", whole_stream=True))
    whole, single = (LocalExecution(bind(sql, own), own) for _ in range(2))
    made = [Batch(SCHEMA, rows) for rows in batches]
    together = [whole.feed("s", Batch(SCHEMA, table=b.table) if columnar else b) for b in made] + [whole.close()]
    singly = [[x for row in rows for x in single.feed("s", Batch(SCHEMA, [row]))] for rows in batches]
    assert sorted(whole.side.late) == sorted(single.side.late)
    return together, [*singly, single.close()]


@every_shape
@given(batches=arrivals())
def test_a_punctuation_row_ends_a_batch(columnar: bool, batches: list[list[Row]]) -> None:
    """Whatever the cut, rows and punctuation come in the order of single rows."""
    together, singly = runs_of(batches, "SELECT * FROM s", columnar=columnar)
    assert [steps(outputs) for outputs in together] == [steps(outputs) for outputs in singly]


@every_shape
@given(batches=arrivals())
def test_for_windows_the_last_punctuation_of_a_batch_is_enough(columnar: bool, batches: list[list[Row]]) -> None:
    """After each batch the same results are out, in the same order, and as much is promised as by single rows."""
    together, singly = runs_of(batches, "SELECT count(*) AS n [RANGE 6, SLIDE 3, WA ts] FROM s", columnar=columnar)
    for outputs, expected in zip(together, singly, strict=True):
        assert [row for row in steps(outputs) if isinstance(row, tuple)] == [
            row for row in steps(expected) if isinstance(row, tuple)
        ]
        assert linear_bounds(outputs) == linear_bounds(expected)[-1:]
    assert_sound([x for outputs in together for x in outputs])


def test_every_punctuation_of_a_table_comes_out() -> None:
    own = catalog(punctuated("k = 'a'"))
    run = LocalExecution(bind("SELECT * FROM s", own), own)
    rows: list[Row] = [(t // 2, "b", 1) if t % 2 else (t // 2, "a", None) for t in range(600)]
    outputs = run.feed("s", Batch(SCHEMA, table=Batch(SCHEMA, rows).table))
    assert steps(outputs) == [x for t in range(300) for x in (t, (t, "b", 1))]
    assert run.counts.punctuation == 300


def test_punctuation_with_a_value_condemns_nobody() -> None:
    """It might be meant for the rows with that value alone: read as a bound for all, it would make 5 late."""
    own = catalog(punctuated("k = 'a'"))
    run = LocalExecution(bind("SELECT * FROM s", own), own)
    run.feed("s", Batch(SCHEMA, [(1, "b", 1), (10, "a", 7), (5, "b", 2)]))
    assert (run.counts.on_time, run.counts.late, run.counts.dead, run.counts.punctuation) == (2, 0, 1, 0)
    (reason,) = run.dead_letters()["reason"].to_pylist()
    assert reason.startswith("punctuation with values besides its time")
    assert "whole_stream=True" in reason


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
    for form in (batch, Batch(timed, table=batch.table)):
        marks = marks_of(form)
        assert isinstance(marks, Coded)
        assert [marks.sources[c] for c in marks.codes] == [5, None]
    assert np.array_equal(batch.times(), Batch(timed, table=batch.table).times())


@pytest.mark.parametrize("kind", ["tinyint", "bigint"])
@pytest.mark.parametrize("values", [[-128, 127, 127, 5] * 90, [7, 6, 7, 8], [7, None, 9, 7], [3, 100]], ids=len)
def test_integers_are_the_same_sources_by_rows_and_by_columns(kind: str, values: list[int | None]) -> None:
    """Close together, which need not be looked up, or far apart, all there or with gaps; the ends of a type too."""
    numbered = schema_of([("ts", "bigint"), ("k", kind)], "ts")
    table = Batch(numbered, [(1, value) for value in values]).table
    marks = SourceMarks(1)(Batch(numbered, table=table))
    assert [marks.sources[code] for code in marks.codes] == values
    assert len(set(marks.sources)) == len(marks.sources)


def dead(run: LocalExecution) -> list[tuple[str, str]]:
    table = run.dead_letters()
    return list(zip(table["row"].to_pylist(), table["reason"].to_pylist(), strict=True))


def test_a_row_from_the_far_future_moves_no_bound() -> None:
    # 5  9  90!  12  8     at most 20 ahead: 90 is put aside, and 12 and 8 are not late by it
    run = execution(bounded(4), by_row=True, max_ahead=20)
    outputs = run.feed("s", Batch(SCHEMA, [(t, None, None) for t in (5, 9, 90, 12, 8)]))
    assert [row[0] for item in outputs if isinstance(item, Batch) for row in item.rows] == [5, 9, 12, 8]
    assert dead(run) == [('{"ts": 90, "k": null, "v": null}', "more than 20 ahead of 9")]
    assert (run.counts.late, run.counts.dead) == (0, 1)


@every_shape
@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("predicate", ["k = 'a'", "1 div v > 0"])
def test_punctuation_that_is_refused_does_not_move_what_rows_are_compared_with(
    predicate: str, by_row: bool, one_by_one: bool, columnar: bool
) -> None:
    """
    0 ----- 5 ----- 10
    row     refused  row, more than 6 ahead of 0
    """
    refused = (5, "a", 1) if predicate == "k = 'a'" else (5, None, 0)
    rows: list[Row] = [(0, None, None), refused, (10, None, None)]
    progress = punctuated(predicate)
    run = execution(progress, by_row=by_row, max_ahead=6)
    kept = keep(run.graph)
    source = run.graph.plan
    assert isinstance(source, Source)
    tracker, marks_of = tracker_for(progress, Domain.INTEGER, 6), run.graph.builder.marks_of(source)
    for part in [[r] for r in rows] if one_by_one else [rows[:1], rows[1:]]:
        batch = Batch(SCHEMA, table=Batch(SCHEMA, part).table) if columnar else Batch(SCHEMA, part)
        summary = tracker.summarise(batch.times(), marks_of(batch))
        if not by_row:
            run.graph.announce("s", summary)
        run.graph.push("s", batch)
        if not by_row:
            run.graph.advance("s", summary)
    passed = [row for item in run.graph.drain() if isinstance(item, Batch) for row in item.rows]
    assert passed == rows[:1]
    assert [row for r in kept for row in r.batch.rows if r.reasons == ["more than 6 ahead of 0"]] == rows[2:]


def test_in_a_first_batch_most_rows_decide() -> None:
    # 0 (a clock that was never set), 1000 1003 1005, 9000 (one that runs ahead): only the last is dead
    run = execution(bounded(4), by_row=False, max_ahead=20)
    kept = keep(run.graph)
    tracker = tracker_for(bounded(4), Domain.INTEGER, 20)
    batch = Batch(SCHEMA, [(t, None, None) for t in (9000, 1003, 0, 1005, 1000)])
    summary = tracker.summarise(batch.times(), None)
    run.graph.announce("s", summary)
    run.graph.push("s", batch)
    run.graph.advance("s", summary)
    assert [(r.kind, list(r.batch.rows), list(r.reasons)) for r in kept] == [
        ("dead", [(9000, None, None)], ["more than 20 ahead of 1005"])
    ]
    assert max(x.value for x in run.graph.drain() if isinstance(x, Punctuation)) == 1001


def test_a_bound_from_outside_lets_a_stream_go_on_after_a_long_silence() -> None:
    run = execution(ordered(), by_row=True, max_ahead=20)
    rows: list[Row] = [(100, None, None)]
    run.feed("s", Batch(SCHEMA, [(5, None, None)]))
    assert run.feed("s", Batch(SCHEMA, rows)) == []
    run.feed("s", linear("ts", 90))
    assert [item for item in run.feed("s", Batch(SCHEMA, rows)) if isinstance(item, Batch)]
    assert (run.counts.on_time, run.counts.dead) == (2, 1)


@every_shape
def test_rows_without_a_time_that_are_fed_by_hand_are_dead_letters(columnar: bool) -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=bounded(5))
    made = flow.query("SELECT ts, v FROM s")
    assert isinstance(made, LocalQuery)
    run, rows = made.execution(), [(1, "a", 1), (None, "b", 2), (3, "c", 3)]
    batch = Batch(SCHEMA, table=table_of(SCHEMA, rows)) if columnar else Batch(SCHEMA, rows)
    found = [row for item in run.feed("s", batch) if isinstance(item, Batch) for row in item.rows]
    assert found == [(1, 1), (3, 3)]
    assert run.dead_letters()["reason"].to_pylist() == ["ts is null"]
    assert (run.counts.read, run.counts.on_time, run.counts.dead) == (3, 2, 1)
