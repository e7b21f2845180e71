"""Logical nodes: they fit their inputs or cannot be made, and rewrites make new ones of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import PlanError, StreamError
from penstock.model.progress import Ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import BIGINT, BOOLEAN, DOUBLE, STRING, schema_of
from penstock.model.time import Domain
from penstock.plan.expressions import AggregateCall, Call, Column, Literal
from penstock.plan.nodes import (
    Distinct,
    GroupAggregate,
    Merge,
    Node,
    NumberRows,
    Project,
    Select,
    Source,
    Union,
    WindowAggregate,
)
from penstock.plan.windows import PartitionedWindow, SlideByTupleWindow, SlidingWindow

T, G, V = Column("t", BIGINT), Column("g", STRING), Column("v", BIGINT)
WINDOW = SlidingWindow("t", Domain.INTEGER, 4, 2)
POSITIVE = Call("gt", (V, Literal(0, BIGINT)), BOOLEAN)
COUNT = AggregateCall("count", None, BIGINT, "n")


def source(name: str = "s", value: str = "bigint") -> Source:
    """A stream of t, g, v."""
    return Source(name, schema_of([("t", "bigint"), ("g", "string"), ("v", value)], "t"), Ordered(), StreamProperties())


def every_kind() -> list[Node]:
    """One of each kind of node, over sources."""
    s = source()
    return [
        s,
        NumberRows(s),
        Select(s, POSITIVE),
        Project(s, (("t", T), ("w", V)), "t"),
        Union((s, source("r"))),
        Merge((s, source("r")), ("s", "r"), "R4"),
        Distinct(s),
        GroupAggregate(s, ("g",), (COUNT,)),
        WindowAggregate(s, WINDOW, ("g",), (COUNT, AggregateCall("sum", "v", BIGINT, "x", False, BIGINT))),
    ]


@pytest.mark.parametrize("node", every_kind(), ids=lambda n: type(n).__name__)
def test_inputs_can_be_put_in_place_of_others(node: Node) -> None:
    others = tuple(source(f"other{i}") for i in range(len(node.inputs)))
    made = node.with_inputs(*others)
    assert made.inputs == others
    assert type(made) is type(node)
    assert made.with_inputs(*node.inputs) == node


@pytest.mark.parametrize("node", every_kind(), ids=lambda n: type(n).__name__)
def test_the_same_inputs_leave_the_same_object(node: Node) -> None:
    assert node.with_inputs(*node.inputs) is node
    assert node.transform(lambda n: n) is node


@pytest.mark.parametrize("node", every_kind(), ids=lambda n: type(n).__name__)
def test_the_number_of_inputs_is_fixed(node: Node) -> None:
    with pytest.raises(PlanError, match="another number of inputs"):
        node.with_inputs(*node.inputs, source("more"))


def test_a_rule_meets_inputs_before_their_consumer_and_sees_what_became_of_them() -> None:
    plan = Distinct(Select(Union((source("a"), source("b"))), POSITIVE))
    met: list[str] = []

    def rule(node: Node) -> Node:
        met.append(type(node).__name__)
        if isinstance(node, Select):
            assert [n.name for n in node.input.inputs if isinstance(n, Source)] == ["A", "B"]
            return node.input
        return replace(node, name=node.name.upper()) if isinstance(node, Source) else node

    assert plan.transform(rule) == Distinct(Union((source("A"), source("B"))))
    assert met == ["Source", "Source", "Union", "Select", "Distinct"]


def test_branches_that_a_rule_leaves_alone_stay_the_same_objects() -> None:
    kept = Select(source("kept"), POSITIVE)
    plan = Union((Select(source("changed"), POSITIVE), kept))
    made = plan.transform(lambda n: replace(n, name="x") if isinstance(n, Source) and n.name == "changed" else n)
    assert made.inputs[1] is kept
    assert made.inputs[0] == Select(source("x"), POSITIVE)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Select(source(), Call("gt", (Column("w", BIGINT), V), BOOLEAN)), ["a column that its input", "w"]),
        (lambda: Select(source(value="double"), POSITIVE), ["another type", "v as bigint", "it is double"]),
        (lambda: Select(source(), V), ["condition is a boolean", "v of type bigint"]),
        (lambda: Project(source(), (("t", T), ("w", Column("w", BIGINT))), "t"), ["a column that its input", "w"]),
        (lambda: Project(source(), (("t", T),), "t", frozenset({"u"})), ["a column that its input", "hidden", "u"]),
        (lambda: Union(()), ["has none"]),
        (lambda: Union((source(), source("r", "double"))), ["different columns", "branch 2", "double"]),
        (lambda: Union((source(), Project(source(), (("t", T),), "t"))), ["different columns", "branch 2"]),
        (lambda: Merge((source(), source("r", "double")), ("s", "r"), "R4"), ["different columns", "Merge, branch 2"]),
        (lambda: Merge((source(), source("r")), ("s",), "R4"), ["another number", "names of replicas"]),
        (lambda: WindowAggregate(source(), WINDOW, ("h",), (COUNT,)), ["a column that its input", "key", "h"]),
        (
            lambda: WindowAggregate(source(), replace(WINDOW, attribute="u"), (), (COUNT,)),
            ["a column that its input", "window", "u"],
        ),
        (
            lambda: WindowAggregate(source(), PartitionedWindow("t", Domain.INTEGER, 2, 1, ("p",)), (), (COUNT,)),
            ["a column that its input", "window", "p"],
        ),
        (
            lambda: WindowAggregate(source(), SlideByTupleWindow("t", Domain.INTEGER, 2, 1, "no"), (), (COUNT,)),
            ["a column that its input", "window", "no"],
        ),
        (
            lambda: WindowAggregate(source(), WINDOW, (), (AggregateCall("sum", "w", BIGINT, "x"),)),
            ["a column that its input", "sum(w) AS x", "w"],
        ),
        (
            lambda: WindowAggregate(
                source(), WINDOW, (), (AggregateCall("sum", "v", DOUBLE, "x", False, argument_type=DOUBLE),)
            ),
            ["another type", "v as double", "it is bigint"],
        ),
    ],
)  # fmt: skip
def test_a_node_that_does_not_fit_its_inputs_cannot_be_made(make, says: list[str]) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PlanError) as error:
        make()
    assert all(part in error.value.message for part in says), error.value.message


def test_columns_come_out_once_and_the_time_among_them() -> None:
    with pytest.raises(StreamError, match="same name"):
        _ = Project(source(), (("t", T), ("t", V)), "t").schema
    with pytest.raises(StreamError, match="time column does not exist"):
        _ = Project(source(), (("w", V),), "t").schema
    with pytest.raises(StreamError, match="same name"):
        _ = NumberRows(NumberRows(source())).schema
