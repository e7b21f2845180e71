"""Windows at the far ends of time: nothing wraps, in any way to aggregate, in rows and in columns."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Row
from penstock.model.progress import bounded, estimated, ordered, per_source
from penstock.model.time import Domain
from penstock.operators.aggregates import columnar, partials
from penstock.plan.windows import SlidingWindow
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.strategies import cuts
from tests.runtime.cases import Case, clause

FAR, LONG = 2**62, 2**60
PROGRESS = st.sampled_from(
    [ordered(), bounded(LONG), bounded(rows=2), estimated("25%", rows=4), per_source("k", idle=LONG, disorder=LONG)]
)


@st.composite
def far_windows(draw: st.DrawFn) -> SlidingWindow:
    slide = draw(st.sampled_from([1, 2, 7, LONG // 3, LONG - 1, LONG]))
    range_ = min(max(1, draw(st.integers(1, 3)) * slide + draw(st.sampled_from([0, 0, 1, -1]))), LONG)
    origin = draw(st.sampled_from([0, 3, LONG, -LONG]))
    return SlidingWindow("ts", Domain.INTEGER, range_, slide, origin)


@st.composite
def far_rows(draw: st.DrawFn) -> list[Row]:
    near = st.integers(0, 9)
    time = st.one_of(near, near.map(lambda n: FAR - n), near.map(lambda n: n - FAR), near.map(lambda n: n * LONG // 3))
    drawn = draw(st.lists(st.tuples(time, st.sampled_from(["a", "b"]), st.integers(-5, 20)), max_size=12))
    return [(t, k, v, v / 2, None, None) for t, k, v in drawn]


@pytest.mark.parametrize("aggregate", ["wid", "paned", "columnar"])
@pytest.mark.parametrize("form", ["rows", "arrow"])
@given(window=far_windows(), rows=far_rows(), progress=PROGRESS, data=st.data())
def test_windows_at_the_ends_of_time(
    form: str, aggregate: str, window: SlidingWindow, rows: list[Row], progress: object, data: st.DataObject
) -> None:
    sql = f"SELECT k, count(*) AS n, sum(v) AS s, max(v) AS m {clause(window)} FROM s GROUP BY k"
    case = Case(sql, progress, [rows[c] for c in data.draw(cuts(len(rows)))])  # type: ignore[arg-type]
    with mock.patch.object(partials, "MIN_COLUMNAR", 1), mock.patch.object(columnar, "MIN_COLUMNAR", 1):
        outputs = case.run(aggregate, form)
    assert_same(case.expected()[0], tdb_of(outputs))
    assert_sound(outputs)
