"""Window marks: which windows the operator opens, as the queue says (UpStream, section 6.1.3 and Table 1).

The queue delimits windows, and the operator opens only those that it is told to. Every row that is dequeued has a mark:
`OPEN` opens a window with this row as its first, `DISALLOW` would start a window that is not to be opened, `INSIDE`
starts none. Whichever it is, the row belongs to the window of its key that is open. The end of a window is said by the
queue as well, since no row need come after it.

The paper writes marks as one number, the end of the window that is to be opened, 0, or -1. Times may be 0 or less here,
so a mark and its window are two numbers; `win_spec` gives the one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema
from penstock.operators.queues.extents import Extents

OPEN, DISALLOW, INSIDE = 1, 0, -1


class Closed(NamedTuple):
    """A window has ended."""

    place: int
    """After so many rows of the batch."""
    key: int
    window: int


class MarkedRows(Batch):
    """Rows as a queue of windows gives them."""

    __slots__ = ("closed", "keys", "marks", "windows")

    def __init__(
        self,
        schema: Schema,
        rows: Sequence[Row],
        keys: Sequence[int],
        windows: Sequence[int],
        marks: Sequence[int],
        closed: Sequence[Closed],
    ) -> None:
        """Of each row the number of its key, the window that it is given for, and the mark."""
        super().__init__(schema, rows)
        self.keys, self.windows, self.marks, self.closed = keys, windows, marks, closed

    def win_spec(self, extents: Extents) -> list[int]:
        """The marks as the paper writes them."""
        pairs = zip(self.marks, self.windows, strict=True)
        return [extents.end(window) if mark == OPEN else mark for mark, window in pairs]
