"""Streams with revisions for tests, as hypothesis strategies: elements with sound bounds, and how they arrive.

The elements of an event come in their order, those of different events in any. A bound is sound where it is said: no
element after it is below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Element, Insert, Punctuation
from penstock.model.lives import Lives
from penstock.model.schema import Schema
from penstock.testing.replicas import histories, replicas


@st.composite
def revised(draw: st.DrawFn, *, max_size: int = 8) -> list[Element]:
    """A stream of payloads of one letter, to its end: inserts, adjusts, removals, and bounds."""
    return draw(replicas(draw(histories(bag=True, max_size=max_size)), bag=True))


@dataclass(frozen=True)
class Lived:
    """Brings elements into a schema of a time and a letter, with a number that follows from both."""

    schema: Schema

    def row(self, element: Insert | Adjust) -> tuple[object, ...]:
        """The row of an element."""
        (letter,) = element.payload
        return (element.vs, letter, element.vs % 3)

    def arrived(self, elements: Sequence[Element]) -> list[Insert | Adjust]:
        """The elements as the oracle is given them."""
        found: list[Insert | Adjust] = []
        for e in elements:
            if isinstance(e, Insert):
                found.append(Insert(self.row(e), e.vs, e.ve))
            elif isinstance(e, Adjust):
                found.append(Adjust(self.row(e), e.vs, e.v_old, e.ve))
        return found

    def batch(self, elements: Sequence[Insert | Adjust], *, columnar: bool) -> Batch:
        """A batch with lives, as rows or as an Arrow table."""
        made = Batch(self.schema, [e.payload for e in elements], lives=Lives.of(elements))
        return Batch(self.schema, table=made.table, lives=made.lives) if columnar else made


@st.composite
def fed(draw: st.DrawFn, elements: Sequence[Element], lived: Lived) -> list[Batch | Punctuation]:
    """The elements as batches, cut anywhere, and the bounds between them."""
    items: list[Batch | Punctuation] = []
    held: list[Insert | Adjust] = []

    def flush() -> None:
        if held:
            items.append(lived.batch(lived.arrived(held), columnar=draw(st.booleans())))
            held.clear()

    for element in elements:
        if isinstance(element, Punctuation):
            flush()
            items.append(Punctuation(((str(lived.schema.time), element.value),)))
        else:
            held.append(element)
            if draw(st.integers(0, 2)) == 0:
                flush()
    flush()
    return items
