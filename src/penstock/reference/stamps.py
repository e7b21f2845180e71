"""What rows are stamped with that bring no times: the clock as it is read when they enter, but never going back.

A clock is read when rows enter and when somebody looks for what a silent stream allows; either reading is a promise.
So a stamp is the greatest reading so far. Readings are of one stream, in the order in which they were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def stamps(readings: Sequence[int]) -> list[int]:
    """What a row would be stamped with that entered at each of the readings."""
    return list(accumulate(readings, max))
