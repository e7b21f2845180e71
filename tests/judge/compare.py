"""When two results are the same: as bags of rows, exact but for floating point."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

Row = tuple[Any, ...]


def difference(ours: Iterable[Row], theirs: Iterable[Row]) -> str:
    """What differs between two bags of rows, in words; empty if nothing does."""
    left, right = sorted(ours, key=_order), sorted(theirs, key=_order)
    if len(left) != len(right):
        return f"{len(left)} rows against {len(right)}:\n{left[:5]}\n{right[:5]}"
    # Rows whose floating point numbers differ in their last bits may sort apart, so each looks for its own.
    for row in left:
        match = next((at for at, other in enumerate(right) if _same_row(row, other)), None)
        if match is None:
            return f"{row} is not among\n{right[:5]}"
        del right[match]
    return ""


def _same_row(left: Row, right: Row) -> bool:
    return len(left) == len(right) and all(_same(a, b) for a, b in zip(left, right, strict=True))


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right) or math.isinf(left) or math.isinf(right):
            return repr(left) == repr(right)
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return bool(left == right) and (left is None) == (right is None)


def _order(row: Row) -> tuple[Any, ...]:
    return tuple(f"{v:.6e}" if isinstance(v, float) else str(v) for v in row)
