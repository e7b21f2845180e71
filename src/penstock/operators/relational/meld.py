"""Meld: bag union that passes rows through at once, and punctuation as the least bound of its inputs.

Thesis 8.2, Fig. 8-2. What is promised of some groups, or of other attributes than the time, is kept per input as a
frontier, from the first such promise on: a promise goes on as far as every other input makes it too, of these groups or
of more.

There may be thousands of inputs, the buckets of a stage on Spark, which all promise at once: `punctuate_all` looks at
all bounds once, and at no frontier before there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier, carried
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.operators.operator import BoundMemory, Operator, Outputs
from penstock.operators.state import PROMISES


@dataclass
class Inputs:
    """What inputs have promised of the time, and whether any may have promised something else."""

    bounds: list[int]
    others: bool = False


class MeldOperator(Operator):
    """Remembers what each input has promised and what was passed on."""

    kind = "meld"
    version = 2
    """Version 1 kept bounds alone, so that frontiers had to be looked for."""
    starts_with_the_last = True

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
        return self.punctuate_all([(port, punctuation)])

    def punctuate_all(self, promises: Iterable[tuple[int, Punctuation]]) -> Outputs:
        """The same of what several inputs promise, each by its port."""
        inputs: Inputs = self.pages.get("inputs") or Inputs([MIN_TICK] * self.ports)
        moved, others = set(), []
        for port, promise in promises:
            if not (promise.is_linear and promise.attribute == self.times[port]):
                others.append((port, carried(promise, self.names[port])))
            elif promise.value > inputs.bounds[port]:
                inputs.bounds[port] = promise.value
                moved.add(port)
        if moved:
            self.pages.put("inputs", inputs)
            least = min(inputs.bounds)
            if self.passed_on.advance(self.pages, least):
                yield self.output_bound(least)
        if others or (inputs.others and moved):
            told = [(port, [self.output_bound(inputs.bounds[port])]) for port in sorted(moved)]
            yield from self._besides(inputs, [*told, *others])

    def _besides(self, inputs: Inputs, told: Sequence[tuple[int, Sequence[Punctuation]]]) -> Outputs:
        """What all inputs promise besides the least bound, now that some have promised more."""
        kept: list[Frontier | None] = [self.pages.get(f"{PROMISES}{at}") for at in range(self.ports)]
        on_time = all(self.is_on_time(promise) for _, promises in told for promise in promises)
        inputs.others = any(kept) or not on_time
        self.pages.put("inputs", inputs)
        if not inputs.others:
            return
        frontiers = [f or Frontier([self.output_bound(b)]) for f, b in zip(kept, inputs.bounds, strict=True)]
        for port, promises in told:
            for promise in promises:
                frontiers[port].add(promise)
                self.pages.put(f"{PROMISES}{port}", frontiers[port])
                yield from self._met(promise, [f for at, f in enumerate(frontiers) if at != port])

    def to_plain(self, key: str, page: Any) -> Any:
        """Bounds as a list, and whether there is more."""
        return [page.bounds, page.others] if isinstance(page, Inputs) else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way; where it was not said, there may be more."""
        if key != "inputs":
            return data
        return Inputs(data, others=True) if version == 1 else Inputs(*data)

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
