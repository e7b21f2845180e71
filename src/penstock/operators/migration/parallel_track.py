"""The Parallel Track strategy, which GenMig is measured against (GenMig, section 3.1).

Both plans run beside each other from the start of the migration on. What came before is *old*, what comes after *new*;
a result is new if all that it is made of is. New results of the old plan are dropped, since the new plan has them too.
Results of the new plan are held until the migration is over: when nothing in the old plan's state is old any more. Then
they all come out at once.

Flags are kept as the generation in which a row arrived, in a hidden column that operators combine by the least, so that
plans can be replaced one after the other.

It is right for joins, of which every result is made of certain rows, and wrong for anything else: see Example 1 of the
paper in the tests. Nor is order kept: what was held may start before results that are out.

The plans must be of operators that know generations and say which they hold (`operators/intervals`), so they are no
black boxes. State: that of both boxes, and what is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.errors import PlanError
from penstock.model.batch import Batch, concat
from penstock.model.elements import Punctuation, linear
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.intervals.layout import Layout
from penstock.operators.intervals.least import Progressing
from penstock.operators.migration.box import Box, Part, taken
from penstock.operators.migration.reference_point import held_batch
from penstock.operators.operator import BoundMemory, Operator, Output, Outputs
from penstock.operators.state import Pages

HELD = "held"


class ParallelTrack(Operator):
    """Runs a box, and replaces it by letting another one run beside it until the first knows nothing old."""

    kind = "parallel track"

    def __init__(self, box: Box, inputs: Sequence[Schema], *, generation: int = 1) -> None:
        """`inputs` are the schemas of the ports, with a column for the generation.

        `generation` is that of the box, where it goes on from pages.
        """
        super().__init__(box.schema)
        self.inputs, self.ports = list(inputs), len(inputs)
        self.layouts, self.layout = [Layout(each) for each in inputs], Layout(self.schema)
        if self.layout.generation is None or any(each.generation is None for each in self.layouts):
            raise PlanError(
                "The Parallel Track strategy needs to know what is old.",
                got=", ".join(self.schema.names),
                hint="with_generations(schema)",
            )
        self.box = box
        self.new_box: Box | None = None
        self.of_box = self.generation = generation
        """The generation of the box, and of what comes now: while there are two boxes, the second one's."""
        self.passed_on = BoundMemory()
        self.attach(self.pages)

    def process(self, port: int, batch: Batch) -> Outputs:
        """Mark what comes, and give it to both."""
        layout = self.layouts[port]
        at = layout.generation
        assert at is not None
        rows = [(*row[:at], self.generation, *row[at + 1 :]) for row in batch.rows]
        return self._given(port, Batch(batch.schema, rows, lives=batch.lives))

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Likewise; the migration may be over by it."""
        bounds = self._bounds()
        if punctuation.is_linear and punctuation.attribute == self.inputs[port].time:
            bounds[port] = max(bounds[port], punctuation.value)
            self.pages.put("bounds", bounds)
        yield from self._given(port, punctuation)
        yield from self._ended()

    def replace(self, box: Box) -> Outputs:
        """Put a box beside the one that runs."""
        if self.new_box is not None:
            raise PlanError("A plan is being replaced already.", hint="wait until it is over: is_migrating")
        self.go_on(box)
        for port, bound in enumerate(self._bounds()):
            if bound > MIN_TICK:
                self._hold(taken(box, port, linear(str(self.inputs[port].time), bound)))
        return list(self._ended())

    def go_on(self, box: Box) -> None:
        """A box is beside the one that runs: from now on, or in the pages that this is given next."""
        self.new_box = box
        self.generation = self.of_box + 1
        self.attach(self.pages)

    def attach(self, pages: Pages) -> None:
        """The boxes have their parts."""
        super().attach(pages)
        self.box.attach(Part(pages, f"box{self.of_box}/"))
        if self.new_box is not None:
            self.new_box.attach(Part(pages, f"box{self.generation}/"))

    @property
    def is_migrating(self) -> bool:
        """Whether two boxes are there."""
        return self.new_box is not None

    def _given(self, port: int, element: Batch | Punctuation) -> Outputs:
        old = list(taken(self.box, port, element))
        if self.new_box is None:
            yield from self._told(old)
            return
        self._hold(taken(self.new_box, port, element))
        yield from self._told([kept for each in old for kept in self._old_only(each)])

    def _old_only(self, result: Output) -> Iterable[Output]:
        """A result of the old plan, without what the new plan has as well."""
        if not isinstance(result, Batch):
            return [result]
        at = self.layout.generation
        assert at is not None
        mask = [row[at] < self.generation for row in result.rows]  # type: ignore[operator]
        return [result.select(mask)] if any(mask) else []

    def _hold(self, results: Iterable[Output]) -> None:
        held: list[Batch] = self.pages.get(HELD) or []
        for each in results:
            if isinstance(each, Batch):
                held.append(each)
                least: int = self.pages.get("least") or END_OF_TIME
                self.pages.put("least", min(least, int(each.times().min())))
            elif isinstance(each, Punctuation) and self.is_on_time(each):
                self.pages.put("new bound", each.value)
        self.pages.put(HELD, held)

    def _told(self, outputs: Iterable[Output]) -> Outputs:
        """Results of the old plan, and its promises as far as they hold for what is held."""
        for each in outputs:
            if not (isinstance(each, Punctuation) and self.is_on_time(each)):
                yield each
                continue
            self.pages.put("old bound", each.value)
            yield from self._promised()

    def _promised(self) -> Outputs:
        bound: int = self.pages.get("old bound") or MIN_TICK
        if self.new_box is not None:
            new: int | None = self.pages.get("new bound")
            bound = min(bound, MIN_TICK if new is None else new, self.pages.get("least") or END_OF_TIME)
        if self.passed_on.advance(self.pages, bound):
            yield self.output_bound(bound)

    def _ended(self) -> Outputs:
        """When nothing of the old plan is old, the new one goes on alone, and what was held comes out."""
        if self.new_box is None or self._holds_old():
            return
        held: list[Batch] = self.pages.get(HELD) or []
        new: int | None = self.pages.get("new bound")
        Part(self.pages, f"box{self.of_box}/").clear()
        self.box, self.new_box, self.of_box = self.new_box, None, self.generation
        for key in (HELD, "least", "new bound", "old bound"):
            self.pages.delete(key)
        if held:
            yield concat(self.schema, held)
        if new is not None:
            self.pages.put("old bound", new)
            yield from self._promised()

    def _holds_old(self) -> bool:
        known = [each.oldest_generation() for each in self.box.operators() if isinstance(each, Progressing)]
        return any(oldest is not None and oldest < self.generation for oldest in known)

    def results_held(self) -> Sequence[Batch]:
        """Results of the new plan that wait."""
        found: list[Batch] | None = self.pages.get(HELD)
        return found or []

    def _bounds(self) -> list[int]:
        found: list[int] | None = self.pages.get("bounds")
        return [MIN_TICK] * self.ports if found is None else list(found)

    def to_plain(self, key: str, page: Any) -> Any:
        """As the boxes do; batches as rows and ends."""
        name, _, own = key.partition("/")
        if own:
            return self._named(name).to_plain(own, page)
        if key != HELD:
            return page
        return [[list(b.rows), b.its_lives().ends.tolist(), b.its_lives().olds.tolist()] for b in page]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        name, _, own = key.partition("/")
        if own:
            return self._named(name).from_plain(own, data, version)
        return [held_batch(self.schema, *each) for each in data] if key == HELD else data

    def _named(self, name: str) -> Box:
        """Whose pages begin with a name."""
        is_old = self.new_box is None or name == f"box{self.of_box}"
        return self.box if is_old else self.new_box  # type: ignore[return-value]
