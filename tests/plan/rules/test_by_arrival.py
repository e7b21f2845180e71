"""Streams that are only numbered are not judged by their time, as far down as nothing uses it."""

from __future__ import annotations

from penstock.model.progress import Ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import BIGINT, schema_of
from penstock.plan.expressions import Column
from penstock.plan.nodes import Distinct, Project, Source, Union
from penstock.plan.rules.by_arrival import numbered


def source(name: str) -> Source:
    """A stream of one column."""
    return Source(name, schema_of([("t", "bigint")], "t"), Ordered(), StreamProperties())


def test_through_unions_and_projections_but_not_through_what_has_state() -> None:
    passing = Project(source("a"), (("t", Column("t", BIGINT)),), "t")
    plan = numbered(Union((passing, Distinct(source("b")))), keeps_time=False)
    assert {n.name: n.by_arrival for n in plan.walk() if isinstance(n, Source)} == {"a": True, "b": False}


def test_rows_that_keep_their_time_are_judged_by_it() -> None:
    plan = numbered(source("a"), keeps_time=True)
    assert plan.input == source("a")
