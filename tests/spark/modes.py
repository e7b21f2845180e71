"""The ways in which the Spark tests can be run, chosen by the variable PENSTOCK_TEST_MASTER.

`local` (unless said otherwise): Spark in this process. `cluster`: a standalone master and two workers, each a process
of its own. `connect`: a Spark Connect client, with the server started beside it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.engines.spark.session import local_session, low_latency_settings
from tests.cluster.standalone import standalone_cluster
from tests.spark.short_lived import SHORT_LIVED

MODES = ("local", "cluster", "connect")
QUICK = {
    **low_latency_settings(),
    **SHORT_LIVED,
}
_BESIDE: list[Any] = []
ROOT = Path(__file__).parents[2]
ON_CLUSTER = {
    "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    "spark.executor.memory": "768m",
    "spark.executor.cores": "1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def chosen() -> str:
    """The mode of this run."""
    mode = os.environ.get("PENSTOCK_TEST_MASTER", "local")
    if mode not in MODES:
        raise ValueError(f"PENSTOCK_TEST_MASTER is {mode!r}, and must be one of {', '.join(MODES)}")
    return mode


@contextlib.contextmanager
def open_session(mode: str) -> Iterator[SparkSession]:
    """A session of that mode, stopped afterwards."""
    with contextlib.ExitStack() as stack:
        match mode:
            case "cluster":
                cluster = stack.enter_context(standalone_cluster())
                spark = cluster_session(cluster.url)
            case "connect":
                paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
                os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # of the server's workers
                spark = local_session(remote="local[2]")
            case _:
                spark = local_session(**{key.replace(".", "__"): value for key, value in QUICK.items()})
        stack.callback(spark.stop)
        if mode == "connect":
            stack.callback(_close_those_beside)
        yield spark


def session_beside(spark: Any) -> Any:
    """Another session of the same Spark, for as long as the tests run."""
    made = spark.newSession()
    _BESIDE.append(made)
    return made


def _close_those_beside() -> None:
    """End the clients of other sessions before their server: at its exit a process asks after it for ten minutes."""
    while _BESIDE:
        _BESIDE.pop().client.close()


def cluster_session(url: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session on a standalone cluster of small workers."""
    return local_session(url, **{k.replace(".", "__"): v for k, v in {**ON_CLUSTER, **(settings or {})}.items()})
