"""What a run over windows that wait tells of its queue."""

from __future__ import annotations

import pytest

import penstock as pk


@pytest.mark.parametrize("windows", ["lazy", "eager"])
def test_progress_and_staleness_are_told_in_windows(windows: str) -> None:
    trades = [{"ts": t, "symbol": symbol, "price": t} for t in range(20) for symbol in "ab"]
    flow = pk.Flow().stream("trades", trades, time="ts")
    flow.conflate("calm", "trades", key="symbol", windows=windows, max_staleness="1 minute")
    sums = "SELECT symbol, sum(price) AS total [RANGE 6, SLIDE 3, WA ts] FROM calm GROUP BY symbol"
    run = flow.query(sums).start(None)
    run.wait()
    (queue,) = run.progress.queues
    assert (queue.enqueued, queue.waiting, queue.unapplied, queue.application_staleness) == (40, 0, 0.0, 0.0)
    assert queue.dequeued + queue.superseded + queue.older == 40
    assert run.staleness("a")["unapplied"] == 0


@pytest.mark.parametrize("levels", [((8, 3), (1, 1), (6, 2)), ((3, 3), (2, 5), (7, 1)), ((4, 4), (1, 1), (4, 4))])
@pytest.mark.parametrize("windows", ["lazy", "eager"])
def test_windows_between_two_others_that_never_hold_anything(levels: tuple[tuple[int, int], ...], windows: str) -> None:
    """Windows of the second level are shorter than the slide of the first, so that most of them are always empty."""
    flow = pk.Flow().stream("s", [{"ts": 6, "k": "a"}], time="ts")
    flow.conflate("calm", "s", key="k", windows=windows)

    def last_of(name: str) -> dict[str, object]:
        text, time = name, "ts"
        for at, (range_, slide) in enumerate(levels):
            text = f"(SELECT k, count(*) AS n [RANGE {range_}, SLIDE {slide}, WA {time}] FROM {text} GROUP BY k) i{at}"
            time = "window_end"
        rows: list[dict[str, object]] = flow.query(text[1:].rpartition(")")[0]).collect().to_pylist()
        return rows[-1]

    assert last_of("calm") == last_of("s")
