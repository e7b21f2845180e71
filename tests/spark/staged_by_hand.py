"""What queries over the files of `staged_rows` come to, computed without anything of Penstock.

A row is late if it is below the bound of the files before; what the bound is depends on how the stream progresses. The
rows of each window [end - length, end) whose end is a multiple of the slide are brought together per group.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from tests.spark.staged_rows import Row, broken_of_file, rows_of_file

DELAY = 20
Bag = Counter[tuple[object, ...]]
Bound = Callable[[Sequence[Row]], int]
"""What is promised after some rows, in the order of their coming."""


def behind_the_newest(rows: Sequence[Row]) -> int:
    return max(row.ts for row in rows) - DELAY


def as_told(rows: Sequence[Row]) -> int:
    return max(row.ts for row in rows if row.p)


def of_the_slowest(rows: Sequence[Row]) -> int:
    newest: dict[str, int] = {}
    for row in rows:
        newest[row.src] = max(row.ts, newest.get(row.src, row.ts))
    return min(newest.values()) - DELAY


@dataclass
class Judged:
    """What becomes of the rows of some files."""

    on_time: list[Row] = field(default_factory=list)
    late: Bag = field(default_factory=Counter)
    dead: Bag = field(default_factory=Counter)
    punctuation: int = 0

    def counts(self) -> dict[str, int]:
        """What a run must have counted of them."""
        found = {"on_time": len(self.on_time), "late": self.late.total(), "dead": self.dead.total()}
        found["punctuation"] = self.punctuation
        return {"read": sum(found.values()), **found, "skipped": 0, "failed": 0}


def judged(files: int, promised: Bound, stream: str = "main") -> Judged:
    """Each file is a micro-batch."""
    found, before, bound = Judged(), list[Row](), None
    for number in range(files):
        rows = rows_of_file(number)
        for row in rows:
            if promised is as_told and row.p:
                found.punctuation += 1
            elif bound is not None and row.ts < bound:
                found.late[stream, bound, *row] += 1
            else:
                found.on_time.append(row)
        for text in broken_of_file(number):
            reason = "ts is null" if text.endswith("}") else "the record is corrupt"
            found.dead[stream, None, reason, text] += 1
        before += rows
        bound = promised(before)
    return found


def windowed(rows: Iterable[Row], group: Callable[[Row], tuple[object, ...]], length: int, slide: int = 10) -> Bag:
    """Per window and group: number, start, end, the group, how many rows, their sum and the greatest."""
    held: dict[tuple[int, tuple[object, ...]], list[int]] = defaultdict(list)
    for row in rows:
        end = (row.ts // slide + 1) * slide  # the first window that the row is in
        while end - length <= row.ts:
            held[end, group(row)].append(row.v)
            end += slide
    return Counter(
        (end // slide - 1, end - length, end, *key, len(values), sum(values), max(values))
        for (end, key), values in held.items()
    )


def grouped(rows: Sequence[Row]) -> Bag:
    return windowed(rows, lambda row: (row.k,), 30)


def whole(rows: Sequence[Row]) -> Bag:
    return windowed(rows, lambda _: (), 30)


def two_groupings(rows: Sequence[Row]) -> Bag:
    """Per window of windows: the most rows that a group has, the rows of all groups, and their greatest value."""
    held: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for _, _, inner, _, count, _, greatest in windowed(rows, lambda row: (row.g,), 10):
        assert isinstance(inner, int)
        assert isinstance(count, int)
        assert isinstance(greatest, int)
        for end in (inner + 10, inner + 20):  # windows of 20: a row at 10 is in [0, 20) and in [10, 30)
            held[end].append((count, greatest))
    return Counter(
        (end // 10 - 1, end - 20, end, max(n for n, _ in own), sum(n for n, _ in own), max(m for _, m in own))
        for end, own in held.items()
    )


def union_of_two(rows: Sequence[Row]) -> Bag:
    return windowed(rows, lambda row: (row.g,), 20) + windowed(rows, lambda row: (row.v % 7,), 20)


def once(rows: Sequence[Row]) -> Bag:
    """Rows that are told apart by nothing are the same row."""
    return windowed(sorted(set(rows)), lambda row: (row.g,), 20)


def joined(rows: Sequence[Row]) -> Bag:
    """Per window and group of the later row: pairs of rows of one key, the second up to 5 after the first."""
    by_key: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_key[row.k].append(row)
    held: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for own in by_key.values():
        for first, second in product(own, own):
            if first.ts <= second.ts <= first.ts + 5:
                for end in (first.ts // 10 * 10 + 10, first.ts // 10 * 10 + 20):
                    held[end, second.g].append((first.v, second.v))
    return Counter(
        (end // 10 - 1, end - 20, end, g, len(own), sum(v for v, _ in own), max(u for _, u in own))
        for (end, g), own in held.items()
    )
