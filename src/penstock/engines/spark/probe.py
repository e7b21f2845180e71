"""What Spark itself costs: packets that go through a shuffle into a stateful operator, and pages of its state.

A probe is a streaming query of one bucket which does nothing but that, so that what is measured of a query can be told
apart. Used by `penstock bench scale`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.engines.spark.wire import NOTE, PACKED, Packet, packed


@dataclass(frozen=True)
class Probe:
    """What a micro-batch carries and keeps."""

    packets: int = 1
    packet_bytes: int = 8
    pages: int = 1
    page_bytes: int = 8

    @property
    def carried(self) -> int:
        """Bytes of all packets."""
        return self.packets * self.packet_bytes

    @property
    def kept(self) -> int:
        """Bytes that are read and written, both counted."""
        return 2 * self.pages * self.page_bytes


class Keeping(StatefulProcessor):
    """Takes packets, and reads and writes pages."""

    def __init__(self, probe: Probe) -> None:
        """So many pages of such a size."""
        self.probe = probe

    def init(self, handle: StatefulProcessorHandle) -> None:
        """As a hosted graph does."""
        self.state = handle.getMapState("pages", "key string", "page binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        """One micro-batch."""
        taken = sum(len(body) for frame in rows for body in frame["body"])
        page = os.urandom(self.probe.page_bytes)  # what has a pattern would be compressed
        for at in range(self.probe.pages):
            self.state.getValue((str(at),))
            self.state.updateValue((str(at),), (page,))
        yield pd.DataFrame({"taken": [taken]})

    def close(self) -> None:
        """Nothing is held."""


def probe_stream(frame: DataFrame, probe: Probe) -> DataFrame:
    """A streaming query over any rows, each of whose micro-batches carries and keeps what the probe says."""

    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        body = os.urandom(probe.packet_bytes)
        yield packed([Packet(0, 1, "probe", NOTE, body)] * probe.packets)

    grouped = frame.mapInArrow(send, PACKED).groupBy("bucket")
    return grouped.transformWithStateInPandas(
        Keeping(probe), outputStructType="taken bigint", outputMode="Append", timeMode="None"
    )


def empty_tasks(spark: SparkSession, tasks: int) -> tuple[float, float]:
    """Seconds that a job of tasks that do nothing takes, and those that the driver's processor was busy with it.

    Where the system does not say the latter they are taken to be the same.
    """
    busy, started = driver_busy(), time.perf_counter()
    spark.range(0, tasks, 1, tasks).write.format("noop").mode("overwrite").save()
    took, after = time.perf_counter() - started, driver_busy()
    return took, took if busy is None or after is None else after - busy


def driver_busy() -> float | None:
    """Seconds that the driver's JVM, a child of this process, has been busy; None where there is no /proc."""
    me, found = os.getpid(), None
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:  # the process has ended
            continue
        fields = rest.split()
        if name.endswith("(java") and int(fields[1]) == me:
            found = (found or 0.0) + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found
