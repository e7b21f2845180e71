"""Where rows are read: which expressions are computed before rows go to Python.

Those of selections, and of the first projection, over columns as they are read. Whether it is better is said by the
engine, which knows what each side can do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.model.schema import Schema
from penstock.plan.expressions import Expression, columns_in
from penstock.plan.nodes import Lookup, Project, Select, Source
from penstock.plan.physical import Physical

Better = Callable[[Expression, Schema], bool]


def with_native(planned: Physical, better: Better) -> Physical:
    """The plan, in which nodes that are cut off from those with state say what is computed before."""
    looks_up = any(isinstance(each.node, Lookup) for each in planned.walk())  # in rows of a stream's own columns
    if not planned.stages or looks_up:
        return planned
    return _marked(planned, better)


def _marked(planned: Physical, better: Better) -> Physical:
    inputs = tuple(_marked(below, better) for below in planned.inputs)
    return _own(replace(planned, inputs=inputs), better)


def _own(planned: Physical, better: Better) -> Physical:
    node = planned.node
    if planned.stage or not isinstance(node, Select | Project) or not _is_read(planned.inputs[0]):
        return planned
    expressions = [node.predicate] if isinstance(node, Select) else [e for _, e in node.columns]
    given = _given_here(planned)
    native = dict.fromkeys(
        e for e in expressions if better(e, node.input.schema) and (given is None or given not in columns_in(e))
    )
    return replace(planned, native=tuple(native))


def _given_here(planned: Physical) -> str | None:
    """The column of the times that rows do not bring: what it holds is final only once they are read."""
    source = next(below.node for below in planned.walk() if isinstance(below.node, Source))
    return source.schema.time if source.stamped else None


def _is_read(planned: Physical) -> bool:
    """Whether columns are as they were read."""
    while isinstance(planned.node, Select):
        (planned,) = planned.inputs
    return isinstance(planned.node, Source)


def beside_made(planned: Physical, stream: str, schema: Schema) -> Physical:
    """A part of a plan over a stream that has more columns than it knows: those that were computed."""
    node = planned.node
    if isinstance(node, Source):
        return replace(planned, node=replace(node, fields=schema)) if node.name == stream else planned
    inputs = tuple(beside_made(below, stream, schema) for below in planned.inputs)
    return replace(planned, node=node.with_inputs(*(below.node for below in inputs)), inputs=inputs)
