"""Four captures of one exchange's order book over redundant connections, as streams of elements."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from functools import cache
from pathlib import Path

import pytest

from penstock.model.elements import Element, Insert, linear
from penstock.model.time import MIN_TICK, to_ticks

FOLDER = Path(__file__).parents[2] / "shared" / "data"
CAPTURES = (1, 2, 3, 4)
needed = pytest.mark.skipif(
    not (FOLDER / "orderbook_capture_1.jsonl.gz").exists(), reason="needs the captures in ../shared/data"
)
Arrival = tuple[float, Element]


@cache
def updates(capture: int) -> tuple[tuple[float, Insert], ...]:
    """The updates of a capture in the order of arrival, each with when it was received; one lives for a tick."""
    found = []
    with gzip.open(FOLDER / f"orderbook_capture_{capture}.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if row["kind"] == "update":
                vs = to_ticks(dt.datetime.fromisoformat(row["ts"]))
                payload = (row["symbol"], row["seq"], row["side"], row["price"], row["size"])
                found.append((row["recv"], Insert(payload, vs, vs + 1)))
    return tuple(found)


@cache
def disorder() -> int:
    """How far an update comes behind the newest before it, at most, over all captures."""
    worst = 0
    for capture in CAPTURES:
        greatest = MIN_TICK
        for _, update in updates(capture):
            greatest = max(greatest, update.vs)
            worst = max(worst, greatest - update.vs)
    return worst


def arrivals(capture: int, every: int = 40) -> list[Arrival]:
    """The updates of a capture with punctuation now and then, which follows from the disorder."""
    found: list[Arrival] = []
    greatest = told = MIN_TICK
    for i, (received, update) in enumerate(updates(capture)):
        found.append((received, update))
        greatest = max(greatest, update.vs)
        if i % every == every - 1 and greatest - disorder() > told:
            told = greatest - disorder()
            found.append((received, linear("vs", told)))
    return found
