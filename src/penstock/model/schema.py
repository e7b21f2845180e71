"""Fields and schemas; types are in `types`, and found here too.

The types are Spark SQL's. In a row a timestamp is an int of microseconds since the epoch (UTC); in an Arrow table it is
`timestamp('us', 'UTC')`. Nested values are tuples in a row (`model.nested`). All others are themselves in both.

A schema says which column carries time and how long a row lives: `[t + offset, t + offset + lifetime)`. A column may be
hidden: it travels with the rows because later operators need its time, and is left out of what the user sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from penstock.errors import StreamError
from penstock.model.time import Domain
from penstock.model.time_format import parse_format
from penstock.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    DataType,
    decimal,
    from_arrow_type,
    parse_type,
)

__all__ = [
    "BIGINT", "BINARY", "BOOLEAN", "DATE", "DOUBLE", "FLOAT", "INT", "MAX_PRECISION", "SMALLINT", "STRING", "TIMESTAMP",
    "TINYINT", "VOID", "DataType", "Field", "Schema", "columns_of", "decimal", "fields_of", "from_arrow_type",
    "parse_type", "progressing", "schema_of", "timed",
]  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A named, typed column."""

    name: str
    type: DataType
    hidden: bool = False
    words: str = field(default="", compare=False)
    """Of a column that the query does not name: what it says in its place, such as `sum(v)`."""

    def __str__(self) -> str:
        """As in a DDL string."""
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class Schema:
    """The columns of a stream, which of them is its time, and how long a row lives."""

    fields: tuple[Field, ...]
    time: str | None = None
    lifetime: int = 1
    time_format: str | None = field(default=None, compare=False)
    """How the input writes the time, where it is not a timestamp yet; see `model.time_format`."""
    unusable: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """Columns of the input that queries cannot use, with their types: they pass by unread."""
    lives: tuple[str, str] | None = None
    """What the end of a row and its old end are called, where rows have lives of their own; see `model.lives`."""
    attributes: tuple[str, ...] = field(default=(), compare=False)
    """Of a stream of which several attributes progress, which: values must be usable as times, and may be null, since
    punctuation need not speak for each; where the stream enters, a row of data without one dies."""

    def __post_init__(self) -> None:
        """Refuse duplicate names and a time that is not a column."""
        names = [f.name for f in self.fields]
        double = {n for n in names if names.count(n) > 1}
        if double:
            raise StreamError(
                "Two columns have the same name.", got=", ".join(sorted(double)), hint="rename one with AS"
            )
        if self.time is not None and self.time not in names:
            raise StreamError("The time column does not exist.", got=self.time, hint=f"columns: {', '.join(names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, hidden ones included."""
        return tuple(f.name for f in self.fields)

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The names for people to read: those that the query does not give are in its words, where these are unique."""
        shown = Counter(f.words or f.name for f in self.fields)
        return tuple(f.words if f.words and shown[f.words] == 1 else f.name for f in self.fields)

    @property
    def visible(self) -> tuple[Field, ...]:
        """The columns that the user sees."""
        return tuple(f for f in self.fields if not f.hidden)

    @property
    def domain(self) -> Domain:
        """The domain of the time column."""
        domain = self[self.time].type.domain if self.time is not None else Domain.INTEGER
        return domain or Domain.INTEGER

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of all columns."""
        return pa.schema([(f.name, f.type.arrow) for f in self.fields])

    @property
    def visible_arrow(self) -> pa.Schema:
        """The Arrow schema of the columns that the user sees."""
        return pa.schema([(f.name, f.type.arrow) for f in self.visible])

    @property
    def ddl(self) -> str:
        """The visible columns as a Spark DDL string."""
        return ", ".join(f"`{f.name}` {f.type}" for f in self.visible)

    def index(self, name: str) -> int:
        """The position of a column; SQL names do not mind case."""
        for i, f in enumerate(self.fields):
            if f.name == name:
                return i
        lowered = [i for i, f in enumerate(self.fields) if f.name.lower() == name.lower()]
        if len(lowered) != 1:
            raise KeyError(name)
        return lowered[0]

    def __getitem__(self, name: str | None) -> Field:
        """The field of that name."""
        if name is None:
            raise KeyError("no name")
        return self.fields[self.index(name)]

    def __contains__(self, name: object) -> bool:
        """Whether there is a column of that name."""
        try:
            self.index(str(name))
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[Field]:
        """All fields in order."""
        return iter(self.fields)

    def __len__(self) -> int:
        """How many columns there are."""
        return len(self.fields)

    @property
    def time_index(self) -> int:
        """The position of the time column."""
        if self.time is None:
            raise StreamError("The stream has no time column.", hint="declare it with time=…")
        return self.index(self.time)

    def describe(self) -> str:
        """Name, type and role of each column, one a line."""
        return "\n".join(
            f"{f.name}: {f.type}{' (time)' if f.name == self.time else ''}{' (hidden)' if f.hidden else ''}"
            for f in self.fields
        )


def columns_of(arrow: pa.Schema) -> Schema:
    """The columns of Arrow data, without a time; those of types that SQL has not are known as unusable."""
    fields, unusable = [], []
    for column in arrow:
        type_ = from_arrow_type(column.type)
        if type_ is None:
            unusable.append((column.name, str(column.type)))
        else:
            fields.append(Field(column.name, STRING if type_.name == "void" else type_))
    return Schema(tuple(fields), unusable=tuple(unusable))


def fields_of(pairs: Iterable[tuple[str, str | DataType]]) -> tuple[Field, ...]:
    """Fields from name and type pairs."""
    return tuple(Field(n, t if isinstance(t, DataType) else parse_type(t)) for n, t in pairs)


def schema_of(pairs: Sequence[tuple[str, str | DataType]], time: str | None = None) -> Schema:
    """A schema from name and type pairs."""
    return Schema(fields_of(pairs), time)


def timed(schema: Schema, time: str | None, time_format: str | None = None, *, declared: bool = False) -> Schema:
    """The schema with its time column checked; as it is, if it has none, as that of a table.

    Text and dates there are read as timestamps, and so is whatever `time_format` says how to read. A declared schema
    says what is wanted, an inferred one what is there, so that the format can be checked against it.
    """
    if time is None:
        return schema
    if time not in schema:
        known = dict(schema.unusable)
        if time in known:
            raise StreamError(
                "The time column must be a timestamp, a date, an integer, or text.",
                got=f"{time}: {known[time]}",
                hint="convert it before, or choose another column",
            )
        raise StreamError("The time column does not exist.", got=time, hint=f"columns: {', '.join(schema.names)}")
    found = schema[time]
    if time_format is not None:
        parse_format(time_format)
        if not declared:
            _check_format(time_format, found)
    if time_format is not None or found.type in (STRING, DATE):
        fields = tuple(Field(f.name, TIMESTAMP) if f.name == found.name else f for f in schema.fields)
        return replace(schema, fields=fields, time=found.name, time_format=time_format)
    if found.type.domain is None:
        raise StreamError(
            "The time column must be a timestamp, a date, an integer, or text.",
            got=str(found),
            hint="for seconds since 1970 give time_format='epoch_s', or convert it before"
            if found.type.is_fractional or found.type.is_decimal
            else "convert it before, or choose another column",
        )
    return replace(schema, time=found.name)


def progressing(schema: Schema, attributes: Sequence[str]) -> Schema:
    """The schema of a stream of which several attributes progress, once they are checked."""
    for name in attributes:
        if name not in schema:
            raise StreamError(
                "An attribute that progresses does not exist.", got=name, hint=f"columns: {', '.join(schema.names)}"
            )
        if schema[name].type.domain is None:
            raise StreamError(
                "An attribute that progresses is a timestamp or an integer.",
                got=str(schema[name]),
                hint="declare its type with schema=…, or convert it before",
            )
    return replace(schema, attributes=tuple(schema[name].name for name in attributes))


def _check_format(time_format: str, column: Field) -> None:
    """Refuse a format that does not fit the column's type."""
    kind = parse_format(time_format)
    if kind.is_epoch and not (column.type.is_numeric or column.type == STRING):
        raise StreamError(
            "Only numbers, or text with numbers, can count from the epoch.",
            got=f"{column} with time_format={time_format!r}",
            hint="leave time_format out",
        )
    if not kind.is_epoch and column.type != STRING:
        raise StreamError(
            "Only text can be read by a pattern.",
            got=f"{column} with time_format={time_format!r}",
            hint="numbers are read with time_format='epoch_s', 'epoch_ms', 'epoch_us' or 'epoch_ns'",
        )
