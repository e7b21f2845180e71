"""The reference-point method: results go by where they start, and nothing has to be joined (GenMig, section 4.5).

Both plans are given whole events. Of the old one's results those are kept that start before T, of the new one's those
that start at T or later, whole: `BeforeSplit` and `FromSplit` that do not clip, and behind them `HandOver`, which says
how far both have come and, if it must, keeps order.

It holds only where a result starts when the last of its parts does, and for plans that are equivalent: selection,
projection, union, join. Anything else cuts or joins lives where other events begin and end. With a:[0, 10), b:[7, 12)
and T = 5, counting gives 1 on [0, 7), 2 on [7, 10) and 1 on [10, 12). The old plan, which is not given b, says 1 on
[0, 10), which is kept as it starts before T; the new one says 2 on [7, 10): there are two counts at 7. `is_valid_for`
asks the operators of a plan.

The paper clips what it gives the new plan and drops results that start at T, for which T must lie between two ticks: an
event that really starts at T = 10, a:[10, 20), meets b:[5, 15) in ab:[10, 15), which is dropped though nobody else has
it. With whole events starts are real, and T is a tick.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.lives import Lives
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.intervals.least import Progressing
from penstock.operators.operator import Operator, Outputs

OLD, NEW = 0, 1
HELD = "held"


class HandOver(Progressing):
    """The old plan's results, then the new one's: all of the first start before all of the second.

    With `ordered` the new one's wait until the old one has ended. Otherwise both pass at once, and only the promise is
    that of the one that is behind.
    """

    ports = 2
    kind = "hand over"

    def __init__(self, schema: Schema, *, ordered: bool = False) -> None:
        """`ordered` if results must come in order of start."""
        super().__init__(schema)
        self.ordered = ordered

    def process(self, port: int, batch: Batch) -> Outputs:
        """Pass on, or hold."""
        if self.ordered and port == NEW and self.bounds()[OLD] != END_OF_TIME:
            self.pages.put(HELD, [*self._held(), batch])
            return
        yield batch

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """When the old plan has ended, let go; then say how far both have come."""
        bounds = self.heard(port, punctuation)
        if bounds is None:
            return
        if bounds[OLD] == END_OF_TIME:
            yield from self._held()
            self.pages.delete(HELD)
        yield from self.told(min(bounds))

    def is_waiting(self) -> bool:
        """Whether anything is held."""
        return bool(self._held())

    def results_waiting(self) -> int:
        """How many results are held."""
        return sum(len(batch) for batch in self._held())

    def _held(self) -> Iterable[Batch]:
        found: list[Batch] | None = self.pages.get(HELD)
        return found or []

    def to_plain(self, key: str, page: Any) -> Any:
        """Batches as rows and ends."""
        if key != HELD:
            return page
        return [[list(b.rows), b.its_lives().ends.tolist(), b.its_lives().olds.tolist()] for b in page]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        return [held_batch(self.schema, *each) for each in data] if key == HELD else data


def held_batch(schema: Schema, rows: list[Any], ends: list[int], olds: list[int]) -> Batch:
    """A batch that was kept as plain data."""
    lives = Lives(np.array(ends, np.int64), np.array(olds, np.int64))
    return Batch(schema, [tuple(row) for row in rows], lives=lives)


def is_valid_for(operators: Iterable[Operator]) -> bool:
    """Whether every result of a plan of these starts when the last of its parts does."""
    return all(operator.starts_with_the_last for operator in operators)
