"""The quantities by which the cost of a logical merge is told (LMerge, section IV-E), on streams written by hand."""

from __future__ import annotations

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.model.elements import Adjust, Insert, linear
from penstock.operators.merge.measures import measures_alone
from penstock.operators.merge.ordered import R0, R1, R2

END = pk.END_OF_TIME
KEYED = pk.StreamProperties(insert_only=False, key=frozenset(), lifetime=None)


def test_dhcp_leases_of_the_paper_as_they_come() -> None:
    # Table II: two physical streams of one logical stream
    merged = pk.merge({"phy1": [], "phy2": []}, properties=KEYED)
    merged.push("phy2", Insert(("A",), 6, 7))
    merged.push("phy2", Insert(("B",), 8, 15))
    merged.push("phy1", Insert(("B",), 8, END))
    merged.push("phy2", Adjust(("A",), 6, 7, 12))
    merged.push("phy1", Insert(("A",), 6, 12))
    merged.push("phy1", Adjust(("B",), 8, END, 10))
    found = merged.statistics()
    assert (found.algorithm, found.w, found.d, found.g, found.h, found.c) == ("R3", 2, 1, 1, 0, None)
    assert [(each.name, each.stable, each.lag) for each in found.inputs] == [("phy1", None, None), ("phy2", None, None)]
    merged.push("phy1", linear("vs", 11))
    found = merged.statistics()
    # stable(11): B [8, 10) is fully frozen, A [6, 12) half frozen
    assert (found.w, found.h, found.c) == (1, 1, 1.0)
    assert [(each.stable, each.lag) for each in found.inputs] == [(11, 0), (None, None)]
    # A is moved from 7 to 12, B from 15 to 10
    assert (found.inserts_out, found.adjusts_out, found.removals_out) == (2, 2, 0)
    merged.push("phy1", linear("vs", END))
    found = merged.statistics()
    assert (found.w, found.h, found.c) == (0, 0, 1.0)
    assert [each.lag for each in found.inputs] == [0, None]


def test_events_that_are_there_several_times() -> None:
    merged = pk.merge({"a": [], "b": []}, algorithm="R4")
    for _ in range(3):
        merged.push("a", Insert(("x",), 5, 9))
    merged.push("a", Insert(("y",), 5, 9))
    merged.push("b", Insert(("x",), 5, 9))
    merged.push("b", Insert(("z",), 6, 7))
    found = merged.statistics()
    assert (found.algorithm, found.w, found.d, found.g) == ("R4", 3, 3, 4)
    merged.push("a", linear("vs", 6))
    assert merged.statistics().h == 2


def test_removals_and_what_is_held_back() -> None:
    merged = pk.merge({"a": [], "b": []}, properties=KEYED, policy="half frozen")
    merged.push("a", Insert(("x",), 5, 9))
    assert merged.statistics().held_back == 1
    merged.push("a", linear("vs", 6))
    assert (merged.statistics().held_back, merged.statistics().inserts_out) == (0, 1)
    early = pk.merge({"a": [], "b": []}, properties=KEYED)
    early.push("b", Insert(("x",), 5, 9))
    early.push("a", linear("vs", 8))
    assert (early.statistics().adjusts_out, early.statistics().removals_out) == (1, 1)


def test_ordered_merges_keep_next_to_nothing() -> None:
    for kind, known in ((R0, 0), (R1, 0), (R2, 2)):
        merged = kind(["a", "b"])
        merged.push("a", Insert(("x",), 5, 6))
        if kind is not R0:
            merged.push("a", Insert(("y",), 5, 6))
        found = measures_alone(merged)
        assert (found.algorithm, found.w, found.g, found.d, found.h) == (kind.name, known, known, min(known, 1), 0)


def test_a_merge_in_a_graph_has_its_quantities_in_the_statistics() -> None:
    flow = pk.Flow()
    for name in ("a", "b"):
        flow.stream(name, [], time="ts", schema="ts bigint, v bigint", progress=pk.punctuated("v < 0"))
    flow.merge("m", ["a", "b"], key=["v"], algorithm="R3")
    run = SharedExecution(flow.catalog, {"q": flow.query("SELECT ts, v FROM m").plan})
    push = {name: run.pusher(name) for name in ("a", "b")}
    for t in range(10):
        push["a"]((t, t))
    push["b"]((3, 3))
    push["a"]((6, -1))
    run.take()
    (found,) = [each.merge for each in run.statistics().operators if each.merge is not None]
    # of ten rows that live for a tick, the bound 6 freezes five for good; that of 5 may still be adjusted to end later
    assert (found.algorithm, found.w, found.d, found.g, found.h, found.c) == ("R3", 5, 1, 1, 1, 5.0)
    assert [(each.name, each.stable, each.lag) for each in found.inputs] == [("a", 6, 0), ("b", None, None)]
    assert (found.inserts_out, found.adjusts_out, found.held_back) == (6, 0, 4)
