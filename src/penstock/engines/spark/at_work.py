"""Which micro-batch a task works for, and what was known of a stream before it.

Spark tells a task the number of its micro-batch, and a micro-batch only starts once the record of the one before is
kept. So every task knows the same, also when a micro-batch is done again.
"""

from __future__ import annotations

from typing import Any

from pyspark import TaskContext

from penstock.engines.spark.trackers import tracked
from penstock.errors import CheckpointError, InternalError
from penstock.storage.files import Place, place_of
from penstock.storage.home import LOG
from penstock.storage.log import RecordLog

BATCH = "streaming.sql.batchId"
"""The property of a task under which Spark says which micro-batch it works for."""
NOTE = "at_work.json"
"""The file of a query's home that says so where Spark does not."""


def before_this(home: str, stream: str) -> dict[str, Any]:
    """What a stream's entrance had remembered before the micro-batch that this task works for, as its pages."""
    task = TaskContext.get()
    assert task is not None
    batch = task.getLocalProperty(BATCH)
    return recorded(home, stream, noted(home) if batch is None else int(batch))


def note(home: Place, batch: int) -> None:
    """Write down which micro-batch is at work, for tasks that Spark does not tell.

    Over Spark Connect a micro-batch is evaluated at the request of the process that writes it, and its tasks have no
    properties of the streaming query.
    """
    (home / NOTE).write_json({"batch": batch})


def noted(home: str) -> int:
    """Which micro-batch is at work, as it was written down."""
    file = place_of(home) / NOTE
    try:
        return int(file.read_json()["batch"])
    except FileNotFoundError:
        raise InternalError(
            "Spark does not say which micro-batch a task works for.", where=str(file), got=f"no {BATCH}"
        ) from None


def recorded(home: str, stream: str, batch: int) -> dict[str, Any]:
    """What a stream's entrance had remembered before a micro-batch, as its pages."""
    if batch == 0:
        return {}
    log, before = place_of(home) / LOG, batch - 1
    try:
        record = RecordLog(log).read(before)  # records are put one per micro-batch, and have its number
    except FileNotFoundError:
        raise _other_moment(log, f"micro-batch {batch} begins, and that before it has no record") from None
    if record.batch != before:
        raise _other_moment(log, f"micro-batch {batch} begins, and record {before} is of micro-batch {record.batch}")
    return tracked(record, stream)


def _other_moment(log: Place, got: str) -> CheckpointError:
    return CheckpointError(
        "The checkpoint and the log of this query are not of the same moment.",
        where=str(log),
        got=got,
        hint="a record was deleted while the query ran; restore it from a copy, or start over with another flow path",
    )
