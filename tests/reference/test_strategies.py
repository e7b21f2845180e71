"""Generated input is what it promises to be."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StreamError
from penstock.model.batch import Row, rows_of
from penstock.model.progress import Progress, bounded, estimated, ordered, per_source, punctuated
from penstock.model.schema import schema_of
from penstock.model.time import SECOND, Domain
from penstock.reference.lateness import judge
from penstock.testing.generators import SCHEMA, Burst, Link, packets
from penstock.testing.strategies import arrival_orders, cuts, disordered_times, rows

WIDE = schema_of(
    [
        ("ts", "bigint"),
        ("k", "string"),
        ("v", "int"),
        ("d", "decimal(3,1)"),
        ("f", "double"),
        ("b", "boolean"),
        ("day", "date"),
    ],
    "ts",
)


def is_punctuation(row: Row) -> bool:
    return row[1] == "a"


@given(disordered_times(max_disorder=7))
def test_disorder_stays_within_its_bound(times: list[int]) -> None:
    assert all(max(times[: i + 1]) - t <= 7 for i, t in enumerate(times))


@given(rows(WIDE))
def test_rows_fit_their_schema(generated: list[Row]) -> None:
    assert all(len(row) == 7 and isinstance(row[0], int) for row in generated)


@given(st.integers(0, 12).flatmap(lambda n: st.tuples(st.just(n), cuts(n))))
def test_cuts_put_together_are_the_whole(case: tuple[int, list[slice]]) -> None:
    n, slices = case
    whole = list(range(n))
    assert [x for s in slices for x in whole[s]] == whole


@pytest.mark.parametrize(
    "progress",
    [
        ordered(),
        bounded(5),
        bounded(rows=2),
        estimated("25%", rows=4),
        punctuated("k = 'a'"),
        per_source("k"),
        per_source("k", idle=8, disorder=3),
    ],
    ids=str,
)
@given(data=st.data())
def test_in_an_allowed_order_nothing_is_late_however_it_is_cut(progress: Progress, data: st.DataObject) -> None:
    two = schema_of([("ts", "bigint"), ("k", "string")], "ts")
    drawn = data.draw(rows(two, max_size=10, nulls=False))
    order = data.draw(arrival_orders(drawn, progress, is_punctuation=is_punctuation, source_index=1))
    assert sorted(order) == sorted(drawn)
    batches = [order[s] for s in data.draw(cuts(len(order)))]
    for granularity in ("row", "batch"):
        judged = judge(
            progress,
            0,
            batches,
            granularity=granularity,
            is_punctuation=is_punctuation,
            source_index=1,
            domain=Domain.INTEGER,
        )
        assert not judged.late
        assert not judged.backwards


def test_packets_are_made_from_their_seed() -> None:
    links = {"main": Link(200, disorder=0.5), "control": Link(5, skew=2)}
    assert packets(links, 10, 1).equals(packets(links, 10, 1))
    assert not packets(links, 10, 1).equals(packets(links, 10, 2))
    assert packets(links, 10, 1).schema == SCHEMA


def test_a_link_keeps_its_disorder_bound() -> None:
    table = packets({"main": Link(200, disorder=0.5), "late": Link(100, skew=3, disorder=0.1)}, 10, 3)
    for name, seconds in (("main", 0.5), ("late", 0.1)):
        greatest = 0
        for row in rows_of(table.filter(pc.equal(table["link"], name))):
            assert greatest - row[0] <= seconds * SECOND  # type: ignore[operator]
            greatest = max(greatest, row[0])  # type: ignore[call-overload]


def test_idle_time_bursts_and_skew_show() -> None:
    plain = packets({"m": Link(1000)}, 20, 5)
    assert 18_000 < plain.num_rows < 22_000
    assert 8_000 < packets({"m": Link(1000, idle=0.5)}, 20, 5).num_rows < 12_000
    assert 36_000 < packets({"m": Link(1000, bursts=(Burst(5, 2, 11),))}, 20, 5).num_rows < 44_000
    share = pc.value_counts(plain["srcIP"]).field("counts").to_pylist()
    even = pc.value_counts(packets({"m": Link(1000)}, 20, 5, key_skew=0)["srcIP"]).field("counts").to_pylist()
    assert max(share) > 10 * max(even)


def test_a_link_out_of_range_is_refused() -> None:
    with pytest.raises(StreamError, match="out of range"):
        Link(10, idle=1.0)
