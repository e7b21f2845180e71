"""The divergence alarm: inputs that do not tell the same story.

A merge decides about an event when a bound freezes it, by the input that drives the bound. Other inputs may be behind
and have their say later. A watch keeps decided events until every input has passed them, and compares: an input that
has another end, lacks the event, or has one that was decided not to be, has diverged. What the merge then follows is
its driver's matter (the leading input, a named one, the majority); the watch reports, or stops the merge.

It costs an entry per event from its decision until the slowest input has passed it; at most `patience` entries are
kept, and what is given up unchecked is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from penstock.algorithms.merge.base import Input
from penstock.algorithms.merge.index import Calendar, Key, Node
from penstock.errors import MergeError
from penstock.model.elements import Adjust, Insert, Payload
from penstock.model.time import END_OF_TIME, MIN_TICK

Reaction = Literal["report", "stop"]


@dataclass(frozen=True)
class Divergence:
    """An event on which an input differs from the output; None as an end means that there is no such event."""

    input: str
    payload: Payload
    vs: int
    output_end: int | None
    input_end: int | None

    def __str__(self) -> str:
        """For a person."""

        def said(end: int | None) -> str:
            return "nothing" if end is None else f"[{self.vs}, {'end' if end == END_OF_TIME else end})"

        return f"{self.input} has {said(self.input_end)} where the output has {said(self.output_end)}: {self.payload!r}"


class Watch:
    """Decided events that some input has not passed."""

    def __init__(self, reaction: Reaction = "report", patience: int = 100_000) -> None:
        """What to do when an input diverges, and how many decided events to keep at most."""
        self.reaction, self.patience = reaction, patience
        self.found: list[Divergence] = []
        self.unchecked = 0
        self._nodes: dict[Key, tuple[Node, int | None]] = {}
        self._due: Calendar[Node] = Calendar()

    def decided(self, node: Node, end: int | None) -> None:
        """The output has this end for an event for good, or does not have it."""
        self._nodes[node.vs, node.payload] = node, end
        self._due.add(node.vs if end is None else end, node)
        if len(self._nodes) > self.patience:
            oldest = next(iter(self._nodes))
            del self._nodes[oldest]
            self.unchecked += 1

    def insert(self, each: Input, element: Insert) -> None:
        """An input that is behind reports an event that was decided."""
        found = self._nodes.get((element.vs, element.payload))
        if found is None:
            node = Node(element.payload, element.vs, element.ve, each.bit, 0)
            self.decided(node, None)
        else:
            found[0].set_end(each, element.ve)

    def adjust(self, each: Input, element: Adjust) -> None:
        """An input that is behind changes an event that was decided."""
        found = self._nodes.get((element.vs, element.payload))
        if found is not None:
            found[0].set_end(each, None if element.ve == element.vs else element.ve)

    def passed(self, inputs: Iterable[Input]) -> None:
        """Compare the events that every input has passed."""
        given = list(inputs)
        reached = min((i.stable for i in given if i.joined), default=MIN_TICK)
        for node in self._due.take(reached):
            kept = self._nodes.get((node.vs, node.payload))
            if kept is None or kept[0] is not node:
                continue
            del self._nodes[node.vs, node.payload]
            for each in given:
                self._compare(each, node, kept[1])

    def _compare(self, each: Input, node: Node, end: int | None) -> None:
        theirs = node.end_of(each)
        if theirs == end or not each.joined or (theirs is None and end is not None and end < each.complete_from):
            return
        self.report(Divergence(each.name, node.payload, node.vs, end, theirs))

    def report(self, divergence: Divergence) -> None:
        """Keep a divergence, and stop if that was asked for."""
        self.found.append(divergence)
        if self.reaction == "stop":
            raise MergeError(
                "The inputs are not replicas of one stream.", got=str(divergence), hint="see merge.divergences"
            )

    def forget(self, each: Input) -> None:
        """An input left or begins again: what it said of decided events no longer counts."""
        for node, _ in self._nodes.values():
            node.set_end(each, None)
