"""What Spark's workers import."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark  # the host is pyspark's; no session is started


def imported_by(module: str) -> list[str]:
    code = f"import sys, {module}; print(*[m for m in sys.modules if m.startswith('penstock.')])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_a_worker_imports_no_sql_and_no_flow() -> None:
    found = imported_by("penstock.engines.spark.host")
    assert "penstock.runtime.graph" in found
    assert not [m for m in found if m.startswith(("penstock.sql", "penstock.flow", "penstock.reference"))]


def test_a_process_that_asks_for_the_state_of_a_query_imports_next_to_nothing() -> None:
    """Spark starts one whenever a query starts, and the first micro-batch waits for it."""
    assert set(imported_by("penstock.engines.spark.processor")) == {
        "penstock.engines",
        "penstock.engines.spark",
        "penstock.engines.spark.processor",
    }
