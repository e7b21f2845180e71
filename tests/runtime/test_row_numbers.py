"""Row numbers: given as rows arrive, before any WHERE, whatever their time; the same for windows and for slides."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.progress import Progress
from penstock.sql.binder import bind
from tests.runtime.cases import SCHEMA, catalog

NUMBERED = "SELECT sum(v) AS s [RANGE 2 rows, SLIDE 2 rows, WA row-num] FROM s"
TIMES = [(1, 1), (9, 10), (2, 100), (10, 1000)]  # 2 is behind in time


def execution(sql: str, progress: Progress) -> LocalExecution:
    own = catalog(progress)
    return LocalExecution(bind(sql, own), own)


def row(time: int, v: int, k: str | None = None) -> Row:
    return (time, k, v, None, None, None)


def sums(outputs: list[Batch | Punctuation]) -> list[tuple[object, ...]]:
    return [(r[0], r[3]) for item in outputs if isinstance(item, Batch) for r in item.rows]


@pytest.mark.parametrize("form", ["rows", "arrow", "pushed"])
@pytest.mark.parametrize("progress", [pk.ordered(), pk.bounded(1), pk.bounded(rows=0), pk.per_source("k")], ids=str)
def test_a_row_that_is_behind_in_time_is_numbered_and_counted(progress: Progress, form: str) -> None:
    run = execution(NUMBERED, progress)
    rows = [row(t, v) for t, v in TIMES]
    if form == "pushed":
        push = run.pusher("s")
        for r in rows:
            push(r)
        outputs = run.take()
    else:
        batch = Batch(SCHEMA, rows)
        outputs = run.feed("s", Batch(SCHEMA, table=batch.table) if form == "arrow" else batch)
    assert sums(outputs) == [(0, 11), (1, 1100)]
    assert sums(run.close()) == []
    assert (run.counts.read, run.counts.on_time, run.counts.late) == (4, 4, 0)


@pytest.mark.parametrize("where", ["v <> 10", "v > 1", "v < 1000"])
def test_a_selection_does_not_change_numbers(where: str) -> None:
    run = execution(f"{NUMBERED} WHERE {where}", pk.ordered())
    kept = {n: v for n, (_, v) in enumerate(TIMES) if eval(where.replace("<>", "!="), {"v": v})}
    expected = {wid: sum(v for n, v in kept.items() if n // 2 == wid) for wid in (0, 1)}
    outputs = run.feed("s", Batch(SCHEMA, [row(t, v) for t, v in TIMES]))
    assert dict(sums(outputs)) == {wid: total for wid, total in expected.items() if total}


def test_punctuation_rows_have_no_number() -> None:
    run = execution(NUMBERED, pk.punctuated("k = 'p'", whole_stream=True))
    outputs = run.feed("s", Batch(SCHEMA, [row(1, 1), row(50, 7, "p"), row(2, 10), row(3, 100), row(20, 7, "p")]))
    assert sums(outputs) == [(0, 11)]
    assert (run.counts.on_time, run.counts.punctuation, run.counts.dead) == (3, 1, 1)  # the second goes backwards


def test_a_window_on_time_beside_one_on_numbers_judges_by_itself() -> None:
    sql = f"{NUMBERED} UNION ALL SELECT sum(v) AS s [RANGE 2, SLIDE 2, WA ts] FROM s"
    run = execution(sql, pk.ordered())
    run.feed("s", Batch(SCHEMA, [row(t, v) for t, v in TIMES]))
    assert run.counts.late == 1
    assert run.late()["row"].to_pylist()[0].startswith('{"ts": 2')


def test_bounds_that_no_window_can_use_are_not_put_out() -> None:
    run = execution("SELECT count(*) AS n [RANGE 100 rows, SLIDE 100 rows, WA row-num] FROM s", pk.ordered())
    push = run.pusher("s")
    for t in range(250):
        push(row(t, 1))
    run.take()
    by_label = {node.label.split()[0]: node.statistics for node in run.graph.nodes}
    assert by_label["Source"].punctuations_out == 0
    assert by_label["NumberRows"].punctuations_out <= 3


def test_a_column_of_numbers_is_honoured_or_refused() -> None:
    rows = [{"row_num": n, "t": n, "v": n} for n in (0, 2, 4, 6)]
    query = pk.Flow().stream("s", rows, time="row_num").query(NUMBERED)
    assert isinstance(query, LocalQuery)
    assert query.collect()["s"].to_pylist() == [0, 2, 4, 6]  # by the column: rows 1, 3 and 5 are missing
    with pytest.raises(pk.errors.QueryError, match="does not progress"):
        pk.Flow().stream("s", rows, time="t").query(NUMBERED)
