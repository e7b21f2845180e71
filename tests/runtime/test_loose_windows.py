"""Many small windows held as runs of cells give what panes give, and the oracle, whichever way cells go to and fro."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch, Row
from penstock.model.progress import bounded
from penstock.operators.aggregates import columnar, loose_cells, loose_windows, slide
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.strategies import cuts
from tests.runtime.cases import PROGRESS, SCHEMA, Case, rows, run

NUMBERS = "count(*) AS n, count(v) AS c, sum(v) AS s, avg(v) AS a, min(d) AS lo, max(d) AS hi, max(at) AS last"


@st.composite
def small_windows(draw: st.DrawFn) -> Case:
    keys = draw(st.sampled_from([(), ("k",), ("k", "v")]))
    length, origin = draw(st.sampled_from([1, 2, 5])), draw(st.sampled_from([0, 3]))
    sql = f"SELECT {', '.join([*keys, NUMBERS])} [RANGE {length}, SLIDE {length}, WA ts, ORIGIN {origin}] FROM s"
    sql += f" GROUP BY {', '.join(keys)}" if keys else ""
    arrived = draw(rows(max_size=40))
    return Case(sql, draw(PROGRESS), [arrived[c] for c in draw(cuts(len(arrived)))])


def patched(divisor: int) -> mock._patch_dict | mock._patch:  # type: ignore[type-arg]
    """Batches of some sizes count as many small panes, others do not."""
    return mock.patch.object(loose_windows, "are_small", lambda panes: len(panes) % divisor == 0)


@pytest.mark.parametrize("form", ["rows", "arrow", "mixed"])
@given(case=small_windows(), divisor=st.integers(1, 3), portion=st.sampled_from([1, 3, 65_536]))
def test_the_tdb_is_the_oracles(form: str, case: Case, divisor: int, portion: int) -> None:
    with (
        patched(divisor),
        mock.patch.object(columnar, "MIN_COLUMNAR", 1),
        mock.patch.object(columnar, "SPARE_CODES", 0),
        mock.patch.object(slide, "SAFE", 50),
        mock.patch.object(loose_cells, "PORTION", portion),
    ):
        outputs = case.run("columnar", form)
    assert_same(case.expected()[0], tdb_of(outputs))
    assert_sound(outputs)


@given(case=small_windows(), at=st.integers(0, 6), divisor=st.integers(1, 2))
def test_a_restored_run_goes_on_as_if_nothing_had_happened(case: Case, at: int, divisor: int) -> None:
    inputs = case.inputs("arrow")
    with patched(divisor), mock.patch.object(columnar, "MIN_COLUMNAR", 1):
        first, second = case.execution("columnar"), case.execution("columnar")
        outputs = [item for batch in inputs[:at] for item in first.feed("s", batch)]
        second.graph.restore(first.graph.snapshot())
        outputs += run(second, inputs[at:])
    assert_same(case.expected()[0], tdb_of(outputs))


@given(case=small_windows(), bound=st.integers(-5, 60))
def test_windows_that_nobody_needs_are_not_put_out_in_part(case: Case, bound: int) -> None:
    expected = case.expected()[0]
    inputs = case.inputs("arrow")
    with patched(1), mock.patch.object(columnar, "MIN_COLUMNAR", 1):
        execution = case.execution("columnar")
        outputs = [item for batch in inputs[:1] for item in execution.feed("s", batch)]
        execution.feedback(bound)
        outputs += run(execution, inputs[1:])
    found = tdb_of(outputs)
    assert all(expected[event] == count for event, count in found.items())
    assert all(found[event] == count for event, count in expected.items() if event[2] > bound)


def test_cells_of_one_window_that_come_in_several_batches_are_one() -> None:
    def row(time: int, value: int) -> Row:
        return tuple({"ts": time, "k": "a", "v": value, "d": 0.5 * value}.get(name) for name in SCHEMA.names)

    sql = f"SELECT k, {NUMBERS} [RANGE 5, SLIDE 5, WA ts] FROM s GROUP BY k"
    batches = [[row(1, 1), row(7, 2)], [row(2, 5), row(3, 9)], [row(8, 4), row(0, -3)]]
    case = Case(sql, bounded(100), batches)
    with patched(1), mock.patch.object(columnar, "MIN_COLUMNAR", 1):
        outputs = case.run("columnar", "arrow")
    found = [made[:8] for out in outputs if isinstance(out, Batch) for made in out.rows]
    assert found == [(0, 0, 5, "a", 4, 4, 12, 3.0), (1, 5, 10, "a", 2, 2, 6, 3.0)]
    assert_same(case.expected()[0], tdb_of(outputs))
