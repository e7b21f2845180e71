"""Spark's types and ours."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from penstock.model.schema import STRING, DataType, Field, Schema
from penstock.model.types import array_of, map_of, quoted, struct_of

_SIMPLE: list[tuple[type[t.DataType], str]] = [
    (t.BooleanType, "boolean"),
    (t.ByteType, "tinyint"),
    (t.ShortType, "smallint"),
    (t.IntegerType, "int"),
    (t.LongType, "bigint"),
    (t.FloatType, "float"),
    (t.DoubleType, "double"),
    (t.StringType, "string"),
    (t.BinaryType, "binary"),
    (t.DateType, "date"),
    (t.TimestampType, "timestamp"),
    (t.TimestampNTZType, "timestamp"),
    (t.CharType, "string"),
    (t.VarcharType, "string"),
    (t.NullType, "void"),
]


def from_spark(type_: t.DataType) -> DataType | None:
    """Our type of a Spark column, or None where there is none."""
    if isinstance(type_, t.DecimalType):
        return DataType("decimal", type_.precision, type_.scale)
    if isinstance(type_, t.ArrayType | t.MapType | t.StructType):
        return _from_nested(type_)
    return next((DataType(name) for spark, name in _SIMPLE if isinstance(type_, spark)), None)


def _from_nested(type_: t.ArrayType | t.MapType | t.StructType) -> DataType | None:
    """The type of parts that have one; names of fields must tell them apart."""
    if isinstance(type_, t.ArrayType):
        element = _part(type_.elementType)
        return None if element is None else array_of(element)
    if isinstance(type_, t.MapType):
        key, value = _part(type_.keyType), _part(type_.valueType)
        return map_of(key, value) if key is not None and value is not None and not key.holds_map else None
    found = [(field.name, _part(field.dataType)) for field in type_.fields]
    known = [(name, part) for name, part in found if name and part is not None]
    told_apart = len({name.lower() for name, _ in known}) == len(found) > 0
    return struct_of(known) if told_apart else None


def _part(type_: t.DataType) -> DataType | None:
    if isinstance(type_, t.TimestampNTZType):
        return None  # inside, nothing says that it is UTC
    found = from_spark(type_)
    return STRING if found is not None and found.name == "void" else found


def schema_from_spark(struct: t.StructType) -> Schema:
    """The columns of a DataFrame; those of types that queries cannot use are known as unusable."""
    fields, unusable = [], []
    for field in struct.fields:
        type_ = from_spark(field.dataType)
        if type_ is None:
            unusable.append((field.name, field.dataType.simpleString()))
        else:
            fields.append(Field(field.name, STRING if type_.name == "void" else type_))
    return Schema(tuple(fields), unusable=tuple(unusable))


def spark_type(type_: DataType) -> str:
    """Spark's name of our type: an instant, also in a session where `timestamp` means one without a zone."""
    if not type_.is_nested:
        return "timestamp_ltz" if type_.name == "timestamp" else str(type_)
    named = type_.name == "struct"
    parts = [f"{quoted(name)}:{spark_type(part)}" if named else spark_type(part) for name, part in type_.parts]
    return f"{type_.name}<{','.join(parts)}>"


def spark_ddl(schema: Schema) -> str:
    """The visible columns for Spark."""
    return _ddl(schema.visible)


def _ddl(fields: Iterable[Field]) -> str:
    return ", ".join(f"`{f.name}` {spark_type(f.type)}" for f in fields)


def frame_of(spark: SparkSession, table: pa.Table, schema: Schema) -> DataFrame:
    """The rows of a table; without any they have the types of the schema, since Spark Connect infers none."""
    if table.num_rows:
        return spark.createDataFrame(table)
    return spark.createDataFrame([], _ddl(schema.fields))
