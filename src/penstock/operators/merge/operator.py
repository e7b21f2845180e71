"""A merge as an operator of a query graph, with its state in pages.

The events of one slice of time are in one page, as a merge of their own: what is said of one event does not depend on
others. A head, without events, knows the inputs and how far they have come. So rows touch the slices that they start
in, and a bound touches the slices in which it freezes something, or in which the alarm has something to compare.

Rows are plain or have lives. Plain rows are events that live as long as their schema says; then the output is plain
rows too, each once, and none is ever taken back: the policy must be one that waits (`half frozen`, `conservative`), or
the streams ordered (R0 to R2). Rows with lives are inserts and adjusts, and so is the output; any policy will do that
does not compare whole inputs.

What is promised of some groups goes on where that is sound (`promises`).

What an input contradicts, what its kind of stream may not have, and where an input differs from the output are dead
letters with the reason; with `on_divergence="stop"` the last is an error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Element, Insert, Payload, Punctuation, linear
from penstock.model.lives import Lives
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK, SECOND, Domain
from penstock.model.values import canonical_row
from penstock.operators.merge.base import LogicalMerge
from penstock.operators.merge.choose import ALGORITHMS
from penstock.operators.merge.divergence import PATIENCE, Divergence, Reaction, Watch
from penstock.operators.merge.ordered import R0, OrderedMerge
from penstock.operators.merge.pages import flatten, unflatten
from penstock.operators.merge.policies import Conservative, HalfFrozen, policy_of
from penstock.operators.merge.promises import BLOCKED, MergedPromises
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.r4 import R4
from penstock.operators.merge.revisable import MAJORITY, RevisableMerge
from penstock.operators.merge.tally import Tally
from penstock.operators.merge.trail import Trail
from penstock.operators.operator import Operator, Outputs, Rejected
from penstock.operators.relational.meld import names_in

SLICE = {Domain.TIMESTAMP: 60 * SECOND}
OTHER_SLICE = 4096
Due = dict[int, tuple[int | None, int | None, int | None, int]]
"""Per slice: the next time that a bound must visit it for; the oldest event that holds the output's bound back; the
next time that every input must have passed for something to be compared; how many events the alarm keeps."""


PLAIN = ("slices", BLOCKED)
"""Pages that are plain data as they are."""


class MergeOperator(Operator):
    """Merges replicas that arrive on its ports."""

    kind = "lmerge"
    version = 3

    def __init__(
        self,
        schema: Schema,
        inputs: Sequence[str],
        algorithm: str,
        *,
        on_divergence: Reaction = "report",
        branches: Sequence[Schema] | None = None,
        **options: Any,
    ) -> None:
        """`inputs` name the ports; `options` are those of the algorithm.

        The columns of `branches` may go by other names than those of the output.
        """
        super().__init__(schema)
        self.names, self.ports = list(inputs), len(inputs)
        self.algorithm, self.options, self.reaction = ALGORITHMS[algorithm], options, on_divergence
        self.span = SLICE.get(schema.domain, OTHER_SLICE)
        names = [names_in(each, schema) for each in branches or [schema] * self.ports]
        self.promises = MergedPromises(schema, names, self._trusted())
        self.tally = Tally()
        """What has come out, for statistics."""

    def _trusted(self) -> int | None:
        """The port of the input whose promises are enough: nothing comes out that it does not have."""
        waits = issubclass(self.algorithm, RevisableMerge) and isinstance(
            policy_of(self.options.get("policy", "first seen")), HalfFrozen | Conservative
        )
        driver = self.options.get("driver")
        return self.names.index(driver) if waits and driver in self.names else None

    def process(self, port: int, batch: Batch) -> Outputs:
        """Each row as an element; rows that their own input contradicts are dead letters."""
        head = self.head()
        name = self.names[port]
        head.inputs[name].spoke = True
        if isinstance(head, R0) and batch.columnar and batch.lives is None:
            fresh = head.push_batch(name, batch)
            self.pages.put("head", head)
            yield from self._told(head)
            if fresh is not None:
                self.tally.inserts += len(fresh)
                yield fresh
            return
        elements: list[Element] = [replace(e, payload=canonical_row(e.payload)) for e in batch.elements(hidden=True)]
        told: list[Rejected] = []
        if isinstance(head, RevisableMerge):
            out = self._into_slices(head, name, elements, told)
        else:
            out = [o for e in elements for o in head.push(name, e)]
            told = self._told(head)
        self.pages.put("head", head)
        yield from told
        yield from self._rows(out)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """An input has come further; what that freezes is put right, then the output's own bound follows."""
        if [name for name, _ in punctuation.bounds] != [self.schema.time]:
            return  # rows are kept back, so what is promised of other attributes does not hold here
        if punctuation.is_linear:
            yield from self._advance(port, punctuation)
        head = self.head()
        stables = [head.inputs[name].stable for name in self.names]
        yield from self.promises.take(self.pages, port, punctuation, stables, head.stable, self._held)

    def _held(self, before: int) -> Iterator[tuple[int, Payload]]:
        """Start and payload of the events in slices that begin before a time."""
        due: Due = self.pages.get("slices") or {}
        for number in due:
            if number * self.span < before:
                yield from self.pages.get(f"m{number}").index.nodes

    def _advance(self, port: int, punctuation: Punctuation) -> Outputs:
        head = self.head()
        before: int = getattr(head, "frozen", MIN_TICK)
        shown = head.stable
        said = head.push(self.names[port], linear(head.attribute, punctuation.value))
        bound = head.stable
        out: list[Element] = [e for e in said if not isinstance(e, Punctuation)]
        told: list[Rejected] = []
        if isinstance(head, RevisableMerge):
            head.stable = shown
            out, bound = self._visit(head, before, told)
            head.stable = max(bound, shown)  # an event that came since then may wait before what was promised
        told += self._told(head)
        self.pages.put("head", head)
        yield from told
        yield from self._rows(out)
        if bound > shown:
            yield self.output_bound(bound)

    # Slices

    def head(self) -> Any:
        """What knows the inputs and how far they have come; of ordered streams, all there is."""
        head: LogicalMerge | None = self.pages.get("head")
        return self._made(self.names) if head is None else head

    def _made(self, inputs: Sequence[str]) -> Any:
        """A merge of its own, for the head or for a slice."""
        options = dict(self.options)
        if self.reaction != "ignore":
            options["watch"] = (
                Trail(self.reaction, limit=None)
                if issubclass(self.algorithm, OrderedMerge)
                else Watch(self.reaction, limit=None)
            )
        return self.algorithm(inputs, **options)

    def _slice(self, number: int, head: RevisableMerge, *, make: bool = False) -> Any:
        """The merge of a slice, with what the head knows; None if there is none and none is to be made."""
        part: R3 | R4 | None = self.pages.get(f"m{number}")
        if part is None and make:
            part = self._made(())
        if part is not None:
            part.inputs, part.frozen, part.voters = head.inputs, head.frozen, head.voters
            part.stable, part.max_stable = head.stable, head.max_stable
            if part.watch is not None and head.watch is not None:
                part.watch.forgotten_to = max(part.watch.forgotten_to, head.watch.forgotten_to)
        return part

    def _into_slices(
        self, head: RevisableMerge, name: str, elements: list[Element], told: list[Rejected]
    ) -> list[Element]:
        by_slice: dict[int, list[Element]] = defaultdict(list)
        for element in elements:
            by_slice[element.vs // self.span].append(element)  # type: ignore[union-attr]
        out: list[Element] = []
        due: Due = self.pages.get("slices") or {}
        watched = head.watch is not None
        for number, members in by_slice.items():
            make = watched or any(e.vs >= head.frozen for e in members)  # type: ignore[union-attr]
            part = self._slice(number, head, make=make)
            if part is None:
                continue  # all of it has been decided, and nobody compares
            for element in members:
                out += part.push(name, element)
            self._keep(number, part, due, told)
        self.pages.put("slices", due)
        return out

    def _visit(self, head: RevisableMerge, before: int, told: list[Rejected]) -> tuple[list[Element], int]:
        """Visit the slices in which the bound freezes something; what they say, and how far the output has come."""
        out: list[Element] = []
        due: Due = self.pages.get("slices") or {}
        frozen = head.frozen
        passed = min((i.stable for i in head.inputs.values()), default=MIN_TICK)
        moved = frozen != before or head.driver == MAJORITY
        done = 0
        head.call_voters(frozen)
        for number, (next_time, _, compared, _) in sorted(due.items()):
            freezes = moved and _lies_before(next_time, frozen)
            if not freezes and not _lies_before(compared, passed):
                continue
            part = self._slice(number, head)
            if freezes:
                part.frozen = before
                alive = len(part.index.nodes)
                part.settle(frozen)
                done += alive - len(part.index.nodes)
                out += part.out
                part.out = []
            if part.watch is not None:
                part.watch.passed(head.inputs.values())
            self._keep(number, part, due, told)
        if moved:
            self.tally.froze(done)
        self._lose_patience(head, due, told)
        self.pages.put("slices", due)
        waiting = [oldest for _, oldest, _, _ in due.values() if oldest is not None]
        return out, min([frozen, *waiting])

    def _lose_patience(self, head: RevisableMerge, due: Due, told: list[Rejected]) -> None:
        """The alarm of all slices together keeps so much and no more; the oldest are compared as far as they can be."""
        kept = sum(records for _, _, _, records in due.values())
        for number in sorted(due):
            if kept <= PATIENCE or head.watch is None:
                return
            part = self._slice(number, head)
            kept -= len(part.watch.records)
            part.watch.patience = 0
            part.watch.passed(head.inputs.values())
            part.watch.patience = PATIENCE
            head.watch.forgotten_to = max(head.watch.forgotten_to, part.watch.forgotten_to)
            self._keep(number, part, due, told)

    def _keep(self, number: int, part: R3 | R4, due: Due, told: list[Rejected]) -> None:
        told += self._told(part)
        records = 0 if part.watch is None else len(part.watch.records)
        if part.index.nodes or records:
            compared = None if part.watch is None else part.watch.next_time()
            due[number] = part.next_time(), part.oldest_waiting(), compared, records
            part.inputs, part.voters = {}, []
            self.pages.put(f"m{number}", part)
        else:
            due.pop(number, None)
            self.pages.delete(f"m{number}")

    # State

    def to_plain(self, key: str, page: Any) -> Any:
        """A merge, of the head or of a slice, as plain data."""
        return page if key in PLAIN else flatten(page)

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        return data if key in PLAIN else unflatten(data, self._made(self.names if key == "head" else ()))[0]

    # Rows

    def _rows(self, elements: Iterable[Element]) -> Outputs:
        events = [e for e in elements if not isinstance(e, Punctuation)]
        if events:
            self.tally.put(events)
            yield self._batch(events)

    def _batch(self, events: Sequence[Insert | Adjust]) -> Batch:
        """The payload of an event is its row."""
        lives = None if self.schema.lives is None else Lives.of(events)
        return Batch(self.schema, [e.payload for e in events], lives=lives)

    def _told(self, merge: LogicalMerge) -> list[Rejected]:
        """What was put aside, and what the alarm has found, since the last time."""
        letters: list[tuple[Insert | Adjust, str]] = []
        for misstep in merge.missteps:
            if not isinstance(misstep.element, Punctuation):  # a bound that goes back has no row, and says nothing
                letters.append((misstep.element, f"{misstep.input}: {misstep.reason}"))
        merge.missteps = []
        watch: Watch | Trail | None = getattr(merge, "watch", None)
        if watch is not None and watch.found:
            letters += [(_event(d), f"diverged: {d}") for d in watch.found]
            watch.found = []
        if not letters:
            return []
        events, reasons = zip(*letters, strict=True)
        return [Rejected("dead", self._batch(events), [0] * len(events), list(reasons))]


def _lies_before(time: int | None, bound: int) -> bool:
    return time is not None and (time < bound or bound == END_OF_TIME)


def _event(divergence: Divergence) -> Insert:
    """The event on which an input differs."""
    ends = [e for e in (divergence.output_end, divergence.input_end) if e is not None]
    return Insert(divergence.payload, divergence.vs, ends[0])
