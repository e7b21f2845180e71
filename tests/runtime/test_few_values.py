"""What is computed once for each value of a column is what is computed for each row, and what rows give."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.expressions import Expression
from penstock.plan.nodes import Node
from penstock.runtime import few_values
from penstock.runtime.column_functions import column_function
from penstock.runtime.few_values import column_of_text
from penstock.sql.binder import bind

SCHEMA = schema_of([("t", "bigint"), ("k", "string"), ("other", "string"), ("v", "int")], "t")
EXPRESSIONS = [
    "split_part(k, '-', 2)",
    "regexp_extract(k, '(-|^)([0-9]+)$', 2)",
    "CASE WHEN lower(k) = 'apple' THEN '0' WHEN k IS NULL THEN 'none' ELSE split_part(k, '-', 2) END",
    "coalesce(upper(k), 'none')",
    "length(k) + 1",
    "upper(k) LIKE 'A%' AND v > 1",
    "CASE WHEN v > 1 THEN upper(k) ELSE lower(other) END",
    "k RLIKE '^a' OR lower(k) IN ('b-2', 'apple')",
    "CASE WHEN length(k) > 2 THEN 1 ELSE 2 END",
    "cast(split_part(k, '-', 2) AS int)",
]
TEXTS = [None, "", "Apple", "a-1", "b-2", "b-x", "straße-3", "a\n-4"]


def bound(expression: str) -> tuple[Node, Expression, Catalog]:
    own = Catalog()
    own.add_stream(StreamInfo("s", SCHEMA, ordered(), StreamProperties()))
    plan = bind(f"SELECT t, {expression} AS made FROM s", own)
    return plan, dict(plan.columns)["made"], own  # type: ignore[attr-defined]


def run(plan: Node, own: Catalog, batch: Batch) -> tuple[Any, Any]:
    execution = LocalExecution(plan, own)
    found = [row for each in execution.feed("s", batch) if isinstance(each, Batch) for row in each.rows]
    return found, execution.dead_letters().to_pylist()


@given(st.sampled_from(EXPRESSIONS), st.lists(st.tuples(*[st.sampled_from(TEXTS)] * 2, st.integers(0, 3)), min_size=1))
def test_values_give_what_rows_give(expression: str, given_rows: list[tuple[Any, ...]]) -> None:
    plan, _, own = bound(expression)
    rows = [(at, *row) for at, row in enumerate(given_rows * 4)]
    table = Batch(SCHEMA, rows).table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_values, "MANY_ROWS", 1)
        by_values = run(plan, own, Batch(SCHEMA, table=table))
        cut = pa.concat_tables([table.slice(0, 3), table.slice(3)])
        assert run(plan, own, Batch(SCHEMA, table=cut)) == by_values
    assert by_values == run(plan, own, Batch(SCHEMA, table=table)) == run(plan, own, Batch(SCHEMA, rows))


def test_an_expression_is_computed_once_for_each_value_if_there_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    _, made, _ = bound("split_part(k, '-', 2)")
    sizes: list[int] = []
    split = few_values.once_each.__globals__["pa"].compute.split_pattern
    monkeypatch.setattr(
        "penstock.runtime.column_scalars.pc.split_pattern",
        lambda text, **o: (sizes.append(len(text)), split(text, **o))[1],
    )
    by_column = column_function(made, SCHEMA)
    assert by_column is not None
    for values in (10, 5000):
        rows = [(at, f"a-{at % values}", None, 0) for at in range(8000)]
        assert by_column(Batch(SCHEMA, rows).table).to_pylist() == [str(at % values) for at in range(8000)]
    assert sizes == [10, 8000]


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("upper(k)", "k"), ("k = 'a'", None), ("k IS NULL OR k IN ('a', 'b')", None), ("concat(k, other)", None),
        ("v + 1", None), ("length(k) + v", None), ("length(k) > 3", "k"), ("'a'", None),
    ],
)  # fmt: skip
def test_what_is_more_than_comparing_one_text_goes_by_values(expression: str, column: str | None) -> None:
    assert column_of_text(bound(expression)[1]) == column
