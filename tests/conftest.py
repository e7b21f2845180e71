"""Profiles of the property tests, and what stays together when tests run in several processes.

`--hypothesis-profile fuzz` or PENSTOCK_PROFILE=fuzz tries many more examples. With `-n 2 --dist loadgroup` each process
has a Spark session of its own; the tests of a file that need Spark stay in one process and come first, since they are
the long ones, and the others fill what is left.
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
    """Group by file what shares a Spark session; begin with what needs Spark."""
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: a test must have the same name in every process; give it ids=…")
        if "session" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
    if config.getoption("numprocesses", None):
        items.sort(key=lambda item: item.get_closest_marker("spark") is None)
