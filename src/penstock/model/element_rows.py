"""Elements as rows of a stream: inserts, adjusts and punctuation as they are.

The payload of an element is a row of the stream, with or without its time, which is the element's start. Elements that
live for a tick are plain rows; others need a stream with lives. Where rows are stamped as they enter they bring no
time, so elements, which do, are dead letters.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.model.batch import Batch, Row
from penstock.model.conform import DeadLetter, conform_row, described, written
from penstock.model.elements import Adjust, Insert, Punctuation
from penstock.model.lived_rows import END, OLD
from penstock.model.lives import Lives
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK


def with_lives(columns: Schema) -> Schema:
    """The columns of a stream whose lives come with its elements."""
    return columns if columns.lives is not None else replace(columns, lives=(END, OLD))


class Elements:
    """Brings elements into a stream's columns."""

    def __init__(self, schema: Schema) -> None:
        """If the schema has lives they may live as long as they like, and be revised."""
        self.schema, self.time = schema, None if schema.time is None else schema.time_index

    def item(self, item: object) -> Batch | DeadLetter | Punctuation:
        """What becomes of one thing that a source gave."""
        if isinstance(item, Punctuation):
            known = self.schema.attributes or (self.schema.time,)
            unknown = [name for name, _ in item.bounds if name not in known]
            if unknown:
                return DeadLetter(f"punctuation bounds what does not progress: {', '.join(unknown)}", repr(item))
            if all(MIN_TICK <= bound <= END_OF_TIME for _, bound in item.bounds):
                return item
            return DeadLetter("a bound is not a number of 64 bits", repr(item))
        return self.batch(item) if isinstance(item, Insert | Adjust) else no_row(item)

    def batch(self, element: Insert | Adjust) -> Batch | DeadLetter:
        """A batch of one element, if it fits the columns."""
        row = self._row(element)
        if isinstance(row, DeadLetter):
            return row
        return Batch(self.schema, [row], lives=Lives.of([element]) if self.schema.lives is not None else None)

    def _row(self, element: Insert | Adjust) -> Row | DeadLetter:
        payload = element.payload
        if self.time is None:
            return DeadLetter(
                "an element brings a time, and rows of the stream are stamped as they enter: give a row, or declare "
                "the stream without timestamps=pk.internal()",
                written(described(element)),
            )
        if len(payload) == len(self.schema) - 1:
            payload = (*payload[: self.time], element.vs, *payload[self.time :])
        if len(payload) != len(self.schema) or payload[self.time] != element.vs:
            return DeadLetter("the payload does not fit the schema, or its time is not vs", written(described(element)))
        if self.schema.lives is None and (isinstance(element, Adjust) or element.ve != element.vs + 1):
            why = "is revised" if isinstance(element, Adjust) else "lives longer than a tick"
            return DeadLetter(
                f"the stream was declared as plain rows, and this {why}: declare it with lives=True",
                written(described(element)),
            )
        if not element.ve <= END_OF_TIME:
            return DeadLetter("an event beyond the ends of time", written(described(element)))
        return conform_row(self.schema, payload)


def no_row(item: object) -> DeadLetter:
    """What is neither a row nor an element."""
    return DeadLetter("not a row or an element", written(described(item)))
