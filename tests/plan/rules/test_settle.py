"""Merges of elements are settled below what takes inserts only, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

from penstock.model.progress import Ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import BIGINT, BOOLEAN, schema_of
from penstock.model.time import Domain
from penstock.plan.expressions import AggregateCall, Call, Column, Literal
from penstock.plan.nodes import Distinct, Merge, Node, NumberRows, Select, Source, Union, WindowAggregate
from penstock.plan.rules.settle import SETTLED, settled
from penstock.plan.windows import SlidingWindow

SCHEMA = schema_of([("kind", "string"), ("vs", "bigint"), ("ve", "bigint"), ("v_old", "bigint")], "vs")
PASSING = Call("gt", (Column("vs", BIGINT), Literal(0, BIGINT)), BOOLEAN)


def merge(*, elements: bool = True) -> Merge:
    """Two replicas."""
    streams = tuple(Source(name, SCHEMA, Ordered(), StreamProperties(insert_only=False)) for name in ("a", "b"))
    return Merge(streams, ("a", "b"), "R4", elements=elements)


def windowed(node: Node, attribute: str = "vs") -> WindowAggregate:
    """Counts per window."""
    window = SlidingWindow(attribute, Domain.INTEGER, 2, 2)
    return WindowAggregate(node, window, (), (AggregateCall("count", None, BIGINT, "n"),))


def merges(plan: Node) -> list[Merge]:
    """The merges of a plan."""
    return [n for n in plan.walk() if isinstance(n, Merge)]


def test_below_each_consumer_of_inserts_through_whatever_passes_rows_on() -> None:
    for consumer in (windowed, Distinct, NumberRows):
        plan = settled(consumer(Union((Select(merge(), PASSING), merge()))))
        assert [m.policy for m in merges(plan)] == [SETTLED, SETTLED]
        assert plan.inputs[0].properties.insert_only


def test_the_nearest_consumer_is_named() -> None:
    (found,) = merges(settled(windowed(Distinct(merge()))))
    assert "Distinct takes no revisions" in found.why
    assert "WindowAggregate" not in found.why


def test_what_only_passes_rows_on_sees_revisions_and_plans_without_them_stay_as_they_are() -> None:
    for plan in (Select(merge(), PASSING), windowed(merge(elements=False)), windowed(replace(merge(), policy=SETTLED))):
        assert settled(plan) is plan


def test_a_plan_that_is_settled_stays_so() -> None:
    once = settled(windowed(merge()))
    assert settled(once) is once
