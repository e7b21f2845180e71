"""Streaming sources with names, so that a query can be given more of them later.

Spark keeps the position of a source under its number among the query's sources, unless every source has a name and the
session says so from the first checkpoint on; that cannot be switched on later. A DataFrame that somebody else has
loaded cannot be named any more. So a stream may also be declared over a reader that is not loaded yet
(`spark.readStream.format(…).option("path", …)`): it is loaded here, under the stream's name. A query all of whose
sources have names, as those that Penstock reads itself do, can have sources added and removed.

Through Spark Connect a plan is analysed again and again under what the session says then, so names are only given if
the session itself is set for them.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException

from penstock.engines.spark.failure import explained
from penstock.engines.spark.serving import EVOLUTION, said, served
from penstock.errors import SourceError

CONTROL = "penstock_control"


def is_reader(source: object) -> bool:
    """Whether it is a reader of a stream that has not been loaded."""
    return type(source).__name__ == "DataStreamReader"


def names_are_on(spark: Any) -> bool:
    """Whether the session asks for names; then every streaming DataFrame in it has them."""
    return said(spark, EVOLUTION).lower() == "true"


def can_name(spark: Any) -> bool:
    """Whether sources can be named in this session."""
    return names_are_on(spark) or not type(spark).__module__.startswith("pyspark.sql.connect")


def loaded(spark: Any, reader: Any, name: str) -> Any:
    """The DataFrame of a reader, under a name where that can be."""
    try:
        if not can_name(spark):
            frame = reader.load()
            frame.schema  # noqa: B018 - over Spark Connect nobody has looked before this
            return frame
        with served(spark, lambda: {} if names_are_on(spark) else {EVOLUTION: "true"}):
            return reader.name(name.lower()).load()
    except PySparkException as error:
        raise SourceError(
            "Spark cannot read the stream.",
            where=f"stream {name}",
            got=explained(str(error), name).what,
            hint="look at the format, the path and the options of the reader",
        ) from error
