"""Spark's types and ours."""

from __future__ import annotations

from pyspark.sql import types as t

from penstock.model.schema import STRING, DataType, Field, Schema

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
    return next((DataType(name) for spark, name in _SIMPLE if isinstance(type_, spark)), None)


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
    return "timestamp_ltz" if type_.name == "timestamp" else str(type_)


def spark_ddl(schema: Schema) -> str:
    """The visible columns for Spark."""
    return ", ".join(f"`{f.name}` {spark_type(f.type)}" for f in schema.visible)
