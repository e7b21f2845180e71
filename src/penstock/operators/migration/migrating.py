"""A plan that can be replaced while it runs: GenMig's Algorithm 1, as an operator around boxes.

While one box runs, what comes goes to it, and the greatest starts and ends are noted. `replace` puts a new box beside
it: T is computed, whatever the way needs is put before and behind both, and the new box is told what was promised so
far. The old box is over when what it gives has reached T; then its pages are deleted. When nothing waits to be joined
any more, what was put around the new box goes as well, and it runs alone. Nothing is copied from one to the other.

Where nothing was seen yet, or T has been passed by all inputs already, the old one is over at once. An input that
says nothing neither delays the start nor is waited for: T is that of the others, and the end is a matter of promises.

Promises stay sound and are never repeated. T is no earlier than what was promised of the results: the new box may read
an input that is behind those that the old one reads, and what it makes of it must not contradict that.

State: how far the inputs have come, what was seen, the generation and, while a migration is under way, its T; and the
pages of both boxes, under the number of their generation, and of what is around them. The boxes themselves are
configuration: whoever goes on from pages makes this with the box and generation that they are of, and says `go_on` if
there is a T.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import PlanError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.migration.box import Box, Part, taken
from penstock.operators.migration.coalesce import NEW, OLD
from penstock.operators.migration.live_results import LiveResults, taken_back
from penstock.operators.migration.reference_point import is_valid_for
from penstock.operators.migration.split_time import Seen, after_results, by_ends, by_starts
from penstock.operators.migration.ways import REFERENCE_POINT, SPLIT, Way
from penstock.operators.operator import BoundMemory, Operator, Output, Outputs
from penstock.operators.state import Pages, open_page, plain_page


@dataclass
class Beside:
    """A second box, and what is around both."""

    box: Box
    split: int
    way: Way
    to_old: list[Operator]
    to_new: list[Operator | None]
    from_old: Operator | None
    from_new: Operator | None
    union: Any

    def operators(self) -> list[tuple[str, Operator]]:
        """What has pages, by name."""
        named = [
            *((f"to old {port}", each) for port, each in enumerate(self.to_old)),
            *((f"to new {port}", each) for port, each in enumerate(self.to_new)),
            ("from old", self.from_old), ("from new", self.from_new), ("union", self.union),
        ]  # fmt: skip
        return [(name, each) for name, each in named if each is not None]


class Migrating(Operator):
    """Runs a box, and replaces it."""

    kind = "migrating"

    def __init__(
        self,
        box: Box,
        inputs: Sequence[Schema],
        *,
        revises: bool = False,
        ordered: bool = False,
        generation: int = 1,
    ) -> None:
        """`inputs` are the schemas of the ports; whether the consumer takes revisions, and whether it needs order.

        `generation` is how many boxes there were, with this one, where it goes on from pages.
        """
        super().__init__(box.schema)
        if revises and ordered:
            raise PlanError(
                "Results that are revised have no order to keep.", hint="revises or ordered, one of the two"
            )
        self.box, self.inputs, self.ports = box, list(inputs), len(inputs)
        self.revises, self.ordered = revises, ordered
        self.beside: Beside | None = None
        self.generation = generation
        self.passed_on = BoundMemory()
        self.attach(self.pages)

    # Running

    def process(self, port: int, batch: Batch) -> Outputs:
        """What the box gives, or what both come to."""
        seen = self._seen()
        seen.take(port, batch)
        self.pages.put("seen", seen)
        return self._out(self._given(port, batch))

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Likewise; a migration may be over by it."""
        schema = self.inputs[port]
        if punctuation.is_linear and punctuation.attribute == schema.time:
            bounds = self._bounds()
            bounds[port] = max(bounds[port], punctuation.value)
            self.pages.put("bounds", bounds)
        yield from self._out(self._given(port, punctuation))
        if self.beside is not None:
            yield from self._ended()

    def _given(self, port: int, element: Batch | Punctuation) -> Outputs:
        beside = self.beside
        if beside is None:
            return taken(self.box, port, element)
        return [*self._old_given(port, element), *self._new_given(port, element)]

    def _old_given(self, port: int, element: Output) -> Outputs:
        beside = self.beside
        if beside is None or self._is("over"):
            return
        for each in taken(beside.to_old[port], port, element):
            yield from self._joined(OLD, beside.from_old, taken(self.box, port, each))

    def _new_given(self, port: int, element: Output) -> Outputs:
        beside = self.beside
        if beside is None:
            return
        before = beside.to_new[port]
        for each in [element] if before is None else taken(before, port, element):
            yield from self._joined(NEW, beside.from_new, taken(beside.box, port, each))

    def _joined(self, side: int, behind: Operator | None, results: Iterable[Output]) -> Outputs:
        assert self.beside is not None
        for result in results:
            for each in [result] if behind is None else taken(behind, 0, result):
                yield from taken(self.beside.union, side, each)
            if isinstance(result, Punctuation) and self.is_on_time(result) and result.value >= self.beside.split:
                if side == NEW:
                    self.pages.put("past", True)
                elif not self._is("over"):
                    yield from self._over()

    def _over(self) -> Outputs:
        """The old box has said all that it has to say."""
        assert self.beside is not None
        self.pages.put("over", True)
        yield from taken(self.beside.union, OLD, self.output_bound(END_OF_TIME))

    def _out(self, outputs: Iterable[Output]) -> Outputs:
        """What comes out, with no promise told twice."""
        seen, live = self._seen(), self._live() if self.revises else None
        for each in outputs:
            if isinstance(each, Punctuation) and self.is_on_time(each):
                if self.passed_on.advance(self.pages, each.value):
                    if live is not None:
                        live.forget(each.value)
                    yield each
                continue
            if isinstance(each, Batch):
                seen.give(each)
                self.pages.put("seen", seen)
                if live is not None:
                    live.take(each)
                    self.pages.put("live", live)
            yield each

    # Replacing

    def split_time(self, reaches: Sequence[int | None], *, lifetime: int | None = None, way: Way = SPLIT) -> int:
        """The split time that a migration would have now; the least of all times if there is nothing to wait for."""
        seen = self._seen()
        if not way.clips_results:  # neither plan's results are cut, so all that the old one knows is waited for
            reaches = [reach or 0 for reach in reaches]
        split = by_ends(seen, reaches) if lifetime is None else by_starts(seen, lifetime, reaches)
        if way.clips_results and not self.revises:
            split = after_results(split, seen)
        return max(self.passed_on.last(self.pages), MIN_TICK if split is None else split)

    def replace(
        self,
        box: Box,
        reaches: Sequence[int | None],
        *,
        way: Way = SPLIT,
        lifetime: int | None = None,
        split: int | None = None,
    ) -> Outputs:
        """Put a box beside the one that runs; what comes out of that is given back, and must be taken.

        `reaches` say for how long after its end an event matters to the new plan, by input. With `lifetime` T is told
        by starts, of events that live no longer; otherwise by the ends that were seen. `split` is another T.
        """
        if self.beside is not None:
            raise PlanError(
                "A plan is being replaced already.",
                got=f"a migration with T = {self.beside.split}",
                hint="wait until it is over: is_migrating",
            )
        if way is REFERENCE_POINT and not (is_valid_for(self.box.operators()) and is_valid_for(box.operators())):
            raise PlanError(
                "The reference point is for results that start with the last of their parts.",
                got=", ".join(o.kind for o in (*self.box.operators(), *box.operators()) if not is_valid_for([o])),
                hint="use split and coalesce",
            )
        at = self.split_time(reaches, lifetime=lifetime, way=way) if split is None else split
        self._put_beside(box, at, way)
        self.pages.put("split", at)
        return [*self._out(self._taken_back()), *self._begun()]

    def _taken_back(self) -> Outputs:
        """What is out of the old plan and lives beyond T, where a consumer can be told and the plans may differ."""
        assert self.beside is not None
        beside, split = self.beside, self.beside.split
        if not (self.revises and beside.way.clips_results):
            return
        events = self._live().beyond(split)
        if events:
            beside.union.put_out([(start, row) for start, _, row in events if start < split])
            yield taken_back(self.schema, events, split)

    def go_on(self, box: Box, split: int, way: Way = SPLIT) -> None:
        """A migration was under way in the pages that this is given next: to this box, with this T."""
        self._put_beside(box, split, way)

    def _put_beside(self, box: Box, split: int, way: Way) -> None:
        self.beside = Beside(
            box, split, way,
            [way.to_old(schema, split) for schema in self.inputs],
            [way.to_new(schema, split, port) for port, schema in enumerate(self.inputs)],
            way.from_old(self.schema, split), way.from_new(self.schema, split),
            way.union(self.schema, split, revises=self.revises, ordered=self.ordered),
        )  # fmt: skip
        self.attach(self.pages)

    def _begun(self) -> Outputs:
        """Both boxes are told how far the inputs have come, and of the results what was promised of them."""
        assert self.beside is not None
        told, bounds = self.passed_on.last(self.pages), self._bounds()
        outputs = list(taken(self.beside.union, NEW, self.output_bound(self.beside.split)))
        if told >= self.beside.split:
            outputs += self._over()
        elif told > MIN_TICK:
            outputs += taken(self.beside.union, OLD, self.output_bound(told))
        for port, bound in enumerate(bounds):
            promise = linear(str(self.inputs[port].time), bound)
            if bound >= self.beside.split:
                outputs += self._old_given(port, promise)
            if bound > MIN_TICK or self.beside.way.clips_inputs:
                outputs += self._new_given(port, promise)
        yield from self._out(outputs)
        yield from self._ended()

    def _ended(self) -> Outputs:
        """Forget the old box when it is over, and what is around the new one when nothing waits any more."""
        if self.beside is None or not self._is("over"):
            return
        Part(self.pages, f"box{self.generation}/").clear()
        if self.beside.union.is_waiting() or not self._is_past():
            return
        beside, self.beside = self.beside, None
        for name, _ in beside.operators():
            Part(self.pages, f"{name}/").clear()
        for key in ("over", "past", "split"):
            self.pages.delete(key)
        self.box, self.generation = beside.box, self.generation + 1
        self.pages.put("generation", self.generation)
        self.attach(self.pages)
        yield from ()

    def _is_past(self) -> bool:
        """Whether nothing is to be cut any more of what the new box is given, or of what it gives."""
        assert self.beside is not None
        if not self.beside.way.clips_inputs:
            return self._is("past")
        return all(bound >= self.beside.split for bound in self._bounds())

    @property
    def is_migrating(self) -> bool:
        """Whether two boxes are there."""
        return self.beside is not None

    @property
    def split(self) -> int | None:
        """T of the migration that is under way."""
        return None if self.beside is None else self.beside.split

    # State

    def attach(self, pages: Pages) -> None:
        """The boxes and what is around them have their parts."""
        super().attach(pages)
        self.box.attach(Part(pages, f"box{self.generation}/"))
        if self.beside is not None:
            self.beside.box.attach(Part(pages, f"box{self.generation + 1}/"))
            for name, operator in self.beside.operators():
                operator.attach(Part(pages, f"{name}/"))

    def _seen(self) -> Seen:
        found: Seen | None = self.pages.get("seen")
        return Seen.of(self.ports) if found is None else found

    def _live(self) -> LiveResults:
        found: LiveResults | None = self.pages.get("live")
        return LiveResults() if found is None else found

    def _bounds(self) -> list[int]:
        found: list[int] | None = self.pages.get("bounds")
        return [MIN_TICK] * self.ports if found is None else list(found)

    def to_plain(self, key: str, page: Any) -> Any:
        """As whoever has the page does."""
        name, _, own = key.partition("/")
        if own:
            operator = self._named(name)
            return [operator.kind, operator.version, plain_page(operator, own, page, self.kind)]
        if isinstance(page, Seen):
            return [page.starts, page.ends, page.result_end]
        return page.to_plain() if isinstance(page, LiveResults) else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        name, _, own = key.partition("/")
        if own:
            kind, of_operator, plain = data
            return open_page(self._named(name), own, kind, of_operator, plain, where=self.kind)
        if key == "seen":
            return Seen(*data)
        return LiveResults.from_plain(data) if key == "live" else data

    def _named(self, name: str) -> Operator:
        """Whose pages begin with a name."""
        beside = self.beside
        around = {} if beside is None else {**dict(beside.operators()), f"box{self.generation + 1}": beside.box}
        return {f"box{self.generation}": self.box, **around}[name]

    def _is(self, word: str) -> bool:
        return bool(self.pages.get(word))
