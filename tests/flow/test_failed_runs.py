"""What a run that fails, stops or goes bad leaves: everything counted so far, and no file that looks whole."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import DeadLetterError, InternalError, SourceError, StreamError
from penstock.model.accounts import Counts
from penstock.model.batch import Batch

SCHEMA = "t bigint, v int"


def rows(n: int = 40) -> Iterator[dict[str, Any]]:
    """Every fifth row is late, every seventh has no value, one cannot be read; then the source breaks."""
    for t in range(n):
        yield {"t": t - 30 if t % 5 == 4 else t, "v": 0 if t % 7 == 3 else 1}
    yield {"t": None, "v": 1}


def breaking() -> Iterator[dict[str, Any]]:
    yield from rows()
    raise OSError("the cable is out")


class Source:
    """An iterable that can be read again."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.make())


def query(make: Any, sql: str = "SELECT t, 10 div v AS x FROM s") -> Any:
    return pk.Flow().stream("s", Source(make), time="t", schema=SCHEMA, progress=pk.bounded(10)).query(sql)


LATE = sum(t % 5 == 4 for t in range(40))
FAILED = sum(t % 7 == 3 and t % 5 != 4 for t in range(40))


def test_a_failed_collect_shows_what_was_counted() -> None:
    q = query(breaking)
    with pytest.raises(SourceError, match="cable"):
        q.collect()
    assert (q.late.num_rows, q.dead_letters.num_rows) == (LATE, FAILED + 1)
    assert q.counts["read"] == 41
    assert q.counts["dead"] == 1


def test_a_failed_run_keeps_late_rows_and_dead_letters_and_leaves_no_whole_file(tmp_path: Path) -> None:
    out, late, dead = (tmp_path / f"{name}.parquet" for name in ("out", "late", "dead"))
    run = query(breaking).start(str(out), late=str(late), dead_letters=str(dead))
    with pytest.raises(pk.PenstockError, match="cable"):
        run.wait()
    assert pq.read_table(late).num_rows == LATE
    assert pq.read_table(dead).num_rows == FAILED + 1
    assert not out.exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("out")] == ["out.parquet.partial"]


def test_a_sink_that_fails_does_not_take_the_others_along(tmp_path: Path) -> None:
    def refuse(table: Any) -> None:
        raise OSError("disk full")

    late: list[Any] = []
    run = query(rows).start(refuse, late=late)
    with pytest.raises(pk.PenstockError, match="disk full"):
        run.wait()
    assert len(late) == run.progress["late"]


def test_a_run_stops_when_more_rows_are_dead_than_it_bears() -> None:
    q = query(rows)
    with pytest.raises(DeadLetterError) as caught:
        q.collect(max_dead=2)
    for part in ("more dead letters than max_dead allows", "3 dead letters in 18 rows, max_dead=2", "Division by zero"):
        assert part in caught.value.message
    assert q.dead_letters.num_rows == 3
    assert query(rows).collect(max_dead=FAILED + 1).num_rows == 40 - LATE - FAILED


def test_a_fraction_is_judged_at_the_end_of_few_rows_and_on_the_way_through_many() -> None:
    with pytest.raises(DeadLetterError, match=f"{FAILED + 1} dead letters in 41 rows"):
        query(rows).collect(max_dead=0.01)
    assert query(rows).collect(max_dead=0.5).num_rows == 40 - LATE - FAILED
    many = query(lambda: ({"t": t, "v": t % 2} for t in range(5000)))
    with pytest.raises(DeadLetterError, match="500 dead letters in 1000 rows"):
        many.collect(max_dead=0.1)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "many"])
def test_a_limit_that_is_none_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(StreamError, match="max_dead must be a number of rows or a fraction"):
        query(rows).start([], max_dead=wrong)


def test_the_law_can_fail() -> None:
    with pytest.raises(InternalError, match="Rows that were read are unaccounted for") as caught:
        Counts(read=3, on_time=1, late=1).check("s")
    assert "1 of 3 rows" in caught.value.message
    Counts(read=5, on_time=1, late=1, dead=1, punctuation=1, skipped=1, failed=9).check("s")


def test_a_row_that_an_entrance_loses_is_noticed() -> None:
    q = query(lambda: ({"t": t, "v": 1} for t in range(9)))
    execution = q.execution()
    entrance = execution.graph.sources["s"][0]
    process = entrance.operator.process

    def careless(port: int, batch: Batch) -> Any:
        return process(port, batch) if batch.rows[0][0] != 4 else ()

    entrance.operator.process = careless
    with pytest.raises(InternalError, match="unaccounted"):
        list(q.items(execution))


