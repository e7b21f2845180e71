"""How rows of interval streams are laid out: a payload, and beside it the start, which need not be part of it.

The payload is every column but the time and, where there is one, the *generation* in which what a row is made of
arrived. That column is hidden; only the Parallel Track strategy needs it, and an operator combines generations by the
least: what is made of anything old is old. A row's start is its time column, its end is among the lives of the batch.
The operators of this package take inserts only and say so to whoever gives them a revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from penstock.errors import PlanError
from penstock.model.batch import Batch, Row
from penstock.model.lives import Lives
from penstock.model.schema import BIGINT, DataType, Field, Schema
from penstock.model.values import canonical_row

START, ENDS = "vs", ("ve", "v_old")
GENERATION = "generation"


class Event(NamedTuple):
    """A payload, when it is valid, and the least generation of what it is made of; 0 where nobody asks."""

    start: int
    end: int
    payload: Row
    generation: int = 0


def interval_schema(types: Sequence[DataType], *, generations: bool = False) -> Schema:
    """A schema of payloads with columns `c0`, `c1`, … of these types; the start is hidden."""
    fields = [Field(f"c{at}", type_) for at, type_ in enumerate(types)]
    marks = [Field(GENERATION, BIGINT, hidden=True)] if generations else []
    return Schema((*fields, *marks, Field(START, BIGINT, hidden=True)), START, lives=ENDS)


def payload_types(schema: Schema) -> list[DataType]:
    """The types of what is in a payload."""
    return [field.type for field in schema.fields if field.name not in (schema.time, GENERATION)]


def with_generations(schema: Schema) -> Schema:
    """The same rows with their generation before their time."""
    mark, at = Field(GENERATION, BIGINT, hidden=True), schema.time_index
    return replace(schema, fields=(*schema.fields[:at], mark, *schema.fields[at:]))


class Layout:
    """Where in the rows of a schema payload, start and generation are."""

    def __init__(self, schema: Schema) -> None:
        """Of a schema with a time."""
        self.schema, self.time = schema, schema.time_index
        self.generation = schema.names.index(GENERATION) if GENERATION in schema.names else None
        aside = (self.time, self.generation)
        self.places = [at for at in range(len(schema)) if at not in aside]
        size = len(self.places)
        self.is_usual = self.time == len(schema) - 1 and self.generation in (None, size)
        """Whether the columns are in the order that `interval_schema` gives them."""

    def events(self, batch: Batch) -> Iterator[Event]:
        """The rows of a batch; a revision is an error of whoever made the plan."""
        lives, mark = batch.its_lives(), self.generation
        if lives.revises.any():
            raise PlanError(
                "An operator that takes inserts only was given a revision.",
                got=str(batch.select(lives.revises).elements()[0])[:200],
                hint="put a Settle below it",
            )
        starts, ends, places = batch.times().tolist(), lives.ends.tolist(), self.places
        for row, start, end in zip(batch.rows, starts, ends, strict=True):
            generation: int = 0 if mark is None else row[mark]  # type: ignore[assignment]
            yield Event(start, end, tuple([row[at] for at in places]), generation)

    def row(self, event: Event) -> Row:
        """The other way."""
        values = iter(event.payload)
        return tuple(
            event.start if at == self.time else event.generation if at == self.generation else next(values)
            for at in range(len(self.schema))
        )

    def batch(self, events: Sequence[Event]) -> Batch:
        """Events as a batch of inserts."""
        ends = np.fromiter((event.end for event in events), np.int64, len(events))
        rows: list[Row]
        if not self.is_usual:
            rows = [self.row(event) for event in events]
        elif self.generation is None:
            rows = [(*payload, start) for start, _, payload, _ in events]
        else:
            rows = [(*payload, generation, start) for start, _, payload, generation in events]
        return Batch(self.schema, rows, lives=Lives.of_inserts(ends))


def key_of(payload: Row, places: Iterable[int]) -> Row:
    """Some values of a payload, as a key."""
    return canonical_row(tuple([payload[at] for at in places]))
