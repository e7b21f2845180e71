"""Hypothesis strategies for streams: times, rows, windows, cuts into batches, arrival orders that progress allows.

Values are few and small, so that ties, repeated groups and boundaries come up often. Everything shrinks towards the
plain case: few rows, in order, in one batch, tumbling windows at origin 0.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise

from hypothesis import strategies as st

from penstock.errors import StreamError
from penstock.model.batch import Row
from penstock.model.progress import Single
from penstock.model.schema import DataType, Schema
from penstock.model.time import Domain
from penstock.plan.windows import SlidingWindow
from penstock.reference.lateness import judge


@st.composite
def disordered_times(
    draw: st.DrawFn,
    *,
    min_size: int = 0,
    max_size: int = 30,
    low: int = -50,
    high: int = 150,
    max_disorder: int | None = None,
) -> list[int]:
    """Ticks in an order of arrival, with ties.

    Args:
        draw: Given by hypothesis.
        min_size: The least number of them.
        max_size: The greatest number of them.
        low: The least time.
        high: The greatest time.
        max_disorder: No time comes more than this behind the greatest before it; None for any order.
    """
    times = draw(st.lists(st.integers(low, high), min_size=min_size, max_size=max_size))
    if max_disorder is None:
        return times
    delays = draw(st.lists(st.integers(0, max_disorder), min_size=len(times), max_size=len(times)))
    # A time t that comes after u has u + its delay <= t + its delay, so u - t <= max_disorder.
    return [t for t, _ in sorted(zip(times, delays, strict=True), key=lambda pair: pair[0] + pair[1])]


@st.composite
def rows(
    draw: st.DrawFn,
    schema: Schema,
    *,
    min_size: int = 0,
    max_size: int = 30,
    times: st.SearchStrategy[list[int]] | None = None,
    nulls: bool = True,
) -> list[Row]:
    """Rows of `schema` in an order of arrival, timestamps as ticks.

    Args:
        draw: Given by hypothesis.
        schema: The columns; the time column is never null.
        min_size: The least number of rows, unless `times` says otherwise.
        max_size: The greatest number of rows, unless `times` says otherwise.
        times: Where the times come from; any disordered ones if it is left out.
        nulls: Whether columns other than the time may be null.
    """
    source = times if times is not None else disordered_times(min_size=min_size, max_size=max_size)
    ticks = draw(source)
    columns: list[list[object]] = []
    for field in schema.fields:
        if field.name == schema.time:
            columns.append(list(ticks))
            continue
        value = values(field.type)
        cell = st.none() | value if nulls else value
        columns.append(draw(st.lists(cell, min_size=len(ticks), max_size=len(ticks))))
    return list(zip(*columns, strict=True))


def values(type_: DataType) -> st.SearchStrategy[object]:
    """A few small values of a type, repeated often."""
    if type_.is_integer:
        return st.integers(-5, 20)
    if type_.is_decimal:
        unit = Decimal(1).scaleb(-type_.scale)
        most = min(10**type_.precision - 1, 2000)
        return st.integers(-most, most).map(lambda n: n * unit)
    if type_.is_fractional:
        # Multiples of 1/8 are exact in float and double, so that a sum does not depend on its order.
        return st.integers(-80, 160).map(lambda n: n / 8)
    simple: dict[str, st.SearchStrategy[object]] = {
        "boolean": st.booleans(),
        "string": st.sampled_from(["a", "b", "c", ""]),
        "binary": st.sampled_from([b"a", b"b", b""]),
        "date": st.integers(0, 3).map(lambda n: dt.date(2026, 1, 1) + dt.timedelta(days=n)),
        "timestamp": st.integers(-50, 150),
        "void": st.none(),
    }
    return simple[type_.name]


@st.composite
def sliding_windows(
    draw: st.DrawFn, *, attribute: str = "ts", domain: Domain = Domain.INTEGER, longest: int = 24
) -> SlidingWindow:
    """Sliding windows: tumbling, overlapping, with gaps (range < slide), with lengths that do not divide each other.

    Origins lie on either side of zero and need not be a multiple of anything.
    """
    slide = draw(st.integers(1, longest))
    range_ = draw(st.just(slide) | st.integers(1, longest) | st.integers(1, 4).map(lambda n: min(n * slide, longest)))
    origin = draw(st.just(0) | st.integers(-2 * longest, 2 * longest))
    return SlidingWindow(attribute, domain, range_, slide, origin)


@st.composite
def cuts(draw: st.DrawFn, n: int, *, max_batches: int = 6) -> list[slice]:
    """Slices that cut a sequence of `n` into consecutive batches, some of them empty."""
    inner = draw(st.lists(st.integers(0, n), max_size=max_batches - 1))
    edges = [0, *sorted(inner), n]
    return [slice(a, b) for a, b in pairwise(edges)]


@st.composite
def arrival_orders(
    draw: st.DrawFn,
    rows: Sequence[Row],
    progress: Single,
    *,
    time_index: int = 0,
    domain: Domain = Domain.INTEGER,
    is_punctuation: Callable[[Row], bool] | None = None,
    source_index: int | None = None,
) -> list[Row]:
    """The rows in an order in which none of them is late and no punctuation goes backwards.

    One row after the other is chosen, such that the rest can still follow in order of time. Costs the cube of the
    number of rows, and is meant for tens of them. An order that is allowed row by row is allowed however it is cut
    into batches.
    """

    def allowed(order: list[Row]) -> bool:
        judged = judge(
            progress,
            time_index,
            [order],
            granularity="row",
            is_punctuation=is_punctuation,
            source_index=source_index,
            domain=domain,
        )
        return not judged.late and not judged.backwards

    rest = sorted(rows, key=lambda row: _tick(row[time_index]))
    order: list[Row] = []
    while rest:
        pick = draw(st.integers(0, len(rest) - 1))
        if pick and not allowed([*order, rest[pick], *rest[:pick], *rest[pick + 1 :]]):
            pick = draw(st.integers(0, min(len(rest) - 1, 2)))  # near the front is more often possible
            if pick and not allowed([*order, rest[pick], *rest[:pick], *rest[pick + 1 :]]):
                pick = 0  # in order of time it always is
        order.append(rest.pop(pick))
    return order


def _tick(value: object) -> int:
    if not isinstance(value, int):
        raise StreamError("Rows that are put in order must have ticks as their time.", got=repr(value))
    return value
