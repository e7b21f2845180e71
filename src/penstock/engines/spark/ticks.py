"""Time columns as ticks and back, and whole division of them, as Spark expressions."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.model.time import Domain


def ticks_of(name: str, domain: Domain) -> Column:
    """A time column as ticks."""
    return F.unix_micros(F.col(name)) if domain is Domain.TIMESTAMP else F.col(name).cast("bigint")


def time_of(ticks: Column, domain: Domain) -> Column:
    """Ticks as a time column."""
    return F.timestamp_micros(ticks) if domain is Domain.TIMESTAMP else ticks


def floor_div(value: Column, divisor: int) -> Column:
    """The greatest whole number not above the quotient, for negative values too, except within one of the least."""
    by = long(divisor)
    return F.call_function("div", value - F.pmod(value, by), by)


def long(value: int) -> Column:
    """A whole number of 64 bits."""
    return F.lit(value).cast("bigint")
