"""The stateful processor that hosts a stage of a query graph in Spark.

Whenever a query starts, Spark starts a process that asks the processor which state it has, and the first micro-batch
waits for that. So the processor itself is light: it travels with its plan packed, and what hosts the plan is imported
when the first rows come.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    from penstock.engines.spark.host import HostedBuckets
    from penstock.plan.catalog import Catalog
    from penstock.plan.physical import Physical
    from penstock.storage.folders import Staging


class GraphProcessor(StatefulProcessor):
    """Hosts a stage in `transformWithStateInPandas`, one bucket per key."""

    def __init__(
        self,
        planned: Physical,
        catalog: Catalog,
        buckets: int,
        stage: int = 0,
        folders: Mapping[str, Staging] | None = None,
        home: str | None = None,
    ) -> None:
        """A plan that is not cut is its own last stage, whose outputs go to `folders`, by their kind.

        `home` is where the query lives, if it does.
        """
        # As Spark packs what travels to workers, since a catalog has functions of its user's.
        self.packed: bytes = cloudpickle.dumps((planned, catalog, buckets, stage, folders or {}, home))  # type: ignore[no-untyped-call]
        self.hosted: HostedBuckets | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self.state = handle.getMapState("pages", "key string", "page binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        """One micro-batch of one bucket."""
        if self.hosted is None:
            from penstock.engines.spark.host import HostedBuckets
            from penstock.engines.spark.worker import begin_task

            begin_task()
            self.hosted = HostedBuckets(self.state, *pickle.loads(self.packed))
        frame = self.hosted.take(int(key[0]), rows)
        if frame is not None:
            yield frame

    def close(self) -> None:
        """Nothing is held outside the state."""
