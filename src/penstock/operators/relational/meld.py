"""Meld: bag union that passes rows through at once, and punctuation as the least bound of its inputs.

Thesis 8.2, Fig. 8-2. What is promised of some groups, or of other attributes than the time, is kept per input as a
frontier, from the first such promise on: a promise goes on as far as every other input makes it too, of these groups or
of more.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier, carried
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.operators.operator import BoundMemory, Operator, Outputs
from penstock.operators.state import PROMISES


class MeldOperator(Operator):
    """Remembers what each input has promised and what was passed on."""

    kind = "meld"

    def __init__(self, schema: Schema, ports: int, inputs: Sequence[Schema] | None = None) -> None:
        """`ports` inputs meet, whose columns may go by other names than those of the first."""
        super().__init__(schema)
        self.ports = ports
        self.names = [names_in(each, schema) for each in inputs or [schema] * ports]
        self.times = [each.time for each in inputs or [schema] * ports]
        self.passed_on = BoundMemory()

    def process(self, port: int, batch: Batch) -> Outputs:
        """Pass on."""
        yield batch

    def feedback(self, bound: int) -> int | None:
        """The same of every input."""
        return bound

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Pass on the least bound when it has moved, and what all inputs promise besides."""
        bounds: list[int] = self.pages.get("inputs") or [MIN_TICK] * self.ports
        on_time = punctuation.is_linear and punctuation.attribute == self.times[port]
        if on_time:
            if punctuation.value <= bounds[port]:
                return
            bounds[port] = punctuation.value
            self.pages.put("inputs", bounds)
            least = min(bounds)
            if self.passed_on.advance(self.pages, least):
                yield self.output_bound(least)
            promises = [self.output_bound(punctuation.value)]
        else:
            promises = carried(punctuation, self.names[port])
        kept: list[Frontier | None] = [self.pages.get(f"{PROMISES}{at}") for at in range(self.ports)]
        if on_time and not any(kept):
            return
        frontiers = [f or Frontier([self.output_bound(b)]) for f, b in zip(kept, bounds, strict=True)]
        for promise in promises:
            frontiers[port].add(promise)
            self.pages.put(f"{PROMISES}{port}", frontiers[port])
            yield from self._met(promise, [f for at, f in enumerate(frontiers) if at != port])

    def _met(self, promise: Punctuation, others: list[Frontier]) -> Outputs:
        """What a promise of one input comes to, now that the others promise what they do."""
        met = [promise]
        for other in others:
            met = list(Frontier([both for each in met for both in other.meet(each)]))
        for each in met:
            if not self.is_on_time(each) and self.passed_on.promise(self.pages, each, self.schema.time):
                yield each


def names_in(below: Schema, schema: Schema) -> dict[str, list[str]]:
    """The names of an input's columns in the output: by position, except that its time is the output's time."""
    names = {own.name: [field.name] for own, field in zip(below.fields, schema.fields, strict=True)}
    return {**names, str(below.time): [str(schema.time)]}
