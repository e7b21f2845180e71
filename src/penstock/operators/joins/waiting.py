"""Rows that wait until a bound has passed them: by their time, as they are or in tables."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Row, ticks_of
from penstock.model.time import END_OF_TIME


class Waiting:
    """Rows that wait."""

    __slots__ = ("_made", "_rows", "_tables")

    def __init__(self) -> None:
        """None at first."""
        self._rows: list[tuple[int, int, Row]] = []
        self._tables: list[tuple[pa.Table, np.ndarray]] = []
        """Tables in order of time, with the times."""
        self._made = 0

    def __len__(self) -> int:
        """How many rows wait."""
        return len(self._rows) + sum(len(times) for _, times in self._tables)

    def add(self, time: int, row: Row) -> None:
        """Let a row wait."""
        heappush(self._rows, (time, self._made, row))
        self._made += 1

    def add_table(self, table: pa.Table, times: np.ndarray) -> None:
        """Let the rows of a table wait, which are in the order of these times."""
        self._tables.append((table, times))

    def least(self) -> int:
        """The least time; the end of time where nothing waits."""
        found = [int(times[0]) for _, times in self._tables]
        return min([*found, self._rows[0][0] if self._rows else END_OF_TIME])

    def least_of(self, column: int) -> int:
        """The least of another attribute, by its place."""
        found = [int(ticks_of(table.column(column)).min()) for table, _ in self._tables]
        found += [row[column] for _, _, row in self._rows]  # type: ignore[misc]
        return min(found, default=END_OF_TIME)

    def release(self, bound: int) -> tuple[list[Row], list[pa.Table]]:
        """Take out the rows below a bound."""
        rows: list[Row] = []
        while self._rows and (bound == END_OF_TIME or self._rows[0][0] < bound):
            rows.append(heappop(self._rows)[2])
        tables, kept = [], []
        for table, times in self._tables:
            end = len(times) if bound == END_OF_TIME else int(np.searchsorted(times, bound))
            if end:
                tables.append(table.slice(0, end))
            if end < len(times):
                rest = table.slice(end)
                kept.append((rest, times[end:]))
        self._tables = kept
        return rows, tables

    def to_plain(self) -> Any:
        """Rows, in the order in which they came, and tables with their times."""
        return [[row for _, _, row in sorted(self._rows, key=lambda each: each[1])], [list(t) for t in self._tables]]

    @staticmethod
    def from_plain(data: Any, at: int) -> Waiting:
        """The other way; the times of rows are at a place in them."""
        rows, tables = data
        made = Waiting()
        for row in rows:
            made.add(row[at], tuple(row))
        for table, times in tables:
            made.add_table(table, np.asarray(times))
        return made
