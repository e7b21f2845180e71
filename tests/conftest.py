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

settings.register_profile("default", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("PENSTOCK_PROFILE", "default"))


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
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: WITH_SPARK.match(item.nodeid) is None)


def pytest_collection_finish() -> None:
    """Thousands of collected tests live as long as the process: they are left out when garbage is collected."""
    gc.collect()
    gc.freeze()
