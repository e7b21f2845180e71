"""The paper's own examples, with its numbers: Tables I to III and the compatibility example of section III."""

from __future__ import annotations

import pytest

from penstock.model.elements import Adjust, Element, Insert, linear
from penstock.model.tdb import TDB, tdb
from penstock.model.time import END_OF_TIME
from penstock.operators.merge.r3 import R3
from penstock.reference.merge import Prefix, incompatibilities

A, B, C, D, E = (("A",), ("B",), ("C",), ("D",), ("E",))


def stable(bound: int) -> Element:
    return linear("vs", bound)


# Table II, which is Table I in terms of insert and adjust; rows are instants of system time.
PHY1 = [
    (3, Insert(B, 8, END_OF_TIME)), (4, Insert(A, 6, 12)), (5, Adjust(B, 8, END_OF_TIME, 10)),
    (6, stable(11)), (7, stable(END_OF_TIME)),
]  # fmt: skip
PHY2 = [
    (1, Insert(A, 6, 7)), (2, Insert(B, 8, 15)), (3, Adjust(A, 6, 7, 12)), (5, Adjust(B, 8, 15, 10)),
    (7, stable(END_OF_TIME)),
]  # fmt: skip
LEASES = TDB([(A, 6, 12), (B, 8, 10)])


def merged(merge: R3, **streams: list[tuple[int, Element]]) -> list[Element]:
    """All streams by system time; at the same instant, in the order given."""
    arrivals = sorted(((at, name, e) for name, stream in streams.items() for at, e in stream), key=lambda x: x[0])
    return [out for _, name, element in arrivals for out in merge.push(name, element)]


def test_table_2_both_streams_are_the_leases() -> None:
    assert tdb(e for _, e in PHY1) == tdb(e for _, e in PHY2) == LEASES


def test_table_2_merged_is_the_leases() -> None:
    output = merged(R3(["phy1", "phy2"]), phy1=PHY1, phy2=PHY2)
    assert tdb(output) == LEASES
    assert output[-1] == stable(END_OF_TIME)


def test_table_2_a_bound_waits_for_the_adjusts_that_it_would_make_impossible() -> None:
    """Only phy2's inserts are out when phy1 says stable(11): A must become [6, 12) and B [8, 10) first."""
    merge = R3(["phy1", "phy2"])
    seen = merged(merge, phy2=PHY2[:2], phy1=PHY1[:3])
    assert tdb(seen) == TDB([(A, 6, 7), (B, 8, 15)])
    assert merge.push("phy1", stable(11)) == [Adjust(A, 6, 7, 12), Adjust(B, 8, 15, 10), stable(11)]


IN1 = [(1, Insert(A, 6, 10)), (4, Adjust(A, 6, 10, 15))]
IN2 = [(2, Insert(A, 6, 12)), (3, Insert(B, 7, 14)), (5, Adjust(A, 6, 12, 15)), (6, stable(16))]
OUT1 = [Insert(A, 6, 10), Adjust(A, 6, 10, 12), Insert(B, 7, 14), Adjust(A, 6, 12, 15), stable(16)]
OUT2 = [Insert(A, 6, 15), Insert(B, 7, 14), stable(16)]
OUT3 = [Insert(A, 6, 10), Insert(B, 7, 14), Adjust(A, 6, 10, 15), stable(16)]


@pytest.mark.parametrize(("policy", "expected"), [("reflect all", OUT1), ("conservative", OUT2), ("first seen", OUT3)])
def test_table_3_policies_trade_chattiness_for_time(policy: str, expected: list[Element]) -> None:
    merge = R3(["in1", "in2"], policy=policy)
    assert merged(merge, in1=IN1, in2=IN2) == expected
    assert merge.counts.adjusts_out == sum(isinstance(e, Adjust) for e in expected)


# Section III: what may be put out for two inputs

I1 = Prefix(TDB([(A, 2, 16), (B, 3, 10), (C, 4, 18), (D, 15, 20)]), 14)
I2 = Prefix(TDB([(A, 2, 12), (B, 3, 10), (C, 4, 18), (E, 17, 21)]), 11)
O1 = Prefix(TDB([(A, 2, END_OF_TIME), (B, 3, 10), (C, 4, END_OF_TIME)]), 11)
O2 = Prefix(TDB([(A, 2, 16), (B, 3, 10), (C, 4, 18), (D, 15, 20), (E, 17, 21)]), 14)
O3 = Prefix(TDB([(A, 2, 12), (C, 4, 18)]), 13)


@pytest.mark.parametrize("output", [O1, O2])
def test_a_conservative_and_an_aggressive_output_are_compatible(output: Prefix) -> None:
    assert incompatibilities([I1, I2], output) == []


def test_an_output_that_froze_a_wrong_end_and_lacks_a_frozen_event_is_not_compatible() -> None:
    reasons = incompatibilities([I1, I2], O3)
    assert any("'A'" in r and "end 12" in r for r in reasons)
    assert any("'B'" in r and "lacks the end 10" in r for r in reasons)
    assert len(reasons) >= 2


def test_an_output_that_lags_is_compatible() -> None:
    """C2 with L <= L_m: as printed, with L_m <= L, this would be rejected."""
    assert incompatibilities([I1], Prefix(TDB([(A, 2, 16), (B, 3, 10), (C, 4, 18)]), 5)) == []
