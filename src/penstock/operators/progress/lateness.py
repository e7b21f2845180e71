"""What is late, and in which words: the one place that says so, for the row form, the batch form, lanes and Spark.

A row is late when what it is judged by lies below the bound that precedes it: its time, and of an adjust the lesser of
its ends. The bound itself may still come. Punctuation below the bound goes backwards, and a row beyond what a stream
can have reached is too far ahead: both are dead letters, with the tick that condemned them. Where several attributes
progress, what condemned is told as a promise (`model.letters.promise_text`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.letters import promise_text
from penstock.model.schema import Schema
from penstock.model.time import show_span, show_ticks
from penstock.operators.operator import Rejected

AMBIGUOUS_REASON = (
    "punctuation with values besides its time might be meant for them alone: leave them null, "
    "or declare punctuated(…, per=[…]) if they are, punctuated(…, whole_stream=True) if they mean nothing"
)


def is_late(batch: Batch, times: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Which rows of a batch, whose times are given, come after a bound that they are below."""
    late: np.ndarray = (times if batch.lives is None else batch.lives.judged_by(times)) < bounds
    return late


def is_late_text(time: str, bound: str) -> str:
    """The same of one plain row, as code: of a time and a bound under these names."""
    return f"{time} < {bound}"


def late(batch: Batch, bounds: Sequence[int]) -> Rejected:
    """Rows that are all late, with the bound that condemned each."""
    return Rejected("late", batch, bounds, [_reason("below the bound", bound, batch.schema) for bound in bounds])


def late_by_promises(batch: Batch, promises: Sequence[Punctuation]) -> Rejected:
    """Rows that are all late, with the promise that condemned each."""
    return Rejected("late", batch, promises, [f"below the bound {promise_text(p, batch.schema)}" for p in promises])


def backwards_by_promises(batch: Batch, promises: Sequence[Punctuation]) -> Rejected:
    """Punctuation that is all below a bound, of one of several attributes."""
    reasons = [f"punctuation goes backwards, below the bound {promise_text(p, batch.schema)}" for p in promises]
    return Rejected("dead", batch, promises, reasons)


def incomplete(batch: Batch, missing: Sequence[str]) -> Rejected:
    """Rows that have no value in an attribute that progresses."""
    return Rejected("dead", batch, (), [f"{name} is null" for name in missing])


def backwards(batch: Batch, bounds: Sequence[int]) -> Rejected:
    """Punctuation that is all below a bound."""
    return Rejected("dead", batch, bounds, [goes_backwards(bound, batch.schema) for bound in bounds])


def ambiguous(batch: Batch, bounds: Sequence[int]) -> Rejected:
    """Punctuation of which it cannot be told for which rows it speaks."""
    return Rejected("dead", batch, bounds, [AMBIGUOUS_REASON] * len(batch))


def ahead(batch: Batch, reached: Sequence[int], max_ahead: int) -> Rejected:
    """Rows that are all further than so many ticks ahead of what had been reached."""
    return Rejected("dead", batch, reached, [is_ahead(tick, max_ahead, batch.schema) for tick in reached])


def goes_backwards(bound: int, schema: Schema) -> str:
    """Why punctuation dies that is below a bound."""
    return _reason("punctuation goes backwards, below the bound", bound, schema)


def is_ahead(reached: int, max_ahead: int, schema: Schema) -> str:
    """Why a row dies that is too far ahead of what had been reached."""
    return _reason(f"more than {show_span(max_ahead, schema.domain)} ahead of", reached, schema)


def _reason(why: str, bound: int, schema: Schema) -> str:
    return f"{why} {show_ticks(bound, schema.domain)}"
