"""Windows after several streams of a join: rows meet while all of them live, in whatever order FROM names the streams.

a [RANGE 3]   0===3
b [RANGE 3]      3===6
c [RANGE 2]         6==8     a and b meet at 3, b and c at 6, and all three nowhere
"""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch
from penstock.model.progress import bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.model.tdb import TDB
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.reference.evaluation import evaluate
from penstock.sql.binder import bind
from penstock.testing.asserts import assert_sound, tdb_of
from tests.runtime.joins import run
from tests.runtime.multi_joins import ONE, TREE

SCHEMA = schema_of([("ts", "bigint"), ("k", "bigint")], "ts")
Rows = dict[str, list[tuple[int, int]]]
Windows = dict[str, int | None]


def catalog(names: str) -> Catalog:
    made = Catalog()
    for name in names:
        made.add_stream(StreamInfo(name, SCHEMA, bounded(100), StreamProperties()))
    return made


def by_lives(rows: Rows, windows: Windows, earlier: bool) -> list[tuple[int, ...]]:
    """Rows of equal keys that have a tick in common, by going through all ticks."""
    names, found = sorted(rows), []
    for met in product(*(rows[name] for name in names)):
        lives = [set(range(ts, ts + 1 + (windows[n] or 0))) for n, (ts, _) in zip(names, met, strict=True)]
        if len({k for _, k in met}) == 1 and set.intersection(*lives) and (not earlier or met[0][0] <= met[2][0]):
            found.append(tuple(ts for ts, _ in met))
    return sorted(found)


def times(result: TDB, width: int) -> list[tuple[object, ...]]:
    return sorted(payload[:width] for (payload, _, _), count in result.items() for _ in range(count))  # type: ignore[type-var]


def query(order: str, windows: Windows, hint: str, earlier: bool) -> str:
    said = [name + ("" if windows[name] is None else f" [RANGE {windows[name]}, WA ts]") for name in order]
    equal = [f"{order[0]}.k = {name}.k" for name in order[1:]] + ["a.ts <= c.ts"] * earlier
    items = ", ".join(f"{name}.ts AS {name}{name}" for name in sorted(order))
    return f"SELECT {hint} {items} FROM {', '.join(said)} WHERE {' AND '.join(equal)}"


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rows, Windows, str]:
    names = draw(st.sampled_from(["abc", "abcd"]))
    row = st.tuples(st.integers(0, 9), st.integers(0, 1))
    rows = {name: draw(st.lists(row, max_size=5)) for name in names}
    window = st.one_of(st.none(), st.integers(1, 6))
    windows = draw(st.fixed_dictionaries(dict.fromkeys(names, window)).filter(lambda w: any(w.values())))
    return rows, windows, "".join(draw(st.permutations(names)))


CHAIN: Rows = {"a": [(0, 1)], "b": [(3, 1)], "c": [(6, 1)]}
THREE: Windows = {"a": 3, "b": 3, "c": 2}


@pytest.mark.parametrize("hint", [ONE, TREE])
@given(case=cases(), earlier=st.booleans())
@example(case=(CHAIN, THREE, "abc"), earlier=False)
@example(case=(CHAIN, THREE, "acb"), earlier=False)
@example(case=({"a": [(0, 1)], "b": [(0, 1)], "c": [(2, 1)]}, {"a": 3, "b": None, "c": 3}, "abc"), earlier=False)
def test_rows_meet_while_all_of_them_live(hint: str, case: tuple[Rows, Windows, str], earlier: bool) -> None:
    rows, windows, order = case
    known = catalog(order)
    plan = bind(query(order, windows, hint, earlier), known)
    expected = by_lives(rows, windows, earlier)
    width = len(order)
    told = evaluate(plan, [(name, row) for name in order for row in rows[name]])
    assert times(told, width) == expected
    outputs = run(LocalExecution(plan, known), [(name, Batch(SCHEMA, rows[name])) for name in order if rows[name]])
    assert times(tdb_of(outputs), width) == expected
    assert_sound(outputs)


AROUND_ZERO = st.lists(st.tuples(st.integers(-12, 12), st.just(1)), max_size=6)
CUTS = {
    "floor({0}.ts / 5)": lambda ts: ts // 5,
    "{0}.ts div 5": lambda ts: int(ts / 5),
    "{0}.ts - {0}.ts % 5": lambda ts: ts - int(math.fmod(ts, 5)),
}


@pytest.mark.parametrize("cut", CUTS)
@given(
    rows=st.fixed_dictionaries(dict.fromkeys("ab", st.lists(st.tuples(st.integers(-12, 12), st.just(1)), max_size=6)))
)
def test_the_same_cut_of_both_times_is_what_it_says(cut: str, rows: Rows) -> None:
    known = catalog("ab")
    plan = bind(f"SELECT a.ts AS x, b.ts AS y FROM a JOIN b ON {cut.format('a')} = {cut.format('b')}", known)
    of = CUTS[cut]
    expected = sorted((a, b) for (a, _), (b, _) in product(rows["a"], rows["b"]) if of(a) == of(b))
    assert times(evaluate(plan, [(name, row) for name in "ab" for row in rows[name]]), 2) == expected
    outputs = run(LocalExecution(plan, known), [(name, Batch(SCHEMA, rows[name])) for name in "ab" if rows[name]])
    assert times(tdb_of(outputs), 2) == expected
    assert_sound(outputs)
