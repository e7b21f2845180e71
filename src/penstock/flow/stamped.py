"""Sources of streams whose times are given here: their own columns, and before them the time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.io.infer import parse_schema
from penstock.io.sources import open_source
from penstock.model.timestamps import with_stamps


def open_stamped(spark: Any, source: Any, time: str, schema: str | None, delimiter: str | None) -> Any:
    """The source, in-process or on Spark; in-process its items come without the time, and are stamped as they enter."""
    if spark is None:
        opened = open_source(source, None, schema, None, delimiter)
        return replace(opened, schema=with_stamps(opened.schema, time), narrowed=None)
    from penstock.engines.spark.stamps import open_stamped_source

    columns = None if schema is None else parse_schema(schema, None)
    return open_stamped_source(spark, source, time, columns, delimiter)
