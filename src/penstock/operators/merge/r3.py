"""R3: inserts, adjusts and bounds in any order, where payload and start are a key (section IV-B, with its errata).

An insert of an event that is known records the end that its input gives it. An adjust changes that end. A bound makes
the output agree with the verdict on the events that it freezes: it introduces what is missing, removes what the verdict
does not have, moves ends that would freeze wrongly, and gives up what is done with. An event that is frozen in the
output cannot be removed any more; where a verdict lacks it, it stays as it is until it is final.
"""

from __future__ import annotations

from typing import Any

from penstock.model.elements import Adjust, Element, Insert
from penstock.model.likeness import EXACT_TYPES
from penstock.operators.merge.base import Input
from penstock.operators.merge.index import Index, Node
from penstock.operators.merge.policies import FirstSeen
from penstock.operators.merge.revisable import MAJORITY, RevisableMerge

OPEN = "open"
"""The word on an event whose end can still move."""
REPEATED = "the event is there already: payload and start are not a key (R4 allows that)"


class R3(RevisableMerge):
    """The merge with the two-tier index."""

    name = "R3"

    def __init__(self, *args: Any, **options: Any) -> None:
        """As any revisable merge."""
        self.index: Index[Node] = Index()
        super().__init__(*args, **options)
        self._first_seen = type(self.policy) is FirstSeen
        self.quick = self._first_seen and self.width is None

    # Elements

    def push(self, name: str, element: Element) -> list[Element]:
        """The first word on an event, and the same word of another input, are quickly done: that is most elements."""
        if type(element) is Insert and self.quick:
            vs, end = element.vs, element.ve
            key = (vs, element.payload)
            index = self.index
            node = index.nodes.get(key)
            each = self.inputs.get(name)
            if each is not None and vs >= each.stable:
                if node is None:
                    if vs >= self.frozen and EXACT_TYPES.issuperset(map(type, element.payload)):
                        index.nodes[key] = node = Node(element.payload, vs, end, each.bit, 0)
                        index.due.enter(vs, node)
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
        node = self.index.find(vs, element.payload)
        if node is None:
            if vs < self.frozen:  # it has been decided: the event is done with, or the verdict did not have it
                if self.watch is not None and not self.watch.insert(each, element, self.frozen, repeats=False):
                    self.reject(each, element, REPEATED)
                return
            node = Node(element.payload, vs, element.ve, each.bit, self.counts.taken)
            self.index.add(node)
            if self.early is not None:
                self.early.add(vs, node)
        elif node.bits & each.bit:
            self.reject(each, element, REPEATED)
            return
        elif element.ve == node.end:
            node.bits |= each.bit
        else:
            node.set_end(each, element.ve)
            self._wait(node, element.ve)
        if self.counts_unfrozen and vs >= self.frozen:
            each.unfrozen += 1
        if self._first_seen:
            self.introduce(node, each)
        else:
            self.policy.reported(self, node, each)

    def adjust(self, each: Input, element: Adjust) -> None:
        """An input moves an end or removes an event."""
        node = self.index.find(element.vs, element.payload)
        end = None if node is None else node.end_of(each)
        if node is None or end is None:
            if (
                node is not None
                or element.vs >= self.frozen
                or (self.watch is not None and not self.watch.adjust(each, element))
            ):
                self.reject(each, element, "an adjust of an event that the input has not reported")
            return
        if end != element.v_old:
            self.reject(each, element, f"an adjust of an event that ends at {end}, not at {element.v_old}")
            return
        if element.ve == element.vs:
            node.set_end(each, None)
            if self.counts_unfrozen and node.vs >= self.frozen:
                each.unfrozen -= 1
        else:
            node.set_end(each, element.ve)
            self._wait(node, element.ve)
        self.policy.moved(self, node, each)
        self._tidy(node)

    def _wait(self, node: Node, end: int) -> None:
        """A half-frozen event also waits for an end that is new; another one still waits for its start."""
        if node.vs < self.frozen:
            self.index.due.wait(end, node)

    # Bounds

    def decide(self, node: Node, bound: int) -> bool:
        """Ask the voters whether there is such an event and, where it can no longer move, for its end."""
        voters = self.voters
        if len(voters) == 1 and self.driver != MAJORITY:
            end = node.end_of(voters[0])
        else:
            ends = [node.end_of(v) for v in voters]
            elected = self.elect([OPEN if e is not None and not self.is_final(e, bound) else e for e in ends])
            if elected is None:
                return False
            end = ends[elected]
        if self._agree(node, end, bound):
            self.index.due.wait(node.next_end(bound), node)
        return True

    def _agree(self, node: Node, end: int | None, bound: int) -> bool:
        """Make the output say what the verdict says, where it must; whether the event goes on living."""
        out = node.out
        if end is None:
            if out is not None and node.vs < self.stable and not self.is_final(out, bound):
                return True  # too late to take it back; another driver may know its end
            if out is not None and node.vs >= self.stable:
                self.emit_adjust(node.payload, node.vs, out, node.vs)
                node.out = None
            self._done(node)
            return False
        final = self.is_final(end, bound)
        if out is None:
            if self.policy.final_only and not final:
                self.waiting.add(node)
                return True
            self._show(node, end)
        elif out != end and (final or self.is_final(out, bound)):
            self._show(node, end)
        if final:
            self._done(node)
        return not final

    def _done(self, node: Node) -> None:
        """Nothing more can change the event in the output."""
        self.remove(node)
        if self.watch is not None:
            said = {i.number: node.said_by(i) for i in self.inputs.values() if node.bits & i.bit}
            self.watch.decided(node.payload, node.vs, () if node.out is None else (node.out,), said)

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

    # For policies

    def reports(self, node: Node, each: Input) -> int:
        """One or none, by its bit."""
        return bool(node.bits & each.bit)

    def holders(self, node: Node) -> int:
        """By the bits."""
        return node.bits.bit_count()

    def lacking(self, node: Node) -> int:
        """One or none."""
        return int(node.out is None and node.bits != 0)

    def drop(self, node: Node, each: Input) -> None:
        """Forget what an input said."""
        node.set_end(each, None)
        self._tidy(node)

    def _tidy(self, node: Node) -> None:
        """An event that no input has and that is not out is gone, unless a bound has promised it."""
        if not node.bits and node.out is None and node.vs >= self.frozen:
            self.remove(node)

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
