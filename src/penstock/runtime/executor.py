"""The two-step cycle that runs a query graph by its state table (Stream Mill, section 2.2, Figure 4).

Execute the current operator: it takes one element of an input, or goes on with what came of the last one, and gives one
output. Then select the next one, by the rule that the table has for it (`runtime.rules`). Whatever is under way is in
the graph itself: elements on arcs, at entrances and break nodes, and in each operator the outputs of its last element
that were not given yet. So between any two steps the table may be another one: nothing is lost, and since every
operator finishes an element before it takes the next, and takes them in order, nothing changes places on an arc.

A part whose operators are all depth-first is not interpreted: its rules are compiled into one loop, whose stack is the
path that control went. It takes the same steps in the same order (a test compares the two), in half of the time.
Backtracking is along that path, to the predecessor that has not given everything; operators here take elements of any
input as they come and never wait for another, so no other predecessor could have something for them.

There is a halt whenever something has come out, so that very much need not be held at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from penstock.model.elements import Punctuation
from penstock.operators.operator import Output, Outputs, Rejected
from penstock.runtime.arcs import Arc, Outlet, QueuedArc
from penstock.runtime.ets_arcs import EtsArcs, ets_arcs
from penstock.runtime.installed_table import BUSY, STALE, InstalledTable, Part
from penstock.runtime.rules import Action

if TYPE_CHECKING:
    from penstock.runtime.graph_node import GraphNode

NOTHING: tuple[list[Arc | GraphNode], deque[GraphNode]] = ([], deque())
"""What is under way in a part that is not compiled, to the loop of those that are."""


class Executor(InstalledTable):
    """Runs the operators of a graph."""

    def __init__(self, reject: Callable[[GraphNode, Rejected], None], clock: Callable[[], int]) -> None:
        """Rows that leave the graph are given to `reject`; `clock` is for queues."""
        super().__init__()
        self.reject, self.clock = reject, clock
        self.waiting: list[Outlet] = []
        """Outlets of which something is to be taken, in the order in which it came."""
        self.skips = True
        """Whether promises go by ETS arcs, past operators that do not care."""

    def begin(self, node: GraphNode, outputs: Outputs) -> Iterator[None]:
        """Run what a node gives by itself to the end; nothing else may be under way."""
        part = node.part
        node.given = iter(outputs)
        node.processed = 0
        part.path.append(node)
        self.unsettled = BUSY
        return self._work(part)

    def promise(self, node: GraphNode, promise: Punctuation) -> Iterable[None]:
        """Run what follows of a promise of a node, which has counted it, to the end."""
        ets = self.carried(node, promise)
        if ets is None:
            return self.hand_on(node, node.hold(promise))
        part = node.part
        self._landed(ets)
        part.path.extend(ets.backward)
        if not part.path and not self._ready:
            return ()
        self.unsettled = BUSY
        return self._work(part)

    def hand_on(self, node: GraphNode, count: int) -> Iterable[None]:
        """Run what is held behind a node, of which `count` elements are new, to the end."""
        part = node.part
        if node.leaves:
            self._left(node, count)
        if part.is_compiled:
            part.path.extend(node.backward)
        elif node.forward:
            part.path.append(node)
        if not part.path and not self._ready:
            return ()
        self.unsettled = BUSY
        return self._work(part)

    def rest(self) -> Iterator[None]:
        """Run whatever is under way to the end."""
        running = [part for part in self._parts if part.path]
        for part in running:
            if not part.is_ready:
                part.is_ready = True
                self._ready.append(part)
        if self._ready:
            return self._work(self._next())
        self.unsettled &= STALE
        return iter(())

    def _next(self) -> Part:
        if self.slopes:
            part = max(self._ready, key=lambda each: each.slope)
            self._ready.remove(part)
        else:
            part = self._ready.popleft()
        part.is_ready = False
        return part

    def _work(self, part: Part) -> Iterator[None]:
        """Run a part, then the others that have something to do, until none has.

        Where parts are ranked a part takes one element that waits, with a halt after it; then the steepest is next.
        """
        while True:
            path, woken = part.path, part.woken
            part.is_spent = False
            if not part.is_compiled:
                yield from self._interpreted(part)
                path, woken = NOTHING
            while path or (woken and self._entered(part)):
                top = path[-1]
                if top.__class__ is Arc:
                    buffer, head = top.producer.buffer, top.head
                    unread = buffer.start + len(buffer.elements) - head
                    if unread < 2:
                        path.pop()
                        if not unread:
                            continue
                    node: GraphNode = top.consumer  # type: ignore[assignment]
                    given: Iterator[Output] = node.given  # type: ignore[assignment]
                    if given is None:  # else it was under way when the table changed
                        element = top.take() if unread > 1 or head <= top.noticed else top.take_last()
                        given = node.given = iter(node.take_in(top.port, element))
                    elif unread < 2:
                        path.append(top)
                    path.append(node)
                else:
                    node = top  # type: ignore[assignment]
                    given = node.given  # type: ignore[assignment]
                output = next(given, None)
                if output is None:
                    node.given = None
                    path.pop()
                elif isinstance(output, Rejected):
                    self.reject(node, output)
                elif output.__class__ is Punctuation and (ets := self.carried(node, output)) is not None:
                    node.count_punctuation((output,))
                    path.extend(ets.backward)
                    if self._landed(ets):
                        yield
                        if part.is_retired:
                            break
                else:
                    count = node.give(output)
                    path.extend(node.backward)
                    if node.leaves and self._left(node, count):
                        yield
                        if part.is_retired:
                            break
            if part.is_compiled and not (part.is_retired or part.woken):
                part.is_clear = True
            if self.slopes and (woken or self._ready):
                if woken and not (part.is_retired or part.is_ready):
                    part.is_ready = True
                    self._ready.append(part)
                yield
            if not self._ready:
                break
            part = self._next()
        self.unsettled &= STALE

    def _entered(self, part: Part) -> bool:
        """Come to the next operator that was woken, if it still has something to do."""
        if part.is_spent:
            return False
        woken = part.woken
        while woken:
            node = woken[0]
            if node.given is not None or node.draw():
                part.is_spent = bool(self.slopes)
                part.path.append(node)
                part.path.extend(node.backward)
                return True
            woken.popleft()
            node.is_woken = False
        return False

    def _interpreted(self, part: Part) -> Iterator[None]:
        """Run a part by the rules of its operators, until control goes back to the scheduler."""
        path = part.path
        while not part.is_retired:
            if not path:
                if not part.woken:
                    return
                node = part.woken.popleft()
                node.is_woken, node.processed = False, 0
                path.append(node)
            if isinstance(path[-1], Arc) and not self._leads(path[-1], path):
                path.pop()
                continue
            node = path[-1]  # type: ignore[assignment]
            action = node.rule.select(node)
            if action is Action.ENCORE and node.given is None and len(path) > 1 and isinstance(path[-2], Arc):
                if not node.has_given():  # it has taken what it was led to for
                    path.pop()
                    continue
                action = Action.FORWARD
            if action is Action.ENCORE:
                if self._execute(node):
                    yield
            elif action is Action.FORWARD:
                succ = node.successor()
                succ.processed = 0
                path.append(succ)
            else:
                path.pop()
                if action is Action.NEXT:
                    break
        if not part.is_retired and (path or part.woken) and not part.is_ready:
            part.is_ready = True
            self._ready.append(part)

    @staticmethod
    def _leads(arc: Arc, path: list[Arc | GraphNode]) -> bool:
        """Go where an ETS arc has brought a promise: the operator takes that. Whether it is still there."""
        node = arc.consumer
        if node is None or not arc.unread:
            return False
        node.processed = 0
        if node.given is None:
            node.given = iter(node.take_in(arc.port, arc.take()))
        path.append(node)
        return True

    def _execute(self, node: GraphNode) -> bool:
        """Let an operator take an element, or go on with the last, and give one output; whether something came out."""
        if node.given is None:
            node.processed = node.processed + 1 if node.processed < node.rule.batch else 1
            node.draw()
        assert node.given is not None
        output = next(node.given, None)
        if output is None:
            node.given = None
        elif isinstance(output, Rejected):
            self.reject(node, output)
        elif isinstance(output, Punctuation) and (ets := self.carried(node, output)) is not None:
            node.count_punctuation((output,))
            node.part.path.extend(ets.backward)
            return self._landed(ets)
        else:
            count = node.give(output)
            return node.leaves and self._left(node, count)
        return False

    def carried(self, node: GraphNode, promise: Punctuation) -> EtsArcs | None:
        """The ETS arcs by which a promise of an operator has gone; None if it goes as an element."""
        if not self.skips:
            return None
        if node.ets_of != self.number:
            node.ets, node.ets_of = ets_arcs(node), self.number
        ets = node.ets
        if ets is None or not (node.part.is_clear or ets.is_clear):
            return None
        trace = node.giving
        if not ets.carry(promise, trace):
            return None
        if trace is not None:
            node.giving = None
        return ets

    def _landed(self, ets: EtsArcs) -> bool:
        """A promise was put where ETS arcs lead; whether one of them leads to an outlet."""
        told = False
        for landing in ets.landings:
            if landing.node.leaves:
                told = self._left(landing.node, 1) or told
        return told

    def _left(self, node: GraphNode, count: int) -> bool:
        """So many elements of a node were given on arcs that end its path; whether one of them is an outlet."""
        outlets = node.outlets
        if outlets:
            buffer = node.buffer
            fresh = buffer.start + len(buffer.elements) - count
            for outlet in outlets:
                if outlet.head == fresh:
                    self.waiting.append(outlet)
        for arc in node.broken:
            assert arc.consumer is not None
            if isinstance(arc, QueuedArc):
                arc.take_up(self.clock())
            else:
                arc.count()
                self.wake(arc.consumer)
        return bool(outlets)
