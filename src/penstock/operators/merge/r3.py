"""R3: inserts, adjusts and bounds in any order, where payload and start are a key (section IV-B, with its errata).

An insert of an event that is known records the end that its input gives it. An adjust changes that end. A bound makes
the output agree with the verdict on the events that it freezes: it introduces what is missing, removes what the verdict
does not have, moves ends that would freeze wrongly, and gives up what is done with. An event that is frozen in the
output cannot be removed any more; where a verdict lacks it, it stays as it is until it is final.

Where the majority decides and the columns of a key are known, the vote is by start and key (`election`): inputs that
have other values for a key agree that there is such an event.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from penstock.model.elements import Adjust, Element, Insert
from penstock.model.likeness import EXACT_TYPES
from penstock.model.time import END_OF_TIME
from penstock.operators.merge.base import Input
from penstock.operators.merge.election import Election, elect_present
from penstock.operators.merge.index import Index, IndexNode
from penstock.operators.merge.policies import FirstSeen
from penstock.operators.merge.revisable import MAJORITY, RevisableMerge

OPEN = "open"
"""The word on an event whose end can still move."""
REPEATED = "the event is there already: payload and start are not a key (R4 allows that)"


class R3(RevisableMerge):
    """The merge with the two-tier index."""

    name = "R3"

    def __init__(self, *args: Any, key: tuple[int, ...] | None = None, **options: Any) -> None:
        """As any revisable merge; `key`: the places of the key's columns in a payload, where they are known."""
        self.index: Index[IndexNode] = Index()
        self.key = key
        self.elections: dict[Hashable, Election] = {}
        """By start and key: the votes on events that a bound half freezes, while it does."""
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
                each.spoke = True
                if node is None:
                    if vs >= self.frozen and EXACT_TYPES.issuperset(map(type, element.payload)):
                        index.nodes[key] = node = IndexNode(element.payload, vs, end, each.bit, 0)
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
            if vs < self.frozen and not (self.undecided and self._is_open(vs)):  # done with, or the verdict had it not
                if self.watch is not None and not self.watch.insert(each, element, self.frozen, repeats=False):
                    self.reject(each, element, REPEATED)
                return
            node = IndexNode(element.payload, vs, element.ve, each.bit, self.counts.taken)
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

    def _wait(self, node: IndexNode, end: int) -> None:
        """A half-frozen event also waits for an end that is new; another one still waits for its start."""
        if node.vs < self.frozen:
            self.index.due.wait(end, node)

    # Bounds

    def _is_open(self, vs: int) -> bool:
        """Whether a start that was passed still waits for votes, which may be for other values of a key."""
        return self.key is not None and vs in self.undecided

    def settle(self, frozen: int) -> None:
        """By key, where the majority decides and a key is known."""
        self.elections = {}
        if self.driver == MAJORITY and self.key is not None:
            for node in self.index.due.starting(frozen):
                self.elections.setdefault(self._identity(node), Election()).nodes.append(node)
        super().settle(frozen)
        self.elections = {}

    def again_after(self, node: IndexNode) -> int:
        """One that there is, and whose end is not known, is no longer waiting for its start."""
        return node.vs if self._is_elected(node) else node.vs + 1

    def _is_elected(self, node: IndexNode) -> bool:
        """Whether it is asked whether there is such an event; where there is no key, it always is."""
        if self.key is None or self.driver != MAJORITY:
            return True
        election = self.elections.get(self._identity(node))
        return election is not None and node in election.nodes

    def _identity(self, node: IndexNode) -> Hashable:
        return node.vs, *[node.payload[i] for i in self.key or ()]

    def decide(self, node: IndexNode, bound: int) -> bool:
        """Ask the voters whether there is such an event and, where it can no longer move, for its end."""
        voters = self.voters
        if len(voters) == 1 and self.driver != MAJORITY:
            end = node.end_of(voters[0])
        else:
            ends = [node.end_of(v) for v in voters]
            if self.driver == MAJORITY and self.key is not None:
                elected = self._elect_by_key(node, bound)
            else:
                elected = self.elect([self._word(end, bound) for end in ends])
            if elected is None:
                return False
            end = ends[elected]
        if self._agree(node, end, bound):
            self.index.due.wait(node.next_end(bound), node)
        return True

    def _word(self, end: int | None, bound: int) -> Hashable:
        return OPEN if end is not None and not self.is_final(end, bound) else end

    def _elect_by_key(self, node: IndexNode, bound: int) -> int | None:
        """Which voter speaks for all; once there is an event, only those that have it are asked for its end."""
        joined = self.heard()
        if not self._is_elected(node):
            having = [i for i in joined if node.bits & i.bit]
            if not having:
                return 0
            voters = [v for v in self.voters if v in having]
            words: list[Hashable] = [(self._word(node.end_of(v), bound),) for v in voters]
            elected = elect_present(words, voters, len(having))
            return None if elected is None else self.voters.index(voters[elected])
        election = self.elections[self._identity(node)]
        if not election.held:
            words = [
                tuple((n, self._word(n.end_of(v), bound)) for n in election.nodes if n.bits & v.bit)
                for v in self.voters
            ]
            election.held, election.elected = True, elect_present(words, self.voters, len(joined))
        return election.elected

    def _agree(self, node: IndexNode, end: int | None, bound: int) -> bool:
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

    def _done(self, node: IndexNode) -> None:
        """Nothing more can change the event in the output."""
        self.remove(node)
        if self.watch is not None:
            said = {i.number: node.said_by(i) for i in self.inputs.values() if node.bits & i.bit}
            self.watch.decided(node.payload, node.vs, () if node.out is None else (node.out,), said)

    def _show(self, node: IndexNode, end: int) -> None:
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

    def reports(self, node: IndexNode, each: Input) -> int:
        """One or none, by its bit."""
        return bool(node.bits & each.bit)

    def holders(self, node: IndexNode) -> int:
        """By the bits."""
        return node.bits.bit_count()

    def lacking(self, node: IndexNode) -> int:
        """One or none."""
        return int(node.out is None and node.bits != 0)

    def drop(self, node: IndexNode, each: Input) -> None:
        """Forget what an input said."""
        node.set_end(each, None)
        self._tidy(node)

    def _tidy(self, node: IndexNode) -> None:
        """An event that no input has and that is not out is gone, unless a bound has promised it."""
        if not node.bits and node.out is None and node.vs >= self.frozen:
            self.remove(node)

    def introduce(self, node: IndexNode, each: Input) -> None:
        """The first word on an event."""
        end = node.end_of(each)
        if node.out is None and end is not None:
            self._show(node, end)

    def close(self, node: IndexNode, each: Input) -> None:
        """The end that an input gives an event that is out and open."""
        end = node.end_of(each)
        if node.out == END_OF_TIME and end not in (None, END_OF_TIME):
            self._show(node, end)

    def reflect(self, node: IndexNode, each: Input) -> None:
        """The end that an input gives, or none."""
        end = node.end_of(each)
        if end is None:
            if node.out is not None and node.vs >= self.stable:
                self.emit_adjust(node.payload, node.vs, node.out, node.vs)
                node.out = None
        elif node.out != end:
            self._show(node, end)
