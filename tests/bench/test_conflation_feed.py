"""What `penstock bench conflation` looks at: rows as they come, and how stale keys were, by a timeline on paper."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from penstock.bench.conflation_feed import SECOND, Delivery, Feed, Feeding, even, order_book, staleness
from tests.orderbook import FOLDER, needed


def test_staleness_is_since_the_oldest_row_that_no_delivery_has_answered() -> None:
    """Seconds from the start, of two keys of which one is never delivered.

    a   1 made   2 made       4: that of 1     6: that of 2
    b                  3 made
    """
    feed = Feed(np.array([1, 2, 3]) * SECOND, ["a", "a", "b"], ["x", "y", "z"])
    began = 1000.0
    given = [
        Delivery(began + 4, [{"key": "a", "at": 1001 * SECOND}]),
        Delivery(began + 6, [{"key": "a", "at": 1002 * SECOND}, {"key": "", "at": 0}]),
    ]
    found = staleness(feed, began, given, np.array([0.5, 1.5, 3.5, 4.5, 6.5]))
    assert found.tolist() == [[0, 0.5, 2.5, 2.5, 0], [0, 0, 0.5, 1.5, 3.5]]
    assert feed.last_values() == {"a": "y", "b": "z"}


def test_rows_are_written_when_their_time_has_come(tmp_path: Path) -> None:
    feeding = Feeding(even(rate=400, keys=7, seconds=0.5), tmp_path)
    feeding.start()
    feeding.join(60)
    lines = [json.loads(line) for file in sorted(tmp_path.glob("*.json")) for line in file.read_text().splitlines()]
    assert [line["value"] for line in lines] == [str(n) for n in range(200)]
    assert [line["key"] for line in lines[:7]] == [f"k{n}" for n in range(7)]
    assert all(line["at"] >= int(feeding.began * SECOND) for line in lines)


@needed
def test_a_captured_book_is_replayed_over_and_over() -> None:
    feed = order_book(FOLDER / "orderbook_capture_1.jsonl.gz", speed=20, seconds=3)
    assert feed.seconds == pytest.approx(3 * 29.215 / 20, abs=0.01)  # three times is the first that is long enough
    assert len(feed.at) == 3 * 5969
    assert (np.diff(feed.at) >= 0).all()
