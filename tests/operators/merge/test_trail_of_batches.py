"""The alarm over whole batches finds what it finds over single events, however the inputs are cut and differ."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch, Row
from penstock.model.elements import linear
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME
from penstock.operators.merge.operator import MergeOperator
from penstock.operators.operator import Rejected
from penstock.operators.state import MemoryPages

SCHEMA = schema_of([("t", "bigint"), ("v", "double")], "t")
NAMES = ("a", "b", "c")


def made() -> MergeOperator:
    operator = MergeOperator(SCHEMA, NAMES, "R0")
    operator.attach(MemoryPages())
    return operator


def columnar(rows: list[Row]) -> Batch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, f.type.arrow) for c, f in zip(columns, SCHEMA.fields, strict=True)]
    return Batch(SCHEMA, table=pa.Table.from_arrays(arrays, schema=SCHEMA.arrow))


def comparable(value: Any) -> Any:
    return "nan" if isinstance(value, float) and np.isnan(value) else value


def said(outputs: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Rows, bounds, and dead letters with their reasons."""
    rows: list[Any] = []
    bounds: list[Any] = []
    letters: list[Any] = []
    for output in outputs:
        if isinstance(output, Batch):
            rows += [tuple(map(comparable, r)) for r in output.rows]
        elif isinstance(output, Rejected):
            letters += [(tuple(map(comparable, r)), w) for r, w in zip(output.batch.rows, output.reasons, strict=True)]
        else:
            bounds.append(output.value)
    return rows, bounds, letters


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[int, list[Row] | int]]:
    """What comes on which port: rows in batches, or a bound; replicas may lack rows and have other values."""
    whole = [(t, float(t % 5)) for t in sorted(draw(st.sets(st.integers(0, 40), max_size=25)))]
    pending: dict[int, list[list[Row] | int]] = {}
    for port in range(len(NAMES)):
        rows: list[Row] = []
        for t, v in whole:
            fate = draw(st.integers(0, 14))
            if fate:
                rows.append((t, v if fate > 2 else draw(st.sampled_from([v, 99.0, float("nan"), v * (1 + 1e-12)]))))
        items: list[list[Row] | int] = []
        while rows:
            size = draw(st.integers(1, 9))
            items.append(rows[:size])
            rows = rows[size:]
            if draw(st.booleans()):
                items.append(int(items[-1][-1][0]) + draw(st.integers(0, 1)) if isinstance(items[-1], list) else 0)
        pending[port] = [*items, END_OF_TIME]
    order: list[tuple[int, list[Row] | int]] = []
    while pending:
        port = draw(st.sampled_from(sorted(pending)))
        order.append((port, pending[port].pop(0)))
        if not pending[port]:
            del pending[port]
    return order


@given(arrivals(), st.randoms(use_true_random=False))
def test_batches_tell_what_events_tell(order: list[tuple[int, list[Row] | int]], chance: Any) -> None:
    by_batch, by_event, mixed = made(), made(), made()
    for port, item in order:
        if isinstance(item, int):
            expected = said(by_event.punctuate(port, linear("t", item)))
            assert said(by_batch.punctuate(port, linear("t", item))) == expected
            assert said(mixed.punctuate(port, linear("t", item))) == expected
        else:
            expected = said(by_event.process(port, Batch(SCHEMA, item)))
            whole = said(by_batch.process(port, columnar(item)))
            partly = said(mixed.process(port, columnar(item) if chance.random() < 0.7 else Batch(SCHEMA, item)))
            assert whole == partly == expected
        if chance.random() < 0.1:
            restored = made()
            head = mixed.pages.get("head")
            if head is not None:
                restored.pages.put("head", restored.from_plain("head", mixed.to_plain("head", head), 1))
            mixed = restored
    letters = {id(o): o.pages.get("head").watch.count for o in (by_batch, by_event, mixed)}
    assert len(set(letters.values())) == 1
    assert by_batch.pages.get("head").watch.kept == 0


def test_equal_batches_are_never_unrolled() -> None:
    """Cut differently, they are still compared without looking at a row."""
    operator = made()
    rows: list[Row] = [(t, t * 0.5) for t in range(10_000)]
    whole = columnar(rows)

    def part(lo: int, hi: int) -> Batch:
        return Batch(SCHEMA, table=whole.table.slice(lo, hi - lo))

    for port, cuts in ((0, [0, 4000, 10_000]), (1, [0, 2500, 4000, 9000, 10_000]), (2, [0, 1, 10_000])):
        for lo, hi in pairwise(cuts):
            list(operator.process(port, part(lo, hi)))
            assert not operator.pages.get("head").watch.groups
        list(operator.punctuate(port, linear("t", 10_000)))
    trail = operator.pages.get("head").watch
    assert (trail.count, trail.kept, trail.runs, trail.groups) == (0, 0, [], [])
