"""Types, fields and schemas.

The types are Spark SQL's. In a row a timestamp is an int of microseconds since the epoch (UTC); in an Arrow table it is
`timestamp('us', 'UTC')`. Every other type is itself in both.

A schema says which column carries time and how long a row lives: `[t + offset, t + offset + lifetime)`. A column may be
hidden: it travels with the rows because later operators need its time, and is left out of what the user sees.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from penstock.errors import StreamError
from penstock.model.time import Domain
from penstock.model.time_format import parse_format


@dataclass(frozen=True)
class DataType:
    """A SQL type: its name, and precision and scale for decimals."""

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers of a fixed width."""
        return self.name in _INTEGER_BITS

    @property
    def is_decimal(self) -> bool:
        """Whether values are exact decimals."""
        return self.name == "decimal"

    @property
    def is_fractional(self) -> bool:
        """Whether values are floating point."""
        return self.name in ("float", "double")

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic applies."""
        return self.is_integer or self.is_decimal or self.is_fractional

    @property
    def bits(self) -> int:
        """The width of an integer type."""
        return _INTEGER_BITS[self.name]

    @property
    def domain(self) -> Domain | None:
        """The time domain that a progressing attribute of this type has; None if it cannot be one."""
        if self.name == "timestamp":
            return Domain.TIMESTAMP
        return Domain.INTEGER if self.is_integer else None

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column of this type."""
        if self.is_decimal:
            return pa.decimal128(self.precision, self.scale)
        return _ARROW[self.name]

    def __str__(self) -> str:
        """As Spark SQL writes it."""
        return f"decimal({self.precision},{self.scale})" if self.is_decimal else self.name


_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "void": pa.null(),
}

BOOLEAN, TINYINT, SMALLINT, INT, BIGINT = (DataType(n) for n in ("boolean", "tinyint", "smallint", "int", "bigint"))
FLOAT, DOUBLE, STRING, BINARY = (DataType(n) for n in ("float", "double", "string", "binary"))
DATE, TIMESTAMP, VOID = (DataType(n) for n in ("date", "timestamp", "void"))
MAX_PRECISION = 38


def decimal(precision: int, scale: int) -> DataType:
    """A decimal type, cut to the widest there is as Spark does: scale gives way, but keeps up to six digits."""
    if precision > MAX_PRECISION:
        whole = precision - scale
        scale = max(MAX_PRECISION - whole, min(scale, 6))
        precision = MAX_PRECISION
    return DataType("decimal", precision, scale)


_ALIASES = {
    "bool": "boolean", "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "text": "string", "varchar": "string", "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp", "null": "void",
}  # fmt: skip


def parse_type(text: str) -> DataType:
    """A type from its Spark SQL name, such as `bigint` or `decimal(10,2)`."""
    name = text.strip().lower()
    match = re.fullmatch(r"(?:decimal|numeric|dec)(?:\((\d{1,9})(?:\s*,\s*(\d{1,9}))?\))?", name)
    if match:
        precision, scale = int(match.group(1) or 10), int(match.group(2) or 0)
        if not (1 <= precision <= MAX_PRECISION and scale <= precision):
            raise StreamError(
                "There is no such decimal.", got=repr(text), hint="decimal(p,s) with s ≤ p and 1 ≤ p ≤ 38"
            )
        return decimal(precision, scale)
    if re.fullmatch(r"(?:var)?char\(\d+\)", name):
        return STRING
    name = _ALIASES.get(name, name)
    if name not in _ARROW:
        raise StreamError("Unknown type.", got=repr(text), hint=f"use one of {', '.join(sorted(_ARROW))}, decimal(p,s)")
    return DataType(name)


def from_arrow_type(arrow: pa.DataType) -> DataType | None:
    """The SQL type of an Arrow column, or None where there is none: nested types, times of day, intervals.

    Unsigned integers take the next wider type, the widest a decimal; a duration is a number of microseconds; an
    extension type is what it is stored as.
    """
    t = pa.types
    simple = (
        (t.is_boolean, BOOLEAN), (t.is_int8, TINYINT), (t.is_int16, SMALLINT), (t.is_int32, INT), (t.is_int64, BIGINT),
        (t.is_uint8, SMALLINT), (t.is_uint16, INT), (t.is_uint32, BIGINT), (t.is_float16, FLOAT), (t.is_float32, FLOAT),
        (t.is_float64, DOUBLE), (t.is_date, DATE), (t.is_timestamp, TIMESTAMP), (t.is_null, VOID),
        (t.is_uint64, DataType("decimal", 20)), (t.is_duration, BIGINT), (t.is_fixed_size_binary, BINARY),
    )  # fmt: skip
    for test, sql in simple:
        if test(arrow):
            return sql
    if t.is_string(arrow) or t.is_large_string(arrow) or t.is_string_view(arrow):
        return STRING
    if t.is_binary(arrow) or t.is_large_binary(arrow) or t.is_binary_view(arrow):
        return BINARY
    if t.is_dictionary(arrow) or t.is_run_end_encoded(arrow):
        return from_arrow_type(arrow.value_type)
    if isinstance(arrow, pa.BaseExtensionType):
        return from_arrow_type(arrow.storage_type)
    if t.is_decimal(arrow) and arrow.precision <= MAX_PRECISION and 0 <= arrow.scale <= arrow.precision:
        return DataType("decimal", arrow.precision, arrow.scale)
    return None


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
