"""What becomes of rows in files that are a micro-batch each, computed without anything of Penstock.

The judge of the runs that are killed must not share a mistake with what it judges, so it says in its own words: a bound
is the greatest time of the files before, less the delay; a row below the bound is late; the rows of each window [end -
range, end) whose end is a multiple of the slide are counted per address. Times are in microseconds since 1970.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)

Row = tuple[int, str | None, int]


def ticks(time: dt.datetime) -> int:
    """A time that names no zone is in UTC."""
    return ((time if time.tzinfo else time.replace(tzinfo=dt.UTC)) - EPOCH) // MICROSECOND


def text(time: int) -> str:
    """As it stands in a file, without a zone."""
    return (EPOCH + time * MICROSECOND).replace(tzinfo=None).isoformat()


def sorted_out(files: Iterable[Sequence[Row]], delay: int) -> tuple[list[Row], list[tuple[Row, int]]]:
    """The rows that are on time, and those that are late with the bound that they missed."""
    on_time: list[Row] = []
    late: list[tuple[Row, int]] = []
    newest: int | None = None
    for rows in files:
        bound = None if newest is None else newest - delay
        for row in rows:
            if bound is not None and row[0] < bound:
                late.append((row, bound))
            else:
                on_time.append(row)
        newest = max([row[0] for row in rows] + ([] if newest is None else [newest]))
    return on_time, late


def windowed(rows: Iterable[Row], length: int, slide: int) -> Counter[tuple[object, ...]]:
    """Per window and address: number, start, end, address, how many rows, their sum and the greatest."""
    held: dict[tuple[int, str | None], list[int]] = defaultdict(list)
    for time, address, value in rows:
        end = (time // slide + 1) * slide  # the first window that the row is in
        while end - length <= time:
            held[end, address].append(value)
            end += slide
    return Counter(
        (end // slide - 1, end - length, end, address, len(values), sum(values), max(values))
        for (end, address), values in held.items()
    )


def stacked(windows: Iterable[tuple[object, ...]], length: int, slide: int) -> Counter[tuple[object, ...]]:
    """Windows over the ends of windows: number, start, end, how many there are, their rows, the greatest of them."""
    held: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for _, _, inner, _, count, _, greatest in windows:
        assert isinstance(inner, int)
        assert isinstance(count, int)
        assert isinstance(greatest, int)
        end = (inner // slide + 1) * slide
        while end - length <= inner:
            held[end].append((count, greatest))
            end += slide
    return Counter(
        (end // slide - 1, end - length, end, len(own), sum(n for n, _ in own), max(m for _, m in own))
        for end, own in held.items()
    )
