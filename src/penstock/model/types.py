"""SQL types: what they are called, which Arrow type each has, and which SQL type an Arrow column has.

The types are Spark SQL's. A nested type has parts: an array its element, a map its key and its value, a struct its
fields by name. Any part may be null, but for a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import StreamError
from penstock.model.time import Domain


@dataclass(frozen=True)
class DataType:
    """A SQL type: its name, precision and scale for decimals, and the parts of a nested one."""

    name: str
    precision: int = 0
    scale: int = 0
    parts: tuple[tuple[str, DataType], ...] = ()
    """Types by name: of an array `element`, of a map `key` and `value`, of a struct its fields."""

    @property
    def is_nested(self) -> bool:
        """Whether values have parts."""
        return self.name in NESTED

    @property
    def element(self) -> DataType:
        """What an array holds; of a map, its values."""
        return self.parts[-1][1]

    @property
    def holds_map(self) -> bool:
        """Whether a value is a map or has one in it; maps have no order, and SQL does not compare them."""
        return self.name == "map" or any(part.holds_map for _, part in self.parts)

    def field(self, name: str) -> int | None:
        """The place of a field of a struct; names do not mind case, unless that is all. None if none is meant."""
        exact = [i for i, (own, _) in enumerate(self.parts) if own == name]
        alike = exact or [i for i, (own, _) in enumerate(self.parts) if own.lower() == name.lower()]
        return alike[0] if self.name == "struct" and len(alike) == 1 else None

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
        match self.name:
            case "array":
                return pa.list_(pa.field("element", self.element.arrow))
            case "map":
                return pa.map_(self.parts[0][1].arrow, self.element.arrow)
            case "struct":
                return pa.struct([(name, part.arrow) for name, part in self.parts])
        return _ARROW[self.name]

    def __str__(self) -> str:
        """As Spark SQL writes it."""
        if self.is_decimal:
            return f"decimal({self.precision},{self.scale})"
        if not self.is_nested:
            return self.name
        named = self.name == "struct"
        return f"{self.name}<{','.join(f'{quoted(n)}:{t}' if named else str(t) for n, t in self.parts)}>"


def quoted(name: str) -> str:
    """A name as it stands in a type, in backquotes if it is no plain word."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    return name if plain else "`" + name.replace("`", "``") + "`"


NESTED = frozenset({"array", "map", "struct"})
DEEPEST = 32
"""So deep may types stand in one another."""
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


def array_of(element: DataType) -> DataType:
    """The type of arrays."""
    return DataType("array", parts=(("element", element),))


def map_of(key: DataType, value: DataType) -> DataType:
    """The type of maps."""
    return DataType("map", parts=(("key", key), ("value", value)))


def struct_of(fields: Iterable[tuple[str, DataType]]) -> DataType:
    """The type of structs with these fields."""
    return DataType("struct", parts=tuple(fields))


def parse_type(text: str) -> DataType:
    """A type from its Spark SQL name, such as `bigint`, `decimal(10,2)` or `array<struct<lat double, lon double>>`."""
    return _parsed(text, 0)


def _parsed(text: str, depth: int) -> DataType:
    name = text.strip().lower()
    nested = re.fullmatch(r"\s*(array|map|struct)\s*<(.*)>\s*", text, re.IGNORECASE | re.DOTALL)
    if nested is not None:
        if depth == DEEPEST:
            raise StreamError("The type is nested too deeply.", got=f"more than {DEEPEST} types in one another")
        return _nested(nested[1].lower(), nested[2], text.strip(), depth + 1)
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
        raise StreamError(
            "Unknown type.",
            got=repr(text),
            hint=f"use one of {', '.join(sorted(_ARROW))}, decimal(p,s), array<type>, map<type, type>, "
            "struct<name type, …>",
        )
    return DataType(name)


def _nested(kind: str, inside: str, text: str, depth: int) -> DataType:
    """A nested type of the text between its angle brackets."""
    parts = split_list(inside)
    if kind == "array" and len(parts) == 1:
        return array_of(_parsed(parts[0], depth))
    if kind == "map" and len(parts) == 2:
        key, value = (_parsed(part, depth) for part in parts)
        if key.holds_map:
            raise StreamError("A key of a map cannot hold a map.", got=text[:200], hint="maps cannot be compared")
        return map_of(key, value)
    fields = [_FIELD.fullmatch(part) for part in parts] if kind == "struct" and inside.strip() else []
    if not fields or not all(fields):
        hint = "array<type>, map<type, type> or struct<name type, name type>"
        raise StreamError("The nested type is not written so.", got=text[:200], hint=hint)
    named = [((f[1] or "").replace("``", "`") or f[2], _parsed(f[3], depth)) for f in fields if f is not None]
    names = [name.lower() for name, _ in named]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise StreamError("Two fields of a struct have the same name.", got=double, hint="rename one")
    return struct_of(named)


_FIELD = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s:`]+))(?:\s*:\s*|\s+)(\S.*?)\s*", re.DOTALL)


def split_list(text: str) -> list[str]:
    """The parts between commas that stand in no brackets and no backquotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for at, char in enumerate(text):
        quoted ^= char == "`"
        depth += 0 if quoted else (char in "(<") - (char in ")>")
        if char == "," and not depth and not quoted:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def from_arrow_type(arrow: pa.DataType) -> DataType | None:
    """The SQL type of an Arrow column, or None where there is none: times of day, intervals, unions.

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
    if t.is_nested(arrow) and not t.is_dictionary(arrow) and not t.is_run_end_encoded(arrow):
        return _from_nested(arrow)
    if t.is_dictionary(arrow) or t.is_run_end_encoded(arrow):
        return from_arrow_type(arrow.value_type)
    if isinstance(arrow, pa.BaseExtensionType):
        return from_arrow_type(arrow.storage_type)
    if t.is_decimal(arrow) and arrow.precision <= MAX_PRECISION and 0 <= arrow.scale <= arrow.precision:
        return DataType("decimal", arrow.precision, arrow.scale)
    return None


def _from_nested(arrow: pa.DataType) -> DataType | None:
    """The type of lists, maps and structs of parts that have one; names of fields must tell them apart."""
    t = pa.types
    if t.is_map(arrow):
        key, value = _part(arrow.key_type), _part(arrow.item_type)
        return map_of(key, value) if key is not None and value is not None and not key.holds_map else None
    if t.is_struct(arrow):
        found = [(field.name, _part(field.type)) for field in arrow]
        known = [(name, part) for name, part in found if name and part is not None]
        told_apart = len({name.lower() for name, _ in known}) == len(found) > 0
        return struct_of(known) if told_apart else None
    is_list = t.is_list(arrow) or t.is_large_list(arrow) or t.is_fixed_size_list(arrow)
    element = _part(arrow.value_type) if is_list else None
    return None if element is None else array_of(element)


def _part(arrow: pa.DataType) -> DataType | None:
    """The type of a part; one of which nothing is known is text, as such a column is."""
    found = from_arrow_type(arrow)
    return STRING if found == VOID else found
