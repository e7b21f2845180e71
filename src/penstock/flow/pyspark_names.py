"""What PySpark calls it: a name that a user of PySpark tries, and ours has not, is answered with ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

NAMES = {
    "awaitTermination": "wait(timeout)",
    "isActive": "is_active",
    "lastProgress": "progress",
    "recentProgress": "progress",
    "processAllAvailable": "finish(), or process_available() on Spark",
    "runId": "name",
    "id": "name",
    "toPandas": "to_pandas()",
    "toArrow": "collect(), which is an Arrow table",
    "toLocalIterator": "batches()",
    "printSchema": "schema",
    "dtypes": "schema",
    "isStreaming": "is_streaming",
    "writeStream": "start(sink), or df.writeStream on Spark",
    "readStream": "stream(name, source, time=…)",
    "head": "show(n), or collect().slice(0, n)",
    "take": "show(n), or collect().slice(0, n)",
    "count": "collect().num_rows, or counts for the input",
}


class PySparkNames:
    """Answers a name of PySpark's with ours."""

    if not TYPE_CHECKING:  # with it, a checker of types would take any name

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            hint = f"; PySpark's {name} is {NAMES[name]} here" if name in NAMES else ""
            raise AttributeError(f"{kind} has no {name!r}{hint}", name=name, obj=self)
