"""What a running query keeps, for whoever only looks: pages of its state, and the newest row of its results.

Pages are read from its checkpoint, as they were after the last micro-batch that Spark has committed.

Spark's own reader of state is asked, operator by operator, until the page is found; each asking is a job of its own. A
checkpoint of which Spark has not committed anything yet has no pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from penstock.storage.files import Place


def pages_named(spark: Any, home: Place, name: str) -> Iterator[bytes]:
    """The pages of all buckets under a name, the identity of an operator and a key of its own."""
    state = home / "checkpoint" / "state"
    for operator in sorted(state.folders()):
        reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", "pages")
        try:
            frame = reader.load((home / "checkpoint").uri)
        except PySparkException:  # nothing is committed yet
            return
        found = frame.filter(F.col("user_map_key.key") == name).select(F.col("user_map_value.page").alias("page"))
        yield from (bytes(row.page) for row in found.collect())


def newest_row(spark: Any, folder: str, key: Mapping[str, object], time: str, at: object = None) -> pa.Table:
    """The row of a key in a folder of results whose time is the greatest, and that was given last of those.

    With `at`, of those with that time. It is a table of at most one row.
    """
    frame = spark.read.parquet(folder)
    for name, value in key.items():
        column = F.col(name)
        if isinstance(value, float):
            column += F.lit(0.0)  # zeros are one value; what Parquet knows of a file tells them apart
        frame = frame.filter(column.eqNullSafe(F.lit(value)))
    if at is not None:
        frame = frame.filter(F.col(time) == F.lit(at))
    rows = frame.select("*", F.input_file_name().alias("\0file")).orderBy(F.desc(time), F.desc("\0file")).limit(1)
    return rows.drop("\0file").toArrow()
