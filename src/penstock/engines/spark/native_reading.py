"""Columns of a DataFrame brought into a stream's schema, as Spark expressions: what `model.conform` does with Arrow.

A value that does not fit is null here, and the row a dead letter with the same reason as in-process. Nothing depends on
the session's time zone: what has no zone of its own is UTC (`utc`).
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as t

from penstock.engines.spark import utc
from penstock.engines.spark.types import from_spark, spark_type
from penstock.model.schema import BINARY, DATE, STRING, TIMESTAMP, DataType, Field, Schema
from penstock.model.text import BASE64
from penstock.model.time import DAY, FIRST_TIMESTAMP, LAST_TIMESTAMP, show_ticks, usable
from penstock.model.time_format import EPOCHS, parse_format
from penstock.plan.typing import can_cast

_BLANKS = r"^[\x00-\x20]+|[\x00-\x20]+$"
_BASE64 = rf"\A{BASE64}\z"
_INSTANT = "timestamp_ltz"


def settled(name: str, given: t.DataType, field: Field, schema: Schema) -> Column:
    """The column in the schema's type, null where a value does not fit."""
    raw, found = F.col(f"`{name}`"), from_spark(given)
    if found is None:
        return F.lit(None).cast(spark_type(field.type))
    if field.name == schema.time and schema.time_format is not None:
        return _by_format(raw, found, schema.time_format)
    if field.type == TIMESTAMP:
        return _timestamp(raw, given, found)
    if field.type == DATE:
        days = F.unix_date(raw.try_cast("date") if found == STRING else raw)
        fits = days.between(FIRST_TIMESTAMP // DAY, LAST_TIMESTAMP // DAY)
        return F.when(fits, F.date_from_unix_date(days)) if found in (STRING, DATE) else F.lit(None).cast("date")
    if found == field.type:
        return raw
    return _converted(raw, found, field.type)


def _converted(raw: Column, found: DataType, type_: DataType) -> Column:
    if found.is_nested or type_.is_nested:  # what is wider fits; text is read from files alone
        fits = found.is_nested and can_cast(found, type_)
        return raw.cast(spark_type(type_)) if fits else F.lit(None).cast(spark_type(type_))
    if found == STRING:
        return F.when(raw.rlike(_BASE64), F.unbase64(raw)) if type_ == BINARY else raw.try_cast(str(type_))
    if type_.is_fractional and (found.is_integer or found.is_fractional):
        return raw.cast(str(type_))
    if type_.is_integer and found.is_integer:
        return raw.try_cast(str(type_))
    if type_.is_decimal and (found.is_integer or found.is_decimal):
        cast = raw.try_cast(str(type_))
        return F.when(cast == raw, cast)
    return F.lit(None).cast(str(type_))


def _moment(ticks: Column) -> Column:
    return F.when(ticks.between(FIRST_TIMESTAMP, LAST_TIMESTAMP), F.timestamp_micros(ticks))


def _timestamp(raw: Column, given: t.DataType, found: DataType) -> Column:
    if found == STRING:
        return _moment(F.unix_micros(utc.try_time_of_text(raw)))
    if found == DATE:
        fits = F.unix_date(raw).between(FIRST_TIMESTAMP // DAY, LAST_TIMESTAMP // DAY)
        return F.when(fits, utc.start_of(raw))
    if isinstance(given, t.TimestampNTZType):
        return _moment(F.unix_micros(utc.instant_of(raw)))
    return _moment(F.unix_micros(raw)) if found == TIMESTAMP else F.lit(None).cast(_INSTANT)


def _by_format(raw: Column, found: DataType, text: str) -> Column:
    form = parse_format(text)
    if not form.is_epoch:
        if found != STRING:
            return F.lit(None).cast(_INSTANT)
        bare, pattern = F.regexp_replace(raw, _BLANKS, ""), form.pattern
        if not form.has_zone:
            bare, pattern = F.concat(bare, F.lit(" +0000")), f"{pattern} Z"
        return _moment(F.unix_micros(F.try_to_timestamp(bare, F.lit(pattern)).cast(_INSTANT)))
    if found.is_fractional:
        ticks = F.rint(raw.cast("double") * F.lit(EPOCHS[text]))
        fits = ticks.between(float(FIRST_TIMESTAMP), float(LAST_TIMESTAMP)) & ~F.isnan(ticks)
        return F.when(fits, F.timestamp_micros(F.when(fits, ticks).cast("bigint")))
    if not (found.is_integer or found.is_decimal or found == STRING):
        return F.lit(None).cast(_INSTANT)
    exact = raw.cast("decimal(38,0)") if found.is_integer else raw.try_cast("decimal(38,9)")
    if text == "epoch_ns":
        counted = F.floor(F.try_divide(exact, F.lit(1000).cast("decimal(4,0)")))
    else:
        by = int(EPOCHS[text])
        counted = F.floor(F.try_multiply(exact, F.lit(by).cast(f"decimal({len(str(by))},0)")))
    return _moment(counted.try_cast("bigint"))


def problem(schema: Schema, frame: t.StructType, reason: Column | None) -> Column:
    """Why a row is a dead letter; null if it is none. `reason` is what the reader of its file has said already."""
    reasons = [] if reason is None else [reason]
    for field in schema.fields:
        given = frame[field.name].dataType
        raw, value = F.col(f"`{field.name}`"), settled(field.name, given, field, schema)
        is_time = field.name == schema.time
        if is_time:
            reasons.append(F.when(raw.isNull(), F.lit(f"{field.name} is null")))
        if is_time or field.type in (TIMESTAMP, DATE) or from_spark(given) != field.type:
            what = schema.time_format if is_time and schema.time_format is not None else f"a {field.type}"
            quote = "'" if isinstance(given, t.StringType) else ""
            shown = F.concat(F.lit(f"{field.name} is not {what}: {quote}"), raw.cast("string"), F.lit(quote))
            reasons.append(F.when(raw.isNotNull() & value.isNull(), shown))
        if is_time:
            reasons.append(_out_of_range(field, value, schema))
    return F.coalesce(*reasons) if reasons else F.lit(None).cast("string")


def _out_of_range(field: Field, value: Column, schema: Schema) -> Column:
    first, last = usable(schema.domain)
    ticks = F.unix_micros(value) if field.type == TIMESTAMP else value.cast("bigint")
    between = " and ".join(show_ticks(tick, schema.domain) for tick in (first, last))
    shown = F.concat(F.lit(f"{field.name} is not between {between}: "), ticks.cast("string"))
    return F.when(~ticks.between(first, last), shown)
