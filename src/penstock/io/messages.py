"""Messages of a broker as rows of a stream, and what of them cannot be one, with where it is.

A message's value is a JSON object, of which each member is a column, or bytes, which are a column of their own. What
the broker says of a message (its partition, offset, time, key) are columns too, where the schema asks for them.
A message that does not fit is a dead letter whose reason ends with its place, so that it can be looked at again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter, as_json, conform_rows, conformed
from penstock.model.schema import Schema
from penstock.runtime.polled import Polled
from penstock.runtime.positions import Resumable

FORMS = ("json", "bytes")


class Reader(Polled, Resumable, Protocol):
    """Reads a broker for one run."""

    def close(self) -> None:
        """It is read no longer; may be called from any thread."""


@runtime_checkable
class SourceTarget(Protocol):
    """What can be given as a source, and is opened anew by each run."""

    def check_columns(self, schema: Schema) -> None:
        """Refuse columns that it cannot fill, when the stream is declared."""

    def open_source(self, schema: Schema) -> Reader:
        """A source of rows with these columns."""


@dataclass(frozen=True)
class Messages:
    """Rows that came together, with the place of each, and those that are none."""

    rows: list[Mapping[str, object]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    as_text: bool = False
    """Whether values are texts, which are read as in a CSV file."""

    def add(self, value: bytes | None, told: Mapping[str, object], place: str) -> None:
        """A message whose value is JSON, with what the broker has told of it."""
        try:
            row = json.loads(value) if value is not None else None
        except (ValueError, RecursionError) as error:
            self.bury(f"the value is not JSON: {error}", value, place)
            return
        if isinstance(row, dict):
            self.rows.append({**row, **told})
            self.places.append(place)
        else:
            self.bury(f"the value is not a JSON object: {_kind(row)}", value, place)

    def add_row(self, row: Mapping[str, object], place: str) -> None:
        """A message that is a row as it is."""
        self.rows.append(row)
        self.places.append(place)

    def bury(self, reason: str, value: bytes | None, place: str) -> None:
        """A message that is no row."""
        self.dead.append(DeadLetter(f"{reason} ({place})", "" if value is None else value.decode("utf-8", "replace")))

    def items(self, schema: Schema) -> Iterator[Batch | DeadLetter]:
        """As they are fed to a stream: the dead letters, and what is left as one batch."""
        yield from self.dead
        if self.as_text:
            yield from self._from_text(schema)
            return
        good, dead = conform_rows(schema, self.rows)
        if dead:  # which is rare, so that only then it is asked of each row whether it is one
            for row, place in zip(self.rows, self.places, strict=True):
                for letter in conform_rows(schema, [row])[1]:
                    yield DeadLetter(f"{letter.reason} ({place})", letter.row)
        if len(good):
            yield good

    def _from_text(self, schema: Schema) -> Iterator[Batch | DeadLetter]:
        names = [f.name for f in schema.fields if any(f.name in row for row in self.rows)]
        columns = [pa.array([row.get(name) for row in self.rows]) for name in names]
        table = pa.Table.from_arrays(columns, names=names) if names else pa.table({"": pa.nulls(len(self.rows))})
        found = conformed(schema, table)
        if found.failed is None:
            yield Batch(schema, table=found.table)
            return
        letters = found.letters(table, [as_json(row) for row in self.rows])
        for letter, at in zip(letters, found.failed.nonzero()[0].tolist(), strict=True):
            yield DeadLetter(f"{letter.reason} ({self.places[at]})", letter.row)
        good = Batch(schema, table=found.table.filter(pa.array(~found.failed)))
        if len(good):
            yield good


def _kind(value: object) -> str:
    kinds = {type(None): "null", bool: "a boolean", list: "an array", str: "a string"}
    return kinds.get(type(value), "a number")


def checked_form(value: object, where: str, column: str) -> str:
    """How values are read."""
    if value not in FORMS:
        raise StreamError(
            "Messages are read as JSON or as bytes.",
            where=where,
            got=f"value={value!r}"[:200],
            hint=f"value='json', or value='bytes' with the column {column} binary: Avro, Protobuf and others are "
            "decoded by a function of your own",
        )
    return str(value)


def told_columns(schema: Schema, known: Collection[str]) -> dict[str, tuple[str, str]]:
    """The columns of a schema that the broker tells, each with what it tells there and as which type.

    As everywhere in SQL, names do not mind case.
    """
    return {f.name: (f.name.lower(), str(f.type)) for f in schema.fields if f.name.lower() in known}


def check_told(schema: Schema, known: Mapping[str, Sequence[str]], where: str) -> None:
    """Refuse a column for what the broker tells that has another type than it may have there."""
    told = told_columns(schema, known)
    for column, (name, type_) in told.items():
        if type_ not in known[name]:
            raise StreamError(
                "A column that the broker tells is declared with another type.",
                where=where,
                got=f"{column} {type_}{', as the time' if column == schema.time else ''}",
                hint=f"{column} {' or '.join(known[name])}; a query makes something else of it: CAST({column} AS …)",
            )
    if schema.time in told and schema.time_format is not None:
        raise StreamError(
            "The time that the broker tells is a timestamp already.",
            where=where,
            got=f"{schema.time}, and time_format={schema.time_format!r}",
            hint=f"leave out time_format, and declare {schema.time} timestamp",
        )


def settings_of(options: object, where: str) -> dict[str, Any]:
    """Further settings of a client."""
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise StreamError(
            "Settings of a client are given by their names.",
            where=where,
            got=repr(options)[:200],
            hint="options={'client.id': 'talkers'}",
        )
    return dict(options)
