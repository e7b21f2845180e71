"""Merging the output folders of running pipelines into one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.engines.spark.folders import PUNCTUATION, output_stream, read_output
from penstock.engines.spark.run import SparkRun
from penstock.errors import MergeError
from penstock.flow.flow import Flow
from penstock.model.progress import punctuated


def merge_outputs(
    spark: Any,
    folders: Sequence[str],
    into: str,
    path: str,
    *,
    key: Sequence[str] | None = None,
    driver: str = "leading",
    trigger: Mapping[str, Any] | None = None,
) -> SparkRun:
    """Merge what replicas of a query write, as long as they write it.

    Args:
        spark: the session.
        folders: the folders to which the replicas were started, `q.start(folder)`.
        into: the folder for the merged rows, each once.
        path: where the merge keeps its checkpoint; with the same path it goes on where it stopped.
        key: columns that, with the time, tell rows of a replica apart, where the replicas do not say.
        driver: whose bounds are followed: `leading`, `majority`, or a folder's name.
        trigger: as for `DataStreamWriter.trigger`.

    Returns:
        The run.
    """
    if len(folders) < 2:
        raise MergeError("A merge of outputs needs at least two folders.", got=", ".join(folders) or "none")
    streams = [output_stream(f) for f in folders]
    for folder, stream in zip(folders[1:], streams[1:], strict=True):
        if (stream.columns, stream.time) != (streams[0].columns, streams[0].time):
            raise MergeError(
                "These are not the outputs of replicas of one query.",
                got=f"{folder}: {stream.ddl}",
                hint=f"{folders[0]}: {streams[0].ddl}",
            )
    flow = Flow(spark, path=path)
    names = _names(folders)
    for name, folder in zip(names, folders, strict=True):
        frame = read_output(spark, folder)
        flow.stream(name, frame, time=str(streams[0].time), progress=punctuated(PUNCTUATION))
    driver = dict(zip(folders, names, strict=True)).get(driver, driver)
    flow.merge("merged", names, key=key or streams[0].key, driver=driver)
    columns = ", ".join(f"`{n}`" for n, _ in streams[0].columns)
    query: Any = flow.query(f"SELECT {columns} FROM merged", name="merged")
    run: SparkRun = query.start(into, trigger=trigger)
    return run


def _names(folders: Sequence[str]) -> list[str]:
    """A name for each folder that SQL can say."""
    found = []
    for i, folder in enumerate(folders):
        plain = "".join(c if c.isalnum() else "_" for c in Path(folder).name)
        found.append(f"input_{i + 1}_{plain}")
    return found