def test_a_row_from_the_far_future_is_a_dead_letter_and_moves_nothing() -> None:
    given = [{"t": t} for t in (1, 2, 9_000, 3, 14, 30, 24)]
    q = pk.Flow().stream("s", given, time="t", progress=pk.bounded(5), max_ahead=12).query("SELECT t FROM s")
    assert q.collect()["t"].to_pylist() == [1, 2, 3, 14, 24]
    assert q.dead_letters["reason"].to_pylist() == ["more than 12 ahead of 2", "more than 12 ahead of 14"]
    assert q.counts["dead"] == 2


def test_very_many_windows_come_in_portions() -> None:
    """One row in windows of a million slides: the first results come at once, and the run can be stopped."""
    for sql in (
        "SELECT sum(v) AS n [RANGE 1000000, SLIDE 1, WA t] FROM s",
        "SELECT max(CAST(v AS STRING)) AS n [RANGE 1000000, SLIDE 1, WA t] FROM s",
        "SELECT count(DISTINCT v) AS n [RANGE 1000000, SLIDE 1, WA t] FROM s",
    ):
        q = query(lambda: iter([{"t": 5, "v": 1}]), sql)
        execution = q.execution()
        started = time.process_time()
        found = q.items(execution)
        first = next(item for item in found if isinstance(item, Batch))
        assert 1 <= len(first) <= 131_072
        assert time.process_time() - started < 60
        second = next(item for item in found if isinstance(item, Batch))
        ends = [row[2] for batch in (first, second) for row in batch.rows]
        assert ends == list(range(6, 6 + len(ends)))


def test_a_stopped_run_goes_on_where_it_was() -> None:
    """Stopped between two portions of one bound, nothing is lost and nothing comes twice."""
    sql = "SELECT sum(v) AS n [RANGE 200000, SLIDE 1, WA t] FROM s"
    taken: list[int] = []
    q = query(lambda: iter([{"t": 5, "v": 1}]), sql)
    execution = q.execution()
    for item in execution.run(q._sources, stopped=taken.__len__):
        if isinstance(item, Batch):
            taken += [row[2] for row in item.rows]
    assert 0 < len(taken) < 200_000
    again = q.execution()
    again.restore(execution.snapshot())
    for item in again.close():  # what had come out and was not taken is in the snapshot
        if isinstance(item, Batch):
            taken += [row[2] for row in item.rows]
    assert taken == list(range(6, 200_006))


@pytest.mark.parametrize("twice", ["late", "dead_letters"])
def test_two_outputs_in_one_file_are_refused(tmp_path: Path, twice: str) -> None:
    flow = pk.Flow().stream("s", [{"t": 1, "v": 1}], time="t", schema=SCHEMA)
    query: Any = flow.query("SELECT t FROM s")
    with pytest.raises(StreamError, match="go to one file") as error:
        query.start(str(tmp_path / "out.csv"), **{twice: tmp_path / "." / "out.csv"})
    assert "results and" in error.value.got
    with pytest.raises(StreamError, match="go to one file"):
        query.start(str(tmp_path / "out.csv"), late=str(tmp_path / "x.csv"), dead_letters=str(tmp_path / "x.csv"))


@pytest.mark.parametrize("publish", [False, True])
def test_a_stopped_run_has_no_whole_file_unless_that_is_what_was_wanted(publish: bool, tmp_path: Path) -> None:
    reached, released = threading.Event(), threading.Event()

    def endless() -> Iterator[dict[str, int]]:
        for t in itertools.count():
            if t == 300:
                reached.set()
                released.wait(60)
            yield {"t": t}

    out = tmp_path / "out.csv"
    flow = pk.Flow().stream("s", endless(), time="t", schema="t bigint")
    run = flow.query("SELECT t FROM s").start(str(out), late=str(tmp_path / "late.csv"))
    assert reached.wait(60)
    assert run.status == "running"
    run.stop(publish=publish)  # although its source gives nothing
    assert run.status == "stopped"
    assert (out.exists(), (tmp_path / "out.csv.partial").exists()) == (publish, not publish)
    assert (tmp_path / "late.csv").exists()
    written = (out if publish else tmp_path / "out.csv.partial").read_text().splitlines()
    assert written[1:] == [str(t) for t in range(300)]  # everything that the source had given
    released.set()


def test_a_run_that_had_come_to_its_end_was_not_cut_short(tmp_path: Path) -> None:
    flow = pk.Flow().stream("s", [{"t": 1}, {"t": 2}], time="t")
    run = flow.query("SELECT t FROM s").start(str(tmp_path / "out.csv"))
    run.wait()
    run.stop()
    assert run.status == "finished"
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == ["1", "2"]
