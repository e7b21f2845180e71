"""The order of values in SQL, as Spark has it: null is below every value, NaN above every number."""

from __future__ import annotations

import math
from typing import Any

from penstock.model.comparing import order_key


def ordered(value: Any) -> tuple[int, Any]:
    """What a value is sorted by among values of its type."""
    if value is None:
        return 0, 0
    if isinstance(value, float) and math.isnan(value):
        return 2, 0
    return 1, order_key(value) if isinstance(value, tuple) else value
