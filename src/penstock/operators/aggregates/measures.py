"""Aggregates as columns of numbers: what a columnar aggregate keeps per pane and group.

A measure is one number per group: how many rows, how many values, their sum, their least or greatest, their bits put
together; or three, their
moments (number, mean, sum of squared deviations), joined by Chan's rule; or how many values are distinct, which is
counted beside the panes (`distinct_values`), in which rows stand for it. Each aggregate is lowered from one or two of
them. Counts and sums of integers can be taken out of a window again; sums of floating point numbers, extremes and
moments cannot. Sums of integers are 64 bits wide until they might overflow, and Python's own integers from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, ticks_of
from penstock.model.schema import DataType
from penstock.operators.aggregates.functions import Spread
from penstock.operators.aggregates.moments import NOTHING_KNOWN, Known, combined, gathered, gathered_runs, lowered

Array = np.ndarray
Kind = Literal["rows", "count", "sum", "min", "max", "bit_and", "bit_or", "bit_xor", "moments", "distinct"]
Lowering = Literal["count", "distinct", "sum", "mean", "extreme", "spread"]
"""What is made of a measure: itself, the sum if SQL can hold it, the sum divided by the count, a spread of moments."""
Combine = Callable[[Array, Array], Array]
SAFE = 2**62
_UFUNCS: dict[str, np.ufunc] = {
    "max": np.maximum, "bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor,
}  # fmt: skip


def infinite() -> np.errstate:
    """Where infinities are data they may meet, and large numbers become one: NaN and infinity are then the answer.

    Integers never get that far, so nothing else is kept quiet.
    """
    return np.errstate(invalid="ignore", over="ignore")


@dataclass(frozen=True)
class Measure:
    """One number per group of one column of the input."""

    kind: Kind
    column: int | None = None
    is_float: bool = False
    values: DataType | None = None
    """Their type, where they are told apart."""

    @property
    def is_invertible(self) -> bool:
        """Whether it can be taken out of a total exactly."""
        return self.kind in ("rows", "count", "distinct") or (self.kind == "sum" and not self.is_float)

    @property
    def dtype(self) -> type:
        """The type of its numbers, unless they have been widened."""
        is_float = self.kind == "moments" or (self.is_float and self.kind not in ("rows", "count", "distinct"))
        return np.float64 if is_float else np.int64

    @property
    def identity(self) -> Any:
        """The number that changes nothing. NaN is above every number, so it is what a least value gives way from."""
        if self.kind == "min":
            return np.nan if self.is_float else np.iinfo(np.int64).max
        if self.kind == "max":
            return -np.inf if self.is_float else np.iinfo(np.int64).min
        if self.kind == "bit_and":
            return -1
        return (0.0, 0.0, 0.0) if self.kind == "moments" else 0

    @property
    def combine(self) -> Combine:
        """How two numbers of a group become one."""
        return combined if self.kind == "moments" else self._ufunc

    @property
    def _ufunc(self) -> np.ufunc:
        if self.kind == "min":
            return np.fmin if self.is_float else np.minimum
        return _UFUNCS.get(self.kind, np.add)

    def neutral(self, size: int, *, wide: bool = False) -> Array:
        """So many groups of which nothing is known."""
        if self.kind == "moments":
            return np.zeros((size, 3))
        dtype = object if wide and self.kind == "sum" and not self.is_float else self.dtype
        return np.full(size, self.identity, dtype)

    def grown(self, values: Array, size: int) -> Array:
        """The numbers with room for more groups."""
        if len(values) >= size:
            return values
        return np.concatenate([values, self.neutral(size - len(values), wide=values.dtype == object)])

    def gather(
        self,
        slots: Array,
        size: int,
        values: Array | None,
        valid: Array | None,
        *,
        wide: bool,
        known: Known = NOTHING_KNOWN,
    ) -> Array:
        """The numbers of a batch: rows with the same slot become one. `valid` None means that there are no nulls.

        What is `known` of the slots already, by other measures of the same column, is not gathered again.
        """
        if valid is not None and self.kind not in ("rows", "distinct"):
            slots = slots[valid]
            values = values[valid] if values is not None else None
        if self.kind in ("rows", "count", "distinct"):
            return np.bincount(slots, minlength=size)
        assert values is not None
        if self.kind == "moments":
            return gathered(slots, size, values, known)
        total = self.neutral(size, wide=wide)
        if self.kind == "sum" and self.is_float:
            # Of no values at all numpy makes integers.
            return np.bincount(slots, weights=values, minlength=size).astype(np.float64, copy=False)
        with np.errstate(invalid="ignore"):  # NaN is a value here
            self._ufunc.at(total, slots, values.astype(object) if total.dtype == object else values)
        return total

    def joined_runs(self, values: Array, starts: Array) -> Array:
        """Numbers put together, of which each run that begins at `starts` becomes one."""
        made: Array = self._ufunc.reduceat(values, starts)
        return made

    def gather_runs(self, starts: Array, rows: int, values: Array | None, valid: Array | None, *, wide: bool) -> Array:
        """The same of rows in the order of their slots, of which each run, which begins at `starts`, becomes one."""
        if self.kind in ("rows", "distinct") or (self.kind == "count" and valid is None):
            return np.diff(starts, append=rows)
        if self.kind == "count":
            assert valid is not None
            return np.add.reduceat(valid.astype(np.int64), starts)
        assert values is not None
        if self.kind == "moments":
            return gathered_runs(starts, values.astype(np.float64), valid)
        if wide:
            values = values.astype(object)
        if valid is not None:
            values = np.where(valid, values, self.identity)
        with np.errstate(invalid="ignore"):  # NaN is a value here
            return values.copy() if len(starts) == rows else self._ufunc.reduceat(values, starts)


def values_of(batch: Batch, column: int) -> tuple[Array, Array | None]:
    """A column as numbers, and which of them are not null; None if all are."""
    data = batch.table.column(column)
    valid = None
    if data.null_count:
        valid = np.asarray(pc.is_valid(data).to_numpy())
        data = pc.fill_null(data, pa.scalar(0, pa.int64()).cast(data.type))
    if pa.types.is_timestamp(data.type):
        return ticks_of(data), valid
    numbers = data.to_numpy()
    return numbers.astype(np.float64 if pa.types.is_floating(data.type) else np.int64, copy=False), valid


@dataclass(frozen=True)
class Result:
    """How an aggregate's value comes from measures, by their positions."""

    type: DataType
    value: int
    count: int
    """How many values it is of; for a count and for moments, which know, that is the value itself."""
    lowering: Lowering
    spread: Spread | None = None
    """Which one, where it is a spread."""

    def overflows(self, measures: Sequence[Array]) -> list[int]:
        """The positions at which a sum is none that SQL can hold."""
        values = measures[self.value]
        if self.lowering != "sum" or values.dtype != object:
            return []
        return [at for at, v in enumerate(values) if not -(2**63) <= v < 2**63]

    def lower(self, measures: Sequence[Array]) -> pa.Array:
        """The column of results, none of which overflows."""
        values, counts = measures[self.value], measures[self.count]
        if self.lowering in ("count", "distinct"):
            return pa.array(values, pa.int64())
        if self.spread is not None:
            return lowered(values, self.spread)
        empty = counts == 0
        if self.lowering == "mean":
            with np.errstate(invalid="ignore", divide="ignore"):
                return pa.array(values.astype(np.float64) / counts, pa.float64(), mask=empty)
        if values.dtype == object:
            values = values.astype(np.int64)
        array = pa.array(values, mask=empty)
        if self.type.name == "timestamp":
            return pc.cast(pc.cast(array, pa.int64()), self.type.arrow)
        return pc.cast(array, self.type.arrow)
