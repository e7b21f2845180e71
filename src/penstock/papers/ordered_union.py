"""A union that gives its rows in order, as the paper's does: the baseline that idle-waits (Stream Mill, section 4).

The order-insensitive union (`operators.relational.meld`) passes rows on as they come, so it never waits. This one, the
thesis's Merge (8.2), holds a row until no input can give an earlier one. What each input can still give is in its *TSM
register*: the time of its first row that waits, or, where none does, of the last that was taken or of its last promise,
whichever is greater. Inputs are ordered.

When rows may pass is the condition `more`:

- strict (Fig. 2): of two rows with the same time, the second waits although nothing earlier can come. A row passes if
  every other input has one that waits too, or has promised to be past its time.
- *relaxed* (Fig. 8): a row passes if its time is the least of all registers. An ordered stream that gave T may give T
  again and nothing earlier, and so may one that has promised "nothing below T": rows with the time T pass in either
  case, on all inputs, whoever is empty then. Ties come by input and arrival.

Cost: one comparison of the inputs for each row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from penstock.errors import StreamError
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.operator import BoundMemory, Operator, Outputs


class Input:
    """What waits of one input, and its register."""

    def __init__(self) -> None:
        """Nothing has come."""
        self.rows: deque[tuple[int, Row]] = deque()
        self.taken = MIN_TICK
        """The time of the row that was taken last."""
        self.promised = MIN_TICK
        self.newest = MIN_TICK
        """The time of the row that came last."""

    @property
    def register(self) -> int:
        """Nothing earlier comes of it."""
        return self.rows[0][0] if self.rows else max(self.taken, self.promised)

    def take(self) -> Row:
        """Its first row."""
        self.taken, row = self.rows.popleft()
        return row


class OrderedUnion(Operator):
    """Gives the rows of ordered inputs in the order of their times."""

    kind = "ordered union"

    def __init__(self, schema: Schema, ports: int, *, relaxed: bool = True) -> None:
        """`ports` inputs of one schema; without `relaxed`, a row waits for a row of every other input."""
        super().__init__(schema)
        self.ports, self.relaxed = ports, relaxed
        self._passed_on = BoundMemory()

    @property
    def inputs(self) -> list[Input]:
        """What waits, by port."""
        found: list[Input] | None = self.pages.get("inputs")
        if found is None:
            found = [Input() for _ in range(self.ports)]
            self.pages.put("inputs", found)
        return found

    def process(self, port: int, batch: Batch) -> Outputs:
        """Hold rows, and give all that may pass."""
        own = self.inputs[port]
        for time, row in zip(batch.times().tolist(), batch.rows, strict=True):
            if time < max(own.newest, own.promised):
                raise StreamError(
                    "A row comes after one with a later time, or after a promise.",
                    where=f"{self.kind}, input {port}",
                    got=f"{time} after {max(own.newest, own.promised)}",
                    hint="an ordered union takes ordered inputs",
                )
            own.newest = time
            own.rows.append((time, row))
        yield from self._pass()

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Raise the register, behind the rows that wait, and give all that may pass."""
        if self.is_on_time(punctuation):
            own = self.inputs[port]
            own.promised = max(own.promised, punctuation.value)
            yield from self._pass()

    def more(self, inputs: list[Input]) -> Input | None:
        """The input whose first row may pass; None where all wait."""
        waiting = [each for each in inputs if each.rows]
        if not waiting:
            return None
        first = min(waiting, key=lambda each: each.register)
        others = [each for each in inputs if each is not first]
        if self.relaxed:
            return first if all(first.register <= each.register for each in others) else None
        return first if all(each.rows or each.promised > first.register for each in others) else None

    def _pass(self) -> Iterator[Batch | Punctuation]:
        inputs, found = self.inputs, list[Row]()
        while (own := self.more(inputs)) is not None:
            found.append(own.take())
        if found:
            yield Batch(self.schema, found)
        least = min(each.register for each in inputs)
        if least > MIN_TICK and self._passed_on.advance(self.pages, min(least, END_OF_TIME)):
            yield self.output_bound(least)
