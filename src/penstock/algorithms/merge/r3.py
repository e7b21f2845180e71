"""R3: inserts, adjusts and bounds in any order, where payload and start are a key (section IV-B, with its errata).

An insert of an event that is known records the end that its input gives it. An adjust changes that end. A bound makes
the output agree with the verdict on the events that it freezes: it introduces what is missing, removes what the verdict
does not have, moves ends that would freeze wrongly, and gives up what is done with.
"""

from __future__ import annotations

from typing import Any

from penstock.algorithms.merge.base import Input
from penstock.algorithms.merge.divergence import Divergence, Watch
from penstock.algorithms.merge.index import Index, Node
from penstock.algorithms.merge.policies import FirstSeen, MostUnfrozen
from penstock.algorithms.merge.revisable import UNDECIDED, RevisableMerge
from penstock.model.elements import Adjust, Element, Insert


class R3(RevisableMerge):
    """The merge with the two-tier index."""

    name = "R3"

    def __init__(self, *args: Any, watch: Watch | None = None, **options: Any) -> None:
        """As any revisable merge; a `watch` compares what every input says with what was put out."""
        self.watch = watch
        self.index: Index[Node] = Index()
        self._nodes = self.index.nodes
        super().__init__(*args, **options)
        self._first_seen = type(self.policy) is FirstSeen
        self._counts_unfrozen = isinstance(self.policy, MostUnfrozen)

    # Elements

    def push(self, name: str, element: Element) -> list[Element]:
        """The first word on an event, and the same word of another input, are quickly done: that is most elements."""
        if type(element) is Insert and self._first_seen:
            vs, end = element.vs, element.ve
            key = (vs, element.payload)
            node = self._nodes.get(key)
            each = self.inputs.get(name)
            if each is not None and vs >= each.stable and self.width is None:
                if node is None:
                    if vs >= self.frozen:
                        self._nodes[key] = node = Node(element.payload, vs, end, each.bit, 0)
                        self.index.due.add(vs, node)
                        node.out = end
                        self.counts.inserts_in += 1
                        self.counts.inserts_out += 1
                        return [element]
                elif node.end == end and not node.bits & each.bit:
                    node.bits |= each.bit
                    self.counts.inserts_in += 1
                    return []
        return super().push(name, element)

    def insert(self, each: Input, element: Insert) -> None:
        """A new event, or another input's word on a known one."""
        vs = element.vs
        if vs > each.greatest:  # noqa: PLR1730 - max() takes longer
            each.greatest = vs
        node = self.index.nodes.get((vs, element.payload))
        if node is None:
            if vs < self.frozen:  # it has been decided: the event is done with, or the verdict did not have it
                if self.watch is not None:
                    self.watch.insert(each, element)
                return
            node = Node(element.payload, vs, element.ve, each.bit, self.counts.taken)
            self.index.add(node)
        elif node.bits & each.bit:
            self.reject(each, element, "the event is there already: payload and start are not a key (R4 allows that)")
            return
        elif element.ve == node.end:
            node.bits |= each.bit
        else:
            node.set_end(each, element.ve)
            self._wait(node, element.ve)
        if self._counts_unfrozen:
            each.unfrozen += 1
        if not self._first_seen:
            self.policy.reported(self, node, each)
        elif node.out is None:
            node.out = element.ve
            self.counts.inserts_out += 1
            self.counts.waited += self.counts.taken - node.first_seen
            self.out.append(element)

    def adjust(self, each: Input, element: Adjust) -> None:
        """An input moves an end or removes an event."""
        node = self.index.nodes.get((element.vs, element.payload))
        end = None if node is None else node.end_of(each)
        if node is None or end is None:
            if element.vs >= self.frozen:
                self.reject(each, element, "an adjust of an event that the input has not reported")
            elif self.watch is not None:
                self.watch.adjust(each, element)
            return
        if end != element.v_old:
            self.reject(each, element, f"an adjust of an event that ends at {end}, not at {element.v_old}")
            return
        if element.ve == element.vs:
            node.set_end(each, None)
            if self._counts_unfrozen:
                each.unfrozen -= 1
        else:
            node.set_end(each, element.ve)
            self._wait(node, element.ve)
        self.policy.moved(self, node, each)
        self._tidy(node)

    def _wait(self, node: Node, end: int) -> None:
        """A half-frozen event also waits for an end that is new; another one still waits for its start."""
        if node.vs < self.frozen:
            self.index.due.add(end, node)

    # Bounds

    def bound(self, each: Input, bound: int) -> None:
        """As any revisable merge; decided events that every input has passed are compared."""
        super().bound(each, bound)
        if self.watch is not None:
            self.watch.passed(self.inputs.values())

    def freeze(self, bound: int, voters: list[Input]) -> None:
        """Agree on the events whose start or end is passed."""
        self.undecided = []
        only = voters[0] if len(voters) == 1 else None
        for node in self.index.frozen_by(bound):
            if not self.index.lives(node):
                continue
            verdict: Any = node.end_of(only) if only is not None else self.verdict([node.end_of(v) for v in voters])
            if verdict is UNDECIDED:
                self.undecided.append(node.vs)
                self.index.due.add(node.vs, node)  # to be looked at again
                continue
            if self._counts_unfrozen and node.vs >= self.frozen:
                for each in self.inputs.values():
                    each.unfrozen -= bool(node.bits & each.bit)
            if self._agree(node, verdict, bound):
                self.index.due.add(node.next_end(bound), node)

    def _agree(self, node: Node, end: int | None, bound: int) -> bool:
        """Make the output say what the verdict says, where it must; whether the event goes on living."""
        if end is None:
            if node.out is not None and node.vs >= self.stable:
                self.emit_adjust(node.payload, node.vs, node.out, node.vs)
                node.out = None
            self._decide(node)
            return False
        final = self.is_final(end, bound)
        if node.out is None:
            if self.policy.final_only and not final:
                self.waiting.add(node.vs, node)
                return True
            self._show(node, end)
        elif node.out != end and (final or self.is_final(node.out, bound)):
            self._show(node, end)
        if final:
            self._decide(node)
        return not final

    def _decide(self, node: Node) -> None:
        """Nothing more can change the event in the output."""
        self.index.remove(node)
        if self.watch is not None:
            self.watch.decided(node, node.out)

    def _show(self, node: Node, end: int) -> None:
        """Give the event this end in the output, if the output's bound allows."""
        if node.out is None:
            if node.vs < self.stable:
                return
            self.counts.waited += self.counts.taken - node.first_seen
            self.emit_insert(Insert(node.payload, node.vs, end))
        elif min(node.out, end) < self.stable:
            return
        else:
            self.emit_adjust(node.payload, node.vs, node.out, end)
        node.out = end

    @property
    def divergences(self) -> list[Divergence]:
        """Where inputs were found to differ, in the order of discovery."""
        return self.watch.found if self.watch is not None else []

    # For policies

    def has(self, node: Node, each: Input) -> bool:
        """By its bit."""
        return bool(node.bits & each.bit)

    def holders(self, node: Node) -> int:
        """By the bits."""
        return node.bits.bit_count()

    def drop(self, node: Node, each: Input) -> None:
        """Forget what an input said."""
        node.set_end(each, None)
        self._tidy(node)

    def forget(self, each: Input) -> None:
        """Also of decided events."""
        super().forget(each)
        if self.watch is not None:
            self.watch.forget(each)

    def _tidy(self, node: Node) -> None:
        """An event that no input has and that is not out is gone, unless a bound has promised it."""
        if not node.bits and node.out is None and node.vs >= self.frozen:
            self.index.remove(node)

    def introduce(self, node: Node, each: Input) -> None:
        """The first word on an event."""
        end = node.end_of(each)
        if node.out is None and end is not None:
            self._show(node, end)

    def reflect(self, node: Node, each: Input) -> None:
        """The end that an input gives, or none."""
        end = node.end_of(each)
        if end is None:
            if node.out is not None and node.vs >= self.stable:
                self.emit_adjust(node.payload, node.vs, node.out, node.vs)
                node.out = None
        elif node.out != end:
            self._show(node, end)
