"""The window operator over intervals: every instant at which an event is valid lasts for so much longer.

An event of one tick, `[t, t + 1)`, becomes `[t, t + 1 + size)`. An event of several ticks becomes as many events, one
for each of its instants: that is what nested windows are (GenMig, section 2.2). It costs what comes out. Whoever wants
one event that ends later has `AlterOperator`. Order is kept where all events live one tick. It has no state.
"""

from __future__ import annotations

from penstock.model.batch import Batch
from penstock.model.schema import Schema
from penstock.operators.intervals.layout import Layout
from penstock.operators.operator import Outputs, Stateless


class IntervalWindow(Stateless):
    """Lets instants last."""

    def __init__(self, schema: Schema, size: int) -> None:
        """`size` ticks longer."""
        super().__init__(schema)
        self.layout, self.size = Layout(schema), size

    def process(self, port: int, batch: Batch) -> Outputs:
        """An event for each instant."""
        yield self.layout.batch(
            [
                event._replace(start=instant, end=instant + 1 + self.size)
                for event in self.layout.events(batch)
                for instant in range(event.start, event.end)
            ]
        )
