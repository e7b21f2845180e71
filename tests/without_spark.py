"""A plugin of pytest, for runs that must do without Spark: whoever imports pyspark fails (`make test-quick`)."""

from __future__ import annotations

import sys

sys.modules["pyspark"] = None  # type: ignore[assignment]
