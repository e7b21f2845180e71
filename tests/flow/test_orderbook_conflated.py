"""A real order book, replayed at twenty times its speed to a consumer that is too slow: fresh if it is conflated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from tests import orderbook
from tests.docs.running import python
from tests.flow.played import Played, consumed, no_pause  # noqa: F401 - a fixture
from tests.orderbook import FOLDER, updates

pytestmark = orderbook.needed
SPEED, COST = 20, 400
"""How much faster than the market, and how many microseconds a change of the book costs the consumer."""
KEY = ("symbol", "side", "price")
SCHEMA = "at BIGINT, symbol STRING, seq BIGINT, side STRING, price STRING, size STRING"
Level = tuple[str, ...]


def replayed() -> Played:
    """The changes of the book, by when they were received; the clock is given."""
    found = updates(1)
    names = ("symbol", "seq", "side", "price", "size")
    times = [int((received - found[0][0]) / SPEED * 1e6) for received, _ in found]
    return Played(
        (at, {"at": at, **dict(zip(names, update.payload, strict=True))})
        for at, (_, update) in zip(times, found, strict=True)
    )


def played(policy: str) -> tuple[dict[Level, str], list[int]]:
    """The consumer's book at the end, and how old each change was when it had been dealt with."""
    source, book, ages = replayed(), dict[Level, str](), []
    query: Any = pk.conflate(source, time="at", key=KEY, schema=SCHEMA, policy=policy)
    for at, row in consumed(query, source, COST):
        book[tuple(row[name] for name in KEY)] = row["size"]
        ages.append(at - row["at"])
    return book, ages


def quarters(ages: list[int]) -> list[int]:
    return [max(ages[i * len(ages) // 4 : (i + 1) * len(ages) // 4]) for i in range(4)]


def test_conflated_it_stays_fresh_and_queued_it_falls_behind_to_the_same_book() -> None:
    true_book = {tuple(row[name] for name in KEY): row["size"] for _, row in replayed().rows}
    book, ages = played("in_place")
    assert book == true_book
    behind, late = played("append")
    assert behind == true_book
    fresh, stale = quarters(ages), quarters(late)
    assert max(fresh) < 2 * min(fresh)  # flat, as the market's own bursts allow
    assert stale == sorted(stale)
    assert stale[-1] > 3 * stale[0]
    assert stale[-1] > 4 * max(fresh)


@pytest.mark.slow
def test_on_the_wall_clock_the_true_book_comes_out_as_well(tmp_path: Path) -> None:
    """Times are those of the machine, and only shown."""
    example = Path(__file__).parents[2] / "examples" / "conflated_book.py"
    printed = python([str(example), str(FOLDER / "orderbook_capture_1.jsonl.gz")], tmp_path, os.environ)
    assert printed.count("the true book at the end: True") == 2
