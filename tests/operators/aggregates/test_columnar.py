"""Columnar panes: rows one by one, in columns and as panes made elsewhere are one state; dead groups give up codes."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.model.batch import Batch, table_of
from penstock.model.elements import linear
from penstock.model.plain import encode
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates import columnar, distinct_values, group_codes, pane_numbers, side_by_side
from penstock.operators.aggregates.columnar import ColumnarAggregate

few, many = st.sampled_from("abc"), st.integers(0, 9999).map(str)
some_rows = st.sampled_from([few, many]).flatmap(
    lambda keys: st.lists(st.tuples(st.integers(0, 40), keys, st.integers(-9, 9)), max_size=12)
)


def operator(length: int = 6, slide: int = 2, more: str = "") -> tuple[ColumnarAggregate, Any]:
    flow = pk.Flow().stream("s", [], time="t", schema="t bigint, k string, v int", progress=pk.bounded(99))
    sql = f"SELECT k, count(*) AS n, sum(v) AS s, max(v) AS m{more} "
    sql += f"[RANGE {length}, SLIDE {slide}, WA t] FROM s GROUP BY k"
    query: Any = flow.query(sql)
    (found,) = [n for n in query.execution().graph.nodes if isinstance(n.operator, ColumnarAggregate)]
    return found.operator, found.plan.inputs[0].schema


def results(aggregate: ColumnarAggregate, bound: int = END_OF_TIME) -> list[Any]:
    outputs = list(aggregate.punctuate(0, linear("t", bound)))
    return sorted(row for o in outputs if isinstance(o, Batch) for row in o.rows)


def by_hand(given: list[Any], length: int, slide: int) -> list[Any]:
    """Window 0 is the first that ends after the origin: window w is [(w + 1) SLIDE - RANGE, (w + 1) SLIDE)."""
    found: dict[Any, list[int]] = {}
    for t, k, v in given:
        for wid in range(t // slide, (t + length) // slide):
            end = (wid + 1) * slide
            found.setdefault((wid, end - length, end, k), []).append(v)
    return sorted((*key, len(values), sum(values), max(values), len(set(values))) for key, values in found.items())


DISTINCT = ", count(DISTINCT v) AS d"


def in_order(schema: Any, given: list[Any]) -> list[Any]:
    """The rows as the aggregate is given them."""
    places = {"t": 0, "k": 1, "v": 2}
    return [tuple(row[places.get(name, 2)] for name in schema.names) for row in given]


@pytest.mark.parametrize("form", ["rows", "columns", "both"])
@pytest.mark.parametrize(("length", "slide"), [(6, 2), (4, 4), (5, 3), (2, 5)])
@given(first=some_rows, second=some_rows)
def test_every_form_of_a_batch_comes_to_the_same(
    form: str, length: int, slide: int, first: list[Any], second: list[Any]
) -> None:
    aggregate, schema = operator(length, slide, DISTINCT)
    with mock.patch.object(columnar, "MIN_COLUMNAR", 1), mock.patch.object(columnar, "MAX_PENDING", 2):
        for number, part in enumerate((first, second)):
            made = in_order(schema, part)
            as_rows = form == "rows" or (form == "both" and number == 0)
            if part:
                aggregate.process(0, Batch(schema, made) if as_rows else Batch(schema, table=table_of(schema, made)))
        assert results(aggregate) == by_hand([*first, *second], length, slide)


@pytest.mark.parametrize("keys", [3, 10_000])
@pytest.mark.parametrize(("length", "slide"), [(6, 2), (4, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_in_halves_comes_to_the_same_state_as_whole(length: int, slide: int, keys: int, seed: int) -> None:
    numbers = np.random.default_rng(seed).integers(0, [40, keys, 9], (300, 3)).tolist()
    given_rows = [(t, f"k{k}", v) for t, k, v in numbers]
    kept, found = [], []
    for large in (8, 1000):
        aggregate, schema = operator(length, slide, f"{DISTINCT}, stddev(v) AS sd")
        with (
            mock.patch.object(side_by_side, "LARGE", large),
            mock.patch.object(side_by_side._OTHER, "is_of_use", True),
            mock.patch.object(pane_numbers, "MANY", large),
            mock.patch.object(group_codes, "MANY_ROWS", large),
        ):
            for start in (0, 100):
                part = in_order(schema, given_rows[start : start + 200])
                aggregate.process(0, Batch(schema, table=table_of(schema, part)))
            pages = aggregate.pages
            kept.append({key: encode(aggregate.to_plain(key, pages.get(key))) for key in pages.keys()})  # noqa: SIM118
            found.append(results(aggregate))
    assert kept[0] == kept[1]
    assert found[0] == found[1]
    assert [row[:8] for row in found[0]] == by_hand([*given_rows[:200], *given_rows[100:]], length, slide)


@pytest.mark.parametrize(("length", "slide"), [(6, 2), (4, 4), (5, 3), (2, 5)])
@given(parts=st.lists(st.tuples(st.booleans(), st.integers(0, 6), some_rows), min_size=1, max_size=5))
def test_panes_that_a_bound_leaves_open_go_on_gathering(
    length: int, slide: int, parts: list[tuple[bool, int, list[Any]]]
) -> None:
    aggregate, schema = operator(length, slide, DISTINCT)
    bound, taken, found = 0, [], []
    with mock.patch.object(columnar, "MIN_COLUMNAR", 1):
        for as_rows, step, given_rows in parts:
            on_time = [(t + bound, k, v) for t, k, v in given_rows]
            made = in_order(schema, on_time)
            if made:
                aggregate.process(0, Batch(schema, made) if as_rows else Batch(schema, table=table_of(schema, made)))
            taken += on_time
            bound += step
            found += [
                row for out in aggregate.punctuate(0, linear("t", bound)) if isinstance(out, Batch) for row in out.rows
            ]
            assert sorted(found) == [row for row in by_hand(taken, length, slide) if row[2] <= bound]
    assert sorted([*found, *results(aggregate)]) == by_hand(taken, length, slide)


def test_panes_that_were_made_elsewhere_are_taken_as_they_are() -> None:
    aggregate, schema = operator()
    keys = [table_of(schema, in_order(schema, [(0, k, 0) for k in "aab"])).column("k")]
    numbers = {"rows": [2, 1, 1], "count": [2, 1, 1], "sum": [7, -3, 5], "max": [4, -3, 5]}
    given_numbers = []
    for at, measure in enumerate(aggregate.measures):
        values = numbers["rows" if at == 0 else measure.kind]
        given_numbers.append(np.array(values, measure.dtype))
    aggregate.take_panes(np.array([0, 2, 2]), keys, given_numbers)
    same = [(0, "a", 3), (1, "a", 4), (4, "a", -3), (5, "b", 5)]
    assert results(aggregate) == [row[:-1] for row in by_hand(same, 6, 2)]
    aggregate.take_panes(np.array([], np.int64), keys, given_numbers)
    assert results(aggregate) == []


def test_groups_that_are_gone_give_up_their_codes() -> None:
    aggregate, schema = operator(2, 2, DISTINCT)
    with (
        mock.patch.object(columnar, "MIN_COLUMNAR", 1),
        mock.patch.object(columnar, "SPARE_CODES", 4),
        mock.patch.object(distinct_values, "SPARE_PAIRS", 4),
    ):
        for t in range(100):
            aggregate.process(0, Batch(schema, table=table_of(schema, in_order(schema, [(t, f"g{t}", 1)]))))
            list(aggregate.punctuate(0, linear("t", t)))
        assert len(aggregate.codes) <= 2 * 2 + 4 + 1
        (at,) = aggregate.sliding.values.columns
        assert len(aggregate.sliding.values.pairs(at, aggregate.pages)) <= 2 * 2 + 4 + 1
        assert len(list(aggregate.pages.keys())) < 12
