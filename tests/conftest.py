"""Profiles of the property tests, and how tests are shared between processes.

`--hypothesis-profile fuzz` or PENSTOCK_PROFILE=fuzz tries many more examples. With `-n 2` one process takes the files
that may need Spark, and the other one the rest, since two Sparks beside other work starve each other; whoever is done
first helps the other one, from its end.
"""

from __future__ import annotations

import gc
import os
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler.loadscope import LoadScopeScheduling

settings.register_profile("default", max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("PENSTOCK_PROFILE", "default"))


OF_A_KIND = 3
"""So many cases of a test that runs on Spark belong to every run; the others are slow ones."""
WITH_SPARK = re.compile(r"tests/(spark/|docs/|engines/test_)")
"""The files whose tests may need Spark."""


class FromBothEnds(LoadScopeScheduling):
    """File by file: the first process from the first on, any other from the last."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: Any) -> None:
        if node is not next(iter(self.nodes)):
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FromBothEnds:
    """Share the tests between processes in this way."""
    return FromBothEnds(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In one of several processes: begin with what needs Spark."""
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: a test must have the same name in every process; give it ids=…")
        if item.get_closest_marker("spark") and not WITH_SPARK.match(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid}: a test that needs Spark belongs to the files that {WITH_SPARK} is")
        values = (
            item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
        )
        if "s3" in getattr(item, "fixturenames", ()) or "s3" in [v for v in values if isinstance(v, str)]:
            item.add_marker(pytest.mark.s3)
    _leave_to_slow_runs([item for item in items if item.nodeid.startswith("tests/spark/")])
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: WITH_SPARK.match(item.nodeid) is None)


def _leave_to_slow_runs(items: list[pytest.Item]) -> None:
    """Of a test with many cases only some, evenly spread, belong to every run: each costs a query on Spark."""
    kinds: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("slow"):
            kinds.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in kinds.values():
        often = {at * len(cases) // OF_A_KIND for at in range(OF_A_KIND)}
        for at, item in enumerate(cases):
            if len(cases) > OF_A_KIND and at not in often:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Thousands of collected tests live as long as the process: they are left out when garbage is collected."""
    gc.collect()
    gc.freeze()
