"""Meld: bag union that passes rows through at once, and punctuation as the least bound of its inputs.

Thesis 8.2, Fig. 8-2.
"""

from __future__ import annotations

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.operators.operator import BoundMemory, Operator, Outputs


class MeldOperator(Operator):
    """Remembers the last bound of each input and the last one passed on."""

    kind = "meld"

    def __init__(self, schema: Schema, ports: int) -> None:
        """`ports` inputs meet."""
        super().__init__(schema)
        self.ports = ports
        self.passed_on = BoundMemory()

    def process(self, port: int, batch: Batch) -> Outputs:
        """Pass on."""
        yield batch

    def feedback(self, bound: int) -> int | None:
        """The same of every input."""
        return bound

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Pass on the least bound when it has moved."""
        if not punctuation.is_linear:
            return
        bounds: list[int] = self.pages.get("inputs") or [MIN_TICK] * self.ports
        if punctuation.value <= bounds[port]:
            return
        bounds[port] = punctuation.value
        self.pages.put("inputs", bounds)
        least = min(bounds)
        if self.passed_on.advance(self.pages, least):
            yield self.output_bound(least)
