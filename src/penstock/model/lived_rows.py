"""Rows whose columns tell lives: start, end, old end and, where a changelog is read, what each row does.

| columns | a row is |
|---|---|
| `(vs, ve)` | an insert of `[vs, ve)` |
| `(vs, ve, v_old)` | an insert where `v_old` is null, else an adjust from `v_old` to `ve` |
| `(vs, ve, v_old, op)` | what `op` says: `insert`, `update` or `delete`, which needs no `ve` |

An end that is null is open. Where there is no `op`, an adjust of an event that was open has the end of time as its old
end, which only an integer can say. What is left when the ends are taken out of a row is its payload, in which an insert
and its adjusts agree. A row whose start and ends make no sense is a dead letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter, row_json
from penstock.model.lives import NO_OLD, NOT_AN_ELEMENT, Lives
from penstock.model.schema import BIGINT, STRING, TIMESTAMP, DataType, Field, Schema
from penstock.model.time import END_OF_TIME, Domain

END, OLD = "ve", "v_old"
"""What ends are called where nobody gave them names."""
REVISING = ("update", "delete")
OPS = ("insert", *REVISING)


def end_type(schema: Schema) -> DataType:
    """The type of ends."""
    return TIMESTAMP if schema.domain is Domain.TIMESTAMP else BIGINT


@dataclass(frozen=True)
class LivedRows:
    """Which columns of a stream's rows tell its lives."""

    end: str
    old: str | None = None
    op: str | None = None

    @staticmethod
    def declared(names: object, time: str) -> LivedRows:
        """What `lives=` of a stream says."""
        given = list(names) if isinstance(names, Sequence) and not isinstance(names, str) else []
        if not 2 <= len(given) <= 4 or not all(isinstance(n, str) for n in given) or len(set(given)) < len(given):
            raise StreamError(
                "lives names the start and the end of rows, and for revisions the old end.",
                got=repr(names)[:200],
                hint='lives=("vs", "ve"), ("vs", "ve", "v_old") or ("vs", "ve", "v_old", "op")',
            )
        start, *rest = given
        if start != time:
            raise StreamError(
                "A row starts at its stream's time.", got=f"lives from {start}, time {time}", hint=f'time="{start}"'
            )
        return LivedRows(*rest)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns besides the start."""
        return tuple(c for c in (self.end, self.old, self.op) if c is not None)

    def read_as(self, schema: Schema) -> Schema:
        """The columns as they are read: ends are times."""
        missing = [c for c in self.columns if c not in schema]
        if missing:
            raise StreamError(
                "lives names an unknown column.", got=missing[0], hint=f"columns: {', '.join(schema.names)}"
            )
        if schema.time_format is not None:
            raise StreamError(
                "A stream with lives gives its times as they are.", got=f"time_format={schema.time_format!r}",
                hint="convert start and ends before",
            )  # fmt: skip
        types = {self.end: end_type(schema), self.old: end_type(schema), self.op: STRING}
        return replace(schema, fields=tuple(Field(f.name, types.get(f.name, f.type)) for f in schema.fields))

    def payload(self, read: Schema) -> Schema:
        """What is left of the columns, with lives beside them."""
        kept = tuple(f for f in read.fields if f.name not in self.columns)
        return replace(read, fields=kept, lives=(self.end, self.old or OLD))

    def split(self, batch: Batch, schema: Schema) -> tuple[Batch, list[DeadLetter]]:
        """A batch as it was read, as one with lives of the payload's schema; rows that are no elements are dead."""
        table = batch.table
        ends = _filled(table.column(self.end), END_OF_TIME)
        olds = np.full(len(ends), NO_OLD) if self.old is None else _filled(table.column(self.old), NO_OLD)
        starts, known = batch.times(), np.ones(len(ends), np.bool_)
        if self.op is not None:
            ops = np.array(table.column(self.op).to_pylist(), dtype=object)
            revising, known = np.isin(ops, REVISING), np.isin(ops, OPS)
            olds = np.where(revising, np.where(olds == NO_OLD, END_OF_TIME, olds), NO_OLD)
            ends = np.where(ops == "delete", starts, ends)
        lives = Lives(ends, olds)
        sound = lives.sound(starts) & known
        made = Batch(schema, table=table.select(schema.names), lives=lives)
        if sound.all():
            return made, []
        bad = batch.select(~sound)
        return made.select(sound), [DeadLetter(NOT_AN_ELEMENT, row_json(batch.schema, row)) for row in bad.rows]

    def added(self, schema: Schema) -> Schema:
        """The other way: the columns of a payload and of its lives."""
        types = ((self.end, end_type(schema)), (self.old, end_type(schema)), (self.op, STRING))
        more = tuple(Field(name, type_) for name, type_ in types if name is not None)
        return replace(schema, fields=(*schema.fields, *more), lives=None)

    def joined(self, batch: Batch) -> pa.Table:
        """A batch with lives as a table with columns for them."""
        lives, type_ = batch.its_lives(), end_type(batch.schema)
        table = batch.table.append_column(self.end, _column(lives.ends, lives.ends != END_OF_TIME, type_))
        if self.old is not None:
            known = lives.revises & (lives.olds != END_OF_TIME)
            table = table.append_column(self.old, _column(lives.olds, known, type_))
        if self.op is not None:
            table = table.append_column(self.op, pa.array(np.where(lives.revises, "update", "insert"), pa.string()))
        return table


def _filled(column: pa.ChunkedArray, missing: int) -> np.ndarray:
    """A column of times as ticks, with a tick for null."""
    return np.asarray(pc.fill_null(pc.cast(column, pa.int64()), missing).to_numpy())


def _column(ticks: np.ndarray, known: np.ndarray, type_: DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pc.cast(pa.array(ticks, pa.int64(), mask=~known), type_.arrow)])
