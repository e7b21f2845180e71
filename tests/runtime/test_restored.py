"""A run that is snapshot and restored after every batch gives what an undisturbed one gives, for every operator.

Values are what types have at their edges: floats that are no numbers, decimals of 38 digits, integers near 64 bits,
text with anything in it, bytes, dates.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections import deque
from decimal import Decimal
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import penstock as pk
from penstock.model.batch import Batch
from penstock.model.elements import Element, Punctuation
from penstock.model.properties import StreamProperties
from penstock.operators.aggregates import columnar, partials
from penstock.operators.merge.policies import NAMES
from penstock.plan.planner import in_process
from penstock.testing.asserts import assert_same, tdb_of
from penstock.testing.replicas import histories, ordered_replicas, replicas
from tests.profiles import examples

COLUMNS = "ts bigint, k string, v bigint, d double, c decimal(38,10), b binary, day date, at timestamp"
TEXT = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(["", "a", "\0", "NULL", "ß", "\U0001f600"])
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1.5])
DECIMALS = st.integers(-(10**20), 10**20).map(lambda n: Decimal(n).scaleb(-10))
ROWS = st.lists(
    st.tuples(
        st.integers(-20, 40),
        st.none() | TEXT,
        st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
        st.none() | FLOATS,
        st.none() | DECIMALS,
        st.none() | st.binary(max_size=3),
        st.none() | st.dates(dt.date(1, 1, 1)),
        st.none() | st.integers(-(10**15), 10**15),
    ),
    max_size=14,
)


class Median:
    """Partials that are plain: sorted tuples of integers of any size."""

    def lift(self, value: Any) -> Any:
        return (value * 2**70,)

    def combine(self, left: Any, right: Any) -> Any:
        return tuple(sorted(left + right))

    def lower(self, partial: Any) -> Any:
        return partial[len(partial) // 2] // 2**70


class Newest:
    """Partials that are objects."""

    def lift(self, value: Any) -> Any:
        return deque([value], maxlen=2)

    def combine(self, left: Any, right: Any) -> Any:
        return deque(sorted([*left, *right]), maxlen=2)

    def lower(self, partial: Any) -> Any:
        return partial[-1]

    def to_state(self, partial: Any) -> Any:
        return list(partial)

    def from_state(self, data: Any) -> Any:
        return deque(data, maxlen=2)


SLIDING, TUMBLING = "[RANGE 12, SLIDE 5, WA ts]", "[RANGE 6, SLIDE 6, WA ts]"
TABLES = "count(*) AS n, avg(v) AS av, max(k) AS mk, min(c) AS mc, avg(c) AS ac, count(DISTINCT d) AS dd, max(b) AS mb"
NUMBERS = "count(*) AS n, avg(v) AS av, min(v) AS lv, max(d) AS md, min(d) AS ld, max(at) AS ma, count(d) AS nd"
QUERIES = [
    ("SELECT * FROM s", None),
    ("SELECT DISTINCT * FROM s", None),
    ("SELECT DISTINCT k, d, c FROM s", None),
    ("SELECT k, v FROM s UNION ALL SELECT upper(k), v FROM s", None),
    ("SELECT count(*) AS n, max(c) AS m [RANGE 4 rows, SLIDE 3 rows, WA row-num] FROM s", None),
    *[
        (f"SELECT {keys}, {TABLES} {window} FROM s GROUP BY {keys}", way)
        for way in ("wid", "paned")
        for window, keys in ((SLIDING, "k, d"), (TUMBLING, "c, b, day"))
    ],
    *[
        (f"SELECT k, count(v) AS n, avg(c) AS ac, count(DISTINCT k) AS dk {SLIDING} FROM s GROUP BY k", way)
        for way in ("paned", "paned differential")
    ],
    *[
        (f"SELECT {k}, {NUMBERS} {w} FROM s GROUP BY {k}", "columnar")
        for w in (SLIDING, TUMBLING)
        for k in ("k", "b, at")
    ],
    (f"SELECT {NUMBERS} {SLIDING} FROM s", "columnar"),
    *[(f"SELECT k, middle(v) AS x, newest(v) AS y {w} FROM s GROUP BY k", None) for w in (SLIDING, TUMBLING)],
]
PROGRESS = st.sampled_from(
    [
        pk.ordered(),
        pk.bounded(10),
        pk.bounded(rows=3),
        pk.estimated("25%", rows=4),
        pk.per_source("k", idle=9, disorder=4),
    ]
)


fewer = examples(15)
"""Each example is many snapshots."""


@functools.cache
def query(sql: str, progress: Any) -> Any:
    flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS, progress=progress)
    flow.aggregate("middle", Median, "bigint").aggregate("newest", Newest, "bigint")
    return flow.query(sql)


@pytest.mark.parametrize(("sql", "way"), QUERIES)
@fewer
@given(arrived=ROWS, progress=PROGRESS, form=st.sampled_from(["rows", "arrow"]), data=st.data())
def test_restored_after_every_batch(
    sql: str, way: str | None, arrived: list[Any], progress: Any, form: str, data: st.DataObject
) -> None:
    def fresh() -> Any:
        made = query(sql, progress)
        return made.execution(in_process(made.plan, made.catalog, aggregate=way))

    with mock.patch.object(partials, "MIN_COLUMNAR", 1), mock.patch.object(columnar, "MIN_COLUMNAR", 1):
        whole, disturbed = fresh(), fresh()
        schema = whole.graph.sources["s"][0].operator.schema
        expected: list[Batch | Punctuation] = []
        outputs: list[Batch | Punctuation] = []
        while arrived:
            size = data.draw(st.integers(1, 5))
            batch = Batch(schema, arrived[:size])
            arrived = arrived[size:]
            if form == "arrow":
                batch = Batch(schema, table=batch.table)
            expected += whole.feed("s", batch)
            outputs += disturbed.feed("s", batch)
            snapshot = disturbed.snapshot()
            disturbed = fresh()
            disturbed.restore(snapshot)
        expected += whole.close()
        outputs += disturbed.close()
    assert_same(tdb_of(expected), tdb_of(outputs))
    assert [p for p in expected if isinstance(p, Punctuation)] == [p for p in outputs if isinstance(p, Punctuation)]


WAYS = ["paned", "paned differential"]


@fewer
@given(ways=st.lists(st.sampled_from(WAYS), min_size=12, max_size=12), gaps=st.sets(st.integers(0, 47)))
@example(ways=[WAYS[1]] * 4 + [WAYS[0]] * 4 + [WAYS[1]] * 4, gaps=set())
def test_panes_are_combined_where_they_were_taken_out_before_and_the_other_way_round(
    ways: list[str], gaps: set[int]
) -> None:
    """What is cheaper is decided anew when a query is planned, and may be decided otherwise than by an earlier one."""
    made = query(f"SELECT k, count(v) AS n, avg(c) AS ac {SLIDING} FROM s GROUP BY k", pk.ordered())

    def fresh(way: str) -> Any:
        return made.execution(in_process(made.plan, made.catalog, aggregate=way))

    whole, changing = fresh("wid"), fresh(ways[0])
    schema = whole.graph.sources["s"][0].operator.schema
    expected: list[Batch | Punctuation] = []
    outputs: list[Batch | Punctuation] = []
    for at, way in enumerate(ways):
        ticks = [t for t in range(4 * at, 4 * at + 4) if t not in gaps]
        batch = Batch(schema, [(t, "ab"[t % 2], t, None, Decimal(t), None, None, None) for t in ticks])
        snapshot = changing.snapshot()
        changing = fresh(way)
        changing.restore(snapshot)
        expected += whole.feed("s", batch)
        outputs += changing.feed("s", batch)
    assert_same(tdb_of(expected + whole.close()), tdb_of(outputs + changing.close()))


STRICT = StreamProperties(ordered=True, strictly_ordered=True, deterministic_ties=True, lifetime=None)
TIES = StreamProperties(ordered=True, deterministic_ties=True, lifetime=None)
ORDERED = StreamProperties(ordered=True, key=frozenset({"p"}), lifetime=None)
KEYED = StreamProperties(insert_only=False, key=frozenset({"p"}), lifetime=None)
BAGS = StreamProperties(insert_only=False, lifetime=None)
MERGES: list[tuple[str, StreamProperties, dict[str, Any]]] = [
    ("R0", STRICT, {}),
    ("R1", TIES, {}),
    ("R2", ORDERED, {}),
    ("R3-", KEYED, {}),
    ("Cleanse + R1", KEYED, {}),
    *[("R3", KEYED, {"policy": policy}) for policy in NAMES.values()],
    *[("R4", BAGS, {"policy": policy}) for policy in NAMES.values()],
    *[(name, known, {"driver": "majority", "lag": 2}) for name, known in (("R3", KEYED), ("R4", BAGS))],
    ("R3", KEYED, {"on_divergence": "report"}),
]


@pytest.mark.parametrize(("algorithm", "known", "options"), MERGES)
@fewer
@given(data=st.data())
def test_a_merge_restored_after_every_element(
    algorithm: str, known: StreamProperties, options: dict[str, Any], data: st.DataObject
) -> None:
    events = data.draw(histories(bag=algorithm == "R4"))
    if algorithm == "R0":
        events = list({vs: (p, vs, ve) for p, vs, ve in events}.values())
    streams: dict[str, list[Element]] = {}
    for name in "abc":
        ordered = algorithm in ("R0", "R1", "R2")
        made = (
            ordered_replicas(events, shuffle_ties=algorithm == "R2")
            if ordered
            else replicas(events, bag=algorithm == "R4")
        )
        streams[name] = data.draw(made)

    def fresh() -> Any:
        return pk.merge({name: [] for name in "abc"}, properties=known, algorithm=algorithm, **options)

    whole, disturbed = fresh(), fresh()
    while any(streams.values()):
        name = data.draw(st.sampled_from([n for n, s in streams.items() if s]))
        element = streams[name].pop(0)
        assert disturbed.push(name, element) == whole.push(name, element)
        snapshot = disturbed.snapshot()
        disturbed = fresh()
        disturbed.restore(snapshot)
        assert disturbed.snapshot() == snapshot
    assert disturbed.stable == whole.stable
    assert disturbed.missteps == whole.missteps
    assert disturbed.divergences == whole.divergences
    assert disturbed.counts == whole.counts
