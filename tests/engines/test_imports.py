"""What Spark's workers import."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark  # the host is pyspark's; no session is started


def test_a_worker_imports_no_sql_and_no_flow() -> None:
    """Every start of a query on Spark waits for a process that imports what is hosted."""
    code = "import sys, penstock.engines.spark.host; print(*[m for m in sys.modules if m.startswith('penstock')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "penstock.runtime.graph" in found
    assert not [m for m in found if m.startswith(("penstock.sql", "penstock.flow", "penstock.reference"))]
