"""SEQ: rows of several streams that follow one another (Stream Mill, section 5, figures 12 and 13), in any order.

Rows wait until their turn has come: until the steps have promised that nothing more comes which would have had it
before (`steps`). Then they are given to the context of their key (`contexts`), which says what sequences they complete.
Rows need not arrive in order, and what follows what goes by their times alone. A sequence comes out as soon as it is
certain, and no later: in the recent context when the other steps have promised to be past the row of the last step,
whatever that step itself has promised.

Where a sequence ends with something that must not come, it waits for that until its deadline (`watch`), and comes out
when the step that must not come has promised to be past it; no row is needed for that.

What is promised of results: their times are those of rows of the last step that wait or are to come, or deadlines.

State: a page for each slot of keys (`slot`), and one with the bounds of the steps and the first of what waits in each
slot, so that a bound touches the slots in which it lets something go. A row costs a step in a heap or two, and what its
context makes of it. What is given up with a bound is what can follow nothing, or be followed by nothing, any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain as joined
from operator import itemgetter
from typing import Any

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.operators.joins.nearness import moved
from penstock.operators.operator import BoundMemory, Operator, Outputs
from penstock.operators.patterns.contexts import Chain
from penstock.operators.patterns.slot import Key, Slot, slot_of
from penstock.operators.patterns.steps import Steps

HEAD = "head"
KNOWN = 65_536
"""Of so many keys it is remembered where they belong; it is no state."""
Heads = tuple[int, int, int, int]


@dataclass
class Head:
    """What each step has promised, and the first of what waits in each slot that has something."""

    bounds: list[int]
    slots: dict[int, Heads] = field(default_factory=dict)


class SeqOperator(Operator):
    """Gives the sequences of a pattern."""

    kind = "pattern"

    def __init__(self, schema: Schema, steps: Steps) -> None:
        """`schema` is that of the output."""
        super().__init__(schema)
        self.steps, self.ports = steps, len(steps.steps)
        self.passed_on = BoundMemory()
        self._known: dict[Any, tuple[Key | None, int]] = {}
        self._made: Callable[[Chain], Row] = _collected if steps.context == "cumulative" else _flat

    def process(self, port: int, batch: Batch) -> Outputs:
        """Let rows wait for their turn, unless it has come."""
        steps, head = self.steps, self._head()
        touched: dict[int, Slot] = {}
        time_at, takes_turn = steps.times[port], port in steps.turns and not steps.is_single
        key_of, known = itemgetter(*steps.steps[port].keys) if steps.steps[port].keys else _no_key, self._known
        for row in batch.rows:
            own = key_of(row)
            found = known.get(own)
            if found is None:
                found = self._place(own, port, row)
            key, number = found
            if key is None:
                continue
            slot = touched.get(number)
            if slot is None:
                slot = touched[number] = self._slot(number)
            time: int = row[time_at]  # type: ignore[assignment]
            if takes_turn:
                slot.wait(port, time, key, row)
            elif port in steps.trailing:
                self._forbid(slot, key, time, head)
            else:
                self._await(slot, key, Chain(time, time, (row,)))
        out: list[Row] = []
        cuts = steps.cuts(head.bounds)
        for number, slot in touched.items():
            self._settle(slot, head, cuts, out)
            self._put(number, slot, head)
        if touched:
            self.pages.put(HEAD, head)
        if out:
            yield Batch(self.schema, out)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Take the rows whose turn has come, give what nothing can end any more, and promise what follows."""
        steps, head = self.steps, self._head()
        is_time = punctuation.is_linear and punctuation.attribute == steps.steps[port].schema.time
        if not is_time or punctuation.value <= head.bounds[port]:
            return
        head.bounds[port] = punctuation.value
        out: list[Row] = []
        cuts, low, until = steps.cuts(head.bounds), steps.low(head.bounds), steps.trailing_bound(head.bounds)
        furthest = max(cuts.values())
        for number, (rows, lasts, visits, deadlines) in list(head.slots.items()):
            if rows <= furthest or lasts <= furthest or visits <= low or deadlines < until:
                slot = self._slot(number)
                self._settle(slot, head, cuts, out)
                self._put(number, slot, head)
        self.pages.put(HEAD, head)
        if out:
            yield Batch(self.schema, out)
        bound = self._promised(head)
        if bound > MIN_TICK and self.passed_on.advance(self.pages, bound):
            yield self.output_bound(bound)

    def _place(self, own: Any, port: int, row: Row) -> tuple[Key | None, int]:
        """The key of a row and its slot, which are known from then on for all that have the same values there."""
        key = self.steps.key(port, row)
        if len(self._known) >= KNOWN:
            self._known.clear()
        found = self._known[own] = (key, 0 if key is None else slot_of(key))
        return found

    # What rows come to

    def _settle(self, slot: Slot, head: Head, cuts: dict[int, int], out: list[Row]) -> None:
        """Everything that is certain now."""
        steps = self.steps
        for time, _, _, port, key, row in slot.ready(cuts):
            self._turn(slot, port, time, key, row, out)
        low, until = slot.low(steps.low(head.bounds)), steps.trailing_bound(head.bounds)
        while slot.deadlines and slot.deadlines[0][0] < until:
            key = slot.deadlines[0][2]
            kept = slot.keys.get(key)
            if kept is not None and kept.watch is not None:
                out += [self._result(chain) for chain in kept.watch.due(until)]
                if kept.forget(low):
                    del slot.keys[key]
            slot.tidy(low)
        slot.tidy(low)

    def _turn(self, slot: Slot, port: int, time: int, key: Key, row: Row, out: list[Row]) -> None:
        """It is a row's turn."""
        steps = self.steps
        place = steps.places.get(port)
        if place != 0 and key not in slot.keys:  # there is nothing that it could follow, or end
            return
        kept = slot.of(key)
        context = kept.context
        assert context is not None
        if place is None:
            context.forbid(steps.gaps[port], time)
        else:
            for found in context.take(place, time, row):
                if steps.trailing:
                    self._await(slot, key, found)
                else:
                    out.append(self._result(found))
        if kept.is_empty:
            del slot.keys[key]
        else:
            slot.schedule(key, kept)

    @staticmethod
    def _await(slot: Slot, key: Key, chain: Chain) -> None:
        """A sequence waits for something not to come."""
        watch = slot.of(key).watch
        assert watch is not None
        if watch.add(chain):
            slot.await_deadline(watch.deadline(chain), key)

    def _forbid(self, slot: Slot, key: Key, time: int, head: Head) -> None:
        """What must not come after the last step has come."""
        kept, low = slot.of(key), slot.low(self.steps.low(head.bounds))
        assert kept.watch is not None
        kept.watch.forbid(time, low)
        if kept.is_empty:
            del slot.keys[key]
        else:
            slot.schedule(key, kept)

    def _result(self, chain: Chain) -> Row:
        if self.steps.trailing_within is None:
            return self._made(chain)
        return (*self._made(chain), chain.first + self.steps.trailing_within)

    def _promised(self, head: Head) -> int:
        """No result that is still to come is before this."""
        heads = head.slots.values()
        last = min((head.bounds[self.steps.last], *(lasts for _, lasts, _, _ in heads)))
        if self.steps.trailing_within is None:
            return last
        if self.steps.is_single:
            last = moved(last, self.steps.trailing_within)
        return min((last, *(deadlines for _, _, _, deadlines in heads)))

    # State

    def _head(self) -> Head:
        found: Head | None = self.pages.get(HEAD)
        return Head([MIN_TICK] * self.ports) if found is None else found

    def _slot(self, number: int) -> Slot:
        found: Slot | None = self.pages.get(f"slot{number}")
        return Slot(self.steps) if found is None else found

    def _put(self, number: int, slot: Slot, head: Head) -> None:
        if slot.is_empty:
            head.slots.pop(number, None)
            self.pages.delete(f"slot{number}")
        else:
            head.slots[number] = slot.heads
            self.pages.put(f"slot{number}", slot)

    def to_plain(self, key: str, page: Any) -> Any:
        """Slots as their rows, the head as lists."""
        if isinstance(page, Slot):
            return page.to_plain()
        if isinstance(page, Head):
            return [page.bounds, [(number, *heads) for number, heads in page.slots.items()]]
        return page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key == HEAD:
            slots = {number: (rows, lasts, visits, until) for number, rows, lasts, visits, until in data[1]}
            return Head(list(data[0]), slots)
        return Slot.from_plain(data, self.steps) if key.startswith("slot") else data


def _flat(chain: Chain) -> Row:
    """The columns of all rows, one after the other."""
    return tuple(joined.from_iterable(chain.rows))


def _collected(chain: Chain) -> Row:
    """The columns of all steps: of all but the last, what their rows have, as arrays."""
    *before, last = chain.rows
    return tuple(joined((values for rows in before for values in zip(*rows, strict=True)), last))


def _no_key(row: Row) -> tuple[()]:
    """All rows are of one key."""
    return ()
