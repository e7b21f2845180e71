"""Joins in the buckets of a hosted plan, without Spark: groups that end, the earlier time, keys and small bursts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch, Row
from penstock.model.progress import Punctuated, bounded, punctuated
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Join
from penstock.plan.rules.smooth import smoothed
from penstock.reference import evaluate
from penstock.reference.arrivals import Arrivals
from penstock.sql.binder import bind
from penstock.testing.strategies import cuts
from tests.engines.hosted import HostedPlan, results
from tests.profiles import examples
from tests.runtime.test_groupwise import ROWS, SCHEMA, catalog
from tests.runtime.test_joined_groups import ON, WHOLE, WINDOWED
from tests.runtime.test_whole_groups import without_b

BUCKETS = 3
FINAL = punctuated("p", per=["a"], final=True)
LEAST = f"SELECT x.a, count(*) AS n {ON.format('JOIN')} GROUP BY x.a, least(x.ts, y.ts)"
OUTER = [f"SELECT x.a, x.v, y.v AS w {ON.format('FULL JOIN')}", f"SELECT x.a, x.v, x.ts {ON.format('LEFT ANTI JOIN')}"]


def hosted(plan: object, own: Catalog, batches: dict[str, list[list[Row]]]) -> Counter[Row]:
    """What the buckets give out of micro-batches, in each of which every stream has a part."""
    made = HostedPlan(plan, own, BUCKETS)  # type: ignore[arg-type]
    out: list[Row] = []
    for number in range(max(map(len, batches.values()), default=0)):
        parts = {n: [Batch(SCHEMA, each[number]).table] for n, each in batches.items() if number < len(each)}
        out += results(made.run_all(parts))
    return Counter(out + results(made.close()))


def expected(plan: object, own: Catalog, progress: Punctuated, batches: dict[str, list[list[Row]]]) -> Counter[Row]:
    """What the oracle says of the rows that are on time where micro-batches are judged as a whole."""
    rows: list[tuple[str, Row]] = []
    for name, each in batches.items():
        judged = Arrivals(name, SCHEMA, progress, tuple(map(tuple, each))).judge("batch", Catalog())
        rows += [(name, row) for row, is_late in judged.data if not is_late]
    return Counter(payload for (payload, *_), n in evaluate(plan, rows).items() for _ in range(n))  # type: ignore[arg-type]


@pytest.mark.parametrize("burst", [None, 1])
@pytest.mark.parametrize("sql", [WHOLE[0], WHOLE[2], WHOLE[5], WINDOWED[0], LEAST, *OUTER])
@given(left=ROWS, right=ROWS, data=st.data())
@examples(15)
def test_buckets_together_say_what_the_oracle_says(
    sql: str, burst: int | None, left: list[Row], right: list[Row], data: st.DataObject
) -> None:
    own = catalog(FINAL, "s", "z")
    plan = bind(sql, own)
    rows = {"s": without_b(left), "z": without_b(right)}
    batches = {name: [each[c] for c in data.draw(cuts(len(each)))] for name, each in rows.items()}
    visible = [i for i, field in enumerate(plan.schema.fields) if not field.hidden]
    found = hosted(plan if burst is None else smoothed(plan, burst), own, batches)
    shown: Counter[Row] = Counter()
    for row, times in found.items():
        shown[tuple(row[i] for i in visible) if len(row) > len(visible) else row] += times
    assert shown == expected(plan, own, FINAL, batches)


@given(
    keyed=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=10, unique_by=lambda row: row[1]),
    others=st.lists(st.tuples(st.integers(0, 20), st.sampled_from([*range(10), None])), max_size=20),
    sql=st.sampled_from([*OUTER, WINDOWED[0]]),
    data=st.data(),
)
@examples(25)
def test_a_key_changes_nothing(
    keyed: list[tuple[int, int]], others: list[tuple[int, int | None]], sql: str, data: st.DataObject
) -> None:
    rows = {
        name: [(t, k, "x", i, None) for i, (t, k) in enumerate(each)] for name, each in (("s", keyed), ("z", others))
    }
    batches = {name: [each[c] for c in data.draw(cuts(len(each)))] for name, each in rows.items()}
    found = []
    for unique in (None, frozenset({"a"})):
        own = catalog(bounded(30), "s", "z")  # type: ignore[arg-type]
        declared = own.streams["s"]
        own.streams["s"] = replace(declared, properties=replace(declared.properties, unique=unique))
        plan = bind(sql, own)
        assert [node.once[1] for node in plan.walk() if isinstance(node, Join)] == [unique is not None]
        found.append(hosted(plan, own, batches))
    assert found[0] == found[1]
