"""Doubles as Java writes them: shortest digits that read back, a point always, an exponent where the number is far."""

from __future__ import annotations

import math


def java_double(value: float) -> str:
    """`1.0`, `0.001`, `1.0E7`, `1.5E-4`, `NaN`, `-Infinity`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, exponent = f"{value:.{_digits(value) - 1}e}".split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _digits(value: float) -> int:
    """How many digits the shortest form has."""
    bare = repr(abs(value)).split("e")[0].replace(".", "")
    return max(len(bare.strip("0")), 1)
