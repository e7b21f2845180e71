"""Streams of which nobody promises anything: the bound is estimated, and a run says what that has cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import StreamError
from penstock.model.progress import parse_progress

ROWS = 50_000


def delayed(seed: int) -> pa.Table:
    """A row at each tick, delayed by 20 on average, in the order in which they come."""
    rng = np.random.default_rng(seed)
    sent = np.arange(ROWS)
    arrived = np.argsort(sent + rng.exponential(20, ROWS), kind="stable")
    return pa.table({"t": sent[arrived]})


def run_of(progress: Any, **options: Any) -> Any:
    flow = pk.Flow().stream("s", delayed(1), time="t", progress=progress, **options)
    run = flow.query("SELECT count(*) AS n [RANGE 100, SLIDE 100, WA t] FROM s").start([].append)
    run.wait()
    return run


@pytest.mark.parametrize("aimed", [0.1, 0.01, 0.001])
def test_of_a_steady_stream_about_as_many_rows_are_late_as_was_aimed_at(aimed: float) -> None:
    progress = run_of(pk.estimated(aimed, rows=10_000)).progress
    estimate = progress.estimates["s"]
    assert (estimate.aimed, estimate.rows, estimate.late) == (aimed, ROWS, progress.counts.late)
    assert 0.5 * aimed < estimate.lateness < 1.5 * aimed
    # Delays are exponential with a mean of 20, and a row is behind by about its own: e^(-d / 20) of them by more.
    assert float(estimate.delay) == pytest.approx(-20 * np.log(aimed), rel=0.35)


def test_the_run_says_so_in_words_and_plainly() -> None:
    progress = run_of(pk.estimated("1%", rows=1000), max_ahead=10_000).progress
    estimate = progress.estimates["s"]
    assert dict(progress)["estimates"] == {
        "s": {
            "aimed": 0.01, "rows": ROWS, "late": estimate.late, "delay": estimate.delay, "lateness": estimate.lateness
        }
    }  # fmt: skip
    words = f"{estimate.lateness:.3%} late of 1.000% aimed at, {estimate.delay} behind the newest row"
    assert f"s: {words}" in progress.summary
    assert ("stream s, estimated", words) in list(progress.rows())
    assert progress.json


def test_before_the_first_estimate_nothing_is_late() -> None:
    flow = pk.Flow().stream("s", [{"t": 9}, {"t": 1}], time="t", progress=pk.estimated(0, rows=30))
    run = flow.query("SELECT t FROM s").start([].append)
    run.wait()
    estimate = run.progress.estimates["s"]
    assert (estimate.rows, estimate.late, estimate.delay, estimate.lateness) == (2, 0, None, 0.0)
    assert estimate.in_words == "0.000% late of 0.000% aimed at"


def test_streams_that_promise_something_estimate_nothing() -> None:
    assert run_of(pk.bounded(200)).progress.estimates == {}


@pytest.mark.parametrize(
    ("lateness", "shown"),
    [("0.1%", "'0.1%'"), (0.001, "'0.1%'"), ("0.5", "'50%'"), (0, "'0%'"), ("12.50 %", "'12.5%'")],
)
def test_a_share_is_written_in_one_way(lateness: Any, shown: str) -> None:
    progress = pk.estimated(lateness, rows=7)
    assert str(progress) == f"estimated(lateness={shown}, rows=7)"
    assert parse_progress(str(progress)) == progress


@pytest.mark.parametrize("lateness", ["a little", -0.1, 1, "100%", True, None, "", float("nan")])
def test_what_is_no_share_is_refused(lateness: Any) -> None:
    with pytest.raises(StreamError, match="the share of rows that may come late") as found:
        pk.estimated(lateness)
    assert "estimated(lateness='0.1%', rows=10000)" in str(found.value)


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "all"])
def test_what_is_no_number_of_rows_is_refused(rows: Any) -> None:
    with pytest.raises(StreamError, match="takes a number of rows"):
        pk.estimated(rows=rows)
