"""Profiles of the property tests, and the order of tests that run in several processes.

`--hypothesis-profile fuzz` or PENSTOCK_PROFILE=fuzz tries many more examples. With `-n 2 --dist loadfile` each process
has a Spark session of its own and takes file after file; those that need Spark come first, since they are the long
ones, and the others fill what is left.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("PENSTOCK_PROFILE", "default"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In one of several processes: begin with what needs Spark."""
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: a test must have the same name in every process; give it ids=…")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("spark") is None)
