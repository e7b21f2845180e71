"""Packed rows: any column comes back as it was, in fewer bytes; the order in which they are written tells nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import table_of
from penstock.model.schema import Schema, schema_of
from penstock.operators.joins import keys as keys_module
from penstock.operators.joins.finding import Finding
from penstock.operators.joins.forms import Side
from penstock.operators.joins.index import Index, in_order
from penstock.operators.joins.keys import KeyRows
from penstock.operators.joins.nearness import Within
from penstock.operators.joins.packed import Packed
from penstock.operators.joins.runs import Run, joined

SCHEMA = schema_of(
    [("ts", "timestamp"), ("k", "bigint"), ("i", "int"), ("of_key", "bigint"), ("name", "string"), ("x", "double"),
     ("maybe", "bigint"), ("at", "timestamp")],
    "ts",
)  # fmt: skip
WIDE = [0, 1, -1, 255, 256, 2**16, -(2**31), 2**31, 2**32, -(2**63), 2**63 - 1]


def rows(draw: st.DrawFn) -> list[tuple[object, ...]]:
    number = st.sampled_from(WIDE[:6]) | st.sampled_from(WIDE)
    small = st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3)
    moment = st.sampled_from([0, 5, 10**6, 2**40, -(2**40)])
    text = st.sampled_from(["", "a", "ä", "a longer one"])
    some = st.tuples(moment, number, small, text, st.floats(allow_nan=False), st.none() | number, moment)
    made = draw(st.lists(some, min_size=1, max_size=40))
    return [(ts, k, i, k // 2, name, x, maybe, at) for ts, k, i, name, x, maybe, at in made]


def run_of(given_rows: list[tuple[object, ...]], side: Side, met: list[bool]) -> Run:
    table = table_of(side.schema, given_rows)
    return Run(table, side.times(table), np.array(met))


def pack(run: Run, side: Side, *, notes: bool) -> Packed:
    index = Index.of(KeyRows.of(run.table, side.keys), run.times)
    return Packed.of(run, index, side, notes=notes)


def side_by(schema: Schema, *names: str) -> Side:
    return Side(schema, "ts", tuple(schema.index(name) for name in names), keeps=False)


def test_what_is_kept_of_rows_has_met_what_they_met_and_came_as_they_came() -> None:
    """Rows came by descending time, so the index turns them round; those with an odd number had met one."""
    schema = Schema(SCHEMA.fields[:2], "ts")
    side = side_by(schema, "k")
    made: list[tuple[object, ...]] = [(10 - at, 7) for at in range(8)]
    met = [at % 2 == 1 for at in range(8)]
    one = pack(run_of(made, side, met), side, notes=True)
    assert (one.came.tolist(), one.met.tolist()) == ([7, 6, 5, 4, 3, 2, 1, 0], [True, False] * 4)
    kept = one.kept(np.array([True, True, False, True, False, False, True, True]))  # less those that came as 5, 3 and 2
    for each in (kept, kept.kept(np.ones(5, np.bool_)), kept.unpacked()):
        assert each.came.tolist() == [7, 6, 4, 1, 0]
        assert each.met.tolist() == [True, False, False, True, False]
    table, times, is_met = kept.to_plain()
    assert table.equals(table_of(schema, [made[at] for at in (0, 1, 4, 6, 7)]))
    assert (times.tolist(), is_met.tolist()) == ([10, 9, 6, 4, 3], [False, True, False, False, True])
    assert kept.chosen(np.flatnonzero(~kept.met)).equals(table_of(schema, [made[at] for at in (0, 4, 6)]))
    fewer = kept.unpacked().kept(np.array([True, False, True, True, False]))
    assert (fewer.came.tolist(), fewer.met.tolist()) == ([7, 4, 1], [True, False, True])


@given(st.data())
def test_rows_come_back_as_they_were_and_in_the_order_in_which_they_came(data: st.DataObject) -> None:
    side = side_by(SCHEMA, *data.draw(st.sampled_from([("k",), ("name", "k"), (), ("ts",), ("i", "name")])))
    first, second = data.draw(st.composite(rows)()), data.draw(st.composite(rows)())
    met = [data.draw(st.booleans()) for _ in first + second]
    one = pack(run_of(first, side, met[: len(first)]), side, notes=True)
    mask = np.array([data.draw(st.booleans()) for _ in range(len(one))])
    mask[0] = True
    kept = one.kept(mask)
    assert kept.take(np.arange(len(kept))).equals(one.take(np.flatnonzero(mask)))
    in_first = sorted(one.came[mask].tolist())
    assert kept.to_plain()[0].equals(table_of(SCHEMA, [first[at] for at in in_first]))
    assert kept.to_plain()[2].tolist() == [met[at] for at in in_first]
    both = joined([one, run_of(second, side, met[len(first) :])], side.times)
    table, times, is_met = pack(both, side, notes=True).to_plain()
    expected = table_of(SCHEMA, first + second)
    assert table.equals(expected)
    assert times.tolist() == side.times(expected).tolist()
    assert is_met.tolist() == met


@given(st.data())
def test_written_rows_of_which_only_pairs_come_out_do_not_tell_of_hashes(data: st.DataObject) -> None:
    side = side_by(SCHEMA, "k")
    made = data.draw(st.composite(rows)())
    met = [False] * len(made)
    written = []
    for salt in (1, 12345):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                keys_module, "hashed", lambda words, s=salt: (words[0] * s).astype(np.uint64) << np.uint64(32)
            )
            written.append(pack(run_of(made, side, met), side, notes=False).to_plain())
    assert written[0][0].equals(written[1][0])
    assert sorted(map(repr, written[0][0].to_pylist())) == sorted(map(repr, table_of(SCHEMA, made).to_pylist()))


def test_many_rows_take_less_than_half_of_their_bytes() -> None:
    random = np.random.default_rng(1)
    size = 5000
    key = random.integers(0, 200, size)
    made = [
        (10**15 + i * 1000, int(k), i % 100, int(k) * 7, f"name {k}", 0.5, 3, 10**15)
        for i, k in enumerate(key.tolist())
    ]
    schema = Schema(SCHEMA.fields[:5], "ts")
    side = side_by(schema, "k")
    table = table_of(schema, [row[:5] for row in made])
    before = pa.total_allocated_bytes()
    run = Run(table, side.times(table), np.zeros(size, np.bool_))
    packed = Finding((side, side), Within(0, 10**12), (False, False)).kept(0, run, 0, 1000)
    assert isinstance(packed, Packed)
    held = packed.index.ascending.nbytes + pa.total_allocated_bytes() - before
    for column in packed.columns:
        numbers = getattr(column, "numbers", None) or getattr(column, "codes", None)
        held += 0 if numbers is None else numbers.above.nbytes
    assert packed.of_rows is not None
    held += packed.of_rows.nbytes
    assert held < table.nbytes / 2


@pytest.mark.parametrize(
    ("form", "size", "bound", "is_packed"),
    [("adaptive", 5000, 0, True), ("adaptive", 100, 0, False), ("adaptive", 5000, 9000, False),
     ("indexed", 5000, 0, False), ("scanned", 5000, 0, False)],
)  # fmt: skip
def test_rows_are_packed_if_they_are_many_and_stay(form: str, size: int, bound: int, *, is_packed: bool) -> None:
    side = side_by(Schema(SCHEMA.fields[:2], "ts"), "k")
    table = table_of(side.schema, [(i, i) for i in range(size)])
    run = Run(table, side.times(table), np.zeros(size, np.bool_))
    kept = Finding((side, side), Within(-5000, 5000), (False, False), form).kept(0, run, bound, 1000)  # type: ignore[arg-type]
    assert isinstance(kept, Packed) == is_packed


@given(st.lists(st.integers(0, 5), max_size=30))
def test_equal_numbers_stay_as_they_come(numbers: list[int]) -> None:
    expected = sorted(range(len(numbers)), key=lambda at: (numbers[at], at))
    assert in_order(np.array(numbers, np.int64)).tolist() == expected
