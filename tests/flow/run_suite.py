"""What holds of a query and of a run on either engine, as checks over a harness that brings rows to a stream.

```
rows      1   7       12            2        windows of 10; ordered, so 2 is late once 12 has come
windows   [---10---)[---10---)               (10, 2) is out with 12, (20, 1) at the end
bound     of the result: no window that ends before 20 comes any more; with 20 closed, none before 30
```
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import PenstockError, StreamError

SQL = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s"
MINUTE = "2026-01-01 10:0{}:00"
COUNTED = {"read": 5, "on_time": 3, "late": 1, "dead": 1, "punctuation": 0, "skipped": 0, "failed": 0}


class Harness(Protocol):
    """An engine with a stream `s` of one column `t` whose rows come in portions, and whose source does not end."""

    writes_here: bool
    """Whether what comes out is written by this process, and what is to be said of it is logged here."""

    def query(self, sql: str = SQL, name: str = "q", *, text: bool = False) -> pk.Query:
        """A query over the stream; its times are integers, or text with timestamps."""

    def bring(self, times: list[Any]) -> None:
        """Rows arrive, as one portion."""

    def target(self) -> str:
        """Where results go."""

    def written(self) -> list[dict[str, Any]]:
        """The results that a reader finds there, once the run is over."""

    def rows(self, found: Any) -> list[dict[str, Any]]:
        """Late rows or dead letters as dictionaries."""

    def failing_sink(self) -> Any:
        """A function that raises OSError("disk full")."""


class Suite:
    """The checks; a test class has a fixture `harness` and inherits them."""

    def windows(self, harness: Harness) -> list[tuple[int, int]]:
        return sorted((r["window_end"], r["n"]) for r in harness.written())

    def test_a_run_says_how_far_it_has_come(self, harness: Harness) -> None:
        query = harness.query()
        run = query.start(harness.target())
        assert (run.name, run.status, run.is_active, run.exception) == ("q", "running", True, None)
        harness.bring([1, 7, 12])
        run.process_available()
        harness.bring([2, None])
        run.process_available()
        progress = run.progress
        assert {k: progress[k] for k in COUNTED} == COUNTED
        assert (progress.counts.late, dict(progress)["late"]) == (1, 1)
        assert (progress.frontier, progress.newest) == ({"s": "12"}, {"s": "12"})
        assert (progress.bound_ticks, progress.bound, progress.lag, progress.ended) == (20, "20", "0", False)
        assert json.loads(progress.json)["frontier"] == {"s": "12"}
        first, *_, last = progress.operators
        assert [(o.rows_in, o.rows_out, o.failed) for o in (first, last)] == [(1, 1, 0), (4, 3, 0)]
        assert min(first.punctuations_in, first.punctuations_out, last.punctuations_out) > 0
        assert [o.label for o in progress.operators] == [node.label for node in query.plan.walk()]
        assert [r["stream"] for r in harness.rows(run.late)] == ["s"]
        assert ["null" in r["reason"] for r in harness.rows(run.dead_letters)] == [True]
        run.stop()
        assert (run.status, run.is_active, run.exception) == ("stopped", False, None)
        assert "stopped; read 5, on time 3, late 1, dead 1" in repr(run)
        assert "<td>stopped</td>" in run._repr_html_()

    def test_times_are_shown_as_times(self, harness: Harness) -> None:
        query = harness.query("SELECT count(*) AS n [RANGE 1 minute, SLIDE 1 minute, WA t] FROM s", text=True)
        with query.start(harness.target()) as run:
            harness.bring([MINUTE.format(0), MINUTE.format(3)])
            run.process_available()
            assert run.progress.frontier == {"s": "2026-01-01 10:03:00"}
            assert run.progress.bound == "2026-01-01 10:04:00"
            assert isinstance(run.progress.bound_ticks, int)

    def test_finish_puts_out_what_is_open(self, harness: Harness) -> None:
        run = harness.query().start(harness.target())
        harness.bring([1, 7, 12])
        run.process_available()
        run.finish()
        assert run.status == "finished"
        assert self.windows(harness) == [(10, 2), (20, 1)]
        assert run.progress.bound_ticks == 30
        assert not run.progress.ended, "a later row would be on time"

    def test_finish_for_good_ends_the_streams(self, harness: Harness) -> None:
        run = harness.query().start(harness.target())
        harness.bring([1, 7, 12])
        run.process_available()
        run.finish(for_good=True)
        assert (run.status, run.progress.ended, run.progress.bound) == ("finished", True, "end")
        assert self.windows(harness) == [(10, 2), (20, 1)]

    def test_wait_says_whether_it_is_over(self, harness: Harness) -> None:
        run = harness.query().start(harness.target())
        assert run.wait(0.05) is False
        run.stop()
        assert run.wait() is True
        with pytest.raises(StreamError, match="A time to wait is a number of seconds"):
            run.wait(-1)

    def test_leaving_the_block_stops_it(self, harness: Harness) -> None:
        with harness.query().start(harness.target()) as run:
            harness.bring([1, 7, 12])
            run.process_available()
        assert run.status == "stopped"
        bad = harness.query(name="other").start(harness.failing_sink())
        harness.bring([1, 7, 12])
        with pytest.raises(PenstockError, match="disk full"):
            bad.process_available()
        with pytest.raises(KeyError, match="mine"), bad:
            raise KeyError("mine")  # goes on, although the run has failed as well
        with pytest.raises(PenstockError, match="disk full"), bad:
            pass

    def test_a_bound_from_outside_is_heard(self, harness: Harness) -> None:
        run = harness.query().start(harness.target())
        harness.bring([1, 7, 12])
        run.process_available()
        run.punctuate("S", 20)
        run.process_available()
        assert (run.progress.frontier, run.progress.bound) == ({"s": "20"}, "30")
        with pytest.raises(StreamError, match="does not read that stream"):
            run.punctuate("zz", 20)
        with pytest.raises(StreamError, match="A bound is a number of ticks"):
            run.punctuate("s", "20")  # type: ignore[arg-type]
        run.stop(publish=True)
        assert self.windows(harness) == [(10, 2), (20, 1)]

    def test_a_failing_sink_says_so(self, harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, logger="penstock"):
            run = harness.query().start(harness.failing_sink())
            harness.bring([1, 7, 12])
            for ask in (run.process_available, run.wait, run.stop, run.finish):
                with pytest.raises(PenstockError, match="disk full"):
                    ask()
        assert (run.status, run.progress.status) == ("failed", "failed")
        assert run.exception is not None
        assert "failing_sink" in getattr(run.exception, "stack", "")
        assert run.progress.reason == run.exception.what
        assert any("failed" in r.message and r.levelno == logging.ERROR for r in caplog.records)

    def test_what_happens_is_logged(self, harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, logger="penstock"):
            run = harness.query().start(harness.target())
            for times in ([1, 7, 12], [2], [3, None]):
                harness.bring(times)
                run.process_available()
            run.stop()
        said = [r.getMessage() for r in caplog.records if r.name.startswith("penstock.run")]
        assert said[0].startswith("run q: started")
        assert said[-1] == "run q: stopped"
        if harness.writes_here:
            assert sum("the first late rows" in s for s in said) == 1, said
            assert sum("the first dead letters" in s for s in said) == 1, said

    def test_a_run_may_have_a_name_of_its_own(self, harness: Harness) -> None:
        with harness.query().start(harness.target(), name="other") as run:
            assert (run.name, run.progress.name) == ("other", "other")

    def test_a_query_shows_itself(self, harness: Harness) -> None:
        query = harness.query()
        assert query.columns == ["wid", "window_start", "window_end", "n"]
        assert repr(query).startswith(f"<query q, {query.engine}>\nProject")
        assert "Source s" in repr(query)
        assert "&gt;" not in query._repr_html_()
        assert query.sql in query._repr_html_()
        with pytest.raises(AttributeError, match=r"PySpark's toPandas is to_pandas\(\) here"):
            query.toPandas()  # type: ignore[attr-defined]


def parquet_rows(files: Iterator[Path]) -> list[dict[str, Any]]:
    return [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
